#include "verify/state_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace deepinfer {
namespace {

std::optional<std::string> InBytes(const std::string& what, const std::byte* found,
                                   const std::byte* expected, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    if (found[i] == expected[i]) continue;
    return fmt::format("{}, byte {}: found {:#04x}, expected {:#04x}", what, i,
                       static_cast<unsigned>(found[i]), static_cast<unsigned>(expected[i]));
  }
  return std::nullopt;
}

std::optional<std::string> InNumbers(const SequenceState& found, const SequenceState& expected) {
  const auto differ = [](const char* what, int64_t a, int64_t b) -> std::optional<std::string> {
    if (a == b) return std::nullopt;
    return fmt::format("{}: found {}, expected {}", what, a, b);
  };
  if (auto d = differ("length", found.len(), expected.len())) return d;
  if (auto d = differ("length of the entries", found.entries_len(), expected.entries_len())) {
    return d;
  }
  if (auto d = differ("prompt length", found.prompt_len, expected.prompt_len)) return d;
  if (auto d = differ("encoder floor", found.floors.encoder, expected.floors.encoder)) return d;
  return differ("decoder floor", found.floors.decoder, expected.floors.decoder);
}

std::optional<std::string> InEntries(const SequenceState& found, const SequenceState& expected) {
  const KvLayout& layout = found.layout();
  for (size_t s = 0; s < layout.sections().size(); ++s) {
    const KvSection& section = layout.sections()[s];
    const int at = static_cast<int>(s);
    for (int64_t entry = 0; entry < found.entries_len() / section.ratio; ++entry) {
      const auto row = InBytes(fmt::format("compressed entry {} of layer {}", entry, section.layer),
                               found.KvRows(at).Row(entry), expected.KvRows(at).Row(entry),
                               layout.kv_row_bytes());
      if (row) return row;
      const auto key = InBytes(fmt::format("index key {} of layer {}", entry, section.layer),
                               found.IndexKeys(at).Row(entry), expected.IndexKeys(at).Row(entry),
                               layout.key_row_bytes());
      if (key) return key;
    }
  }
  return std::nullopt;
}

std::optional<std::string> InWindows(const SequenceState& found, const SequenceState& expected) {
  const KvLayout& layout = found.layout();
  for (int ring = 0; ring < layout.num_rings(); ++ring) {
    const int64_t oldest =
        std::max({int64_t{0}, found.RingFloor(ring), found.len() - layout.shape().window_size});
    for (int64_t pos = oldest; pos < found.len(); ++pos) {
      const int64_t at = pos % layout.ring_rows() * layout.window_row_bytes();
      const auto row =
          InBytes(fmt::format("window row {} of layer {}", pos, ring), found.Ring(ring) + at,
                  expected.Ring(ring) + at, layout.window_row_bytes());
      if (row) return row;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string DescribeStateDifference(const SequenceState& found, const SequenceState& expected) {
  if (auto d = InNumbers(found, expected)) return *d;
  if (auto d = InEntries(found, expected)) return *d;
  if (auto d = InWindows(found, expected)) return *d;
  return "bytes outside rows and entries";
}

}  // namespace deepinfer
