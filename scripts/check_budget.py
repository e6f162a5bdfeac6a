#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail when the code exceeds its budgets: lengths of files and functions, parameters of a function, #if lines.

C++ functions are found by their braces, after comments and strings are blanked. The text must be
formatted by clang-format: a blank precedes the brace of a body, but not that of an initializer.
"""
import argparse
import ast
import os
import pathlib
import re
import sys

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 80
MAX_P90_FUNCTION_LINES = 30  # over include, src and kernels
MAX_PARAMETERS = 5
MAX_IFS_PER_1000_LINES = 1.0  # over include, src and kernels
MAX_PYTHON_FILE_LINES = 350
MAX_PYTHON_FUNCTION_LINES = 40

SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh"}
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
SCOPE = re.compile(r"(^|\s)(namespace|class|struct|union|enum|extern)\b")
CONTROL = re.compile(r"^(if|for|while|switch|catch|do|else|try|return)\b")


def blank(text):
    """`text` without the contents of comments, strings and preprocessor lines; same line numbers."""
    text = BLANKED.sub(lambda m: re.sub(r"[^\n]", "0" if m[0][0] in "'\"R" else " ", m[0]), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), text,
                  flags=re.MULTILINE)


def closing_brace(text, opening):
    """Index of the closing brace of `opening`."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return len(text) - 1


def without_template(header):
    """`header` without the template<...> in front of it."""
    while header.startswith("template"):
        depth = 0
        for index, letter in enumerate(header):
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == ">" and depth == 0:
                header = header[index + 1:].lstrip()
                break
        else:
            return header
    return header


def parameter_count(header):
    header = header.replace("operator()", "operator_call")
    depth, count, seen = 0, 0, False
    for letter in header[header.index("("):].replace("->", "  "):
        if depth == 1 and letter == ",":
            count += 1
        elif depth >= 1 and not letter.isspace() and letter not in "()":
            seen = True
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(letter, 0)
        if depth == 0:
            break
    return count + 1 if seen else 0


def functions_of(text):
    """(name, first line, lines, parameters) of each function defined in `text`. A lambda belongs to
    the function that contains it."""
    text = blank(text)
    start = index = 0
    while index < len(text):
        letter = text[index]
        if letter == ":" and re.search(r"\b(public|private|protected)\s*$", text[start:index]):
            start = index + 1
        elif letter in ";}":
            start = index + 1
        elif letter == "{":
            header = text[start:index]
            stripped = without_template(header.strip())
            if not header[-1:].isspace() or stripped.endswith(("=", ",", "(", "return")):
                index = closing_brace(text, index)  # an initializer; the declaration continues
            elif "(" in stripped and not CONTROL.match(stripped) and not (
                    SCOPE.search(stripped.split("(")[0]) and not stripped.endswith(")")
                    and "(" not in stripped.split("{")[0]):
                end = closing_brace(text, index)
                first = text.count("\n", 0, start + len(header) - len(header.lstrip())) + 1
                lines = text.count("\n", 0, end) + 2 - first
                name = stripped.split("(")[0].split()[-1]
                yield name, first, lines, parameter_count(stripped)
                index, start = end, end + 1
            else:
                start = index + 1  # a namespace or a class; its members are read next
        index += 1


def p90(values):
    """The 90th percentile by the nearest-rank method: the value of rank ceil(0.9 x count); 0 without values."""
    return sorted(values)[max(0, -(-9 * len(values) // 10) - 1)] if values else 0


def files_of(root, trees, suffixes=frozenset(SUFFIXES)):
    for tree in trees:
        for path in sorted((root / tree).rglob("*")):
            if path.suffix in suffixes:
                yield path


def too_long(place, lines, maximum):
    if lines > maximum:
        yield f"{place} {lines} lines, at most {maximum}"


def problems_of_file(path, lengths, is_test):
    text = path.read_text()
    place = os.path.relpath(path)
    yield from too_long(f"{place}:", text.count("\n"), MAX_FILE_LINES)
    for name, first, length, parameters in functions_of(text):
        lengths.append((length, f"{place}:{first} {name}"))
        yield from too_long(f"{place}:{first}: {name} has", length, MAX_FUNCTION_LINES)
        if parameters > MAX_PARAMETERS and not is_test:
            yield f"{place}:{first}: {name} has {parameters} parameters, at most {MAX_PARAMETERS}"


def problems_of_python(path):
    text, place = path.read_text(), os.path.relpath(path)
    yield from too_long(f"{place}:", text.count("\n"), MAX_PYTHON_FILE_LINES)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from too_long(f"{place}:{node.lineno}: {node.name} has",
                                node.end_lineno + 1 - node.lineno, MAX_PYTHON_FUNCTION_LINES)


def if_rate_problems(paths):
    texts = [path.read_text() for path in paths]
    lines = sum(text.count("\n") for text in texts)
    ifs = sum(len(re.findall(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b", text, re.MULTILINE))
              for text in texts)
    if lines and 1000 * ifs / lines > MAX_IFS_PER_1000_LINES:
        yield f"{ifs} #if in {lines} lines, at most {MAX_IFS_PER_1000_LINES} in 1000"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=0, help="print the N longest functions")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parents[1],
                        type=pathlib.Path)
    arguments = parser.parse_args()

    product = list(files_of(arguments.root, ("include", "src", "kernels")))
    tests = list(files_of(arguments.root, ("tests",)))
    lengths = []
    problems = [p for path in product for p in problems_of_file(path, lengths, is_test=False)]
    problems += [p for path in tests for p in problems_of_file(path, [], is_test=True)]
    for path in files_of(arguments.root, ("scripts", "tests"), {".py"}):
        problems += problems_of_python(path)
    problems += if_rate_problems(product)
    p90_lines = p90([length for length, _ in lengths])
    if p90_lines > MAX_P90_FUNCTION_LINES:
        problems.append(f"nine of ten functions have up to {p90_lines} lines, at most "
                        f"{MAX_P90_FUNCTION_LINES}; see --longest")
    for length, where in sorted(lengths, reverse=True)[:arguments.longest]:
        print(f"{length:4} {where}")
    if problems:
        print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
