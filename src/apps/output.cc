#include "apps/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace deepinfer {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

}  // namespace

Status Output::Write(std::string_view text) {
  if (!failed_.ok()) return failed_;
  buffer_ += text;
  return buffer_.size() < kBufferBytes ? Status::Ok() : Flush();
}

Status Output::WriteNow(std::string_view text) {
  RETURN_IF_ERROR(Write(text));
  return Flush();
}

Status Output::Flush() {
  std::string_view rest = buffer_;
  while (failed_.ok() && !rest.empty()) {
    const ssize_t put = write(fd_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      failed_ = IoError(fmt::format("cannot write the results: {}", std::strerror(errno)));
    } else {
      rest.remove_prefix(static_cast<size_t>(put));
    }
  }
  buffer_.clear();
  return failed_;
}

bool Output::IsTerminal() const { return isatty(fd_) == 1; }

}  // namespace deepinfer
