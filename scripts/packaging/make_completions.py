#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the completions of commands and options for bash, zsh and fish, from the texts of --help.

Usage: scripts/packaging/make_completions.py PROGRAM PREFIX
Writes PREFIX/share/bash-completion/completions/hpcai500, PREFIX/share/zsh/site-functions/_hpcai500 and
PREFIX/share/fish/vendor_completions.d/hpcai500.fish. `cmake --install` runs it.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from list_interface import commands  # noqa: E402

# Sets `names` to the words that may stand at index $1 of the array `words`, which begins with the
# program. In zsh, indices begin at 0 only with `emulate ksh`.
NAMES = """\
_hpcai500_names() {{
    local path= index
    for ((index = 1; index < $1; ++index)); do
        case "$path ${{words[index]}}" in
            {steps}) path="${{path:+$path }}${{words[index]}}" ;;
        esac
    done
    case $path in
{cases}
    esac
}}
"""
BASH = """\
_hpcai500() {
    local names words=("${COMP_WORDS[@]}")
    _hpcai500_names "$COMP_CWORD"
    COMPREPLY=($(compgen -W "$names" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _hpcai500 hpcai500
"""
ZSH = """\
_hpcai500() {
    local names
    () { emulate -L ksh; _hpcai500_names "$((CURRENT - 1))"; }
    compadd -- ${=names}
    _files
}
_hpcai500 "$@"
"""


def interface(program):
    """{path of a command: its options and subcommands}; paths are tuples of words."""
    names = {(): []}
    for item in commands(program):
        kind, *path, name = item.split()
        names.setdefault(tuple(path), []).append(name)
        if kind == "command":
            names.setdefault((*path, name), [])
    return names


def names_function(names):
    steps = " | ".join(f'"{" ".join(path[:-1])} {path[-1]}"' for path in sorted(names) if path)
    cases = "\n".join(f'        "{" ".join(path)}") names="{" ".join(words)}" ;;'
                      for path, words in sorted(names.items()))
    return NAMES.format(steps=steps, cases=cases)


def fish(names):
    for path, words in sorted(names.items()):
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        for word in words:
            condition = seen or "__fish_use_subcommand"
            if word.startswith("--"):
                yield f"complete -c hpcai500 -n '{condition}' -l {word[2:].split(',')[0]}"
            elif word.startswith("-"):
                yield f"complete -c hpcai500 -n '{condition}' -s {word[1]} -l {word.split('--')[-1]}"
            else:
                yield f"complete -c hpcai500 -n '{condition}' -f -a {word}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    names = interface(str(pathlib.Path(sys.argv[1]).resolve()))
    options = {path: [word.split(",")[-1] for word in words] for path, words in names.items()}
    function = names_function(options)
    share = pathlib.Path(sys.argv[2]) / "share"
    for name, text in {"bash-completion/completions/hpcai500": function + BASH,
                       "zsh/site-functions/_hpcai500": "#compdef hpcai500\n" + function + ZSH,
                       "fish/vendor_completions.d/hpcai500.fish": "\n".join(fish(names)) + "\n"}.items():
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        (share / name).write_text(text)


if __name__ == "__main__":
    main()
