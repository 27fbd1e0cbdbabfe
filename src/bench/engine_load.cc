#include "bench/engine_load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/check.h"
#include "base/random.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

// What a draw is for; keeps the draws of one request apart.
enum class Draw : uint32_t { kArrival, kPromptLen, kOutputLen, kShared, kToken, kSeed };

// The beginning that prompts share is that of a request which there is none of.
constexpr uint32_t kSharedRequest = 0xffffffff;

class Draws {
 public:
  Draws(uint64_t seed, uint32_t request) : seed_(seed), request_(request) {}

  PhiloxBlock Block(Draw purpose, uint32_t index = 0) const {
    return Philox(seed_, {request_, index, static_cast<uint32_t>(purpose), 0x6c6f6164});
  }
  // In (0, 1).
  double Uniform(Draw purpose, int word = 0) const {
    const PhiloxBlock block = Block(purpose);
    return UniformOpen(block[static_cast<size_t>(2 * word)],
                       block[static_cast<size_t>(2 * word + 1)]);
  }
  double Normal(Draw purpose) const {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(Uniform(purpose, 0)));
    return radius * std::cos(2 * std::numbers::pi * Uniform(purpose, 1));
  }
  int64_t Length(const LengthDistribution& lengths, Draw purpose) const {
    if (lengths.median == 0) {
      const auto span = static_cast<double>(lengths.max - lengths.min + 1);
      const auto above = static_cast<int64_t>(span * Uniform(purpose));
      return std::min(lengths.min + above, lengths.max);
    }
    const double length =
        static_cast<double>(lengths.median) * std::exp(lengths.spread * Normal(purpose));
    return std::clamp(static_cast<int64_t>(length), lengths.min, lengths.max);
  }
  void AppendTokens(int64_t count, int64_t vocab_size, std::vector<int32_t>& tokens) const {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t word = Block(Draw::kToken, static_cast<uint32_t>(i))[0];
      tokens.push_back(static_cast<int32_t>(word % static_cast<uint64_t>(vocab_size)));
    }
  }

 private:
  uint64_t seed_;
  uint32_t request_;
};

// One table for reading, writing and the list of names.
template <typename Visitor>
void VisitFields(EngineLoad& load, Visitor visit) {
  visit("name", load.name);
  visit("requests", load.requests);
  visit("rate", load.rate);
  visit("in_flight", load.in_flight);
  visit("prompt", load.prompt);
  visit("output", load.output);
  visit("shared_share", load.shared_share);
  visit("shared_len", load.shared_len);
  visit("temperature", load.temperature);
  visit("seed", load.seed);
}

template <typename Visitor>
void VisitFields(LengthDistribution& lengths, Visitor visit) {
  visit("min", lengths.min);
  visit("max", lengths.max);
  visit("median", lengths.median);
  visit("spread", lengths.spread);
}

template <typename T>
constexpr bool kIsFields = std::is_same_v<T, LengthDistribution>;

template <typename T>
Status ReadFields(const Json& json, T& target);

template <typename T>
Status ReadValue(const Json& json, T& value) {
  if constexpr (kIsFields<T>) {
    return ReadFields(json, value);
  } else {
    const bool fits = std::is_same_v<T, std::string> ? json.is_string()
                      : std::is_same_v<T, double>    ? json.is_number()
                      : std::is_same_v<T, uint64_t>  ? json.is_number_unsigned()
                                                     : json.is_number_integer();
    if (!fits) {
      return InvalidArgument(
          fmt::format("found {}, expected {}", json.dump(),
                      std::is_same_v<T, std::string>
                          ? "a string"
                          : (std::is_same_v<T, double> ? "a number" : "an integer")));
    }
    value = json.get<T>();
    return Status::Ok();
  }
}

template <typename T>
Status ReadFields(const Json& json, T& target) {
  if (!json.is_object()) {
    return InvalidArgument(fmt::format("found {}, expected an object", json.type_name()));
  }
  std::vector<std::string> names;
  Status status;
  VisitFields(target, [&](const char* name, auto& value) {
    names.emplace_back(name);
    if (status.ok() && json.contains(name)) {
      status = ReadValue(json.at(name), value).WithContext(name);
    }
  });
  RETURN_IF_ERROR(status);
  for (const auto& [key, value] : json.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    return InvalidArgument(
        fmt::format("found unknown field '{}', expected one of {}", key, fmt::join(names, ", ")));
  }
  return Status::Ok();
}

