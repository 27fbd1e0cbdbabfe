// Direct disk reads at several depths, by as many threads as there are reads in flight.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "base/pages.h"
#include "base/random.h"
#include "bench/roofline.h"

namespace deepinfer {
namespace {

constexpr uint64_t kFileBytes = uint64_t{1} << 30;
constexpr uint64_t kWriteBytes = uint64_t{4} << 20;
constexpr double kSeconds = 1;

Status Failed(std::string_view action, const Path& path) {
  return IoError(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(errno)));
}

// A file of its own that is gone with the object.
class ScratchFile {
 public:
  static Result<std::unique_ptr<ScratchFile>> Create(const Path& dir) {
    const Path path = dir / fmt::format(".deepinfer-bench-{}", getpid());
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return Failed("create", path);
    std::unique_ptr<ScratchFile> file(new ScratchFile(path, fd));
    RETURN_IF_ERROR(file->Fill());
    return file;
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    close(fd_);
    unlink(path_.c_str());
  }
  const Path& path() const { return path_; }

 private:
  ScratchFile(Path path, int fd) : path_(std::move(path)), fd_(fd) {}

  // Not zeros: file systems and disks may not store those.
  Status Fill() const {
    std::string block(kWriteBytes, '\0');
    for (uint64_t at = 0; at < kFileBytes; at += kWriteBytes) {
      for (size_t i = 0; i < block.size(); i += 64) {
        const PhiloxBlock random = Philox(at, {static_cast<uint32_t>(i), 0, 0, 0});
        std::memcpy(block.data() + i, random.data(), sizeof random);
      }
      if (pwrite(fd_, block.data(), block.size(), static_cast<off_t>(at)) !=
          static_cast<ssize_t>(block.size())) {
        return Failed("write", path_);
      }
    }
    if (fsync(fd_) != 0) return Failed("sync", path_);
    return Status::Ok();
  }

  Path path_;
  int fd_;
};

struct Pattern {
  std::string_view name;
  uint64_t bytes;  // of one read
  bool random;
};

// Reads until the time is over; each thread has one read in flight.
Result<DiskRate> ReadDirect(const Path& path, const Pattern& pattern, int depth) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (fd < 0) return Failed("open for direct reads", path);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<bool> failed{false};
  const uint64_t slots = kFileBytes / pattern.bytes;
  const auto work = [&] {
    const PageBuffer memory(pattern.bytes);
    while (!failed && std::chrono::duration<double>(Clock::now() - start).count() < kSeconds) {
      const uint64_t i = next.fetch_add(1);
      const uint64_t slot =
          pattern.random ? Philox(7, {static_cast<uint32_t>(i), 0, 0, 0})[0] % slots : i % slots;
      const ssize_t got =
          pread(fd, memory.data(), pattern.bytes, static_cast<off_t>(slot * pattern.bytes));
      if (got != static_cast<ssize_t>(pattern.bytes)) failed = true;
      done.fetch_add(1);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < depth; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  close(fd);
  if (failed) return Failed("read directly", path);
  const auto count = static_cast<double>(done.load());
  return DiskRate{.pattern = std::string(pattern.name),
                  .depth = depth,
                  .gbps = count * static_cast<double>(pattern.bytes) / seconds / 1e9,
                  .iops = count / seconds};
}

}  // namespace

Result<std::vector<DiskRate>> MeasureDisk(const Path& dir) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ScratchFile> file, ScratchFile::Create(dir));
  constexpr Pattern kSequential{"sequential 1 MiB", uint64_t{1} << 20, false};
  constexpr Pattern kRandom{"random 4 KiB", 4096, true};
  std::vector<DiskRate> rates;
  for (const Pattern& pattern : {kSequential, kRandom}) {
    for (const int depth : {1, 8, 32}) {
      ASSIGN_OR_RETURN(DiskRate rate, ReadDirect(file->path(), pattern, depth));
      rates.push_back(std::move(rate));
    }
  }
  return rates;
}

}  // namespace deepinfer
