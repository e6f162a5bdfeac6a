#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: python3 scripts/verify_result [--explain] DIR

Checks the result directory of a run, or of several (run.repeat), without hpcai500: a second
implementation of `hpcai500 verify` that needs Python's standard library only. Prints the RESULT line
and exits with 0 if all checks hold. Otherwise prints a line for each finding and exits with 10, with 6
if the run has no result, or with 2 if there is no such directory. --explain also prints what each wrong
value must be.

Only `hpcai500 verify` checks these:
* the size of each bootstrap sample, which follows from run.seed
* the interval of quality for segmentation, and intervals that need more than about ten million additions
* ledgers in result.json except table3
* the assignment of ranks to nodes, stages and shards
* the summary except its last line and its digest
* legal values, order and spelling of the configuration's keys
* keys of the JSON files that no number here needs
"""
import os
import sys

from findings import Findings, printable, without_legal_value
from repetitions import NAME, RepetitionsCheck, repetitions_line
from result_files import sha256
from single_run import check_run, result_line


def lacks_result(directory):
    """Whether a run, or the first of several, has begun in `directory`, but there is no result."""
    def has(name):
        return os.path.exists(os.path.join(directory, name))
    has_begun = has("launch.json") or has("repetition_1/launch.json")
    return has_begun and not any(map(has, ("result.json", "manifest.sha256", NAME)))


def checked_line(findings):
    """The line of a result without findings, else None."""
    if os.path.exists(os.path.join(findings.directory, NAME)):
        check = RepetitionsCheck(findings)
        summary = findings.attempt(check.check)
        return None if findings.rows else repetitions_line(summary, sha256(check.files.read(NAME)))
    record, manifest = check_run(findings)
    return None if findings.rows else result_line(record, manifest)


def main(arguments):
    explains = "--explain" in arguments
    arguments = [argument for argument in arguments if argument != "--explain"]
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    sys.stdout.reconfigure(errors="backslashreplace")  # the name of a file may be invalid UTF-8
    directory = arguments[0]
    if not os.path.isdir(directory):
        print(f"verify_result: {printable(directory)}: expected the directory of a result", file=sys.stderr)
        return 2
    findings, line, is_missing = Findings(directory), None, lacks_result(directory)
    if is_missing:
        findings.add("result.json", "is missing: the run has no result")
    else:
        line = checked_line(findings)
    for file, text in findings.rows:
        print(printable(f"{file}: {text if explains else without_legal_value(text)}"))
    if line is not None:
        print(line)
    return 6 if is_missing else 10 if findings.rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
