#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/fetch_cudnn_frontend.sh
# Downloads the headers of NVIDIA's cudnn_frontend, which the CUDA toolkit does not include, into
# build/third_party/cudnn_frontend/include, unless they exist. Without nvcc, pip or a registry,
# prints a message and succeeds; the build then has no CUDA engine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/fetch_cudnn_frontend.sh "$@"

version=1.32.0
target=build/third_party/cudnn_frontend

has_version() { # folder
    local header=$1/cudnn_frontend_version.h name number=()
    [[ -f $1/cudnn_frontend.h && -f $header ]] || return 1
    for name in MAJOR MINOR PATCH; do
        number+=("$(sed -n "s/^#define CUDNN_FRONTEND_${name}_VERSION \([0-9]*\).*/\1/p" "$header")")
    done
    [[ $(IFS=. && echo "${number[*]}") == "$version" ]]
}

skip_cuda_engine() {
    echo "cudnn_frontend $version: $1; building without the CUDA engine" >&2
    exit 0
}

! has_version "$target/include" || exit 0
PATH=$PATH:/usr/local/cuda/bin command -v nvcc >/dev/null || skip_cuda_engine "nvcc is not installed"
python3 -m pip --version >/dev/null 2>&1 || skip_cuda_engine "python3 has no pip"

mkdir -p "$target"
work=$(mktemp -d "$target/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
# The wheels of all Python versions contain the same headers.
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --implementation cp --python-version 3.11 --platform "manylinux_2_28_$(uname -m)" \
    --dest "$work" "nvidia-cudnn-frontend==$version" >"$work/pip.log" 2>&1 ||
    skip_cuda_engine "pip cannot download it ($(tail -n 1 "$work/pip.log"))"
python3 -m zipfile -e "$work"/*.whl "$work/wheel"
has_version "$work/wheel/include" || skip_cuda_engine "the wheel contains another version"
rm -rf "$target/include"
mv "$work/wheel/include" "$target/include"
echo "cudnn_frontend $version: headers in $target/include"