template <typename T>
Json WriteFields(T target) {
  Json json = Json::object();
  VisitFields(target, [&](const char* name, auto& value) {
    if constexpr (kIsFields<std::remove_cvref_t<decltype(value)>>) {
      json[name] = WriteFields(value);
    } else {
      json[name] = value;
    }
  });
  return json;
}

Status CheckLengths(const LengthDistribution& lengths, std::string_view name) {
  const bool in_order = lengths.min >= 1 && lengths.max >= lengths.min;
  if (in_order && lengths.spread >= 0 && lengths.median >= 0) return Status::Ok();
  return InvalidArgument(fmt::format(
      "{}: found min {}, max {}, median {}, spread {}, expected 1 <= min <= max and none below 0",
      name, lengths.min, lengths.max, lengths.median, lengths.spread));
}

Status CheckLoad(const EngineLoad& load) {
  RETURN_IF_ERROR(CheckLengths(load.prompt, "prompt"));
  RETURN_IF_ERROR(CheckLengths(load.output, "output"));
  if (load.requests < 1) {
    return InvalidArgument(fmt::format("requests: found {}, expected 1 or more", load.requests));
  }
  if (load.rate < 0 || load.in_flight < 0 || load.shared_len < 0) {
    return InvalidArgument(
        fmt::format("found rate {}, in_flight {}, shared_len {}, expected none below 0", load.rate,
                    load.in_flight, load.shared_len));
  }
  if (load.shared_share >= 0 && load.shared_share <= 1) return Status::Ok();
  return InvalidArgument(fmt::format("shared_share: found {}, expected 0 to 1", load.shared_share));
}

const std::vector<EngineLoad>& BuiltIn() {
  static const std::vector<EngineLoad> loads = {
      // People who write: short turns at their own pace.
      {.name = "chat",
       .requests = 32,
       .rate = 2,
       .prompt = {.min = 8, .max = 512, .median = 64, .spread = 0.8},
       .output = {.min = 8, .max = 256, .median = 64, .spread = 0.7}},
      // Coding agents: long prompts with the same beginning, short answers.
      {.name = "agent",
       .requests = 16,
       .rate = 0.5,
       .prompt = {.min = 32, .max = 1024, .median = 256, .spread = 0.7},
       .output = {.min = 8, .max = 128, .median = 32, .spread = 0.7},
       .shared_share = 0.9,
       .shared_len = 512},
      // A file of prompts: everything is there from the start.
      {.name = "batch",
       .requests = 64,
       .prompt = {.min = 32, .max = 96},
       .output = {.min = 32, .max = 32}},
  };
  return loads;
}

}  // namespace

std::vector<std::string> EngineLoadNames() {
  std::vector<std::string> names;
  for (const EngineLoad& load : BuiltIn()) names.push_back(load.name);
  return names;
}

EngineLoad EngineLoadNamed(std::string_view name) {
  const auto found = std::find_if(BuiltIn().begin(), BuiltIn().end(),
                                  [&](const EngineLoad& load) { return load.name == name; });
  CHECK(found != BuiltIn().end());
  return *found;
}

Result<EngineLoad> ParseEngineLoad(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return InvalidArgument("found malformed JSON, expected an object");
  EngineLoad load{.name = "custom"};
  RETURN_IF_ERROR(ReadFields(json, load));
  RETURN_IF_ERROR(CheckLoad(load));
  return load;
}

std::string EngineLoadJson(const EngineLoad& load) { return WriteFields(load).dump(2); }

std::vector<LoadRequest> MakeRequests(const EngineLoad& load, int64_t vocab_size) {
  std::vector<LoadRequest> requests;
  double arrival = 0;
  for (int64_t i = 0; i < load.requests; ++i) {
    const Draws draws(load.seed, static_cast<uint32_t>(i));
    LoadRequest request{.arrival = arrival,
                        .prompt = {},
                        .output_len = draws.Length(load.output, Draw::kOutputLen),
                        .seed = draws.Block(Draw::kSeed)[0]};
    if (draws.Uniform(Draw::kShared) < load.shared_share) {
      Draws(load.seed, kSharedRequest).AppendTokens(load.shared_len, vocab_size, request.prompt);
    }
    draws.AppendTokens(draws.Length(load.prompt, Draw::kPromptLen), vocab_size, request.prompt);
    requests.push_back(std::move(request));
    // Independent users: the time between two arrivals is exponentially distributed.
    if (load.rate > 0) arrival += -std::log(draws.Uniform(Draw::kArrival)) / load.rate;
  }
  return requests;
}

}  // namespace deepinfer
