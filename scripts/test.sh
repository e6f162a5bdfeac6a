#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/test.sh [--sanitize]
# Builds and runs every test and check. --sanitize also runs the tests of the modules that meet
# data and configuration from outside under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/test.sh "$@"

sanitize=false
case ${1:-} in
    "") ;;
    --sanitize) sanitize=true ;;
    *)
        echo "test.sh: unknown option '$1'; there is --sanitize" >&2
        exit 2
        ;;
esac

scripts/build.sh release
ctest --test-dir build/release --output-on-failure --parallel "$(nproc)"
if $sanitize; then
    modules=(base storage meters config data evaluation report slurm)
    tests=()
    for module in "${modules[@]}"; do
        ! compgen -G "tests/$module/*_test.cpp" >/dev/null || tests+=("${module}_test")
    done
    scripts/build.sh debug-sanitize "${tests[@]}"
    ctest --test-dir build/debug-sanitize --output-on-failure --parallel "$(nproc)" \
        --tests-regex "^($(IFS='|' && echo "${modules[*]}"))\$"
fi
scripts/check.sh
echo "All tests and checks passed."
