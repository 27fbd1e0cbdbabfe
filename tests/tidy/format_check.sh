#!/usr/bin/env bash
# Fails when clang-format would change a C++ source; `make format` does it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
list() {
  git ls-files -z --cached --others --exclude-standard -- '*.cc' '*.h' 2>/dev/null ||
    find src tests \( -name '*.cc' -o -name '*.h' \) -print0
}
list | xargs -0 -r ls -d 2>/dev/null | xargs -r clang-format --dry-run -Werror
