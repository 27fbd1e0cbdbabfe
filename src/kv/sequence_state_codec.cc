// SequenceState <-> bytes, docs/formats/sequence-state.md.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kv/sequence_state.h"

namespace deepinfer {
namespace {

constexpr std::string_view kMagic("DISEQST\0", 8);
constexpr uint32_t kVersion = 2;

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutSection(std::string& out, std::string_view tag, std::string_view bytes) {
  out.append(tag);
  Put<uint64_t>(out, bytes.size());
  out.append(bytes);
}

// A section of zeros; returns where its bytes begin, for the caller to fill in place.
size_t PutZeros(std::string& out, std::string_view tag, size_t size) {
  out.append(tag);
  Put<uint64_t>(out, size);
  out.append(size, '\0');
  return out.size() - size;
}

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Cursor over input that remembers the first failure, so that a sequence of reads is checked once.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view Take(uint64_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  template <typename T>
  T Get() {
    T value{};
    const std::string_view taken = Take(sizeof value);
    if (taken.size() == sizeof value) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }

  bool failed() const { return failed_; }
  bool done() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

Status Damaged(std::string what) {
  return CorruptData(fmt::format("sequence state: {}", std::move(what)));
}

Result<std::string_view> TakeSection(Reader& in, std::string_view tag) {
  const std::string_view found = in.Take(4);
  const auto size = in.Get<uint64_t>();
  const std::string_view bytes = in.Take(size);
  if (in.failed())
    return Damaged(fmt::format("found the end of the bytes, expected section {}", tag));
  if (found != tag) return Damaged(fmt::format("expected section {}, found another tag", tag));
  return bytes;
}

// Copies a section whose size the layout prescribes.
Status FillSection(Reader& in, std::string_view tag, void* out, size_t size) {
  ASSIGN_OR_RETURN(const std::string_view bytes, TakeSection(in, tag));
  if (bytes.size() != size) {
    return Damaged(
        fmt::format("found {} bytes in section {}, expected {}", bytes.size(), tag, size));
  }
  if (size > 0) std::memcpy(out, bytes.data(), size);
  return Status::Ok();
}

Status CheckChecksum(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + sizeof(uint64_t)) {
    return Damaged(fmt::format("found {} bytes, expected a header", bytes.size()));
  }
  uint64_t stored = 0;
  const size_t body = bytes.size() - sizeof stored;
  std::memcpy(&stored, bytes.data() + body, sizeof stored);
  if (XXH3_64bits(bytes.data(), body) != stored) return Damaged("the checksum does not match");
  return Status::Ok();
}

}  // namespace

// Access to the private parts for the two directions of the codec.
struct SequenceStateCodec {
  // Only what a later step can see is written, everything else as zeros: equal states have equal
  // bytes whatever happened to them before.
  static void PutBody(const SequenceState& s, std::string& out) {
    PutRings(s, out);
    PutGroups(s, out);
    PutHistory(s, out);
    PutBlocks(s, out);
    PutSection(out, "SMPL", s.sampler_bytes);
    PutSection(out, "PENL", s.penalty_bytes);
    PutSection(out, "GRMR", s.grammar_bytes);
  }

  static size_t BodyBytes(const SequenceState& s) {
    constexpr size_t kSections = 7;
    const size_t blocks = static_cast<size_t>((s.entries_len_ + kBlockTokens - 1) / kBlockTokens);
    return kSections * (4 + sizeof(uint64_t)) + s.rings_.size() + GroupBytes(s) +
           s.history_.size() * sizeof(int32_t) +
           blocks * static_cast<size_t>(s.layout_->block_bytes()) + s.sampler_bytes.size() +
           s.penalty_bytes.size() + s.grammar_bytes.size();
  }

  static void PutRings(const SequenceState& s, std::string& out) {
    const KvLayout& layout = *s.layout_;
    const auto row_bytes = static_cast<size_t>(layout.window_row_bytes());
    char* rings = out.data() + PutZeros(out, "RING", s.rings_.size());
    for (int ring = 0; ring < layout.num_rings(); ++ring) {
      const int64_t oldest = std::max(s.RingFloor(ring), s.len_ - layout.shape().window_size);
      for (int64_t pos = std::max<int64_t>(0, oldest); pos < s.len_; ++pos) {
        const auto at = static_cast<size_t>(ring * layout.ring_bytes()) +
                        static_cast<size_t>(pos % layout.ring_rows()) * row_bytes;
        std::memcpy(rings + at, s.rings_.data() + at, row_bytes);
      }
    }
  }

