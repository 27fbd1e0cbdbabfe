#include "apps/model_dir.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace deepinfer {
namespace {

constexpr const char* kNano = "models/nano";
constexpr const char* kInstalledNano = "share/deepinfer/models/nano";

}  // namespace

std::vector<Path> DefaultModelPlaces() {
  std::vector<Path> places;
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(program.parent_path() / kNano);
    places.push_back(program.parent_path().parent_path() / kInstalledNano);
  }
  places.push_back(Path(".") / kNano);
  places.push_back(Path(DEEPINFER_SOURCE_DIR) / kNano);
  places.push_back(Path(DEEPINFER_INSTALL_PREFIX) / kInstalledNano);
  return places;
}

Result<Path> FindModelDir(const Path& given) {
  if (!given.empty()) return given;
  std::vector<std::string> tried;
  for (const Path& place : DefaultModelPlaces()) {
    if (FileExists(place / "config.json")) return place;
    if (std::find(tried.begin(), tried.end(), place.string()) == tried.end()) {
      tried.push_back(place.string());
    }
  }
  return NotFound(fmt::format(
      "found no shipped model in {}; expected one of them to exist, or --model DIR to name one",
      fmt::join(tried, ", ")));
}

}  // namespace deepinfer
