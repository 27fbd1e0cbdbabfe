#include "verify/golden_cases.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxCasesBytes = uint64_t{256} << 20;

GoldenRun ParseRun(const Json& json) {
  return {.steps = json.at("steps").get<int64_t>(),
          .greedy = json.at("greedy").get<std::vector<int32_t>>(),
          .agree_rows = json.value("agree_rows", int64_t{0})};
}

GoldenCase ParseCase(const Json& json) {
  GoldenCase c{.tag = json.at("tag").get<std::string>(),
               .prompt = json.at("prompt").get<std::vector<int32_t>>(),
               .token_types = {},
               .released_index_keys = json.value("released_index_keys", false),
               .release = std::nullopt,
               .fp32 = std::nullopt};
  if (json.contains("token_types") && !json["token_types"].is_null()) {
    c.token_types = json["token_types"].get<std::vector<int>>();
  }
  if (json.contains("release")) c.release = ParseRun(json["release"]);
  if (json.contains("fp32")) c.fp32 = ParseRun(json["fp32"]);
  return c;
}

Status OpenTensors(const Path& path, std::optional<SafetensorsFile>& out) {
  if (!std::filesystem::exists(path)) return Status::Ok();
  ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  out.emplace(std::move(file));
  return Status::Ok();
}

}  // namespace

Result<GoldenFolder> GoldenFolder::Open(const Path& dir) {
  GoldenFolder folder{.dir = dir, .weights_dir = dir, .cases = {}, .release = {}, .fp32 = {}};
  const Path path = dir / "cases.json";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxCasesBytes));
  try {
    const Json json = Json::parse(text);
    for (const Json& item : json.at("cases")) folder.cases.push_back(ParseCase(item));
    if (json.contains("weights")) folder.weights_dir = dir / json["weights"].get<std::string>();
  } catch (const Json::exception& error) {
    return CorruptData(fmt::format("{}: {}", path.string(), error.what()));
  }
  RETURN_IF_ERROR(OpenTensors(dir / "golden_release.safetensors", folder.release));
  RETURN_IF_ERROR(OpenTensors(dir / "golden_fp32.safetensors", folder.fp32));
  if (!folder.release && !folder.fp32) {
    return NotFound(fmt::format(
        "{}: found neither golden_release.safetensors nor golden_fp32.safetensors, expected one",
        dir.string()));
  }
  return folder;
}

}  // namespace deepinfer
