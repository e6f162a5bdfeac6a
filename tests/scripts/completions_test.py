#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The completions offer the commands and options that a program's --help lists."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """#!/bin/sh
case "$*" in
"--help") printf 'A program.\\nUsage: p\\n\\nOptions:\\n  -h,--help  help\\n\\nSubcommands:\\n  run  trains\\n  data  data\\n' ;;
"run --help") printf 'Runs.\\n\\nOptions:\\n  -h,--help  help\\n  --config FILE  a file\\n' ;;
"data --help") printf 'Data.\\n\\nSubcommands:\\n  check  checks\\n' ;;
"data check --help") printf 'Checks.\\n\\nOptions:\\n  --json  JSON\\n' ;;
esac
"""
# words before the cursor, the word at the cursor: its possible completions
CASES = {"r": "run", "run --c": "--config", "data c": "check", "data check --j": "--json", "data r": ""}


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        (root / "program").write_text(PROGRAM)
        (root / "program").chmod(0o755)
        subprocess.run([sys.executable, ROOT / "scripts/packaging/make_completions.py", root / "program", root],
                       check=True)
        cls.share = root / "share"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect_all(self, shell, script):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        for words, expected in CASES.items():
            done = subprocess.run([shell, "-c", script.replace("@@", words)], cwd=self.share,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout.strip(), expected, f"{shell}: {words}: {done.stderr}")

    def test_of_bash(self):
        self.expect_all("bash", "source bash-completion/completions/hpcai500; COMP_WORDS=(hpcai500 @@); "
                                "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hpcai500; echo ${COMPREPLY[*]}")

    def test_of_fish(self):
        self.expect_all("fish", "source fish/vendor_completions.d/hpcai500.fish; complete -C 'hpcai500 @@'")

    def test_of_zsh_parses(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        subprocess.run(["zsh", "-n", self.share / "zsh/site-functions/_hpcai500"], check=True)


if __name__ == "__main__":
    unittest.main()
