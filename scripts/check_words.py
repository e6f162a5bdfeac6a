#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail when comments, documents or messages have a word of scripts/words.txt, or a comment begins as a
fragment, such as "Of ..." or "Which ...".

    check_words.py [--list PLACE] [ROOT]   print the findings in the directory or file PLACE, by default in
                                           the sources, scripts, tests and documents of ROOT

Comments are read in C++, Python and shell; messages are string literals of the program and of scripts that
contain a blank.
"""
import argparse
import ast
import collections
import io
import os
import pathlib
import re
import sys
import tokenize

FRAGMENT = re.compile(r"(Of|Whose|Whom|Those|Which|Who|(In|On|To|By|From|With|For) which)\b")
CPP_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*)|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"'
    r'|"(?P<text>(?:\\.|[^"\\\n])*)"|'
    r"(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#(?![!{]).*(?:\n[ \t]*#.*)*", re.MULTILINE)
SHELL_MESSAGE = re.compile(r"""\b(?:echo|printf)\b[^"'\n]*(["'])(?P<text>.*?)\1""")
FENCE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
CPP, SHELL = {".hpp", ".cpp", ".cu", ".cuh"}, {".sh", ".sbatch"}
PLACES = ("include", "src", "kernels", "tests", "scripts", "docs", "README.md")

Text = collections.namedtuple("Text", "line is_comment text")
Finding = collections.namedtuple("Finding", "path line what plain")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def stripped(comment, mark):
    """The comment lines without their marks; same line numbers."""
    return re.sub(rf"^[ \t]*{mark}[ \t]?", "", comment, flags=re.MULTILINE)


def texts_of_cpp(text, has_messages):
    for match in CPP_TOKEN.finditer(text):
        line = line_of(text, match.start())
        if match["comment"]:
            yield Text(line, True, stripped(match["comment"], "//[/!]?<?"))
        elif has_messages and match["text"] and " " in match["text"]:
            yield Text(line, False, match["text"])


def texts_of_python(text, has_messages):
    comments = []  # (line, text); lines of one block follow each other
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            is_next = comments and comments[-1][0] + comments[-1][1].count("\n") + 1 == token.start[0]
            words = stripped(token.string, "#")
            if is_next and token.line.lstrip().startswith("#"):
                comments[-1] = comments[-1][0], comments[-1][1] + "\n" + words
            else:
                comments.append((token.start[0], words))
    yield from (Text(line, True, words) for line, words in comments)
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree)
                  if isinstance(node, documented) and ast.get_docstring(node) is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_docstring = id(node) in docstrings
            if is_docstring or (has_messages and " " in node.value):
                yield Text(node.lineno, is_docstring, node.value)


def texts_of_shell(text, has_messages):
    for match in SHELL_COMMENT.finditer(text):
        yield Text(line_of(text, match.start()), True, stripped(match[0], "#"))
    for match in SHELL_MESSAGE.finditer(text) if has_messages else ():
        yield Text(line_of(text, match.start()), False, match["text"])


def texts_of_document(text, _):
    """Markdown without code."""
    yield Text(1, False, FENCE.sub(lambda code: re.sub(r"[^\n]", "0", code[0]), text))


def reader_of(path):
    if path.suffix in CPP:
        return texts_of_cpp
    if path.suffix in SHELL:
        return texts_of_shell
    return {".py": texts_of_python, ".md": texts_of_document}.get(path.suffix)


def read_words(path):
    """[(pattern, plain words)]"""
    rows = [line.split(" => ") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [(re.compile(r"\b" + words.replace(" ", r"\s+") + r"\b", re.IGNORECASE), plain)
            for words, plain in rows]


def findings_in(path, words, has_messages):
    reader = reader_of(path)
    for piece in reader(path.read_text(), has_messages) if reader else ():
        if piece.is_comment and (match := FRAGMENT.match(piece.text.lstrip())):
            yield Finding(path, piece.line, f"a comment begins with {match[0]}", "a full sentence")
        for pattern, plain in words:
            for match in pattern.finditer(piece.text):
                line = piece.line + line_of(piece.text, match.start()) - 1
                yield Finding(path, line, " ".join(match[0].split()), plain)


def findings_below(root, place, words):
    """Findings in a file or directory of `root`. Strings of tests are the program's messages."""
    place = root / place
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    has_messages = os.path.relpath(place, root).split(os.sep)[0] != "tests"
    return [finding for path in files if path.is_file() and "__pycache__" not in path.parts
            for finding in findings_in(path, words, has_messages)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=pathlib.Path, metavar="PLACE")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parents[1], type=pathlib.Path)
    arguments = parser.parse_args()
    words = read_words(pathlib.Path(__file__).with_name("words.txt"))
    places = [arguments.list.resolve()] if arguments.list else PLACES
    findings = [finding for place in places for finding in findings_below(arguments.root, place, words)]
    for finding in findings:
        print(f"{os.path.relpath(finding.path)}:{finding.line}: {finding.what}; plain: {finding.plain}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
