#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/quickstart.sh
# Builds the program, generates a small set of synthetic photographs, and runs the benchmark on it: two base
# models of two ranks each, a few minutes on two cores. The CUDA engine is built only with an NVIDIA driver or
# HPCAI500_CUDA=ON. An existing engine in build/release is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/quickstart.sh "$@"
if (($#)); then
    echo "quickstart.sh: unknown option '$1'; the script has no options" >&2
    exit 2
fi
source scripts/mpi_environment.sh

run() {
    echo "+ $*"
    "$@"
}

has_driver() { command -v nvidia-smi || PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -F libcuda.so.1; }
if [[ -z ${HPCAI500_CUDA:-} && ! -e build/release/libhpcai_cuda.so ]] && ! has_driver >/dev/null; then
    echo "No NVIDIA driver was found: the CUDA engine is not built."
    export HPCAI500_CUDA=OFF
fi
scripts/build.sh release hpcai500
run build/release/hpcai500 data generate photographs --output quickstart-data \
    --classes 8 --training-per-class 160 --validation-per-class 25 --size 64
mpi_environment 4
run mpirun -np 4 build/release/hpcai500 run --config configs/quickstart.yaml
