# SPDX-License-Identifier: Apache-2.0
"""Usage: run.py PROGRAM NUMBERS [--markdown]; scripts/faults.sh starts it."""
import functools
import pathlib
import shutil
import sys
import tempfile
import time

import cases
import more_cases
from harness import Failed, NotRun, Place, must

HEADER = ("| # | what was injected | what came out | seconds to detect | what was lost |\n"
          "|---|---|---|---|---|")


def main():
    program = pathlib.Path(sys.argv[1])
    numbers = [int(number) for number in sys.argv[2].split(",") if number]
    markdown = "--markdown" in sys.argv[3:]
    world = pathlib.Path(tempfile.mkdtemp(prefix="hpcai500-faults-"))

    @functools.cache
    def reference():
        place = Place(program, world / "reference")
        code = place.run(8).wait()
        must(code == 0, f"the run without a fault ends with {code}")
        return place.digests()

    failed = 0
    lines = []
    for number, (injected, run) in sorted((cases.CASES | more_cases.CASES).items()):
        if numbers and number not in numbers:
            continue
        place = Place(program, world / str(number))
        begin = time.monotonic()
        try:
            row = run(place, reference)
            seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
            state, came_out, lost = "passed", row.came_out, row.lost
        except NotRun as why:
            state, came_out, seconds, lost = "not run", f"not run: {why}", "", ""
        except (Failed, OSError, ValueError, KeyError, TypeError) as why:
            state, came_out, seconds, lost = "FAILED", f"{type(why).__name__}: {why}", "", ""
        left = place.clean_up()
        if left and state == "passed":
            state, came_out = "FAILED", f"{left} processes were left behind; {came_out}"
        failed += state == "FAILED"
        if state != "FAILED":
            shutil.rmtree(place.folder, ignore_errors=True)
        lines.append(f"| {number} | {injected} | {came_out} | {seconds} | {lost} |")
        took = time.monotonic() - begin
        print(f"{number:2} {state:8} {took:4.0f} s  {injected}\n      {came_out}",
              file=sys.stderr if markdown else sys.stdout, flush=True)
    if markdown:
        print(HEADER, *lines, sep="\n")
    if failed:
        print(f"faults.sh: {failed} failed; their files are in {world}", file=sys.stderr)
    else:
        shutil.rmtree(world, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
