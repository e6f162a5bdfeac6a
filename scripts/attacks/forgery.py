# SPDX-License-Identifier: Apache-2.0
"""Edits of the files in a result directory."""
import array
import contextlib
import decimal
import hashlib
import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/verify_result"))
from json_reader import canonical_float, layout_of  # noqa: E402  (needs the path)

GROUPS = (0, 1)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Number(float):
    """A floating-point number with its text, which need not have the shortest digits."""

    def __new__(cls, text):
        number = super().__new__(cls, canonical_float(text))
        number.text = text
        return number


def number_text(text):
    """A floating-point number, as Python prints it, in the layout of the program."""
    number = decimal.Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits))
    point = len(digits) + number.as_tuple().exponent if number else 1
    return ("-" if number < 0 else "") + layout_of(digits.rstrip("0") or "0", point)


def other_digits(match):
    """Another text of the same number: the program's printer does not always find the shortest one."""
    value = float(match[0])
    texts = [number_text(form) for form in (repr(value), f"{value:.17g}", f"{value:.16g}")]
    return texts[(texts.index(match[0]) + 1) % len(texts)]


def json_text(value):
    """`value` in the form of the program's files."""
    def marked(item):
        if isinstance(item, dict):
            return {key: marked(inner) for key, inner in item.items()}
        if isinstance(item, list):
            return [marked(inner) for inner in item]
        if isinstance(item, float):
            return "\0" + (item.text if isinstance(item, Number) else number_text(repr(item)))
        return item

    return re.sub(r'"\\u0000([^"]*)"', r"\1", json.dumps(marked(value), indent=2, ensure_ascii=False)) + "\n"


class Forgery:
    """`directory` is a copy of the result `source`, or the result itself."""

    def __init__(self, directory, source=None):
        self.directory, self.source = directory, source

    def read_json(self, name):
        return json.loads((self.directory / name).read_text(), parse_float=Number)

    def write_json(self, name, value):
        (self.directory / name).write_text(json_text(value))

    @contextlib.contextmanager
    def json(self, name):
        """The object of a file, which is written back."""
        value = self.read_json(name)
        yield value
        self.write_json(name, value)

    def record(self, group):
        return self.json(f"groups/{group}/record.json")

    def change_digits(self, name, line):
        """Writes the number at the end of a line in another way."""
        path = self.directory / name
        lines = path.read_text().split("\n")
        lines[line - 1] = re.sub(r"-?\d[\d.e+-]*(?=,?$)", other_digits, lines[line - 1])
        path.write_text("\n".join(lines))

    def edit_table(self, name, edit):
        """Calls edit(column, text) for each cell of a CSV file; it returns the new text."""
        path = self.directory / name
        head, *rows = path.read_text().splitlines()
        columns = head.split(",")
        lines = [",".join(map(edit, columns, row.split(","))) for row in rows]
        path.write_text("\n".join([head, *lines]) + "\n")

    def replace(self, name, old, new):
        """Replaces the first occurrence of a text that must be there."""
        path = self.directory / name
        text = path.read_text()
        if old not in text:
            raise ValueError(f"{name} has no '{old}'")
        path.write_text(text.replace(old, new, 1))

    def predictions(self, group):
        """One list of probabilities per test sample."""
        data = (self.directory / f"groups/{group}/predictions.npy").read_bytes()
        start = 10 + struct.unpack("<H", data[8:10])[0]
        classes = int(re.search(rb"'shape': \(\d+, (\d+)\)", data)[1])
        values = array.array("f", data[start:])
        return [list(values[first:first + classes]) for first in range(0, len(values), classes)]

    def labels(self, evaluation):
        """The labels in the folder `evaluation` of a sealed result."""
        data = (evaluation / "labels.npy").read_bytes()
        return list(array.array("i", data[10 + struct.unpack("<H", data[8:10])[0]:]))

    def set_predictions(self, group, rows, labels):
        """Stores predictions, their digest and their quality."""
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
        head += " " * (-(10 + len(head) + 1) % 64) + "\n"
        path = self.directory / f"groups/{group}/predictions.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                         array.array("f", [value for row in rows for value in row]).tobytes())
        hits = sum(row.index(max(row)) == label for row, label in zip(rows, labels))
        with self.record(group) as record:
            record["record"]["predictions_sha256"] = sha256(path)
            record["quality"] = hits / len(rows)

    def seal_again(self):
        """Writes the manifest again, and its digest in the last line of the summary."""
        path = self.directory / "manifest.sha256"
        names = [line[66:] for line in path.read_text().splitlines()]
        path.write_text("".join(f"{sha256(self.directory / name)}  {name}\n" for name in names))
        summary = self.directory / "summary.txt"
        summary.write_text(re.sub(r"manifest=[0-9a-f]{64}\n$", f"manifest={sha256(path)}\n", summary.read_text()))
