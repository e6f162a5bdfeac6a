#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/support/with_driver.sh adds the stand-in driver only where the loader knows no other."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[1] / "support/with_driver.sh"


class WithDriver(unittest.TestCase):
    def library_path(self, known, before):
        """LD_LIBRARY_PATH of the program if ldconfig lists the library `known`."""
        with tempfile.TemporaryDirectory() as folder:
            ldconfig = pathlib.Path(folder, "ldconfig")
            ldconfig.write_text(f"#!/bin/sh\necho '\t{known} (libc6,x86-64) => /lib/{known}'\n")
            ldconfig.chmod(0o755)
            path = f"{folder}:{os.environ['PATH']}"
            return subprocess.run([SCRIPT, "/stand in", "printenv", "LD_LIBRARY_PATH"], text=True,
                                  env={"PATH": path, "LD_LIBRARY_PATH": before}, check=True,
                                  stdout=subprocess.PIPE).stdout.strip()

    def test_adds_the_stand_in_after_other_folders(self):
        self.assertEqual(self.library_path("libcudart.so.13", "/other"), "/other:/stand in")
        self.assertEqual(self.library_path("libcudart.so.13", ""), "/stand in")

    def test_does_not_hide_a_driver_that_the_loader_knows(self):
        self.assertEqual(self.library_path("libcuda.so.1", "/other"), "/other")


if __name__ == "__main__":
    unittest.main()
