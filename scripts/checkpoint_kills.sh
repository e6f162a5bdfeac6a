#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kills a process that writes checkpoints at random moments, KILLS times (200 by default), and loads
# what it has left; then every damage of docs/RELIABILITY.md, and a kill between any two calls to
# the file system. Prints what came out; fails where a load gave a mix or nothing.
# usage: scripts/checkpoint_kills.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
HPCAI500_KILLS=${1:-200} build/release/training_test --gtest_filter='Checkpoint*' |
    grep -E 'kills:|\[ +(OK|FAILED) +\]'
