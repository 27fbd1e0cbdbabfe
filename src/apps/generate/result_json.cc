#include "apps/generate/result_json.h"

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

Json TokenJson(const Engine& engine, int32_t token, float logprob) {
  return {{"id", token}, {"text", engine.Decode({&token, 1})}, {"logprob", logprob}};
}

Json LogprobsJson(const Answer& answer, const Engine& engine) {
  Json list = Json::array();
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    Json entry = TokenJson(engine, answer.tokens[i], answer.logprobs[i]);
    entry["top"] = Json::array();
    for (size_t k = 0; k < static_cast<size_t>(answer.num_alternatives); ++k) {
      const TokenAlternative& top =
          answer.alternatives[i * static_cast<size_t>(answer.num_alternatives) + k];
      entry["top"].push_back(TokenJson(engine, top.token, top.logprob));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// Replaces what is no UTF-8: an id or a message may quote bytes from outside.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string ResultJson(const Answer& answer, const Engine& engine, std::string_view id) {
  Json json = Json::object();
  if (!id.empty()) json["id"] = Json::parse(id);
  json["text"] = answer.text;
  json["tokens"] = answer.tokens;
  json["finish_reason"] = FinishReasonName(answer.finish_reason);
  if (!answer.stop_string.empty()) json["stop"] = answer.stop_string;
  json["usage"] = {{"prompt_tokens", answer.prompt_len},
                   {"completion_tokens", answer.tokens.size()}};
  json["seed"] = answer.seed;
  if (!answer.logprobs.empty()) json["logprobs"] = LogprobsJson(answer, engine);
  return Line(json);
}

std::string ErrorJson(const Status& status, std::string_view id, int64_t line) {
  return Line({{"id", Json::parse(id)},
               {"line", line},
               {"error", {{"code", ErrorCodeName(status.code())}, {"message", status.message()}}}});
}

}  // namespace deepinfer
