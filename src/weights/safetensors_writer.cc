#include "weights/safetensors_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace deepinfer {
namespace {

// Tensor names and metadata are ours: quotes, backslashes and control characters are all that needs
// care.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string HeaderOf(std::span<const TensorSpec> tensors,
                     const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (json.back() != '{') json += ',';
      json += Quoted(key) + ":" + Quoted(value);
    }
    json += "}";
  }
  int64_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    if (json.size() > 1) json += ',';
    json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        Quoted(tensor.name), InfoOf(tensor.dtype).name,
                        fmt::join(tensor.shape, ","), at, at + tensor.num_bytes());
    at += tensor.num_bytes();
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');  // data begins aligned
  return json;
}

}  // namespace

int64_t TensorSpec::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Result<SafetensorsWriter> SafetensorsWriter::Create(
    const Path& path, std::span<const TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  const std::string header = HeaderOf(tensors, metadata);
  const uint64_t length = header.size();
  RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&length, 1))));
  RETURN_IF_ERROR(file.Write(header));
  uint64_t total = sizeof length + header.size();
  for (const TensorSpec& tensor : tensors) total += static_cast<uint64_t>(tensor.num_bytes());
  return SafetensorsWriter(std::move(file), total);
}

Status SafetensorsWriter::Write(std::span<const std::byte> bytes) { return file_.Write(bytes); }

Status SafetensorsWriter::Skip(uint64_t bytes) { return file_.Skip(bytes); }

Status SafetensorsWriter::Commit() {
  CHECK_EQ(file_.size(), total_);
  return file_.Commit();
}

}  // namespace deepinfer
