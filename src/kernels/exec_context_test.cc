#include "kernels/exec_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tensor/row_codec.h"
#include "tests/support/op_goldens.h"

namespace deepinfer {
namespace {

TEST(FlushDenormalsTest, SubnormalsCountAsZeroWhileItLivesAndNoLonger) {
  const volatile float tiny = std::numeric_limits<float>::denorm_min();
  const volatile float smallest = std::numeric_limits<float>::min();
  const volatile float half = 0.5f;
  const volatile float large = 1e30f;
  EXPECT_NE(smallest * half, 0.0f);
  {
    const FlushDenormals flush;
    EXPECT_EQ(smallest * half, 0.0f);  // a result
    EXPECT_EQ(tiny * large, 0.0f);     // an input
    {
      const FlushDenormals nested;
      EXPECT_EQ(smallest * half, 0.0f);
    }
    EXPECT_EQ(smallest * half, 0.0f);
  }
  EXPECT_NE(smallest * half, 0.0f);
  EXPECT_NE(tiny * large, 0.0f);
}

TEST(FlushDenormalsTest, QuantisersAndFormatsGiveTheSameBitsEitherWay) {
  std::vector<std::vector<float>> rows;
  for (const char* name : {"act_quant_fp8_32", "fp4_e8m0_32", "nvfp4_e4m3_16"}) {
    const std::vector<float> x = Floats(OpGoldens("ops_extra")[name]["x"]);
    for (size_t at = 0; at < x.size(); at += 64) rows.emplace_back(&x[at], &x[at] + 64);
  }
  const auto encode_all = [&rows] {
    std::vector<std::byte> out;
    for (const RowFormat format : {RowFormat::kFp8E8M0, RowFormat::kFp4E8M0, RowFormat::kFp4E4M3}) {
      for (const std::vector<float>& row : rows) {
        std::vector<std::byte> bytes(static_cast<size_t>(RowBytes(format, 64)));
        EncodeRow(format, row, bytes.data());
        out.insert(out.end(), bytes.begin(), bytes.end());
      }
    }
    for (uint32_t bits = 0; bits < 0x43E00000; bits += 65521) {
      const auto x = std::bit_cast<float>(bits);
      out.push_back(static_cast<std::byte>(EncodeE4M3(x)));
      out.push_back(static_cast<std::byte>(EncodeE2M1(x)));
      out.push_back(static_cast<std::byte>(FloatToBf16(x)));
    }
    return out;
  };
  const std::vector<std::byte> kept = encode_all();
  const FlushDenormals flush;
  EXPECT_EQ(encode_all(), kept);
}

TEST(ScratchArenaTest, AllocationsAreAlignedAndDoNotOverlap) {
  ScratchArena arena;
  const ScratchArena::Scope scope(arena);
  std::vector<uint8_t*> pieces;
  for (int i = 0; i < 100; ++i) {
    auto* piece = arena.Alloc<uint8_t>(1 + i * 977);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    std::memset(piece, i, static_cast<size_t>(1 + i * 977));
    pieces.push_back(piece);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pieces[static_cast<size_t>(i)][0], i);
    EXPECT_EQ(pieces[static_cast<size_t>(i)][i * 977], i);
  }
}

TEST(ScratchArenaTest, AScopeGivesItsMemoryBackAndTheSameRequestsGetTheSameMemory) {
  ScratchArena arena;
  const ScratchArena::Scope outer(arena);
  auto* kept = arena.Alloc<float>(10);
  float* first = nullptr;
  {
    const ScratchArena::Scope inner(arena);
    first = arena.Alloc<float>(1000);
  }
  {
    const ScratchArena::Scope inner(arena);
    EXPECT_EQ(arena.Alloc<float>(1000), first);
  }
  EXPECT_LT(kept, first);
}

TEST(ScratchArenaTest, GrowsWhileWarmingUpAndThenNoMore) {
  ScratchArena arena;
  EXPECT_EQ(arena.capacity(), 0u);
  const auto step = [&arena] {
    const ScratchArena::Scope scope(arena);
    for (int64_t bytes = 1; bytes < 3'000'000; bytes *= 3) arena.Alloc<std::byte>(bytes);
  };
  step();
  const size_t warm = arena.capacity();
  EXPECT_GE(warm, 2'000'000u);
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(arena.capacity(), warm);
}

TEST(ScratchArenaTest, NothingIsStillAValidAllocation) {
  ScratchArena arena;
  const ScratchArena::Scope scope(arena);
  EXPECT_NE(arena.Alloc<float>(0), arena.Alloc<float>(0));
}

TEST(ExecContextTest, RangesCoverEverythingOnceInMultiplesOfTheGrain) {
  ExecContext context(ScalarKernels());
  for (const int64_t count : {0, 1, 7, 64, 65}) {
    for (const int64_t grain : {1, 8, 100}) {
      std::vector<int> seen(static_cast<size_t>(count), 0);
      context.ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % grain, 0);
        EXPECT_TRUE(end == count || (end - begin) % grain == 0);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const int times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(ExecContextTest, SlotsAreBelowTheNumberOfThreads) {
  ExecContext context(ScalarKernels());
  context.ParallelForSlots(50, 3, [&](int64_t, int64_t, int slot) {
    EXPECT_GE(slot, 0);
    EXPECT_LT(slot, context.num_threads());
  });
}

TEST(ExecContextTest, WorkRunsWithDenormalsFlushed) {
  ExecContext context(ScalarKernels());
  const volatile float smallest = std::numeric_limits<float>::min();
  const volatile float half = 0.5f;
  context.ParallelFor(1, 1, [&](int64_t, int64_t) { EXPECT_EQ(smallest * half, 0.0f); });
  EXPECT_NE(smallest * half, 0.0f);
}

TEST(ExecContextTest, AStopIsSeenUntilItIsCleared) {
  ExecContext context(ScalarKernels());
  EXPECT_FALSE(context.StopRequested());
  context.RequestStop();
  EXPECT_TRUE(context.StopRequested());
  context.ClearStop();
  EXPECT_FALSE(context.StopRequested());
}

TEST(ExecContextTest, RangesThatHaveNotBegunWhenAStopIsRequestedAreLeftOut) {
  ExecContext context(ScalarKernels(), 2);
  std::atomic<int> ran{0};
  context.ParallelFor(1000, 1, [&](int64_t, int64_t) {
    ++ran;
    context.RequestStop();
  });
  EXPECT_GE(ran, 1);
  EXPECT_LE(ran, 2);  // one range a thread may have begun already
  context.ParallelFor(10, 1, [&](int64_t, int64_t) { ++ran; });
  EXPECT_LE(ran, 2);
  context.ClearStop();
  context.ParallelFor(10, 1, [&](int64_t, int64_t) { ++ran; });
  EXPECT_GE(ran, 11);
}

TEST(SelectKernelsTest, TheBestOneRunsUnlessOneIsForced) {
  ASSERT_TRUE(SelectKernels("").ok());
  EXPECT_EQ(*SelectKernels(""), SupportedKernels().front());
  for (const KernelTable* table : SupportedKernels()) {
    ASSERT_TRUE(SelectKernels(table->name).ok());
    EXPECT_EQ(*SelectKernels(table->name), table);
  }
}

TEST(SelectKernelsTest, ScalarIsAlwaysThereAndLast) {
  EXPECT_EQ(SupportedKernels().back(), &ScalarKernels());
  std::set<std::string> names;
  for (const KernelTable* table : SupportedKernels()) names.insert(table->name);
  EXPECT_EQ(names.size(), SupportedKernels().size());
}

TEST(SelectKernelsTest, AnUnknownNameIsRefusedWithTheListOfKnownOnes) {
  const Result<const KernelTable*> result = SelectKernels("sse9");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(result.status().message().find("'sse9'"), std::string::npos);
  EXPECT_NE(result.status().message().find("scalar"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
