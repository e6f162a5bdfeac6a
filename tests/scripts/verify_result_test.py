#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/verify_result.py takes numbers as the program writes them, and no others."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import verify_result  # noqa: E402  (needs the path)


class Numbers(unittest.TestCase):
    def test_the_shortest_digits_of_a_number_are_right(self):
        for text in ("0.5", "-1.25", "3.0", "0.796621941", "1e-05", "2.5e+20"):
            self.assertEqual(verify_result.canonical_float(text), float(text))

    def test_more_are_right_where_the_printer_has_found_no_shorter_ones(self):
        for text in ("0.7966219409999999", "0.10000000000000001"):
            self.assertEqual(verify_result.canonical_float(text), float(text))

    def test_other_ways_to_write_a_number_are_refused(self):
        for text in ("0.50", "5e-1", "1.0e-05", "00.5", "0.79662194100", "0.100000000000001e1", "1E-05"):
            with self.assertRaisesRegex(verify_result.Broken, "as the program writes it", msg=text):
                verify_result.canonical_float(text)


if __name__ == "__main__":
    unittest.main()
