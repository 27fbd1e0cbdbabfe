// Attention as docs/formats/numerics.md section 5 words it: a key list written out slot by slot,
// fused steps by std::fma, nothing shared with the kernels but exp and the row codec.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/exec_context.h"
#include "kernels/math.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tensor/row_codec.h"
#include "tests/kernel_cases/kernel_cases.h"

namespace deepinfer {
namespace {

constexpr int64_t kDim = 64;
constexpr int kWindow = 40;
constexpr int32_t kRingRows = kWindow + 16;
constexpr float kSink = 0.25f;
constexpr float kScale = 0.125f;

using Key = std::vector<float>;  // empty: an empty slot

float DotByTheBook(const float* x, const float* w) {
  float lane[16] = {};
  for (int64_t v = 0; v < kDim; v += 32) {
    for (int64_t i = 0; i < 16; ++i) {
      lane[i] = std::fma(x[v + 2 * i + 1], w[v + 2 * i + 1], lane[i]);
      lane[i] = std::fma(x[v + 2 * i], w[v + 2 * i], lane[i]);
    }
  }
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}

float SumByTheBook(const float (&terms)[64]) {
  double lane[8] = {};
  for (int i = 0; i < 64; ++i) lane[i % 8] += static_cast<double>(terms[i]);
  for (int width = 4; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return static_cast<float>(lane[0]);
}

std::vector<float> AttendByTheBook(const float* q, std::vector<Key> list) {
  list.resize((list.size() + 63) / 64 * 64);
  float top = -1e30f;
  float den = 0;
  std::vector<float> acc(kDim, 0.0f);
  const std::vector<float> zeros(kDim, 0.0f);
  for (size_t first = 0; first < list.size(); first += 64) {
    float score[64];
    float p[64] = {};
    float highest = top;
    for (size_t j = 0; j < 64; ++j) {
      if (list[first + j].empty()) continue;
      score[j] = DotByTheBook(q, list[first + j].data()) * kScale;
      highest = std::max(highest, score[j]);
    }
    for (size_t j = 0; j < 64; ++j) {
      if (!list[first + j].empty()) p[j] = ExpF32(score[j] - highest);
    }
    const float carry = ExpF32(top - highest);
    den = den * carry + SumByTheBook(p);
    for (size_t c = 0; c < kDim; ++c) {
      acc[c] *= carry;
      for (size_t j = 0; j < 64; j += 2) {
        const Key& even = list[first + j].empty() ? zeros : list[first + j];
        const Key& odd = list[first + j + 1].empty() ? zeros : list[first + j + 1];
        acc[c] = std::fma(RoundToBf16(p[j + 1]), odd[c], acc[c]);
        acc[c] = std::fma(RoundToBf16(p[j]), even[c], acc[c]);
      }
    }
    top = highest;
  }
  for (float& value : acc) value = RoundToBf16(value / (den + ExpF32(kSink - top)));
  return acc;
}

// A sequence: window rows by position, compressed entries by number.
class AttentionTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  static constexpr int64_t kWindowBytes = RowBytes(RowFormat::kFp8E8M0, kDim);
  static constexpr int64_t kEntryBytes = RowBytes(RowFormat::kFp4E4M3, kDim);

  AttentionTest() : in_(11), ring_(kRingRows * kWindowBytes), fresh_(8 * kWindowBytes) {}

  // Writes positions [max(0, committed - kRingRows), committed + 8).
  void WriteWindow(int64_t committed) {
    committed_ = committed;
    for (int64_t pos = std::max<int64_t>(0, committed - kRingRows); pos < committed + 8; ++pos) {
      std::byte* row = pos < committed ? ring_.data() + pos % kRingRows * kWindowBytes
                                       : fresh_.data() + (pos - committed) * kWindowBytes;
      EncodeRow(RowFormat::kFp8E8M0, in_.Bf16Floats(kDim, 0.5f), row);
      Key key(kDim);
      DecodeRow(RowFormat::kFp8E8M0, row, key);
      window_[static_cast<size_t>(pos)] = key;
    }
  }

  void WriteEntries(int64_t count) {
    entries_.resize(static_cast<size_t>(count * kEntryBytes));
    for (int64_t i = 0; i < count; ++i) {
      EncodeRow(RowFormat::kFp4E4M3, in_.Bf16Floats(kDim, 0.5f), entries_.data() + i * kEntryBytes);
    }
    block_ = entries_.data();
  }

  Key Entry(int32_t number) const {
    Key key(kDim);
    DecodeRow(RowFormat::kFp4E4M3, entries_.data() + number * kEntryBytes, key);
    return key;
  }

  // The list of model.md section 6, one key per slot.
  std::vector<Key> KeyList(int64_t pos, int64_t floor, const std::vector<int32_t>& selected) const {
    std::vector<Key> list;
    for (int64_t slot = 0; slot < kWindow; ++slot) {
      const int64_t at = std::max<int64_t>(0, pos - kWindow + 1) + slot;
      list.push_back(at > pos || at < floor ? Key() : window_[static_cast<size_t>(at)]);
    }
    for (const int32_t number : selected) list.push_back(Entry(number));
    return list;
  }

  void ExpectByTheBook(int64_t pos, int64_t floor, const std::vector<int32_t>& selected,
                       float q_scale = 1) {
    const FlushDenormals flush;
    const std::vector<float> q = in_.Bf16Floats(kDim, q_scale);
    const AttentionRow row{.window = {.ring = ring_.data(),
                                      .fresh = fresh_.data(),
                                      .fresh_begin = committed_,
                                      .floor = floor,
                                      .ring_rows = kRingRows,
                                      .row_bytes = kWindowBytes},
                           .pos = pos,
                           .rows = {.blocks = &block_,
                                    .offset = 0,
                                    .entries_per_block = 1 << 20,
                                    .row_bytes = kEntryBytes},
                           .selected = selected.data(),
                           .num_selected = static_cast<int32_t>(selected.size())};
    std::vector<float> o(kDim);
    GetParam()->attention({.q = q.data(),
                           .rows = &row,
                           .sink = &kSink,
                           .heads = 1,
                           .dim = kDim,
                           .window_size = kWindow,
                           .scale = kScale,
                           .window_format = RowFormat::kFp8E8M0,
                           .rows_format = RowFormat::kFp4E4M3,
                           .round = true,
                           .o = o.data()},
                          0, 1);
    const std::vector<float> expected = AttendByTheBook(q.data(), KeyList(pos, floor, selected));
    for (size_t c = 0; c < kDim; ++c) {
      ASSERT_EQ(std::bit_cast<uint32_t>(o[c]), std::bit_cast<uint32_t>(expected[c]))
          << "channel " << c << " at " << pos << ": " << o[c] << " vs " << expected[c];
    }
  }

 private:
  CaseInputs in_;
  std::vector<std::byte> ring_;
  std::vector<std::byte> fresh_;
  std::vector<std::byte> entries_;
  std::byte* block_ = nullptr;
  int64_t committed_ = 0;
  std::vector<Key> window_ = std::vector<Key>(1000);
};

INSTANTIATE_TEST_SUITE_P(EveryIsa, AttentionTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(AttentionTest, TheFirstPositionSeesItselfOnly) {
  WriteWindow(0);
  ExpectByTheBook(0, 0, {});
}

TEST_P(AttentionTest, FreshRowsStandInForTheRing) {
  WriteWindow(3);
  for (int64_t pos = 3; pos < 11; ++pos) ExpectByTheBook(pos, 0, {});
}

TEST_P(AttentionTest, TheRingWrapsAround) {
  WriteWindow(500);
  for (int64_t pos = 500; pos < 508; ++pos) ExpectByTheBook(pos, 0, {});
}

TEST_P(AttentionTest, RowsBelowTheFloorAreEmptySlots) {
  WriteWindow(500);
  ExpectByTheBook(502, 490, {});
  ExpectByTheBook(502, 502, {});
}

TEST_P(AttentionTest, SelectedEntriesFollowTheWindowAndBlocksOf64Straddle) {
  WriteWindow(500);
  WriteEntries(200);
  for (const int count : {1, 23, 24, 25, 88, 89, 200}) {
    std::vector<int32_t> selected;
    for (int i = 0; i < count; ++i) selected.push_back(200 - count + i);
    ExpectByTheBook(503, 0, selected);
  }
}

TEST_P(AttentionTest, ProbabilitiesThatUnderflowAreStillFused) {
  WriteWindow(500);
  WriteEntries(200);
  std::vector<int32_t> selected;
  for (int i = 0; i < 200; ++i) selected.push_back(i);
  for (const float q_scale : {10.0f, 40.0f, 80.0f, 160.0f}) {
    for (int64_t pos = 500; pos < 508; ++pos) ExpectByTheBook(pos, 0, selected, q_scale);
  }
}

}  // namespace
}  // namespace deepinfer
