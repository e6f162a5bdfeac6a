#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/packaging/build_in_image.sh PREFIX
# Builds the program without tests and installs it below PREFIX. Dockerfile and hpcai500.def run it as
# root in an image of Debian 12. The CUDA engine is built if nvcc, cuDNN and NCCL are installed. JOBS is
# the number of parallel compilers (all cores).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/usage.sh
usage_on_request "${BASH_SOURCE[0]}" "$@"
prefix=${1:?build_in_image.sh needs the folder to install into}
export LANG=C.UTF-8 # unset in images, and part of ccache's keys

scripts/install_dependencies.sh
scripts/fetch_cudnn_frontend.sh
cmake -S . -B build/image -G Ninja -DCMAKE_BUILD_TYPE=Release -DHPCAI500_TESTS=OFF
cmake --build build/image --parallel "${JOBS:-$(nproc)}"
cmake --install build/image --prefix "$prefix" --strip
"$prefix/bin/hpcai500" --version
