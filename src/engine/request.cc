#include "engine/request.h"

#include <random>

namespace deepinfer {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "?";
}

uint64_t DrawSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::vector<BatchRow> TextRows(const std::vector<int32_t>& tokens) {
  std::vector<BatchRow> rows;
  rows.reserve(tokens.size());
  for (const int32_t token : tokens) {
    rows.push_back({.token = token, .pos = static_cast<int64_t>(rows.size())});
  }
  return rows;
}

}  // namespace deepinfer
