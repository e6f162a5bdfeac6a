#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the differences of the program's numbers from independent sources (docs/VERIFICATION.md).

    verification.py [--build DIR]   run every test program that a row names and print the filled tables
    verification.py --check         only check that all tests exist and that every number has a row

A row of tests/verification_rows.md is "| number | reference | `program filter` | tolerance |". A
printed row also has the largest error. If a test records `number` with
tests/support/largest_error.hpp, the last two columns are from the error that is nearest to its
tolerance. Otherwise a passing test yields "equal" if the tolerance is "exact", else "within".
mpi_test runs on four ranks; Open MPI's mpirun is found in PATH or in HPCAI500_MPIRUN.
"""
import argparse
import collections
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROW = re.compile(r"\| ([^|]+?) \| ([^|]+?) \| `(\w+) ([^`|]+)` \| *([^|]*?) *\|")
HEADER = "| number | reference | test | tolerance |"
TEST = re.compile(r"^(TEST|TEST_F|TEST_P)\(\s*(\w+),\s*(\w+)\)", re.M)
INSTANCE = re.compile(r"^INSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+)", re.M)
NUMBER = re.compile(r'LargestError(?:\s+\w+)?\s*[({]\s*(?:fmt::format\(\s*)?((?:"[^"]*"\s*)+)(\+)?')
RECORDED = re.compile(r"(\S+) of (\S+)")
RANKS = 4

Row = collections.namedtuple("Row", "number reference program filter tolerance error", defaults=[""])
Outcome = collections.namedtuple("Outcome", "program name state numbers")  # of one test


class Page:
    """tests/verification_rows.md."""

    NAME = "tests/verification_rows.md"

    def __init__(self, root):
        self.lines = (root / self.NAME).read_text().splitlines()

    def rows(self):
        """line number -> Row"""
        found = {number: ROW.fullmatch(line) for number, line in enumerate(self.lines)}
        return {number: Row(*match.groups()) for number, match in found.items() if match}

    def filled(self, rows):
        """Lines of the page with a column for the errors of `rows` (line number -> Row)."""
        for number, line in enumerate(self.lines):
            if number in rows:
                yield "| {} | {} | `{} {}` | {} | {} |".format(*rows[number]).replace("|  |", "| |")
            elif line == HEADER:
                yield HEADER + " largest error |"
            else:
                yield line + "---|" if line.startswith("|---") else line


def names_of(sources):
    """Full names of the tests of one program, without parameters: [Instance/]Suite.Test."""
    text = "".join(source.read_text() for source in sources)
    instances = collections.defaultdict(list)
    for instance, suite in INSTANCE.findall(text):
        instances[suite].append(f"{instance}/")
    return [f"{instance}{suite}.{name}" for kind, suite, name in TEST.findall(text)
            for instance in (instances[suite] if kind.endswith("_P") else [""])]


def sources_of(root, program):
    """tests/<module>/*_test.cpp of the program <module>_test."""
    return sorted((root / "tests" / program.removesuffix("_test")).glob("*_test.cpp"))


def matches(pattern, name):
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def missing_tests(root, rows):
    """A message for each test of a row that no source defines."""
    programs = {row.program for row in rows}
    names = {program: names_of(sources_of(root, program)) for program in programs}
    for row in rows:
        for pattern in row.filter.split(":"):
            suite, _, test = pattern.partition(".")
            wanted = f"{suite}.{test.split('/')[0]}"  # without the parameter
            if not any(matches(wanted, name) for name in names[row.program]):
                yield f"{row.number}: {row.program} has no test {pattern}"


def missing_rows(root, rows):
    """A message for each recorded number of a source that has no row."""
    numbers = [row.number for row in rows]
    for source in sorted((root / "tests").rglob("*.[ch]pp")):
        for literals, more in NUMBER.findall(source.read_text()):
            literal = "".join(re.findall(r'"([^"]*)"', literals))
            pattern = re.sub(r"\\{[^}]*\\}", ".*", re.escape(literal)) + (".*" if more else "")
            if not any(re.fullmatch(pattern, number) for number in numbers):
                yield f'{source.relative_to(root)}: no row has the number "{literal}"'


def duplicate_rows(rows):
    counts = collections.Counter(row.number for row in rows)
    return [f"{number}: {count} rows" for number, count in counts.items() if count > 1]


def check(root, page):
    rows = list(page.rows().values())
    return [*duplicate_rows(rows), *missing_tests(root, rows), *missing_rows(root, rows)]


def mpirun():
    return os.environ.get("HPCAI500_MPIRUN") or shutil.which("mpirun") or "mpirun"


# Allows mpirun to run as root and to start more ranks than there are cores.
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMP_NUM_THREADS": "1"}


def state_of(case):
    if case.get("failures"):
        return "FAILED"
    return "skipped" if case.get("result") == "SKIPPED" else "passed"


def recorded_numbers(case):
    """number -> (error, tolerance), as strings"""
    found = {key: RECORDED.fullmatch(str(value)) for key, value in case.items()}
    return {key: match.groups() for key, match in found.items() if match}


def run_program(build, program):
    """Outcomes of all tests of one program."""
    if not (build / program).exists():
        sys.exit(f"verification.py: {build / program} is not built")
    command, env = [str(build / program)], dict(os.environ)
    if program == "mpi_test":
        command = [mpirun(), "--bind-to", "none", "-n", str(RANKS), *command]
        env |= MPI_ENVIRONMENT
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([*command, f"--gtest_output=json:{report}"], env=env, text=True,
                              capture_output=True, check=False)
        if not report.exists():
            sys.exit(f"verification.py: {program} wrote no report\n{done.stdout}{done.stderr}")
        suites = json.loads(report.read_text())["testsuites"]
    return [Outcome(program, f"{suite['name']}.{case['name']}", state_of(case),
                    recorded_numbers(case))
            for suite in suites for case in suite["testsuite"]]


def outcomes_of(row, outcomes):
    patterns = row.filter.split(":")
    return [outcome for outcome in outcomes if outcome.program == row.program and
            any(matches(pattern, outcome.name) for pattern in patterns)]


def nearest_to_tolerance(pairs):
    """Cells for the error that is nearest to its tolerance."""
    error, tolerance = max(pairs, key=lambda pair: float(pair[0]) / (float(pair[1]) or 1))
    if float(tolerance) == 0:
        return {"tolerance": "exact", "error": "equal" if float(error) == 0 else error}
    return {"tolerance": tolerance, "error": error}


def filled(row, outcomes):
    """The row with the results of its tests."""
    own_outcomes = outcomes_of(row, outcomes)
    states = {outcome.state for outcome in own_outcomes}
    errors = [outcome.numbers[row.number] for outcome in own_outcomes if row.number in outcome.numbers]
    if errors:
        row = row._replace(**nearest_to_tolerance(errors))
    elif "passed" in states:
        texts = {"exact": "equal", "": "nothing recorded"}
        row = row._replace(error=texts.get(row.tolerance, "within"))
    if not own_outcomes or "FAILED" in states:
        return row._replace(error="FAILED" if own_outcomes else "no such test")
    return row._replace(error="skipped") if states == {"skipped"} else row


def numbers_without_row(rows, outcomes):
    """A message for each number that was recorded but has no row."""
    listed = {row.number for row in rows}
    found = {(number, outcome.program, outcome.name): text for outcome in outcomes
             for number, text in outcome.numbers.items() if number not in listed}
    return [f"no row: | {number} | ? | `{program} {name}` | {tolerance} | {error} |"
            for (number, program, name), (error, tolerance) in found.items()]


def first_line(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    names = re.findall(r"^model name\s*: (.*)", text, re.M) or [platform.machine()]
    sets = [name for name in ("avx512_bf16", "avx512f", "avx2") if f" {name}" in text]
    return f"{os.cpu_count()} cores of {names[0]} ({sets[0] if sets else 'no AVX2'})"


def onednn():
    headers = [path for path in pathlib.Path("/usr/include").glob("oneapi/dnnl/dnnl_version*.h")]
    text = "".join(path.read_text() for path in headers)
    parts = [re.search(rf"DNNL_VERSION_{part}\s+(\d+)", text)
             for part in ("MAJOR", "MINOR", "PATCH")]
    return "oneDNN " + ".".join(part[1] for part in parts) if all(parts) else "oneDNN"


def describe_measurement(root):
    now = datetime.datetime.now(datetime.timezone.utc)
    commit = first_line("git", "-C", str(root), "describe", "--always", "--dirty=, with changes")
    compiler = first_line("g++", "--version")
    return [f"Measured {now:%Y-%m-%d %H:%M} UTC at commit {commit}, on {processor()},",
            f"{compiler}, {onednn()}, {first_line(mpirun(), '--version')};",
            f"mpi_test on {RANKS} ranks."]


def fill(root, page, build):
    """Runs the tests, prints the page and returns the problems."""
    rows = page.rows()
    outcomes = []
    for program in sorted({row.program for row in rows.values()}):
        print(f"{program} ...", file=sys.stderr, flush=True)
        outcomes += run_program(build, program)
    results = {number: filled(row, outcomes) for number, row in rows.items()}
    print(*describe_measurement(root), "", *page.filled(results), sep="\n")
    return numbers_without_row(rows.values(), outcomes) + [
        f"{row.number}: {row.error}" for row in results.values()
        if row.error in ("FAILED", "no such test", "nothing recorded", "")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="default: build/release")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    page = Page(root)
    if arguments.check:
        problems = check(root, page)
    else:
        problems = fill(root, page, (arguments.build or root / "build" / "release").resolve())
    if problems:
        print("\n".join(f"{Page.NAME}: {problem}" for problem in problems), file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
