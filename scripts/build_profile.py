#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the build time of each target and of the slowest files.

Reads Ninja's log of a build folder, which has the seconds of each output's newest build. To profile a
full build, delete the folder and build it again with CCACHE_DISABLE=1.
"""
import argparse
import collections
import pathlib
import re
import sys

LINKED = "(libraries, programs)"


def read_log(path):
    """{output: seconds of its newest build}"""
    seconds = {}
    lines = path.read_text().splitlines()
    if not lines or not lines[0].startswith("# ninja log v"):
        sys.exit(f"build_profile.py: {path}: expected a Ninja log")
    for line in lines[1:]:
        begin, end, _, output, _ = line.split("\t")
        seconds[output] = (int(end) - int(begin)) / 1000
    return seconds


def target_of(output):
    match = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
    return match.group(1) if match else LINKED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default="build/release",
                        help="a build folder (build/release)")
    parser.add_argument("--files", type=int, default=15, help="how many of the slowest files to print (15)")
    options = parser.parse_args()
    log = options.folder / ".ninja_log"
    if not log.is_file():
        sys.exit(f"build_profile.py: {log}: no such file; build with Ninja first")

    seconds = read_log(log)
    total = sum(seconds.values()) or 1
    targets = collections.defaultdict(list)
    for output, spent in seconds.items():
        targets[target_of(output)].append(spent)
    print(f"{'target':<26}{'outputs':>8}{'seconds':>9}{'share':>8}")
    for name, spent in sorted(targets.items(), key=lambda item: -sum(item[1])):
        print(f"{name:<26}{len(spent):>8}{sum(spent):>9.1f}{sum(spent) / total:>8.1%}")
    print(f"{'all':<26}{len(seconds):>8}{sum(seconds.values()):>9.1f}")
    print("\nslowest files")
    for output, spent in sorted(seconds.items(), key=lambda item: -item[1])[: options.files]:
        print(f"{spent:>9.1f}  {re.sub(r'CMakeFiles/[^/]+[.]dir/', '', output)}")


if __name__ == "__main__":
    main()
