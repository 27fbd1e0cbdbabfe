// deepinfer chat: a conversation in the terminal, or from a script on standard input.
#pragma once

namespace deepinfer {

class CommandRegistry;
void AddChatCommand(CommandRegistry& registry);

}  // namespace deepinfer
