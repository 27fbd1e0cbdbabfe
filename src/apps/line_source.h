// Lines of a file, a pipe or standard input, as they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "io/file.h"

namespace deepinfer {

// Longest line that is read into memory.
inline constexpr size_t kMaxLineBytes = size_t{64} << 20;

struct SourceLine {
  int64_t number = 0;  // from 1
  std::string text;    // without its end (LF or CR LF) and without a byte order mark
  bool cut = false;    // was longer than kMaxLineBytes; the text is its beginning
};

// Move-only, not thread-safe.
class LineSource {
 public:
  // "-": standard input.
  static Result<LineSource> Open(const Path& path);
  LineSource(LineSource&& other) noexcept;
  LineSource& operator=(LineSource&&) = delete;
  ~LineSource();

  // The next line; nothing at the end.  Cancelled when Ctrl-C comes while it
  // waits.
  Result<std::optional<SourceLine>> Next();
  // Whether Next() has something to read at once: part of a line, or the end.
  bool Ready() const;

  const std::string& name() const { return name_; }

 private:
  LineSource(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Status Fill();
  // Moves a line, or what is left at the end, out of the buffer; nothing when more must be read.
  bool TakeLine(SourceLine& line);

  int fd_;
  std::string name_;
  std::string buffer_;
  size_t searched_ = 0;    // bytes of the buffer without a line feed
  int64_t number_ = 0;     // lines taken
  bool dropping_ = false;  // the rest of a line that was cut
  bool ended_ = false;
};

}  // namespace deepinfer
