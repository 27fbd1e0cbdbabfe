// Files of the local file system: read whole, mapped read-only, written sequentially.
// Every error names the path and the operating system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

using Path = std::filesystem::path;

// Whether something is there; false too for what cannot be looked at.
bool FileExists(const Path& path);

// The whole file as bytes.  max_bytes guards against reading a device or a wrong path into memory.
Result<std::string> ReadFile(const Path& path, uint64_t max_bytes = uint64_t{1} << 32);

// A read-only mapping of a whole file.  Move-only; the bytes live as long as the object.
// Thread-safe: immutable after Open.  Pages are read on first touch.
class MappedFile {
 public:
  static Result<MappedFile> Open(const Path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const Path& path() const { return path_; }

  enum class Advice { kNormal, kRandom, kSequential, kWillNeed, kDontNeed };
  // A hint for the kernel about bytes [offset, offset+size); never fails.
  void Advise(uint64_t offset, uint64_t size, Advice advice) const;

 private:
  MappedFile(Path path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  Path path_;
  const std::byte* data_ = nullptr;  // null for an empty or moved-from file
  size_t size_ = 0;
};

// Sequential writer of one file.  Bytes go to "<path>.tmp"; Commit() syncs and renames, so a reader
// sees the whole file or none.  Destroyed without Commit(), the temporary file is removed.
// Move-only, not thread-safe.
class FileWriter {
 public:
  static Result<FileWriter> Create(const Path& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  Status Write(std::span<const std::byte> bytes);
  Status Write(std::string_view text) { return Write(std::as_bytes(std::span(text))); }
  // Leaves a hole of `size` zero bytes (sparse where the file system can).
  Status Skip(uint64_t size);
  uint64_t size() const { return size_; }
  Status Commit() { return CommitAs(path_); }
  // Commit() under another name of the same folder, for a file that is whole but not what `path`
  // promises.
  Status CommitAs(const Path& path);

 private:
  FileWriter(Path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status Fail(std::string_view action) const;
  void Abandon();

  Path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace deepinfer
