#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: scripts/report_screenshots.sh DIR|PAGE.html OUT
# Takes pictures of a result's report.html in a headless browser and stores them in the folder OUT:
# light.png, dark.png, phone.png (400 pixels wide), report.pdf and, if pdftoppm is installed,
# print-<page>.png. Fails if the page has an error, loads an external resource, or is wider than a
# phone. Exit code 77 without a browser.
# Needs chromium (Debian: apt-get install --no-install-recommends chromium poppler-utils).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
usage_on_request "${BASH_SOURCE[0]}" "$@"

if (($# != 2)); then
    echo "report_screenshots.sh: expected DIR OUT, got $# arguments; see --help" >&2
    exit 2
fi
page=$1
[[ ! -d $page ]] || page=$page/report.html
out=$2
if [[ ! -f $page ]]; then
    echo "report_screenshots.sh: $page: no such file" >&2
    exit 2
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $browser ]]; then
    echo "report_screenshots.sh: neither chromium nor google-chrome is installed" >&2
    exit 77
fi
mkdir -p "$out"
out=$(realpath "$out")
scratch=$(mktemp -d)
# Processes of the browser may still write.
trap 'rm -rf "$scratch" 2>/dev/null || true' EXIT

# Shows the page in a frame, because a window has at least 500 pixels. A script reports its size.
probe() {
    cat <<HTML
<!DOCTYPE html><meta charset="utf-8"><title>probe</title>
<style>body{margin:0}iframe{border:0;width:$1px;height:${2}px}</style>
<iframe src="page.html"></iframe>
<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument.documentElement;
  document.body.dataset.size = page.scrollWidth + "x" + page.scrollHeight;
});
</script>
HTML
}

cp "$page" "$scratch/page.html"
browse() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --no-first-run --disable-extensions --disable-background-networking \
        --allow-file-access-from-files --user-data-dir="$scratch/profile" \
        --enable-logging=stderr --log-level=0 "$@" 2>>"$scratch/log"
}

# Prints the width and height of the page in a window of this width.
size_at() {
    probe "$1" 1000 >"$scratch/probe.html"
    browse --dump-dom "file://$scratch/probe.html" | sed -n 's/.*data-size="\([0-9x]*\)".*/\1/p'
}

picture() {
    local name=$1 width=$2 size
    shift 2
    size=$(size_at "$width")
    if [[ -z $size ]]; then
        echo "report_screenshots.sh: the browser could not show $page; its messages:" >&2
        tail -n 5 "$scratch/log" >&2
        exit 1
    fi
    echo "$name: $width pixels wide, page $size"
    if ((${size%x*} > width)); then
        echo "report_screenshots.sh: the page is ${size%x*} pixels wide on a screen of $width" >&2
        exit 1
    fi
    local height=${size#*x}
    ((height < 16000)) || height=16000 # a browser draws no more
    probe "$width" "$height" >"$scratch/probe.html"
    browse --window-size="$((width < 500 ? 500 : width)),$height" \
        --screenshot="$out/$name.png" "$@" "file://$scratch/probe.html" >/dev/null
}

picture light 1000
picture dark 1000 --blink-settings=preferredColorScheme=0
picture phone 400
browse --print-to-pdf="$out/report.pdf" --no-pdf-header-footer "file://$scratch/page.html" >/dev/null
if command -v pdftoppm >/dev/null; then
    rm -f "$out"/print-*.png
    pdftoppm -r 80 -png "$out/report.pdf" "$out/print"
fi
if grep -E ':CONSOLE' "$scratch/log"; then
    echo "report_screenshots.sh: the browser reported errors, see above" >&2
    exit 1
fi
echo "pictures in $out"
