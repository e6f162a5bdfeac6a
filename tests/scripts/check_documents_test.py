#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check_documents.py finds dead links, stale snippets, long table cells and a long README, and
nothing else."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import check_documents  # noqa: E402


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        self.write("README.md", "# Title\n")

    def write(self, name, text):
        (self.root / name).write_text(text)

    def messages(self):
        return [message.replace(str(self.root) + "/", "")
                for message in check_documents.problems(self.root)]

    def test_links_that_resolve_are_accepted(self):
        self.write("README.md", "# A\n[b](docs/B.md#one-two) [page](https://example.org/x) [here](#a)\n")
        self.write("docs/B.md", "## One, two\n[c](C.md)\n```\n[code](nowhere.md)\n```\n")
        self.write("docs/C.md", "# C\n")
        self.assertEqual(self.messages(), [])

    def test_a_link_out_of_docs_is_found(self):
        self.write("docs/B.md", "[up](../README.md)\n")
        self.assertEqual(self.messages(), ["docs/B.md: the link ../README.md leads out of docs, and the "
                                           "website has only docs"])

    def test_a_missing_file_is_found(self):
        self.write("docs/B.md", "[a](C.md)\n")
        self.assertEqual(self.messages(), ["docs/B.md: the link C.md leads to no file"])

    def test_a_missing_heading_is_found(self):
        self.write("docs/B.md", "# Title\n[a](#other) [b](C.md#titles)\n")
        self.write("docs/C.md", "# Title\n")
        self.assertEqual(self.messages(), ["docs/B.md: the link #other leads to no heading",
                                           "docs/B.md: the link C.md#titles leads to no heading"])

    def test_equal_headings_are_numbered(self):
        self.assertEqual(check_documents.anchors("# `a` b\n# a b\n"), {"a-b", "a-b-1"})

    def test_a_stale_line_of_a_snippet_is_found(self):
        (self.root / "src").mkdir()
        self.write("src/a.cpp", "int f(int count,\n      int other) {  // why\n    return count;\n}\n")
        self.write("docs/B.md", "```cpp\nint f(int count, int other) {\n...\n    return other;  // what\n```\n")
        self.assertEqual(self.messages(), ["docs/B.md: no source has the line: return other;  // what"])

    def test_a_long_cell_is_found(self):
        words = "word " * 26
        self.write("README.md", f"| {words}| b |\n")
        self.write("docs/METRICS.md", f"| {words}| b |\n")
        self.assertEqual(self.messages(), ["README.md:1: a cell has 26 words, at most 25 are allowed"])

    def test_a_long_readme_is_found(self):
        self.write("README.md", "line\n" * 121)
        self.assertEqual(self.messages(), ["README.md: 121 lines, at most 120 are allowed"])


if __name__ == "__main__":
    unittest.main()
