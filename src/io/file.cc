#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

Status OsError(const Path& path, std::string_view action) {
  const int error = errno;
  const std::string message =
      fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error));
  return error == ENOENT ? NotFound(message) : IoError(message);
}

// Closes the descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Size of an open regular file.
Result<uint64_t> RegularFileSize(const Path& path, int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return OsError(path, "stat");
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument(fmt::format("{}: found {}, expected a regular file", path.string(),
                                       S_ISDIR(info.st_mode) ? "a directory" : "a special file"));
  }
  return static_cast<uint64_t>(info.st_size);
}

Path TemporaryPath(const Path& path) { return Path(path.string() + ".tmp"); }

}  // namespace

bool FileExists(const Path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

Result<std::string> ReadFile(const Path& path, uint64_t max_bytes) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return OsError(path, "open");
  ASSIGN_OR_RETURN(const uint64_t size, RegularFileSize(path, fd.get()));
  if (size > max_bytes) {
    return InvalidArgument(
        fmt::format("{}: found {} bytes, expected at most {}", path.string(), size, max_bytes));
  }
  std::string content(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd.get(), content.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError(path, "read");
    if (got == 0) {
      return IoError(
          fmt::format("{}: found {} bytes, expected {}: the file shrank while it was read",
                      path.string(), done, size));
    }
    done += static_cast<size_t>(got);
  }
  return content;
}

Result<MappedFile> MappedFile::Open(const Path& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return OsError(path, "open");
  ASSIGN_OR_RETURN(const uint64_t size, RegularFileSize(path, fd.get()));
  if (size == 0) return MappedFile(path, nullptr, 0);
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return OsError(path, "map");
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::Advise(uint64_t offset, uint64_t size, Advice advice) const {
  if (data_ == nullptr || offset >= size_) return;
  static constexpr int kFlags[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
                                   MADV_DONTNEED};
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = offset / page * page;
  const uint64_t end = std::min<uint64_t>(offset + size, size_);
  madvise(const_cast<std::byte*>(data_) + begin, end - begin, kFlags[static_cast<int>(advice)]);
}

Result<FileWriter> FileWriter::Create(const Path& path) {
  const int fd = open(TemporaryPath(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return OsError(path, "create");
  return FileWriter(path, fd);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

FileWriter::~FileWriter() { Abandon(); }

void FileWriter::Abandon() {
  if (fd_ < 0) return;
  close(std::exchange(fd_, -1));
  unlink(TemporaryPath(path_).c_str());
}

Status FileWriter::Fail(std::string_view action) const { return OsError(path_, action); }

Status FileWriter::Write(std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t put = write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Fail("write");
    bytes = bytes.subspan(static_cast<size_t>(put));
    size_ += static_cast<uint64_t>(put);
  }
  return Status::Ok();
}

Status FileWriter::Skip(uint64_t size) {
  CHECK(fd_ >= 0);
  size_ += size;
  if (ftruncate(fd_, static_cast<off_t>(size_)) != 0) return Fail("extend");
  if (lseek(fd_, static_cast<off_t>(size_), SEEK_SET) < 0) return Fail("seek");
  return Status::Ok();
}

Status FileWriter::CommitAs(const Path& path) {
  CHECK(fd_ >= 0);
  if (fsync(fd_) != 0) return Fail("sync");
  // A deferred write error may surface only here.
  if (close(std::exchange(fd_, -1)) != 0) {
    Status failed = Fail("close");
    unlink(TemporaryPath(path_).c_str());
    return failed;
  }
  if (rename(TemporaryPath(path_).c_str(), path.c_str()) != 0) {
    Status failed = Fail("rename");
    unlink(TemporaryPath(path_).c_str());
    return failed;
  }
  return Status::Ok();
}

}  // namespace deepinfer
