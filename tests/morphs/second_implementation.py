# SPDX-License-Identifier: Apache-2.0
"""Compares children of edit scripts, which morphs_test wrote to CASES, with scripts/verify_result.

usage: second_implementation.py VERIFY_RESULT CASES
"""
import json
import sys

sys.path.insert(0, sys.argv[1])
from network import LEDGERS, Network  # noqa: E402
from places import Places  # noqa: E402

EDIT = ("kind", "node", "end", "amount")


def counted(network):
    return {"flops": {name: list(network.flops(name)) for name in LEDGERS},
            "layers": [node.name for node in network.nodes if node.kind != "images"],
            "parameters": [list(row) for row in network.parameters()],
            "statistics": [list(row) for row in network.statistics()]}


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        cases = json.load(file)
    for number, case in enumerate(cases):
        network = Network(case["root"])
        for position, (edit, legal) in enumerate(zip(case["script"], case["legal"], strict=True)):
            found = [[one[key] for key in EDIT] for kind in Places(network).by_kind() for one in kind]
            if found != legal:
                sys.exit(f"case {number}: other legal edits before {edit}")
            network.edit(position, dict(zip(EDIT, edit)))
        found = counted(network)
        for key in found:
            if found[key] != case[key]:
                sys.exit(f"case {number}: {key}: {found[key]}, expected {case[key]}")
    print(len(cases), "cases agree")


main()
