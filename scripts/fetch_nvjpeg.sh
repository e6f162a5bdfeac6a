#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/fetch_nvjpeg.sh
# Downloads NVIDIA's library nvJPEG, which the CUDA toolkit may not include, into
# build/third_party/nvjpeg/libnvjpeg.so.13, unless it exists. Without pip, a registry or an x86-64
# processor, prints a message and succeeds: the library is optional.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/fetch_nvjpeg.sh "$@"

version=13.3.2.43
sha256=27f9c4a25a73f1d1ad35c342c8d657c8ff43e23877f338ef15fb2602ac2e5aa8
target=build/third_party/nvjpeg

skip() {
    echo "nvJPEG $version: $1" >&2
    exit 0
}

[[ ! -f $target/libnvjpeg.so.13 ]] || exit 0
[[ $(uname -m) == x86_64 ]] || skip "there is no wheel for this processor"
python3 -m pip --version >/dev/null 2>&1 || skip "python3 has no pip"

mkdir -p "$target"
work=$(mktemp -d "$target/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "nvidia-nvjpeg==$version --hash=sha256:$sha256" >"$work/requirements.txt"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux2014_x86_64 --require-hashes --requirement "$work/requirements.txt" \
    --dest "$work" >"$work/pip.log" 2>&1 ||
    skip "pip cannot download it ($(tail -n 1 "$work/pip.log"))"
python3 -m zipfile -e "$work"/*.whl "$work/wheel"
mv "$work"/wheel/nvidia/*/lib/libnvjpeg.so.13 "$target"
echo "nvJPEG $version: $target/libnvjpeg.so.13"