  static size_t GroupBytes(const SequenceState& s) {
    size_t bytes = 0;
    for (const std::vector<float>& group : s.groups_) bytes += group.size() * sizeof(float);
    return bytes;
  }

  static void PutGroups(const SequenceState& s, std::string& out) {
    const auto row_bytes = static_cast<size_t>(s.layout_->shape().head_dim) * 2 * sizeof(float);
    char* rows = out.data() + PutZeros(out, "GRUP", GroupBytes(s));
    for (size_t i = 0; i < s.groups_.size(); ++i) {
      const int ratio = s.layout_->sections()[i].ratio;
      for (int64_t pos = s.len_ / ratio * ratio; ratio > 1 && pos < s.len_; ++pos) {
        const auto at = static_cast<size_t>(pos % s.layout_->group_rows(ratio)) * row_bytes;
        std::memcpy(rows + at, s.GroupRow(static_cast<int>(i), pos), row_bytes);
      }
      rows += s.groups_[i].size() * sizeof(float);
    }
  }

  static void PutHistory(const SequenceState& s, std::string& out) {
    std::vector<int32_t> history(s.history_.size());
    for (int64_t pos = std::max<int64_t>(0, s.len_ - s.layout_->shape().ngram_look_back);
         !history.empty() && pos < s.len_; ++pos) {
      const auto slot = static_cast<size_t>(pos % s.layout_->history_rows());
      history[slot] = s.history_[slot];
    }
    PutSection(out, "HIST", BytesOf(history));
  }

  static void PutBlocks(const SequenceState& s, std::string& out) {
    const int64_t num_blocks = (s.entries_len_ + kBlockTokens - 1) / kBlockTokens;
    const auto block_bytes = static_cast<size_t>(s.layout_->block_bytes());
    out.append("BLKS");
    Put<uint64_t>(out, static_cast<uint64_t>(num_blocks) * block_bytes);
    for (int64_t i = 0; i < num_blocks; ++i) {
      out.append(reinterpret_cast<const char*>(s.blocks_[static_cast<size_t>(i)].data()),
                 block_bytes);
    }
    if (num_blocks > 0) ClearUncommitted(s, out.data() + out.size() - block_bytes);
  }

  // Zeros the entries of the last block that no committed token has.
  static void ClearUncommitted(const SequenceState& s, char* block) {
    const int64_t tokens = s.entries_len_ - (s.entries_len_ - 1) / kBlockTokens * kBlockTokens;
    for (const KvSection& section : s.layout_->sections()) {
      const int64_t kept = tokens / section.ratio;
      const auto clear = [&](int64_t offset, int64_t row_bytes) {
        std::memset(block + offset + kept * row_bytes, 0,
                    static_cast<size_t>((section.entries - kept) * row_bytes));
      };
      clear(section.rows_offset, s.layout_->kv_row_bytes());
      clear(section.keys_offset, s.layout_->key_row_bytes());
    }
  }

  static Status FillGroups(Reader& in, SequenceState& s) {
    ASSIGN_OR_RETURN(const std::string_view bytes, TakeSection(in, "GRUP"));
    Reader rows(bytes);
    for (std::vector<float>& group : s.groups_) {
      const std::string_view taken = rows.Take(group.size() * sizeof(float));
      if (!rows.failed() && !taken.empty()) std::memcpy(group.data(), taken.data(), taken.size());
    }
    if (rows.failed() || !rows.done()) {
      return Damaged(
          fmt::format("found {} bytes in section GRUP, expected another size", bytes.size()));
    }
    return Status::Ok();
  }

  static Status FillBlocks(Reader& in, SequenceState& s) {
    ASSIGN_OR_RETURN(const std::string_view bytes, TakeSection(in, "BLKS"));
    const auto block_bytes = static_cast<size_t>(s.layout_->block_bytes());
    const size_t num_blocks =
        static_cast<size_t>((s.entries_len_ + kBlockTokens - 1) / kBlockTokens);
    if (bytes.size() / block_bytes != num_blocks || bytes.size() % block_bytes != 0) {
      return Damaged(fmt::format("found {} bytes in section BLKS, expected {} blocks of {}",
                                 bytes.size(), num_blocks, block_bytes));
    }
    for (size_t i = 0; i < num_blocks; ++i) {
      std::optional<BlockRef> block = s.pool_->Allocate();
      if (!block) {
        return ResourceExhausted(fmt::format(
            "found {} free KV blocks, expected {} to restore a sequence", i, num_blocks));
      }
      std::memcpy(block->data(), bytes.data() + i * block_bytes, block_bytes);
      s.AppendBlock(*std::move(block));
    }
    return Status::Ok();
  }

