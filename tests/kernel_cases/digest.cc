// Prints one line per kernel case, its name and a digest of what the kernels wrote, so that the
// outputs of two machines can be compared.
//
//   kernel_digest [INSTRUCTION SET]    scalar where none is named
#include <cstdio>

#include "kernels/select.h"
#include "tests/kernel_cases/kernel_cases.h"

namespace {

// FNV-1a (Fowler, Noll, Vo), 64 bits.
uint64_t Digest(const std::vector<std::byte>& bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace deepinfer;  // NOLINT: a program of one function
  const Result<const KernelTable*> table = SelectKernels(argc > 1 ? argv[1] : "scalar");
  if (!table.ok()) {
    std::fprintf(stderr, "kernel_digest: %s\n", table.status().message().c_str());
    return 2;
  }
  for (const KernelCase& item : KernelCases()) {
    const CaseOutput output = item.run({.table = **table});
    std::printf("%016llx %zu %s\n", static_cast<unsigned long long>(Digest(output.bytes)),
                output.bytes.size(), item.name.c_str());
  }
  return 0;
}
