#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/site.sh OUT
# Builds a website of README.md and docs in the folder OUT. Fails on dead links, and with exit code 77 without mkdocs.
# The pages open as files without a network; the search needs a server: python3 -m http.server -d OUT.
# Needs mkdocs-material (pip install mkdocs-material).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/usage.sh
usage_on_request scripts/site.sh "$@"
if (($# != 1)); then
    echo "site.sh: expected OUT, got $# arguments; see --help" >&2
    exit 2
fi
if ! command -v mkdocs >/dev/null; then
    echo "site.sh: mkdocs is not installed: pip install mkdocs-material" >&2
    exit 77
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -r docs scripts/site/mkdocs.yml "$stage"
cp LICENSE CITATION.cff "$stage/docs"
sed 's,\([("]\)docs/,\1,g' README.md >"$stage/docs/index.md"
NO_MKDOCS_2_WARNING=1 mkdocs build --strict --config-file "$stage/mkdocs.yml" --site-dir "$(realpath -m "$1")"
echo "site: $1/index.html"
