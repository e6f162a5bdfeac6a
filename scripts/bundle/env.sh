# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by bash: source BUNDLE/bin/env.sh
# Adds the bundle's programs to PATH and this machine's CUDA libraries to LD_LIBRARY_PATH, and sets Open
# MPI's prefix. Prints the missing CUDA libraries; the CPU engine runs without them.
hpcai500_bundle=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
export PATH=$hpcai500_bundle/bin:$PATH
export OPAL_PREFIX=$hpcai500_bundle OPAL_SYSCONFDIR=$hpcai500_bundle/etc
[[ ! -d $hpcai500_bundle/pmix ]] || export PMIX_PREFIX=$hpcai500_bundle/pmix
# This folder does not exist: hwloc must not load this machine's plug-ins of another version.
export HWLOC_PLUGINS_PATH=$hpcai500_bundle/lib/hwloc
export HPCAI500_SOURCE_DIR=$hpcai500_bundle HPCAI500_BINARY=$hpcai500_bundle/bin/hpcai500
# LD_LIBRARY_PATH gets CUDA only: run-paths find the bundle's libraries, which no other program loads.
hpcai500_cuda=$("$hpcai500_bundle/bin/cuda_library_path") || true
if [[ -n $hpcai500_cuda && :${LD_LIBRARY_PATH-}: != *:"$hpcai500_cuda":* ]]; then
    export LD_LIBRARY_PATH=$hpcai500_cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
unset hpcai500_bundle hpcai500_cuda
