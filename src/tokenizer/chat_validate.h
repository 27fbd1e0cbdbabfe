// What RenderChat demands of messages.  Private to the tokenizer folder.
#pragma once

#include <span>

#include "base/status.h"
#include "tokenizer/chat.h"

namespace deepinfer {

// InvalidArgument that names the message, the field, what was found and what was expected.
Status ValidateChat(std::span<const Message> messages, const ChatOptions& options);

}  // namespace deepinfer
