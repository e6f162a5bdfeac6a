#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/faults.sh prints its usage, rejects unknown arguments, and has the numbered tests."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/faults"))

import cases  # noqa: E402
import more_cases  # noqa: E402, F401  (adds cases)
import run as runner  # noqa: E402


def start(*words):
    done = subprocess.run([ROOT / "scripts/faults.sh", *words], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


class Usage(unittest.TestCase):
    def test_help_says_what_it_does(self):
        code, out, _ = start("--help")
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("Usage: scripts/faults.sh "))
        self.assertIn("--markdown", out)

    def test_what_is_unknown_is_refused_before_anything_is_built(self):
        for words, part in ((["--fast"], "unknown option '--fast'"), (["--only"], "--only needs"),
                            (["--only", "22"], "from 1 to 21, got '22'"),
                            (["--only", "1,x"], "got '1,x'"),
                            (["--program", "/nowhere/hpcai500"], "does not exist"),
                            (["--program", "/bin/true"], "injects no faults")):
            code, out, error = start(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(part, error)


class Tests(unittest.TestCase):
    def test_there_are_21_each_a_cell_of_a_table(self):
        self.assertEqual(sorted(cases.CASES), list(range(1, 22)))
        for injected, run in cases.CASES.values():
            self.assertNotRegex(injected, r"[|\n]")
            self.assertTrue(callable(run))

    def test_the_table_has_five_columns(self):
        head, line = runner.HEADER.split("\n")
        self.assertEqual(head.count("|"), 6)
        self.assertEqual(line.count("|"), 6)

    def test_a_wrong_outcome_is_a_failure(self):
        with self.assertRaises(cases.Failed):
            cases.require(False, "wrong")
        cases.require(True, "right")


if __name__ == "__main__":
    unittest.main()
