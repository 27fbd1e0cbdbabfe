// Loops that do nothing but reach one limit of a processor core, so that measurements can be held
// against what the machine is able to do.  One set per instruction set, like the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deepinfer {

struct PeakLoops {
  // `rounds` rounds of independent bf16 dots in registers, as this instruction set computes them.
  // -> multiply-accumulates done
  int64_t (*bf16_dots)(int64_t rounds);
  // The same for dots of bytes accumulated in 32 bits.
  int64_t (*int8_dots)(int64_t rounds);
  // Loads every byte of [data, data + bytes) into registers; bytes a multiple of 512, data aligned
  // to 64.
  void (*read)(const std::byte* data, size_t bytes);
};

// isa: KernelTable::name of a set that this machine runs.
PeakLoops PeakLoopsOf(std::string_view isa);

}  // namespace deepinfer
