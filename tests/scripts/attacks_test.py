#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/attacks.sh prints its usage, rejects unknown arguments, and compares outcomes with its table."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/attacks"))

import forgery  # noqa: E402
import attacks as runner  # noqa: E402
from rows import CAUGHT, DATA, NO_CHECK, ROWS, Row  # noqa: E402


def start(*words):
    done = subprocess.run([ROOT / "scripts/attacks.sh", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Usage(unittest.TestCase):
    def test_help_says_what_it_does(self):
        code, out, _ = start("--help")
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("Usage: scripts/attacks.sh "))

    def test_what_is_unknown_is_refused_before_anything_runs(self):
        for words, part in ((["--fast"], "unknown option '--fast'"), (["--only"], "--only needs"),
                            (["/nowhere/hpcai500"], "does not exist"),
                            (["--only", "F99", "/bin/true"], "unknown row 'F99'")):
            code, out, error = start(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(part, error)


class Table(unittest.TestCase):
    def test_has_every_forgery(self):
        numbers = {int(match[1]) for name in ROWS if (match := re.match(r"F(\d+)", name))}
        self.assertEqual(numbers, set(range(1, 17)))

    def test_an_outcome_that_is_not_expected_is_wrong(self):
        for expected, right, wrong in ((CAUGHT, (10, 10), (10, 0)), (CAUGHT, (10, 10), (0, 10)),
                                       (NO_CHECK, (0, 0), (10, 10)), (DATA, (0, 0, 10), (0, 0, 0)),
                                       (DATA, (0, 0, 10), (10, 10, 10)), (DATA, (0, 0, 10), (0, 0, 2)),
                                       ("verifies", (0, 0), (0, 10)), ("code 2", (), (10, 10))):
            self.assertEqual(runner.judge(Row("", None, expected), right), "", (expected, right))
            self.assertNotEqual(runner.judge(Row("", None, expected), wrong), "", (expected, wrong))


class Edits(unittest.TestCase):
    def test_numbers_keep_their_digits(self):
        for text in ("0.0", "0.024487276999999998", "2.5e+20", "1e-05", "24.0"):
            self.assertEqual(forgery.json_text([forgery.Number(text)]), f"[\n  {text}\n]\n")
        self.assertEqual(forgery.json_text([1e16, 0.25, -1e-6, 3]), "[\n  1e+16,\n  0.25,\n  -1e-06,\n  3\n]\n")

    def test_other_digits_are_the_same_number(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "record.json"
            path.write_text('{\n  "seconds": 0.024487277,\n}\n')
            forgery.Forgery(pathlib.Path(folder)).change_digits("record.json", 2)
            self.assertEqual(path.read_text(), '{\n  "seconds": 0.024487276999999998,\n}\n')


if __name__ == "__main__":
    unittest.main()
