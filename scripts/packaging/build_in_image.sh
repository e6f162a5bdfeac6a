#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/packaging/build_in_image.sh PREFIX
# Builds the program without its tests and installs it below PREFIX: what Dockerfile and
# hpcai500.def run in an image of Debian 12, as root, where the sources are this folder. The CUDA
# engine is built where nvcc, cuDNN and NCCL are. JOBS compilers run at a time (all cores).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/usage.sh
usage_on_request "${BASH_SOURCE[0]}" "$@"
prefix=${1:?build_in_image.sh needs the folder to install into}
export LANG=C.UTF-8 # which images do not set, and ccache takes into account

scripts/install_dependencies.sh
scripts/fetch_cudnn_frontend.sh
cmake -S . -B build/image -G Ninja -DCMAKE_BUILD_TYPE=Release -DHPCAI500_TESTS=OFF
cmake --build build/image --parallel "${JOBS:-$(nproc)}"
cmake --install build/image --prefix "$prefix" --strip
"$prefix/bin/hpcai500" --version
