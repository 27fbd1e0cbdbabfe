// Errors as values.  A function that can fail because the world or its caller is wrong returns
// Status or Result<T>; both must be looked at.  Messages start lower-case, end without a full stop
// and state what was found and what was expected.  "No" as an answer is not an error: it is an
// empty std::optional.  Nothing of this library throws.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace deepinfer {

enum class ErrorCode {
  kInvalidArgument,    // a parameter or input value outside its range
  kNotFound,           // a file, tensor or name that must exist does not
  kCorruptData,        // a file's content breaks its format
  kUnsupported,        // well-formed, but nothing this program can do
  kIoError,            // the operating system refused a read, write or map
  kResourceExhausted,  // over a planned budget: memory, context length, disk
  kCancelled,          // the caller asked to stop
  kInternal,           // a library failed in a way it should not
};

// "InvalidArgument", ...
std::string_view ErrorCodeName(ErrorCode code);

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

inline Status InvalidArgument(std::string message) {
  return Status(ErrorCode::kInvalidArgument, std::move(message));
}
inline Status NotFound(std::string message) {
  return Status(ErrorCode::kNotFound, std::move(message));
}
inline Status CorruptData(std::string message) {
  return Status(ErrorCode::kCorruptData, std::move(message));
}
inline Status Unsupported(std::string message) {
  return Status(ErrorCode::kUnsupported, std::move(message));
}
inline Status IoError(std::string message) {
  return Status(ErrorCode::kIoError, std::move(message));
}
inline Status ResourceExhausted(std::string message) {
  return Status(ErrorCode::kResourceExhausted, std::move(message));
}
inline Status Cancelled(std::string message) {
  return Status(ErrorCode::kCancelled, std::move(message));
}
inline Status Internal(std::string message) {
  return Status(ErrorCode::kInternal, std::move(message));
}

// A value or the Status that explains its absence.  Thread-compatible.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Precondition: !status.ok().
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design
  Result(const T& value) : value_(value) {}              // NOLINT
  Result(T&& value) : value_(std::move(value)) {}        // NOLINT

  bool ok() const { return value_.has_value(); }
  Status status() const& { return status_; }
  Status status() && { return std::move(status_); }

  // Precondition of all: ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;  // ok() exactly when there is a value
};

}  // namespace deepinfer
