# SPDX-License-Identifier: Apache-2.0
"""The table of attacks. A row is a function of the workspace that returns the exit codes of both verifiers."""
import dataclasses
import typing

CAUGHT, DATA, NO_CHECK = "caught", "only with data", "no check can"
CODES = {CAUGHT: (10, 10), DATA: (0, 0), NO_CHECK: (0, 0)}
REJECTED = 10  # exit code of `verify --data` for a row of DATA

ROWS = {}


@dataclasses.dataclass
class Row:
    attack: str
    run: typing.Callable
    expected: str


def row(name, attack, expected):
    """Adds a row. Its function returns the codes of both verifiers, for DATA also that of `verify --data`, or ()
    without a result. If `expected` is not in CODES, it describes an outcome that the function itself checks."""
    def add(function):
        ROWS[name] = Row(attack, function, expected)
        return function
    return add
