#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: mpirun ... in_share.sh FOLDER COMMAND...
# Runs a rank in its control group below FOLDER, which shares.sh has made.
set -euo pipefail
folder=${1:?in_share.sh: no folder}
shift
echo 0 >"$folder/rank$OMPI_COMM_WORLD_RANK/cgroup.procs"
exec "$@"
