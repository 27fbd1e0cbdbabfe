// Errors as values.  A function that can fail because the world or its caller is wrong returns
// Status or Result<T>; both must be looked at.  Messages start lower-case, end without a full stop
// and state what was found and what was expected.  "No" as an answer is not an error: use optional.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace deepinfer {

enum class ErrorCode {
#define X(name, exit_code) k##name,
#include "base/error_codes.inc"
#undef X
};

// "InvalidArgument", ...
std::string_view ErrorCodeName(ErrorCode code);
// Exit status of the command line for an error of this kind.
int ExitCodeOf(ErrorCode code);

// Success (no allocation) or an error with a code and a message.  Thread-compatible.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message)
      : error_(std::make_unique<Error>(Error{code, std::move(message)})) {}
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other)
      : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}
  Status& operator=(const Status& other) {
    error_ = other.error_ ? std::make_unique<Error>(*other.error_) : nullptr;
    return *this;
  }

  static Status Ok() { return Status(); }

  bool ok() const { return error_ == nullptr; }
  // Precondition of both: !ok().
  ErrorCode code() const { return error_->code; }
  const std::string& message() const { return error_->message; }

  // The same error with "context: " in front of its message; Ok stays Ok.
  Status WithContext(std::string_view context) &&;

 private:
  struct Error {
    ErrorCode code;
    std::string message;
  };
  std::unique_ptr<Error> error_;
};

// InvalidArgument("..."), NotFound("..."), ...
#define X(name, exit_code) \
  inline Status name(std::string message) { return Status(ErrorCode::k##name, std::move(message)); }
#include "base/error_codes.inc"
#undef X

// A value or the Status that explains its absence.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Status> {
 public:
  using Base = tl::expected<T, Status>;
  Result(Status status) : Base(tl::unexpect, std::move(status)) {}  // NOLINT: implicit by design
  Result(const T& value) : Base(value) {}                           // NOLINT
  Result(T&& value) : Base(std::move(value)) {}                     // NOLINT

  bool ok() const { return this->has_value(); }
  Status status() const& { return ok() ? Status() : this->error(); }
  Status status() && { return ok() ? Status() : std::move(this->error()); }
};

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
