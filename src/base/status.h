// Errors as values, as users of the library see them, and what only its inside needs: the macros
// that pass errors on, and exit statuses.
#pragma once

#include "deepinfer/status.h"

namespace deepinfer {

// Exit status of the command line for an error of this kind.
int ExitCodeOf(ErrorCode code);

#define DEEPINFER_CONCAT_(a, b) a##b
#define DEEPINFER_CONCAT(a, b) DEEPINFER_CONCAT_(a, b)

#define RETURN_IF_ERROR(expr)                            \
  do {                                                   \
    ::deepinfer::Status status_or_error_ = (expr);       \
    if (!status_or_error_.ok()) return status_or_error_; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F());   moves the value out of the Result.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_(DEEPINFER_CONCAT(result_or_error_, __COUNTER__), lhs, expr)
#define ASSIGN_OR_RETURN_(result, lhs, expr)           \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = std::move(*result)

}  // namespace deepinfer
