#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CITATION.cff has the program's version and the keys that its format requires."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]


class Citation(unittest.TestCase):
    text = (ROOT / "CITATION.cff").read_text()

    def value(self, key):
        found = re.search(rf"^{key}: *(.+)$", self.text, re.M)
        self.assertIsNotNone(found, key)
        return found[1]

    def test_has_the_version_of_the_program(self):
        project = re.search(r"project\(hpcai500 VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
        self.assertEqual(self.value("version"), project[1])

    def test_has_the_version_of_recipes_and_configurations(self):
        version = self.value("version")
        self.assertTrue(list((ROOT / "scripts/packaging/easybuild").glob(f"hpcai500-{version}-*.eb")))
        for path in [*(ROOT / "scripts/packaging/easybuild").glob("hpcai500-*.eb"),
                     *(ROOT / "configs").glob("mini_*.yaml")]:
            found = re.search(r"(?:framework: hpcai500 |^version = ')([\d.]+)", path.read_text(), re.M)
            self.assertEqual(found[1], version, path)

    def test_has_the_required_keys_and_the_paper_of_the_documents(self):
        self.assertEqual(self.value("cff-version"), "1.2.0")
        for key in ("message", "title", "license"):
            self.value(key)
        self.assertIn("\nauthors:\n", self.text)
        title = re.search(r'title: "HPC AI500 V3.0: (.+)"', self.text)[1]
        self.assertIn(title, (ROOT / "docs/PAPER.md").read_text())


if __name__ == "__main__":
    unittest.main()
