#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/build.sh [release | develop | debug-sanitize | thread-sanitize] [target...]
# Installs the dependencies, then builds in build/<kind>, by default everything in release.
#   release          compiles many files at once: the fastest build from nothing
#   develop          the same program from separate files: the fastest build after a change
#   debug-sanitize   with AddressSanitizer and UndefinedBehaviorSanitizer
#   thread-sanitize  with ThreadSanitizer
# The CUDA engine is built if its dependencies are found; HPCAI500_CUDA=OFF in the environment disables it,
# and HPCAI500_CUDA=ON requires it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/build.sh "$@"

kind=${1:-release}
targets=("${@:2}")
case $kind in
    release) options=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON) ;;
    develop) options=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=OFF) ;;
    debug-sanitize)
        # Without -O1 the tests are ten times slower.
        options=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g" -DHPCAI500_SANITIZE=ON
            -DCMAKE_UNITY_BUILD=ON)
        ;;
    thread-sanitize)
        options=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DHPCAI500_SANITIZE=THREAD
            -DCMAKE_UNITY_BUILD=ON)
        ;;
    *)
        echo "build.sh: expected release, develop, debug-sanitize or thread-sanitize, got '$kind';" \
            "targets follow the kind: scripts/build.sh release $kind" >&2
        exit 2
        ;;
esac

scripts/install_dependencies.sh
scripts/fetch_cudnn_frontend.sh
cmake -S . -B "build/$kind" -G Ninja "${options[@]}" "-DHPCAI500_CUDA=${HPCAI500_CUDA:-AUTO}" -DHPCAI500_TESTS=ON
cmake --build "build/$kind" ${targets:+--target "${targets[@]}"}
