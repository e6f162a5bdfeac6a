#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check README.md and docs/*.md. Every relative link must lead to an existing file and heading; links of
docs must stay in docs, because the website has nothing else. Every line of a C++ snippet must be in the
sources. README.md must have at most 120 lines, and table cells of README.md and docs/COMMANDS.md at most
25 words."""
import pathlib
import re
import sys

MAX_README_LINES = 120
MAX_CELL_WORDS = 25

FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SNIPPET = re.compile(r"^```cpp\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def anchors(text):
    """The anchors of GitHub for the headings of `text`."""
    names = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        unique, number = name, 0
        while unique in names:
            number += 1
            unique = f"{name}-{number}"
        names.add(unique)
    return names


def dead_links(path, text):
    """A message for each dead relative link in `text`, the document at `path`."""
    for link in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            yield f"{path}: the link {link} leads to no file"
        elif path.parent.name == "docs" and name.startswith("../"):
            yield f"{path}: the link {link} leads out of docs, and the website has only docs"
        elif anchor and anchor not in anchors(target.read_text() if name else text):
            yield f"{path}: the link {link} leads to no heading"


def long_cells(path, text):
    """A message for each table cell of more than MAX_CELL_WORDS words."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("| "):
            continue
        for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
            words = len(cell.split())
            if words > MAX_CELL_WORDS:
                yield f"{path}:{number}: a cell has {words} words, at most {MAX_CELL_WORDS} are allowed"


def without_blanks(code):
    return re.sub(r"\s+", "", code)


def stale_lines(path, text, sources):
    """A message for each line of a C++ snippet that is not in `sources`, a string without blanks."""
    for snippet in SNIPPET.findall(text):
        for line in snippet.splitlines():
            code = without_blanks(line.partition("//")[0])
            if code != "..." and code not in sources:
                yield f"{path}: no source has the line: {line.strip()}"


def problems(root):
    """Messages on all documents of the project in the folder `root`."""
    found = []
    files = [file for folder in ("src", "include") for file in sorted((root / folder).rglob("*.?pp"))]
    sources = without_blanks("\n".join(file.read_text() for file in files))
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        text = path.read_text()
        found += dead_links(path, text)
        found += stale_lines(path, text, sources)
        if path.name in ("README.md", "COMMANDS.md"):
            found += long_cells(path, text)
        lines = len(text.splitlines())
        if path.name == "README.md" and lines > MAX_README_LINES:
            found.append(f"{path}: {lines} lines, at most {MAX_README_LINES} are allowed")
    return found


if __name__ == "__main__":
    messages = problems(pathlib.Path(__file__).parents[1])
    print("\n".join(messages), end="\n" if messages else "")
    sys.exit(1 if messages else 0)
