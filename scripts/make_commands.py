#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print docs/COMMANDS.md, generated from the --help of PROGRAM and of all its commands.

Usage: scripts/make_commands.py build/release/hpcai500 > docs/COMMANDS.md
"""
import re
import subprocess
import sys

INTRODUCTION = """# Commands
Generated from `--help` by `scripts/make_commands.py build/release/hpcai500 > docs/COMMANDS.md`.

* Unknown commands and options are rejected with a suggestion.
* `mpirun` or `srun` can start several ranks of `run`, `resume`, `doctor` and `roofline`.
  All other commands are single processes.
* Most commands replace only files that look like their own output; `init` and `export` replace no file.
* The exit codes are in [RESULT_FORMAT](RESULT_FORMAT.md#exit-codes).
"""
HELP_OPTION = re.compile(r"^ +-h,--help .*\n", re.MULTILINE)
COMMAND_LINE = re.compile(r"^  ([a-z][a-z-]*) ", re.MULTILINE)


def help_of(program, words):
    completed = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
    return completed.stdout.strip() + "\n"


def commands_in(text):
    """The names in the list of commands of a help text."""
    _, _, rest = text.partition("\nSubcommands:\n")
    return COMMAND_LINE.findall(rest.partition("\n\n")[0])


def section(words, text):
    """The section of a command without subcommands."""
    description, usage = text.split("\nUsage: ", 1)
    usage = re.sub(r"\n\n\n+", "\n\n", HELP_OPTION.sub("", "Usage: " + usage))
    usage = usage.replace("\nOptions:\n\n", "\n")
    return f"## `{' '.join(words)}`\n{description.strip()}\n\n```\n{usage.strip()}\n```\n"


def sections(program, words):
    text = help_of(program, words)
    names = commands_in(text)
    if not names:
        return [section(words, text)]
    return [text for name in names for text in sections(program, [*words, name])]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("make_commands.py: expected one argument, the program")
    print("\n".join([INTRODUCTION, *sections(sys.argv[1], [])]), end="")
