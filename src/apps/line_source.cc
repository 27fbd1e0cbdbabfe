#include "apps/line_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/interrupt.h"

namespace deepinfer {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<LineSource> LineSource::Open(const Path& path) {
  if (path == "-") return LineSource(STDIN_FILENO, "stdin");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return LineSource(fd, path.string());
  const std::string message =
      fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno));
  return errno == ENOENT ? NotFound(message) : IoError(message);
}

LineSource::LineSource(LineSource&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      buffer_(std::move(other.buffer_)),
      searched_(other.searched_),
      number_(other.number_),
      dropping_(other.dropping_),
      ended_(other.ended_) {}

LineSource::~LineSource() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

Result<std::optional<SourceLine>> LineSource::Next() {
  SourceLine line;
  while (true) {
    if (TakeLine(line)) return std::optional(std::move(line));
    if (ended_) return std::optional<SourceLine>();
    RETURN_IF_ERROR(Fill());
  }
}

bool LineSource::Ready() const {
  if (ended_ || buffer_.find('\n', searched_) != std::string::npos) return true;
  struct pollfd wait = {.fd = fd_, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

Status LineSource::Fill() {
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  const ssize_t got = read(fd_, buffer_.data() + size, kReadBytes);
  const int error = errno;
  buffer_.resize(size + static_cast<size_t>(got > 0 ? got : 0));
  if (got == 0) ended_ = true;
  if (got >= 0) return Status::Ok();
  if (error != EINTR) {
    return IoError(fmt::format("{}: cannot read: {}", name_, std::strerror(error)));
  }
  return Interrupted() ? Cancelled("stopped while waiting for input") : Status::Ok();
}

bool LineSource::TakeLine(SourceLine& line) {
  const size_t end = buffer_.find('\n', searched_);
  const bool whole = end != std::string::npos;
  searched_ = buffer_.size();
  if (!whole && dropping_ && !ended_) {
    buffer_.clear();
    searched_ = 0;
    return false;
  }
  const bool too_long = !whole && buffer_.size() > kMaxLineBytes;
  if (!whole && !too_long && (!ended_ || buffer_.empty())) return false;

  line.text = buffer_.substr(0, whole ? end : buffer_.size());
  buffer_.erase(0, whole ? end + 1 : buffer_.size());
  searched_ = 0;
  const bool tail = std::exchange(dropping_, too_long);
  if (tail) return TakeLine(line);  // the end of a line that was handed out already
  line.number = ++number_;
  line.cut = too_long || line.text.size() > kMaxLineBytes;
  if (number_ == 1 && line.text.starts_with(kByteOrderMark)) {
    line.text.erase(0, kByteOrderMark.size());
  }
  if (line.text.ends_with('\r')) line.text.pop_back();
  return true;
}

}  // namespace deepinfer
