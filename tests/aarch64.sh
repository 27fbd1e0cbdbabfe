#!/usr/bin/env bash
# Holds the scalar kernels of aarch64 to the bits of this machine's: builds the libraries base,
# tensor and kernels and the kernel cases with a cross compiler, runs them in an emulator, and
# compares a digest of every case's outputs.
#
#   aarch64.sh KERNEL_DIGEST_PROGRAM WORK_DIRECTORY
#
# Exit status 77 (skipped) where scripts/setup.sh could not install the compiler or the emulator.
set -euo pipefail

native=$1
work=$2
root=$(cd "$(dirname "$0")/.." && pwd)
compiler=aarch64-linux-gnu-g++
emulator=qemu-aarch64

for tool in "$compiler" "$emulator"; do
  if ! command -v "$tool" >/dev/null; then
    echo "aarch64: skipped, $tool is not installed (scripts/setup.sh)"
    exit 77
  fi
done

# The flags of the release build.  Debian's headers of fmt, spdlog and expected serve all machines.
flags=(-std=c++20 -O3 -DNDEBUG -Wall -Wextra -Wpedantic -Wshadow -Werror
       -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno
       -DFMT_HEADER_ONLY -DSPDLOG_FMT_EXTERNAL
       -I"$root/src" -I"$root/include" -I"$root" -idirafter /usr/include)
launcher=()
if command -v ccache >/dev/null; then launcher=(ccache); fi

mkdir -p "$work"
cd "$root"
mapfile -t sources < <(ls src/base/*.cc src/tensor/*.cc src/kernels/*.cc src/kernels/scalar/*.cc \
                          tests/kernel_cases/*.cc | grep -v '_test\.cc$')
objects=()
for source in "${sources[@]}"; do objects+=("$work/${source//\//_}.o"); done

for i in "${!sources[@]}"; do printf '%s\0%s\0' "${objects[$i]}" "${sources[$i]}"; done |
  xargs -0 -n 2 -P "$(nproc)" "${launcher[@]}" "$compiler" "${flags[@]}" -c -o
"$compiler" -static -o "$work/kernel_digest" "${objects[@]}" -pthread

"$native" scalar >"$work/native.txt"
"$emulator" "$work/kernel_digest" scalar >"$work/aarch64.txt"
if ! diff "$work/native.txt" "$work/aarch64.txt" >"$work/difference.txt"; then
  echo "aarch64: these cases differ (native <, aarch64 >):"
  head -20 "$work/difference.txt"
  exit 1
fi
echo "aarch64: $(wc -l <"$work/aarch64.txt") cases, the same bits"
