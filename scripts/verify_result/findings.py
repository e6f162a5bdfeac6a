# SPDX-License-Identifier: Apache-2.0
"""Findings of the checks, and the comparison of a stored value with the recomputed one."""
import json
import os
import struct


class MalformedFile(Exception):
    """A missing or malformed file. The text is the file's name, a colon and the reason."""


class Findings:
    """Findings in one result directory. below() is for a directory inside it and shares the list."""

    def __init__(self, directory, prefix="", rows=None):
        self.directory = directory
        self.prefix = prefix  # of each file name, such as "repetition_1/"
        self.rows = [] if rows is None else rows  # (file, text)

    def below(self, folder):
        return Findings(os.path.join(self.directory, folder), f"{self.prefix}{folder}/", self.rows)

    def add(self, file, text):
        self.rows.append((self.prefix + file, text))

    def must_be(self, file, key, stored, expected, source=""):
        """Adds a finding unless both values are equal and of the same type. Numbers must be bitwise equal."""
        if stored == expected and type(stored) is type(expected):
            return
        texts = [json.dumps(value) for value in (stored, expected)]
        start = max(0, len(os.path.commonprefix(texts)) - 60)  # shows where the two differ
        stored, expected = (("..." if start else "") + text[start:start + 100] for text in texts)
        reason = f", according to {source}" if source else ""
        self.add(file, f"{key} is {stored}; must be {expected}{reason}")

    def attempt(self, function, *arguments):
        """The function's result. If a file is missing or malformed, adds a finding and returns None."""
        try:
            return function(*arguments)
        except MalformedFile as error:
            name, _, text = str(error).partition(": ")
            self.add(name, text)
        except OSError as error:
            name = os.path.relpath(error.filename or self.directory, self.directory)
            self.add(name, f"cannot be read: {error.strerror}")
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, struct.error,
                ArithmeticError, RecursionError, MemoryError) as error:
            self.add("result.json", f"or another file has a missing value or a value of a wrong type: {error!r}")
        return None


def without_legal_value(text):
    """A finding without the legal value, which would help to make a manipulated result consistent."""
    problem, mark, legal = text.partition("; must")
    if not mark:
        return text
    _, source, name = legal.rpartition(", according to")
    return f"{problem}, which is wrong{source}{name if source else ''}"


def printable(text):
    """`text` with control characters escaped for a terminal."""
    names = {"\n": "\\n", "\t": "\\t"}
    return "".join(letter if " " <= letter < "\x7f" or letter >= "\xa0" else names.get(letter) or
                   "".join(f"\\x{byte:02x}" for byte in letter.encode()) for letter in text)
