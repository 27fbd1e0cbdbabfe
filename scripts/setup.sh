#!/usr/bin/env bash
# Installs everything that building, testing and running deepinfer needs, from Debian's packages.
# Idempotent: packages that are already installed are left alone.  Runs as root or through sudo.
set -euo pipefail

packages=(
  # toolchain
  build-essential cmake ninja-build ccache pkg-config git ca-certificates
  clang clang-format clang-tidy libclang-rt-dev
  # libraries (docs/design/0001-libraries.md says what each is for)
  libfmt-dev libspdlog-dev libsimdjson-dev nlohmann-json3-dev libcli11-dev
  libpcre2-dev libicu-dev libssl-dev libxxhash-dev libedit-dev
  # tests
  libgtest-dev libgmock-dev python3
)
# On x86-64 the kernels of aarch64 are tested in an emulator.
if [[ $(dpkg --print-architecture) == amd64 ]]; then
  packages+=(g++-aarch64-linux-gnu qemu-user)
fi
# Node.js runs the slow comparison with another tokenizer.  One that did not come from Debian
# serves as well (Debian's own npm would conflict with it).
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  packages+=(nodejs npm)
fi

is_installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done

if ((${#missing[@]} == 0)); then
  echo "setup: everything is installed already"
  exit 0
fi

as_root=(env)
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo; please install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo env)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
