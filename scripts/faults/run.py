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

HEADER = ("| # | fault | outcome | seconds to detect | loss |\n"
          "|---|---|---|---|---|")


def run_case(place, run, reference):
    """(state, outcome, seconds to detect, loss)."""
    try:
        row = run(place, reference)
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        outcome = "passed", row.came_out, seconds, row.lost
    except NotRun as why:
        outcome = "not run", f"not run: {why}", "", ""
    except (Failed, OSError, ValueError, KeyError, TypeError) as why:
        outcome = "FAILED", f"{type(why).__name__}: {why}", "", ""
    left = place.clean_up()
    if left and outcome[0] == "passed":
        outcome = "FAILED", f"{left} processes were left; {outcome[1]}", *outcome[2:]
    return outcome


def run_cases(program, numbers, folder, progress):
    """(number of failed cases, rows of the table); a failed case leaves its files in `folder`."""
    @functools.cache
    def reference():
        place = Place(program, folder / "reference")
        code = place.run(8).wait()
        must(code == 0, f"the run without a fault ends with {code}")
        return place.digests()

    failed, rows = 0, []
    for number, (injected, run) in sorted((cases.CASES | more_cases.CASES).items()):
        if numbers and number not in numbers:
            continue
        place = Place(program, folder / str(number))
        begin = time.monotonic()
        state, came_out, seconds, lost = run_case(place, run, reference)
        failed += state == "FAILED"
        if state != "FAILED":
            shutil.rmtree(place.folder, ignore_errors=True)
        rows.append(f"| {number} | {injected} | {came_out} | {seconds} | {lost} |")
        took = time.monotonic() - begin
        print(f"{number:2} {state:8} {took:4.0f} s  {injected}\n      {came_out}",
              file=progress, flush=True)
    return failed, rows


def main():
    program = pathlib.Path(sys.argv[1])
    numbers = [int(number) for number in sys.argv[2].split(",") if number]
    markdown = "--markdown" in sys.argv[3:]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hpcai500-faults-"))
    failed, rows = run_cases(program, numbers, folder, sys.stderr if markdown else sys.stdout)
    if markdown:
        print(HEADER, *rows, sep="\n")
    if failed:
        print(f"faults.sh: {failed} failed; their files are in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
