#!/usr/bin/env bash
# Installs a build into a stage, moves it elsewhere, builds examples/ against it as another project
# would, and holds the example's answers against those of the installed program.
#
#   tests/installed_package.sh BUILD_DIR WORK_DIR
set -euo pipefail

build=$(realpath "$1")
work=$2
source=$(realpath "$(dirname "$0")/..")
rm -rf "$work"
mkdir -p "$work"
work=$(realpath "$work")

DESTDIR="$work/stage" cmake --install "$build" --prefix /opt/deepinfer > "$work/install.log"
mv "$work/stage/opt/deepinfer" "$work/moved"  # a package that knows its place would break here
cmake -S "$source/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" > "$work/configure.log"
cmake --build "$work/build" > "$work/build.log"

if grep -rn "$source" "$work/moved/include" "$work/moved"/lib*/cmake; then
  echo "the package names its source tree" >&2
  exit 1
fi
prompts=("Hello!" "What is a river?" "Count to five.")
"$work/build/offline_inference" "${prompts[@]}" > "$work/found.txt"
for prompt in "${prompts[@]}"; do
  "$work/moved/bin/deepinfer" generate --temperature 0 "$prompt" 2> "$work/generate.log"
done > "$work/expected.txt"
cmp "$work/found.txt" "$work/expected.txt"
if "$work/build/offline_inference" --model "$work/no-such-model" x 2> "$work/error.txt"; then
  echo "a missing model was no error" >&2
  exit 1
fi
grep -q "no-such-model" "$work/error.txt"
echo "installed_package: ${#prompts[@]} answers equal those of deepinfer generate"
