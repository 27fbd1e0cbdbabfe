#include "base/status.h"

#include <fmt/format.h>

namespace deepinfer {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
#define X(name, exit_code) \
  case ErrorCode::k##name: \
    return #name;
#include "base/error_codes.inc"
#undef X
  }
  return "Unknown";
}

int ExitCodeOf(ErrorCode code) {
  switch (code) {
#define X(name, exit_code) \
  case ErrorCode::k##name: \
    return exit_code;
#include "base/error_codes.inc"
#undef X
  }
  return 1;
}

Status Status::WithContext(std::string_view context) && {
  if (ok()) return Status();
  return Status(code(), fmt::format("{}: {}", context, message()));
}

}  // namespace deepinfer
