// deepinfer logits: teacher-forced logits of given tokens, traces, and perplexity.
#pragma once

namespace deepinfer {

class CommandRegistry;
void AddLogitsCommand(CommandRegistry& registry);

}  // namespace deepinfer
