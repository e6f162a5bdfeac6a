# SPDX-License-Identifier: Apache-2.0
"""CSV tables of a group: steps.csv and ranks.csv."""
import collections
import math
import re

from findings import MalformedFile

STEP_COLUMNS = ("step,epoch,samples,end_seconds,learning_rate,loss,input_wait_seconds,forward_seconds,"
                "backward_seconds,communication_seconds,optimizer_seconds,other_seconds")
Step = collections.namedtuple("Step", STEP_COLUMNS.split(","))
PHASES = Step._fields[6:]

RANK_COLUMNS = ("group_rank,world_rank,host,steps,median_step_seconds,p99_step_seconds,"
                "longest_step_seconds," + ",".join(PHASES) +
                ",overlapped_communication_seconds,peak_memory_bytes")
Rank = collections.namedtuple("Rank", RANK_COLUMNS.split(","))


def number_in(cell):
    """The number in a cell; None if it is empty."""
    number = float(cell) if cell else None
    if number is not None and (not math.isfinite(number) or format_number(number) != cell):
        raise ValueError
    return number


def whole_number_in(cell):
    if not re.fullmatch("0|[1-9][0-9]*", cell):
        raise ValueError
    return int(cell)


def format_number(number):
    """The program's text of a number in a table."""
    return "nan" if number is None else repr(number).removesuffix(".0")


def read_table(files, name, columns, row_of):
    """row_of(cells) of each line after the header."""
    lines = files.text(name).split("\n")
    if lines[0] != columns or lines[-1] != "":
        raise MalformedFile(f"{name}: has a wrong header or is truncated")
    rows = []
    for number, line in enumerate(lines[1:-1], 2):
        cells = line.split(",")
        if len(cells) != columns.count(",") + 1:
            raise MalformedFile(f"{name}: line {number} has {len(cells)} cells")
        try:
            rows.append(row_of(cells))
        except ValueError as error:
            raise MalformedFile(f"{name}: line {number} has a cell that is not a number in the program's format"
                         ) from error
    return rows


def read_steps(files, name):
    def row_of(cells):
        return Step(*map(whole_number_in, cells[:3]), *map(number_in, cells[3:]))

    steps = read_table(files, name, STEP_COLUMNS, row_of)
    for number, step in enumerate(steps):
        if step.step != number or step.end_seconds is None or step.learning_rate is None:
            raise MalformedFile(f"{name}: line {number + 2} is not step {number}")
        if number and step.end_seconds < steps[number - 1].end_seconds:
            raise MalformedFile(f"{name}: line {number + 2}: end_seconds decreases")
    return steps


def read_ranks(files, name):
    def row_of(cells):
        return Rank(*map(whole_number_in, cells[:2]), cells[2], whole_number_in(cells[3]),
                    *map(number_in, cells[4:]))

    return read_table(files, name, RANK_COLUMNS, row_of)
