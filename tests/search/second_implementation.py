# SPDX-License-Identifier: Apache-2.0
"""Computes the proposals in CASES, which search_test wrote, with scripts/verify_result.

usage: second_implementation.py VERIFY_RESULT CASES
"""
import json
import sys

sys.path.insert(0, sys.argv[1])
from annealing import Networks  # noqa: E402
from proposals import is_same, proposal  # noqa: E402
from trials import Lines, LinesCheck  # noqa: E402


class Files:
    """What Lines reads."""

    def __init__(self, texts):
        self.texts, self.present = texts, set(texts)

    def text(self, name):
        return self.texts[name]


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        cases = json.load(file)
    agreed = 0
    for number, case in enumerate(cases):
        files = Files({f"groups/{group}/trials.jsonl": text for group, text in enumerate(case["histories"])})
        histories = [Lines(files, group, False) for group in range(len(case["histories"]))]
        LinesCheck(histories, False, 14).check()
        networks = Networks(case["config"])
        for history in histories:
            for trial in history.trials:
                computed = proposal(networks, histories, history.group, trial.proposed)
                if not is_same(trial.proposed, computed):
                    sys.exit(f"case {number}: {trial.proposed}, expected {computed}")
                agreed += 1
    print(agreed, "proposals agree")


main()
