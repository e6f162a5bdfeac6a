# SPDX-License-Identifier: Apache-2.0
"""Usage: attacks.py PROGRAM ROWS; scripts/attacks.sh starts it."""
import pathlib
import shutil
import sys
import tempfile

import forgeries  # noqa: F401  (adds rows, as the next two)
import contradictions  # noqa: F401
import accidents  # noqa: F401
from rows import CODES, DATA, REJECTED, ROWS
from workspace import Failed, NotRun, Workspace

FORMAT = "{:<10} {:<76} {:>6} {:>16}  {}"


def judge(row, codes):
    """What is wrong with the exit codes, or nothing."""
    expected = CODES.get(row.expected, (0, 0) if codes else ())
    if codes[:2] != expected:
        return f"exit codes {codes[:2]}, expected {expected}"
    if row.expected == DATA and codes[2] != REJECTED:
        return f"verify --data ends with {codes[2]}, expected {REJECTED}"
    return ""


def run_row(name, workspace):
    """(the line of the table, what is wrong)."""
    row = ROWS[name]
    codes, wrong = (), ""
    try:
        codes = row.run(workspace)
        wrong = judge(row, codes)
    except NotRun as reason:
        return FORMAT.format(name, row.attack, "-", "-", f"{row.expected}; not run: {reason}"), ""
    except (Failed, OSError, ValueError, LookupError, TypeError) as error:
        wrong = f"{type(error).__name__}: {error}"
    shown = [str(code) for code in codes[:2]] or ["-", "-"]
    expected = f"{row.expected}: {codes[2]}" if len(codes) > 2 else row.expected
    return FORMAT.format(name, row.attack, *shown, expected + ("  FAILED" if wrong else "")), wrong


def main():
    program, names = pathlib.Path(sys.argv[1]), [name for name in sys.argv[2].split(",") if name]
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        print(f"attacks.sh: unknown row '{unknown[0]}'; rows: {' '.join(ROWS)}", file=sys.stderr)
        return 2
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hpcai500-attacks-"))
    workspace = Workspace(program, folder)
    print(FORMAT.format("row", "attack", "verify", "verify_result", "expected"))
    failures = []
    for name in names or ROWS:
        line, wrong = run_row(name, workspace)
        print(line, flush=True)
        failures += [f"{name}: {wrong}"] if wrong else []
    if failures:
        print(f"attacks.sh: {len(failures)} failed; the files are in {folder}", *failures, sep="\n", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
