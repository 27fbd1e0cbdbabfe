#!/usr/bin/env bash
# Installs everything that building, testing and running deepinfer needs, from Debian's own packages.
# Idempotent: packages that are already installed are left alone.  Runs as root or through sudo.
set -euo pipefail

packages=(
  # toolchain
  build-essential cmake ninja-build ccache clang clang-format clang-tidy libclang-rt-dev git ca-certificates
  # libraries (docs/design/0001-libraries.md says what each is for)
  libfmt-dev libspdlog-dev libexpected-dev libsimdjson-dev nlohmann-json3-dev libcli11-dev
  libpcre2-dev libicu-dev libssl-dev libxxhash-dev
  # tests
  libgtest-dev libgmock-dev libbenchmark-dev python3 nodejs npm
)

missing=()
for package in "${packages[@]}"; do
  if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$'; then
    missing+=("$package")
  fi
done

# A Node.js that did not come from Debian serves as well (Debian's own npm would conflict with it).
if command -v node >/dev/null && command -v npm >/dev/null; then
  kept=()
  for package in "${missing[@]}"; do
    [[ $package == nodejs || $package == npm ]] || kept+=("$package")
  done
  missing=("${kept[@]}")
fi

if ((${#missing[@]} == 0)); then
  echo "setup: everything is installed already"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "setup: not root and no sudo; please install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