  static Status FillBody(Reader& in, SequenceState& s) {
    RETURN_IF_ERROR(FillSection(in, "RING", s.rings_.data(), s.rings_.size()));
    RETURN_IF_ERROR(FillGroups(in, s));
    RETURN_IF_ERROR(
        FillSection(in, "HIST", s.history_.data(), s.history_.size() * sizeof(int32_t)));
    RETURN_IF_ERROR(FillBlocks(in, s));
    ASSIGN_OR_RETURN(s.sampler_bytes, TakeSection(in, "SMPL"));
    ASSIGN_OR_RETURN(s.penalty_bytes, TakeSection(in, "PENL"));
    ASSIGN_OR_RETURN(s.grammar_bytes, TakeSection(in, "GRMR"));
    return in.done() ? Status::Ok() : Damaged("found bytes after the last section");
  }

  static Status FillHeader(Reader& in, const StateIdentity& identity, SequenceState& s) {
    if (in.Take(kMagic.size()) != kMagic) return Damaged("found another magic");
    const auto version = in.Get<uint32_t>();
    if (version != kVersion) {
      return Damaged(fmt::format("found version {}, expected {}", version, kVersion));
    }
    const std::string_view fingerprint = in.Take(identity.fingerprint.size());
    const std::string_view expected(reinterpret_cast<const char*>(identity.fingerprint.data()),
                                    identity.fingerprint.size());
    if (fingerprint != expected) return Damaged("it was made by another model");
    const std::string_view numerics = in.Take(in.Get<uint32_t>());
    if (numerics != identity.numerics_id) {
      return Damaged(
          fmt::format("found numerics '{}', expected '{}'", numerics, identity.numerics_id));
    }
    s.len_ = in.Get<int64_t>();
    s.entries_len_ = in.Get<int64_t>();
    s.first_rollback_ = s.entries_len_;
    s.prompt_len = in.Get<int64_t>();
    s.floors.encoder = in.Get<int64_t>();
    s.floors.decoder = in.Get<int64_t>();
    const auto kind = in.Get<uint8_t>();
    s.replay = {.kind = static_cast<ReplayRecord::Kind>(kind), .start = in.Get<int64_t>()};
    const bool sane = s.len_ >= 0 && s.entries_len_ >= s.len_ &&
                      s.entries_len_ <= (int64_t{1} << 40) && s.prompt_len >= 0 && kind <= 3;
    return !in.failed() && sane ? Status::Ok() : Damaged("found values out of range in the header");
  }
};

int64_t SequenceState::SerializedBytes(const StateIdentity& identity) const {
  const size_t header = kMagic.size() + sizeof kVersion + identity.fingerprint.size() +
                        sizeof(uint32_t) + identity.numerics_id.size() + 6 * sizeof(int64_t) +
                        sizeof(uint8_t);
  return static_cast<int64_t>(header + SequenceStateCodec::BodyBytes(*this) + sizeof(uint64_t));
}

std::string SequenceState::Serialize(const StateIdentity& identity) const {
  std::string out;
  out.reserve(static_cast<size_t>(SerializedBytes(identity)));
  out.append(kMagic);
  Put(out, kVersion);
  out.append(reinterpret_cast<const char*>(identity.fingerprint.data()),
             identity.fingerprint.size());
  Put(out, static_cast<uint32_t>(identity.numerics_id.size()));
  out.append(identity.numerics_id);
  Put(out, len_);
  Put(out, entries_len_);
  Put(out, prompt_len);
  Put(out, floors.encoder);
  Put(out, floors.decoder);
  Put(out, static_cast<uint8_t>(replay.kind));
  Put(out, replay.start);
  SequenceStateCodec::PutBody(*this, out);
  Put<uint64_t>(out, XXH3_64bits(out.data(), out.size()));
  return out;
}

Result<SequenceState> SequenceState::Deserialize(std::string_view bytes,
                                                 const StateIdentity& identity,
                                                 const KvLayout& layout, BlockPool& pool) {
  RETURN_IF_ERROR(CheckChecksum(bytes));
  Reader in(bytes.substr(0, bytes.size() - sizeof(uint64_t)));
  SequenceState state(layout, pool);
  RETURN_IF_ERROR(SequenceStateCodec::FillHeader(in, identity, state));
  RETURN_IF_ERROR(SequenceStateCodec::FillBody(in, state));
  return state;
}

}  // namespace deepinfer
