#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: with_driver.sh FOLDER PROGRAM [ARGUMENT...]
# Runs PROGRAM, with FOLDER/libcuda.so.1 as the driver if the loader of this machine knows none. The
# test comes first because the loader searches LD_LIBRARY_PATH before its own list.
set -euo pipefail
known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p || true)
[[ $known == *libcuda.so.1* ]] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$1
exec "${@:2}"
