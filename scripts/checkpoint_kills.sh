#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# KILLS times (200 by default), kills a process at a random moment while it writes checkpoints, and loads
# the files that remain. Then tests every damage of docs/RELIABILITY.md and a kill between any two file
# system calls. Prints the outcomes; fails if a load mixed two checkpoints or found none.
# Usage: scripts/checkpoint_kills.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
HPCAI500_KILLS=${1:-200} build/release/training_test --gtest_filter='Checkpoint*' |
    grep -E 'kills:|\[ +(OK|FAILED) +\]'
