# SPDX-License-Identifier: Apache-2.0
"""Usage: run.py PROGRAM NUMBERS [--markdown]; scripts/faults.sh starts it."""
import functools
import pathlib
import shutil
import sys
import tempfile
import time

import cases
import more_cases  # noqa: F401  (adds cases)
from harness import Failed, NotRun, Workspace, require

HEADER = ("| # | fault | outcome | seconds to detect | lost |\n"
          "|---|---|---|---|---|")


def run_case(workspace, run, reference):
    """(state, outcome, seconds to detect, what is lost)."""
    try:
        row = run(workspace, reference)
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        outcome = "passed", row.observed, seconds, row.lost
    except NotRun as reason:
        outcome = "not run", f"not run: {reason}", "", ""
    except (Failed, OSError, ValueError, KeyError, TypeError) as error:
        outcome = "FAILED", f"{type(error).__name__}: {error}", "", ""
    left = workspace.clean_up()
    if left and outcome[0] == "passed":
        outcome = "FAILED", f"{left} processes were left; {outcome[1]}", *outcome[2:]
    return outcome


def run_cases(program, numbers, folder, progress):
    """(number of failed cases, rows of the table); a failed case leaves its files in `folder`."""
    @functools.cache
    def reference():
        workspace = Workspace(program, folder / "reference")
        code = workspace.run(8).wait()
        require(code == 0, f"the run without a fault ends with {code}")
        return workspace.digests()

    failed, rows = 0, []
    for number, (injected, run) in sorted(cases.CASES.items()):
        if numbers and number not in numbers:
            continue
        workspace = Workspace(program, folder / str(number))
        begin = time.monotonic()
        state, observed, seconds, lost = run_case(workspace, run, reference)
        failed += state == "FAILED"
        if state != "FAILED":
            shutil.rmtree(workspace.folder, ignore_errors=True)
        rows.append(f"| {number} | {injected} | {observed} | {seconds} | {lost} |")
        took = time.monotonic() - begin
        print(f"{number:2} {state:8} {took:4.0f} s  {injected}\n      {observed}",
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
