#include "base/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {
namespace {

// The first line that starts with `prefix`, without it; none when there is no such file or line.
std::optional<std::string> LineOf(const std::string& path, const std::string& prefix) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (file == nullptr) return std::nullopt;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), file.get()) != nullptr) {
    std::string line(buffer.data());
    if (!line.starts_with(prefix)) continue;
    if (line.ends_with('\n')) line.pop_back();
    return line.substr(prefix.size());
  }
  return std::nullopt;
}

// Directories of the process's control group and its ancestors: every one of them limits.
// Version 2 has one tree; version 1 has one per controller, seen from inside a container as its
// root.
template <typename Visit>
void ForEachGroup(const Visit& visit) {
  std::string group = LineOf("/proc/self/cgroup", "0::").value_or("/");
  for (;;) {
    visit("/sys/fs/cgroup" + group);
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos || group.size() <= 1) return;
    group.resize(std::max<size_t>(slash, 1));
  }
}

int AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

// The number at the beginning of a text, after white space; 0 for "max", and for none.
int64_t IntegerIn(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A quota of so much time per period, in whole CPUs, rounded up; none when unlimited.
std::optional<int> QuotaCpus(const std::string& quota_text, const std::string& period_text) {
  const int64_t quota = IntegerIn(quota_text);
  const int64_t period = IntegerIn(period_text);
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::max<int64_t>(1, (quota + period - 1) / period));
}

}  // namespace

MachineLimits ReadMachineLimits() {
  MachineLimits limits;
  limits.cpus = AllowedCpus();
  const int64_t total_kb = IntegerIn(LineOf("/proc/meminfo", "MemTotal:").value_or(""));
  limits.memory_bytes = static_cast<uint64_t>(total_kb) << 10;
  const auto limit_memory = [&](const std::optional<std::string>& text) {
    const int64_t bytes = IntegerIn(text.value_or(""));
    if (bytes > 0)
      limits.memory_bytes = std::min(limits.memory_bytes, static_cast<uint64_t>(bytes));
  };
  const auto limit_cpus = [&](const std::optional<int>& cpus) {
    if (cpus) limits.cpus = std::min(limits.cpus, *cpus);
  };
  ForEachGroup([&](const std::string& dir) {
    limit_memory(LineOf(dir + "/memory.max", ""));
    const std::string quota = LineOf(dir + "/cpu.max", "").value_or("");  // "200000 100000"
    const size_t space = quota.find(' ');
    if (space != std::string::npos) limit_cpus(QuotaCpus(quota, quota.substr(space + 1)));
  });
  limit_memory(LineOf("/sys/fs/cgroup/memory/memory.limit_in_bytes", ""));
  limit_cpus(QuotaCpus(LineOf("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "").value_or(""),
                       LineOf("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "").value_or("")));
  return limits;
}

uint64_t PeakMemoryBytes() {
  const std::string line = LineOf("/proc/self/status", "VmHWM:").value_or("");
  const size_t digits = line.find_first_not_of(" \t");
  return digits == line.npos ? 0 : static_cast<uint64_t>(IntegerIn(line.substr(digits))) << 10;
}

std::string ProcessorName() {
  const std::string line = LineOf("/proc/cpuinfo", "model name").value_or("");
  const size_t name = line.find_first_not_of("\t :");
  return name == std::string::npos ? "unknown" : line.substr(name);
}

}  // namespace deepinfer
