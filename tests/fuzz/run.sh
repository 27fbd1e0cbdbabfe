#!/usr/bin/env bash
# Builds the fuzzers and runs each for a while from its seeds; fails on the first crash.
#
#   tests/fuzz/run.sh BUILD_DIR SECONDS_EACH [JOBS]
#
# Seeds lie in tests/fuzz/corpus/NAME/ for NAME_fuzzer.cc.  What a run finds stays in
# BUILD_DIR/corpus/NAME/, an input that crashes in BUILD_DIR/crashes/.
set -euo pipefail

build=$(realpath -m "$1")
seconds=$2
jobs=${3:-$(nproc)}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cmake --preset fuzz -B "$build" >/dev/null
cmake --build "$build" -j "$jobs" --target fuzzers
mkdir -p "$build/crashes"

# The limits are part of the test: no input may take 10 seconds or 2 GB.
fuzz() {
  local name=$1 found="$build/corpus/$1" seeds="tests/fuzz/corpus/$1"
  mkdir -p "$found"
  local folders=("$found")
  [[ -d $seeds ]] && folders+=("$seeds")
  echo "fuzz: $name for $seconds s"
  "$build/bin/${name}_fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$build/crashes/$name-" -print_final_stats=1 -verbosity=1 \
    "${folders[@]}" >"$build/$name.log" 2>&1 || {
    tail -n 60 "$build/$name.log" >&2
    echo "fuzz: $name failed; its input is in $build/crashes" >&2
    return 1
  }
  grep -E 'number_of_executed_units' "$build/$name.log"
}

count=0
for source in tests/fuzz/*_fuzzer.cc; do
  name=$(basename "$source" _fuzzer.cc)
  fuzz "$name"
  count=$((count + 1))
done
echo "fuzz: $count fuzzers ran, no crash"
