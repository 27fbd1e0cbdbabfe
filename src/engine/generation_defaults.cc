#include "engine/generation_defaults.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;
constexpr double kRecommendedTemperature = 1.0;
constexpr double kRecommendedTopP = 0.95;

Result<SamplingParams> Parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return CorruptData("found no JSON object, expected one");
  SamplingParams params{.temperature = kRecommendedTemperature, .top_p = kRecommendedTopP};
  double top_k = 0;
  const std::pair<const char*, double*> fields[] = {
      {"temperature", &params.temperature},
      {"top_p", &params.top_p},
      {"top_k", &top_k},
      {"min_p", &params.min_p},
      {"repetition_penalty", &params.repetition_penalty}};
  for (const auto& [name, value] : fields) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) continue;
    if (!found->is_number()) {
      return CorruptData(fmt::format("{}: found {}, expected a number", name, found->dump()));
    }
    *value = found->get<double>();
  }
  params.top_k = static_cast<int>(top_k);
  if (json.value("do_sample", true) == false) params.temperature = 0;
  RETURN_IF_ERROR(params.Validate(std::numeric_limits<int32_t>::max()));
  return params;
}

}  // namespace

Result<SamplingParams> LoadGenerationDefaults(const Path& model_dir) {
  const Path path = model_dir / "generation_config.json";
  if (!FileExists(path)) {
    return SamplingParams{.temperature = kRecommendedTemperature, .top_p = kRecommendedTopP};
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  Result<SamplingParams> params = Parse(text);
  if (!params.ok()) return std::move(params).status().WithContext(path.string());
  return params;
}

}  // namespace deepinfer
