#include "deepinfer/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/engine_loop.h"
#include "engine/generation_defaults.h"
#include "engine/memory_plan.h"
#include "library/engine_options.h"
#include "tokenizer/chat.h"

namespace deepinfer {
namespace {

// Longer waits are forever; the clock's own range is not.
constexpr std::chrono::hours kForever(24 * 365 * 10);

Result<std::vector<Message>> MessagesOf(const ChatPrompt& prompt) {
  if (!prompt.messages_json.empty()) {
    if (!prompt.messages.empty()) {
      return InvalidArgument("messages: found some beside messages_json, expected one of the two");
    }
    return ParseMessages(prompt.messages_json);
  }
  std::vector<Message> messages;
  for (const ChatMessage& message : prompt.messages) {
    const Role roles[] = {Role::kSystem, Role::kUser, Role::kAssistant};
    const auto* role = std::find_if(std::begin(roles), std::end(roles),
                                    [&](Role known) { return RoleName(known) == message.role; });
    if (role == std::end(roles)) {
      return InvalidArgument(fmt::format(
          "messages[{}]: found role '{}', expected system, user or assistant (messages_json takes "
          "the others)",
          messages.size(), message.role));
    }
    messages.push_back(Message::Text(*role, message.content));
  }
  return messages;
}

Result<ChatOptions> ChatOptionsOf(const ChatPrompt& prompt) {
  const EffortNames names = EffortNames::Newer();
  ChatOptions options{.mode = prompt.thinking ? ThinkingMode::kThinking : ThinkingMode::kChat,
                      .reasoning_effort = names.default_value};
  if (prompt.effort.empty()) return options;
  if (!prompt.thinking) return InvalidArgument("effort: found one without thinking, expected both");
  ASSIGN_OR_RETURN(options.reasoning_effort, ResolveEffort(prompt.effort, names));
  return options;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(const EngineOptions& options, std::unique_ptr<ModelInstance> loaded,
       SamplingParams recommended)
      : prefill_(PrefillOptionsOf(options)),
        chunk_(options.prefill_chunk),
        recommended_(std::move(recommended)),
        model_(std::move(loaded)),
        loop_(*model_, LoopOptionsOf(options)) {}

  Result<std::shared_ptr<AnswerChannel>> Submit(Request request,
                                                std::optional<RequestCallbacks> callbacks) {
    return loop_.Submit({.prompt = TextRows(request.prompt),
                         .sampling = SamplingOver(recommended_, request),
                         .stop = std::move(request.stop),
                         .max_tokens = request.max_tokens,
                         .ignore_eos = request.ignore_eos,
                         .prefill = prefill_,
                         .chunk = chunk_,
                         .state = {}},
                        std::move(callbacks));
  }

  EngineLoop& loop() { return loop_; }
  const ModelInstance& model() const { return *model_; }

 private:
  const PrefillOptions prefill_;
  const int64_t chunk_;
  const SamplingParams recommended_;  // by the checkpoint
  const std::unique_ptr<ModelInstance> model_;
  EngineLoop loop_;  // its threads use the model: ends first
};

Result<Engine> Engine::Open(const EngineOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const SamplingParams recommended, LoadGenerationDefaults(options.model_dir));
  ASSIGN_OR_RETURN(std::unique_ptr<ModelInstance> model,
                   ModelInstance::Load(ModelOptionsOf(options)));
  if (model->tokenizer() == nullptr) {
    return NotFound(fmt::format("{}: found no tokenizer.json, expected one to read and write text",
                                options.model_dir));
  }
  return Engine(std::make_unique<Impl>(options, std::move(model), recommended));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<AnswerStream> Engine::Submit(Request request) {
  ASSIGN_OR_RETURN(std::shared_ptr<AnswerChannel> channel,
                   impl_->Submit(std::move(request), std::nullopt));
  return AnswerStream(std::move(channel));
}

Result<Engine::RequestId> Engine::Submit(Request request, RequestCallbacks callbacks) {
  ASSIGN_OR_RETURN(const std::shared_ptr<AnswerChannel> channel,
                   impl_->Submit(std::move(request), std::move(callbacks)));
  return channel->id();
}

void Engine::Cancel(RequestId id) {
  if (const std::shared_ptr<AnswerChannel> channel = impl_->loop().Find(id)) channel->Cancel();
}

bool Engine::WaitIdle(std::chrono::milliseconds time) {
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(kForever);
  return impl_->loop().AwaitIdle(EngineLoop::Clock::now() + std::min(time, most));
}

int64_t Engine::Close(std::chrono::milliseconds grace) { return impl_->loop().Close(grace); }

EngineStatistics Engine::Statistics() const { return impl_->loop().Statistics(); }

Result<std::vector<int32_t>> Engine::Encode(std::string_view text) const {
  ASSIGN_OR_RETURN(std::vector<int32_t> tokens, impl_->model().tokenizer()->Encode(text));
  const int32_t bos = impl_->model().config().bos_token;
  if (tokens.empty() || tokens.front() != bos) tokens.insert(tokens.begin(), bos);
  return tokens;
}

Result<std::vector<int32_t>> Engine::EncodeChat(const ChatPrompt& prompt) const {
  ASSIGN_OR_RETURN(const ChatOptions options, ChatOptionsOf(prompt));
  ASSIGN_OR_RETURN(const std::vector<Message> messages, MessagesOf(prompt));
  ASSIGN_OR_RETURN(const RenderedPrompt rendered, RenderChat(messages, options));
  if (!rendered.images.empty()) {
    return Unsupported(
        fmt::format("messages: found {} image(s), expected text only: this build "
                    "has no vision",
                    rendered.images.size()));
  }
  return impl_->model().tokenizer()->EncodeSegments(rendered.segments);
}

std::string Engine::Decode(std::span<const int32_t> tokens) const {
  return impl_->model().tokenizer()->Decode(tokens);
}

int64_t Engine::max_model_len() const { return impl_->model().max_model_len(); }

int64_t Engine::vocab_size() const { return impl_->model().config().vocab_size; }

std::string Engine::MemoryPlan() const { return PlanLine(impl_->model().memory_plan()); }

bool Engine::all_weights_resident() const {
  return impl_->model().memory_plan().all_experts_resident();
}

std::string Engine::fingerprint() const {
  const StateIdentity& identity = impl_->model().identity();
  return fmt::format("{:02x}-{}", fmt::join(identity.fingerprint, ""), identity.numerics_id);
}

}  // namespace deepinfer
