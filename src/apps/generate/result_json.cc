#include "apps/generate/result_json.h"

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

Json TokenJson(const Tokenizer& tokenizer, int32_t token, float logprob) {
  return {{"id", token}, {"text", tokenizer.Decode({&token, 1})}, {"logprob", logprob}};
}

Json LogprobsJson(const GenerationResult& result, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    Json entry = TokenJson(tokenizer, result.tokens[i], result.logprobs[i]);
    entry["top"] = Json::array();
    for (size_t k = 0; k < static_cast<size_t>(result.num_top); ++k) {
      const TokenLogprob& top = result.top[i * static_cast<size_t>(result.num_top) + k];
      entry["top"].push_back(TokenJson(tokenizer, top.token, top.logprob));
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

std::string ResultJson(const GenerationResult& result, const Tokenizer& tokenizer,
                       std::string_view id) {
  Json json = Json::object();
  if (!id.empty()) json["id"] = Json::parse(id);
  json["text"] = result.text;
  json["tokens"] = result.tokens;
  json["finish_reason"] = FinishReasonName(result.finish_reason);
  if (!result.stop_string.empty()) json["stop"] = result.stop_string;
  json["usage"] = {{"prompt_tokens", result.prompt_len},
                   {"completion_tokens", result.tokens.size()}};
  json["seed"] = result.seed;
  if (!result.logprobs.empty()) json["logprobs"] = LogprobsJson(result, tokenizer);
  return Line(json);
}

std::string ErrorJson(const Status& status, std::string_view id, int64_t line) {
  return Line({{"id", Json::parse(id)},
               {"line", line},
               {"error", {{"code", ErrorCodeName(status.code())}, {"message", status.message()}}}});
}

}  // namespace deepinfer
