#!/usr/bin/env bash
# Builds a sanitizer preset (asan or tsan) and runs the fast tests in it.
#
#   tests/sanitize.sh PRESET BUILD_DIR [JOBS]
set -euo pipefail

preset=$1
build=$(realpath -m "$2")
jobs=${3:-$(nproc)}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

cmake --preset "$preset" -B "$build" >/dev/null
cmake --build "$build" -j "$jobs"
# The checks of style look at sources only; once is enough.
ctest --test-dir "$build" -LE 'slow|style' --output-on-failure --no-tests=error -j "$jobs"
