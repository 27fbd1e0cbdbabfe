#include "engine/generator.h"

#include "engine/batch_engine.h"

namespace deepinfer {
namespace {

class OneAnswer : public RequestListener {
 public:
  OneAnswer(const TextCallback& on_text, const PrefillCallback& on_prefill)
      : on_text_(on_text), on_prefill_(on_prefill) {}

  void OnPrefill(int64_t done, int64_t total) override {
    if (on_prefill_) on_prefill_(done, total);
  }
  Status OnText(std::string_view text) override { return on_text_ ? on_text_(text) : Status::Ok(); }
  void OnFinish(Result<GenerationResult> result) override { result_ = std::move(result); }

  Result<GenerationResult> Take() { return std::move(result_); }

 private:
  const TextCallback& on_text_;
  const PrefillCallback& on_prefill_;
  Result<GenerationResult> result_ = Internal("the request has not finished");
};

}  // namespace

Result<GenerationResult> GenerateUntilStopped(ModelInstance& model, GenerationRequest request,
                                              const TextCallback& on_text,
                                              const PrefillCallback& on_prefill) {
  OneAnswer answer(on_text, on_prefill);
  BatchEngine engine(model, {.max_sequences = 1});
  ASSIGN_OR_RETURN(const BatchEngine::RequestId id, engine.Submit(std::move(request), answer));
  while (!engine.idle()) {
    if (!engine.Step().ok()) engine.Cancel(id);
  }
  return answer.Take();
}

Result<GenerationResult> Generate(ModelInstance& model, GenerationRequest request,
                                  const TextCallback& on_text, const PrefillCallback& on_prefill) {
  ASSIGN_OR_RETURN(GenerationResult result,
                   GenerateUntilStopped(model, std::move(request), on_text, on_prefill));
  if (result.finish_reason == FinishReason::kCancelled) {
    return Cancelled("stopped before the end of the answer");
  }
  return result;
}

}  // namespace deepinfer
