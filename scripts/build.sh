#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/build.sh [release | debug-sanitize | thread-sanitize] [target...]
# Builds into build/<kind>, by default everything in release: build/release/hpcai500.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/build.sh "$@"

kind=${1:-release}
targets=("${@:2}")
case $kind in
    release) options=(-DCMAKE_BUILD_TYPE=Release) ;;
    debug-sanitize)
        # -O1: the sanitizers without it make the tests ten times slower.
        options=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g" -DHPCAI500_SANITIZE=ON)
        ;;
    thread-sanitize)
        options=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DHPCAI500_SANITIZE=THREAD)
        ;;
    *)
        echo "build.sh: '$kind' is none of release, debug-sanitize and thread-sanitize" >&2
        exit 2
        ;;
esac

scripts/install_dependencies.sh
scripts/fetch_cudnn_frontend.sh
cmake -S . -B "build/$kind" -G Ninja "${options[@]}"
cmake --build "build/$kind" ${targets:+--target "${targets[@]}"}
