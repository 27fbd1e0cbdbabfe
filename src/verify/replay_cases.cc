#include "verify/replay_cases.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxCasesBytes = uint64_t{256} << 20;

Path CasesPath(const Path& dir) { return dir / "cases_replay.json"; }

int64_t CountOr0(const Json& value) { return value.is_null() ? 0 : value.get<int64_t>(); }

Result<ReplayRecord::Kind> ParseWindows(const Json& value) {
  if (value.is_null()) return ReplayRecord::Kind::kNone;
  if (value == "snapshot") return ReplayRecord::Kind::kSnapshot;
  if (value == "bounded") return ReplayRecord::Kind::kBounded;
  if (value == "exact") return ReplayRecord::Kind::kExact;
  return CorruptData(
      fmt::format("windows: found {}, expected snapshot, bounded or exact", value.dump()));
}

Result<PrefillOptions> ParsePrefill(const Json& item) {
  const auto name = item.at("prefill").get<std::string>();
  const std::optional<PrefillMode> mode = PrefillModeFromName(name);
  if (!mode) {
    return CorruptData(
        fmt::format("prefill: found '{}', expected full, exact, compact or mask", name));
  }
  return PrefillOptions{.mode = *mode, .keep = CountOr0(item.at("keep"))};
}

Result<ReplayCase> ParseCase(const Json& item) {
  ReplayCase c;
  c.tag = item.at("tag").get<std::string>();
  c.numerics = item.at("numerics") == "fp32" ? Numerics::kFp32 : Numerics::kRelease;
  c.prompt_name = item.at("prompt").get<std::string>();
  ASSIGN_OR_RETURN(c.prefill, ParsePrefill(item));
  c.chunk = CountOr0(item.at("chunk"));
  c.matched = CountOr0(item.at("matched"));
  c.hit = item.at("hit").get<int64_t>();
  ASSIGN_OR_RETURN(c.windows, ParseWindows(item.at("windows")));
  c.steps = item.at("steps").get<int64_t>();
  c.floors = {.encoder = item.at("floor").at(0).get<int64_t>(),
              .decoder = item.at("floor").at(1).get<int64_t>()};
  c.stored_by = item.value("equal_to", c.tag);
  if (!item.contains("state")) return c;
  for (const auto& [name, stored] : item["state"].items()) {
    c.state[name] = {.stored_by = stored.at(0).get<std::string>(),
                     .first_row = stored.at(1).get<int64_t>()};
  }
  return c;
}

}  // namespace

bool ReplayFolder::IsIn(const Path& dir) { return std::filesystem::exists(CasesPath(dir)); }

Result<ReplayFolder> ReplayFolder::Open(const Path& dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(CasesPath(dir), kMaxCasesBytes));
  ASSIGN_OR_RETURN(SafetensorsFile tensors,
                   SafetensorsFile::Open(dir / "golden_replay.safetensors"));
  ReplayFolder folder{.prompts = {}, .block = 0, .cases = {}, .tensors = std::move(tensors)};
  try {
    const Json json = Json::parse(text);
    folder.block = json.at("block").get<int64_t>();
    for (const auto& [name, ids] : json.at("prompts").items()) {
      folder.prompts[name] = ids.get<std::vector<int32_t>>();
    }
    for (const Json& item : json.at("cases")) {
      ASSIGN_OR_RETURN(ReplayCase parsed, ParseCase(item));
      if (!folder.prompts.contains(parsed.prompt_name)) {
        return CorruptData(fmt::format("{}: case {}: found prompt '{}', expected one of `prompts`",
                                       CasesPath(dir).string(), parsed.tag, parsed.prompt_name));
      }
      folder.cases.push_back(std::move(parsed));
    }
  } catch (const Json::exception& error) {
    return CorruptData(fmt::format("{}: {}", CasesPath(dir).string(), error.what()));
  }
  return folder;
}

}  // namespace deepinfer
