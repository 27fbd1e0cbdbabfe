#include "engine/scoring.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/generator.h"

namespace deepinfer {
namespace {

// Logit rows held at once: 129,280 floats are half a megabyte each.
constexpr int64_t kLogitRows = 64;

Status CheckRequest(const ModelInstance& model, const ScoringRequest& request) {
  const auto count = static_cast<int64_t>(request.tokens.size());
  if (count == 0) return InvalidArgument("tokens: found none, expected at least one");
  if (count > model.max_model_len()) {
    return InvalidArgument(fmt::format("tokens: found {}, expected at most the context of {}",
                                       count, model.max_model_len()));
  }
  for (size_t i = 0; i < request.tokens.size(); ++i) {
    const int32_t token = request.tokens[i];
    if (token < 0 || token >= model.config().vocab_size) {
      return InvalidArgument(fmt::format("token {}: found id {}, expected 0 to {}", i, token,
                                         model.config().vocab_size - 1));
    }
  }
  for (const int64_t position : request.positions) {
    if (position < 0 || position >= count) {
      return InvalidArgument(
          fmt::format("position: found {}, expected 0 to {}", position, count - 1));
    }
  }
  return Status::Ok();
}

}  // namespace

Status ScoreTokens(ModelInstance& model, const ScoringRequest& request, const OnLogits& on_logits) {
  RETURN_IF_ERROR(CheckRequest(model, request));
  const std::vector<BatchRow> rows = TextRows(request.tokens);
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  const int64_t most = model.max_batch_rows();
  const int64_t chunk = request.chunk > 0 ? std::min(request.chunk, most) : most;
  SequenceState state = model.NewSequence();
  std::vector<float> logits;
  std::vector<int32_t> wanted;
  auto next = request.positions.begin();
  const auto total = static_cast<int64_t>(rows.size());
  for (int64_t begin = 0; begin < total;) {
    // A chunk ends where the logit rows of one call are used up.
    wanted.clear();
    int64_t end = std::min(begin + chunk, total);
    while (next != request.positions.end() && *next < end) {
      if (static_cast<int64_t>(wanted.size()) == kLogitRows) {
        end = *next;
        break;
      }
      wanted.push_back(static_cast<int32_t>(*next++ - begin));
    }
    logits.resize(wanted.size() * vocab);
    const SequenceSlice slice{.state = &state, .num_rows = end - begin};
    RETURN_IF_ERROR(model.transformer().Forward(
        model.context(),
        {.rows =
             std::span(rows).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
         .slices = {&slice, 1},
         .logit_rows = wanted},
        {.logits = logits.data(), .main_hidden = nullptr}, request.observer));
    for (size_t i = 0; i < wanted.size(); ++i) {
      RETURN_IF_ERROR(on_logits(begin + wanted[i], std::span(logits).subspan(i * vocab, vocab)));
    }
    begin = end;
  }
  return Status::Ok();
}

}  // namespace deepinfer
