#include "base/status.h"

#include <fmt/format.h>

namespace deepinfer {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kCorruptData:
      return "CorruptData";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kIoError:
      return "IoError";
    case ErrorCode::kResourceExhausted:
      return "ResourceExhausted";
    case ErrorCode::kCancelled:
      return "Cancelled";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

int ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;  // as of every program that is used wrongly
    case ErrorCode::kCancelled:
      return 130;  // as of one that SIGINT ended
    default:
      return 1;
  }
}

Status Status::WithContext(std::string_view context) && {
  if (ok()) return Status();
  return Status(code(), fmt::format("{}: {}", context, message()));
}

}  // namespace deepinfer
