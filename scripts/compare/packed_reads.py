#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare reading a folder of small images with reading its tar files, from a cold and a warm cache.

    sudo scripts/compare/packed_reads.py FOLDER --images 50000

Generates the images in FOLDER, packs them and reads both with `hpcai500 data check`, whose reports
must be equal. Prints open and read calls, counted by strace if it is installed, and seconds.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS = ("openat", "read", "pread64")


def drop_caches():
    """Needs root."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def report_of(command):
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    del report["path"]
    return report


def count_calls(command):
    if shutil.which("strace") is None:
        return {}
    with tempfile.NamedTemporaryFile("r") as table:
        subprocess.run(["strace", "-f", "-c", "-o", table.name, "-e", "trace=" + ",".join(CALLS),
                        *command], check=True, capture_output=True)
        rows = [line.split() for line in table]
    return {row[-1]: int(row[3]) for row in rows if row and row[-1] in CALLS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--binary", default=str(ROOT / "build/release/hpcai500"))
    parser.add_argument("--images", type=int, default=50000)
    parser.add_argument("--size", type=int, default=48, help="pixels of the longer side")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    classes = 50
    sources = {"folder": arguments.folder / "set/train", "shards": arguments.folder / "packed"}
    subprocess.run([arguments.binary, "data", "generate", "photographs", "--classes", str(classes),
                    "--output", str(arguments.folder / "set"), "--size", str(arguments.size),
                    "--training-per-class", str(arguments.images // classes),
                    "--validation-per-class", "1"], check=True)
    drop_caches()
    begin = time.monotonic()
    subprocess.run([arguments.binary, "data", "pack", str(sources["folder"]), "--output",
                    str(sources["shards"]), "--threads", str(arguments.threads)], check=True)
    print(f"packed in {time.monotonic() - begin:.1f} s")

    commands = {name: [arguments.binary, "data", "check", str(path), "--json", "--threads",
                       str(arguments.threads)] for name, path in sources.items()}
    reports = {name: report_of(command) for name, command in commands.items()}  # also warms up
    assert reports["folder"] == reports["shards"], "the reports differ"
    warm, cold = {name: [] for name in commands}, {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            drop_caches()
            for seconds in cold, warm:
                begin = time.monotonic()
                report_of(command)
                seconds[name].append(time.monotonic() - begin)
    for name, command in commands.items():
        print(f"{name}: {statistics.median(cold[name]):.1f} s cold, "
              f"{statistics.median(warm[name]):.1f} s warm; calls: {count_calls(command)}")


if __name__ == "__main__":
    main()
