#include "weights/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

// The released shards have headers of about 1 MB; a hundred times that is no model any more.
constexpr uint64_t kMaxHeaderBytes = uint64_t{100} << 20;
// Largest integer that every JSON writer and reader keeps exact.
constexpr uint64_t kMaxExactInteger = uint64_t{1} << 53;
constexpr size_t kLengthBytes = 8;

Status Bad(std::string_view tensor, std::string_view found, std::string_view expected) {
  return CorruptData(fmt::format("tensor '{}': found {}, expected {}", tensor, found, expected));
}

Result<uint64_t> ExactInteger(std::string_view tensor, std::string_view what,
                              dom::element element) {
  uint64_t value = 0;
  if (element.get(value) != simdjson::SUCCESS || value > kMaxExactInteger) {
    return Bad(tensor, fmt::format("{} that is no integer from 0 to 2^53", what),
               "such an integer");
  }
  return value;
}

Result<dom::element> Member(std::string_view tensor, dom::object object, const char* key) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) {
    return Bad(tensor, fmt::format("no '{}'", key), "dtype, shape and data_offsets");
  }
  return element;
}

Result<std::vector<uint64_t>> IntegerList(std::string_view tensor, const char* key,
                                          dom::object object) {
  ASSIGN_OR_RETURN(const dom::element element, Member(tensor, object, key));
  dom::array array;
  if (element.get(array) != simdjson::SUCCESS) {
    return Bad(tensor, fmt::format("'{}' that is no array", key), "an array of integers");
  }
  std::vector<uint64_t> values;
  for (const dom::element item : array) {
    ASSIGN_OR_RETURN(const uint64_t value, ExactInteger(tensor, key, item));
    values.push_back(value);
  }
  return values;
}

// Bytes of a shape; an error when the product does not fit.
Result<uint64_t> BytesOf(const TensorEntry& entry) {
  uint64_t bytes = static_cast<uint64_t>(InfoOf(entry.dtype).bytes);
  for (const int64_t extent : entry.shape) {
    if (extent > 0 && bytes > kMaxExactInteger / static_cast<uint64_t>(extent)) {
      return Bad(entry.name, DescribeTensor(entry.dtype, entry.shape), "at most 2^53 bytes");
    }
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

Result<TensorEntry> ParseEntry(std::string_view name, dom::element element) {
  TensorEntry entry{.name = std::string(name), .dtype = {}, .shape = {}};
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) return Bad(name, "no object", "an object");
  // With the three members below present, this also rules out that one stands twice.
  if (object.size() != 3) {
    return Bad(name, fmt::format("{} members", object.size()), "dtype, shape and data_offsets");
  }
  ASSIGN_OR_RETURN(const dom::element dtype, Member(name, object, "dtype"));
  std::string_view dtype_name;
  if (dtype.get(dtype_name) != simdjson::SUCCESS)
    return Bad(name, "a dtype that is no string", "one");
  const std::optional<DType> known = DTypeFromName(dtype_name);
  if (!known) {
    return Bad(name, fmt::format("dtype '{}'", dtype_name),
               "BF16, F32, F8_E4M3, F8_E8M0, I8 or another type of this format");
  }
  entry.dtype = *known;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> shape, IntegerList(name, "shape", object));
  entry.shape.assign(shape.begin(), shape.end());
  ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, IntegerList(name, "data_offsets", object));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return Bad(name, fmt::format("data_offsets [{}]", fmt::join(offsets, ", ")), "[begin, end]");
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(entry));
  if (bytes != entry.end - entry.begin) {
    return Bad(name, fmt::format("{} bytes of data", entry.end - entry.begin),
               fmt::format("{} for {}", bytes, DescribeTensor(entry.dtype, entry.shape)));
  }
  return entry;
}

// Entries sorted by position must tile the data section.
Status CheckTiling(const std::vector<TensorEntry>& entries, uint64_t data_bytes) {
  uint64_t at = 0;
  std::string_view previous = "(start)";
  for (const TensorEntry& entry : entries) {
    if (entry.begin < at) {
      return Bad(entry.name, fmt::format("bytes {}..{}", entry.begin, entry.end),
                 fmt::format("no overlap with '{}', which ends at {}", previous, at));
    }
    if (entry.begin > at) {
      return Bad(entry.name, fmt::format("a gap of {} bytes before it", entry.begin - at),
                 fmt::format("data from byte {}, where '{}' ends", at, previous));
    }
    if (entry.end > data_bytes) {
      return Bad(entry.name, fmt::format("a data section of {} bytes", data_bytes),
                 fmt::format("at least {}: the file is truncated", entry.end));
    }
    at = entry.end;
    previous = entry.name;
  }
  if (at == data_bytes) return Status::Ok();
  return CorruptData(
      fmt::format("found {} bytes after the last tensor, expected none", data_bytes - at));
}

Status InFile(const Path& path, Status status) {
  return std::move(status).WithContext(path.string());
}

}  // namespace

int64_t TensorView::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string DescribeTensor(DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} [{}]", InfoOf(dtype).name, fmt::join(shape, ", "));
}

Result<std::vector<TensorEntry>> ParseSafetensorsHeader(std::string_view json,
                                                        uint64_t data_bytes) {
  dom::parser parser;
  dom::element root;
  const simdjson::padded_string padded(json);
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS) {
    return CorruptData(fmt::format("header is not JSON: {}", simdjson::error_message(error)));
  }
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return CorruptData("header is no JSON object");
  std::vector<TensorEntry> entries;
  std::set<std::string_view> names;
  for (const auto& [name, value] : object) {
    if (!names.insert(name).second) return Bad(name, "the name twice", "it once");
    if (name == "__metadata__") {
      if (value.is_object()) continue;
      return Bad(name, "no object", "an object of texts");
    }
    ASSIGN_OR_RETURN(TensorEntry entry, ParseEntry(name, value));
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  RETURN_IF_ERROR(CheckTiling(entries, data_bytes));
  return entries;
}

Result<SafetensorsFile> SafetensorsFile::Open(const Path& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < kLengthBytes) {
    return CorruptData(fmt::format("{}: found {} bytes, expected a safetensors file", path.string(),
                                   bytes.size()));
  }
  uint64_t header_bytes = 0;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - kLengthBytes)) {
    return CorruptData(
        fmt::format("{}: found a header length of {} in a file of {} bytes, expected at most {}",
                    path.string(), header_bytes, bytes.size(),
                    std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - kLengthBytes)));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                                header_bytes);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);
  Result<std::vector<TensorEntry>> entries = ParseSafetensorsHeader(header, data.size());
  if (!entries.ok()) return InFile(path, std::move(entries).status());
  SafetensorsFile result(std::move(file), header);
  for (TensorEntry& entry : *entries) {
    result.tensors_.emplace(
        std::move(entry.name),
        TensorView{.dtype = entry.dtype,
                   .shape = std::move(entry.shape),
                   .bytes = data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return result;
}

const TensorView* SafetensorsFile::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace deepinfer
