#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/install_dependencies.sh
# Installs the missing Debian packages for the build and the tests. Uses sudo only if one is missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
usage_on_request "${BASH_SOURCE[0]}" "$@"

packages=(
    g++ cmake ninja-build ccache pkg-config python3 clang-format
    libopenmpi-dev openmpi-bin
    libdnnl-dev ocl-icd-opencl-dev opencl-headers # find_package(dnnl) asks for OpenCL
    libhwloc-dev libjpeg62-turbo-dev libpng-dev libhdf5-dev libpugixml-dev zlib1g-dev libssl-dev
    libyaml-cpp-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
    libgtest-dev libgmock-dev
    patchelf # scripts/bundle.sh
    iproute2 # scripts/multihost_test.sh
    help2man # manual pages of cmake --install
)

if ! command -v dpkg-query >/dev/null; then
    echo "This system is not Debian; install the equivalents of these packages:" >&2
    echo "  ${packages[*]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

echo "Installing: ${missing[*]}"
as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "These packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
