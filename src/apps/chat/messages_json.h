// A conversation as the JSON list that ParseMessages (tokenizer/chat.h) reads.
#pragma once

#include <span>
#include <string>

#include "tokenizer/chat.h"

namespace deepinfer {

// Indented, ends with a line feed.  ParseMessages of it gives the same messages.
std::string MessagesJson(std::span<const Message> messages);

}  // namespace deepinfer
