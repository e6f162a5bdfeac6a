# SPDX-License-Identifier: Apache-2.0
"""JSON files in the exact form that the program writes."""
import itertools
import json
import math
import re

from findings import MalformedFile


def layout_of(digits, point):
    """The number 0.`digits` x 10^`point` as the program writes it."""
    if len(digits) <= point <= 15:
        return digits + "0" * (point - len(digits)) + ".0"
    if 0 < point <= 15:
        return digits[:point] + "." + digits[point:]
    if -4 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'-' if point < 1 else '+'}{abs(point - 1):02}"


def canonical_float(text):
    """The number in `text`, which must have the shortest digits that represent it, or 16 or 17 digits.

    The program's printer does not always find the shortest digits.
    """
    match = re.fullmatch(r"-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?", text, re.ASCII)
    whole, fraction, exponent = match.groups("") if match else ("", "", "")
    leading = (whole + fraction).lstrip("0")
    digits = leading.rstrip("0") or "0"
    zeros = len(whole + fraction) - len(leading)
    point = len(whole) + int(exponent or 0) - zeros if leading else 1
    shortest = re.sub(r"e.*|\D", "", repr(abs(float(text)))).strip("0") or "0"
    is_laid_out = bool(match) and text.lstrip("-") == layout_of(digits, point)
    if not is_laid_out or (digits != shortest and len(digits) not in (16, 17)):
        raise MalformedFile(f"the number {text} is not as the program writes it")
    if math.isinf(float(text)):
        raise MalformedFile(f"the number {text} does not fit in a double")
    return float(text)


def unique_keys(pairs):
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise MalformedFile("a key occurs twice")
    return keys


def reject_constant(text):
    raise MalformedFile(f"{text} is not a JSON number")


def layout_of_json(text, **layout):
    """`text` as json.dumps writes it with this layout, with the same digits of numbers."""
    raw = json.loads(text, parse_float=lambda number: "\0" + number)
    printed = json.dumps(raw, ensure_ascii=False, **layout)
    # The program escapes control characters as json.dumps does; neither escapes 0x7f.
    return re.sub(r'"\\u0000([^"]*)"', r"\1", printed)


def check_layout(files, name, text):
    """Checks the indentation of two spaces and the line breaks. Numbers are compared as strings."""
    layout = layout_of_json(text, indent=2) + "\n"
    if layout != text:
        lines = itertools.zip_longest(text.split("\n"), layout.split("\n"))
        number, (got, wanted) = next((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1])
        files.findings.add(name, f"line {number} is {got!r}; must be {wanted!r}")


def read_json(files, name, checks_layout=True):
    text = files.text(name)
    try:
        value = json.loads(text, parse_float=canonical_float, object_pairs_hook=unique_keys,
                           parse_constant=reject_constant)
        if checks_layout:
            check_layout(files, name, text)
    except (ValueError, RecursionError, MalformedFile) as error:
        raise MalformedFile(f"{name}: {error}") from error
    return value
