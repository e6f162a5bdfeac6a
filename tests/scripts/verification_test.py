#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/verification.py finds the errors of a few rows and prints the completed rows."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
ROW = "| {} | by hand | `ops_test {}` | {} |"
SOURCE = """
TEST(Sum, IsRight) { LargestError error("sum, fp32", 1e-6); }
TEST_P(Product, IsRight) { LargestError error(fmt::format("product "
                 "of {}", n), 0); }
TEST_F(Digest, IsEqual) {}
INSTANTIATE_TEST_SUITE_P(All, Product, Values(2));
"""
ROWS = [("sum, fp32", "Sum.IsRight", ""), ("product of 2", "All/Product.IsRight/*", ""),
        ("digest", "Digest.*", "exact")]


def page(rows):
    return "\n".join(["# Page", "| number | reference | test | tolerance |", "|---|---|---|---|",
                      *(ROW.format(*row) for row in rows)]) + "\n"


def case(name, **more):
    suite, _, test = name.rpartition(".")
    return {"name": suite, "testsuite": [{"name": test, **more}]}


class Tree:
    """A repository of some rows, one test source and one test program."""

    def __init__(self, rows, report=()):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "tests" / "ops").mkdir(parents=True)
        (self.root / "build").mkdir()
        (self.root / "tests" / "verification_rows.md").write_text(page(rows))
        (self.root / "tests" / "ops" / "sum_test.cpp").write_text(SOURCE)
        program = self.root / "build" / "ops_test"
        program.write_text("#!/bin/sh\ncat >\"${1#--gtest_output=json:}\" <<'END'\n"
                           + json.dumps({"testsuites": list(report)}) + "\nEND\n")
        program.chmod(0o755)

    def run(self, *arguments):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "verification.py", "--root",
                               self.root, *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "HPCAI500_MPIRUN": "true"})
        return done.returncode, done.stdout + done.stderr

    def fill(self):
        return self.run("--build", str(self.root / "build"))


class Case(unittest.TestCase):
    def tree(self, rows, report=()):
        made = Tree(rows, report)
        self.addCleanup(made.folder.cleanup)
        return made


class Check(Case):
    def refuses(self, rows, message):
        code, output = self.tree(rows).run("--check")
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_a_page_with_a_row_for_every_number_is_right(self):
        self.assertEqual(self.tree(ROWS).run("--check"), (0, ""))

    def test_a_test_that_no_source_defines_is_named(self):
        self.refuses([*ROWS, ("sum", "Sum.IsWrong", "exact")], "no test Sum.IsWrong")

    def test_an_instance_that_no_source_makes_is_named(self):
        self.refuses([*ROWS, ("2", "Some/Product.*", "exact")], "no test Some/Product.*")

    def test_each_part_of_a_filter_must_match(self):
        self.refuses([*ROWS, ("sum", "Sum.*:Gone.*", "exact")], "has no test Gone.*")

    def test_a_recorded_number_without_a_row_is_named(self):
        self.refuses(ROWS[1:], 'no row has the number "sum, fp32"')
        self.refuses([ROWS[0], ROWS[2]], 'no row has the number "product of {}"')

    def test_a_number_has_one_row(self):
        self.refuses([*ROWS, ROWS[0]], "sum, fp32: 2 rows")


class Fill(Case):
    REPORT = [case("Sum.IsRight", **{"sum, fp32": "3.0e-07 of 1e-06"}),
              case("Sum.IsRight", **{"sum, fp32": "1.0e-07 of 1e-06"}),
              case("All/Product.IsRight/0", **{"product of 2": "0.0e+00 of 0e+00"}),
              case("All/Product.IsRight/1", **{"product of 2": "0.0e+00 of 0e+00"}),
              case("Digest.IsEqual")]

    def test_prints_tolerances_and_the_largest_errors(self):
        tree = self.tree(ROWS, report=self.REPORT)
        code, output = tree.fill()
        self.assertEqual(code, 0, output)
        self.assertIn("| number | reference | test | tolerance | largest error |\n|---|---|---|---|---|", output)
        self.assertIn(ROW.format("sum, fp32", "Sum.IsRight", "1e-06") + " 3.0e-07 |", output)
        self.assertIn(ROW.format("product of 2", "All/Product.IsRight/*", "exact") + " equal |", output)
        self.assertIn(ROW.format("digest", "Digest.*", "exact") + " equal |", output)
        self.assertIn("Measured ", output)

    def test_prints_failures_and_fails(self):
        failed = case("Digest.IsEqual", failures=[{"failure": "not equal"}])
        tree = self.tree(ROWS, report=[*self.REPORT[:-1], failed])
        code, output = tree.fill()
        self.assertEqual(code, 1, output)
        self.assertIn(ROW.format("digest", "Digest.*", "exact") + " FAILED |", output)

    def test_a_row_whose_test_did_not_run_fails(self):
        code, output = self.tree(ROWS, report=self.REPORT[:-1]).fill()
        self.assertEqual(code, 1)
        self.assertIn("digest: no such test", output)

    def test_a_skipped_test_is_named(self):
        skipped = case("Digest.IsEqual", result="SKIPPED")
        tree = self.tree(ROWS, report=[*self.REPORT[:-1], skipped])
        code, output = tree.fill()
        self.assertEqual(code, 0)
        self.assertIn("| skipped |", output)

    def test_a_recorded_number_without_a_row_fails(self):
        code, output = self.tree(ROWS[1:], report=self.REPORT).fill()
        self.assertEqual(code, 1)
        self.assertIn("no row: | sum, fp32 |", output)


if __name__ == "__main__":
    unittest.main()
