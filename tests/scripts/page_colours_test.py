#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The colours of report.html stand out from its paper, light and dark: text by 4.5:1, lines and areas
by 3:1 or, where they are tints under text, the text from them (WCAG 2.2, 1.4.3 and 1.4.11)."""
import pathlib
import re
import unittest

STYLE = pathlib.Path(__file__).parents[2] / "src/report/style_sheet.cpp"
TEXT = ("ink", "soft", "valid", "invalid", "partial", "custom")
LINES = tuple(f"s{index}" for index in range(8))
TINTS = ("tint0", "tint1", "tint2")


def luminance(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
             for part in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


class PageColours(unittest.TestCase):
    def themes(self):
        blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 2)
        return [dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6});", block)) for block in blocks[:2]]

    def test_stand_out(self):
        for theme in self.themes():
            paper = theme["paper"]
            for name in TEXT:
                self.assertGreaterEqual(contrast(theme[name], paper), 4.5, name)
            for name in LINES:
                self.assertGreaterEqual(contrast(theme[name], paper), 3, name)
            for name in TINTS:
                self.assertGreaterEqual(contrast(theme["ink"], theme[name]), 4.5, name)
            self.assertGreaterEqual(contrast(theme["on-lost"], theme["lost"]), 4.5)

    def test_contrast_is_that_of_the_standard(self):
        self.assertAlmostEqual(contrast("#000000", "#ffffff"), 21)
        self.assertAlmostEqual(contrast("#767676", "#ffffff"), 4.54, places=2)


if __name__ == "__main__":
    unittest.main()
