#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The notebook docs/examples/compare_runs.ipynb runs on a table and steps of two runs."""
import importlib.util
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/verify_result"))
from configuration import SETTINGS  # noqa: E402  (needs the path)
NOTEBOOK = json.loads((ROOT / "docs/examples/compare_runs.ipynb").read_text())
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
PHASES = ("input_wait", "forward", "backward", "communication", "optimizer", "other")
MISSING = [name for name in ("pandas", "matplotlib") if importlib.util.find_spec(name) is None]


def columns_of(value, path=""):
    """Returns the columns of `hpcai500 table` for the values of a record, without its lists."""
    if not isinstance(value, dict):
        return {path: value}
    return {name: cell for key, member in value.items() if not isinstance(member, list)
            for name, cell in columns_of(member, f"{path}.{key}" if path else key).items()}


def row_of(name, batch_size):
    record = json.loads((ROOT / "tests/data/report/valid.json").read_text())
    return columns_of(record) | {"directory": name, "name": name, "config.training.batch_size": batch_size}


class Notebook(unittest.TestCase):
    def test_uses_settings_that_exist(self):
        used = re.findall(r'"config\.(\w+)\.(\w+)"', "\n".join(CODE))
        self.assertTrue(used)
        for section, key in used:
            self.assertIn(key, SETTINGS[section].split())

    @unittest.skipIf(MISSING, f"the notebook needs {' and '.join(MISSING)}, not installed here")
    def test_runs_on_two_results(self):
        os.environ["MPLBACKEND"] = "Agg"
        import pandas
        rows = [row_of("one", 8), row_of("two", 16)]
        header = ["step", "epoch", "samples", "end_seconds", "learning_rate", "loss"]
        header += [phase + "_seconds" for phase in PHASES]
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                pandas.DataFrame(rows).to_csv("runs.csv", index=False)
                for row in rows:
                    steps = pathlib.Path(row["directory"], "groups/0/steps.csv")
                    steps.parent.mkdir(parents=True)
                    lines = [[step, 0, 8, step + 1, 0.1, 1 / (step + 1)] + [0.1] * len(PHASES) for step in range(20)]
                    steps.write_text("\n".join(",".join(map(str, line)) for line in [header, *lines]) + "\n")
                values = {}
                for code in CODE:
                    exec(compile(code, "compare_runs.ipynb", "exec"), values)
            finally:
                os.chdir(before)
        self.assertEqual(list(values["settings"].nunique()[lambda count: count > 1].index),
                         ["config.training.batch_size"])
        self.assertEqual(sorted(values["means"]), ["one", "two"])
        self.assertAlmostEqual(values["means"]["one"]["forward_seconds"], 0.1)
        self.assertEqual(len(values["plt"].get_fignums()), 3)


if __name__ == "__main__":
    unittest.main()
