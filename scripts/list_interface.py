#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the sorted interface of a program, one item per line: commands, options, configuration keys with
their defaults, and the keys of all JSON files in result directories. Equal lists before and after a change
show that the change has removed nothing.

Usage: scripts/list_interface.py PROGRAM [RESULT_DIRECTORY...]
"""
import json
import pathlib
import re
import subprocess
import sys


def output_of(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def section(text, title):
    found = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return found[1].splitlines() if found else []


def commands(program, path=()):
    text = output_of(program, *path, "--help")
    for line in section(text, "Options"):
        option = re.match(r"  (-\S+)", line)
        if option:
            yield " ".join(["option", *path, option[1]])
    for line in section(text, "Subcommands"):
        name = re.match(r"  (\w\S*)", line)
        if name:
            yield " ".join(["command", *path, name[1]])
            yield from commands(program, (*path, name[1]))


def configuration_keys(program):
    key = None
    for line in output_of(program, "config", "explain").splitlines():
        if re.match(r"\w+\.\w+$", line):
            key = line
        elif line.startswith("    default: "):
            yield f"key {key} {line.split()[1]}"


def record_keys(value, path):
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{path}.{name}"
            yield from record_keys(member, f"{path}.{name}")
    elif isinstance(value, list):
        for member in value:
            yield from record_keys(member, path + "[]")


def stored_keys(folder):
    for file in folder.rglob("*.json"):
        name = re.sub(r"\d+", "N", file.relative_to(folder).as_posix())
        yield from record_keys(json.loads(file.read_text()), f"record {name}: ")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    items = {*commands(program), *configuration_keys(program)}
    for folder in sys.argv[2:]:
        items.update(stored_keys(pathlib.Path(folder)))
    print("\n".join(sorted(items)))


if __name__ == "__main__":
    main()
