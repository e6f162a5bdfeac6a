#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The second implementation of the search has the densities of optuna and the distances of nni."""
import json
import pathlib
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/verify_result"))
from density import Estimator, weights_of  # noqa: E402  (needs the path)
from distance import Descriptor, edit_distance  # noqa: E402


def reference(name):
    return json.loads((ROOT / "tests/data/reference" / name).read_text())


def descriptor_of(network):
    return types.SimpleNamespace(layers=[tuple(layer) for layer in network["layers"]],
                                 skips=[tuple(skip) for skip in network["skips"]])


class Densities(unittest.TestCase):
    def test_are_optunas(self):
        cases = [case for case in reference("search_tpe.json")["densities"] if case["dimension"].get("log")]
        self.assertGreater(len(cases), 10)
        for case in cases:
            bounds = case["dimension"]["low"], case["dimension"]["high"]
            estimator = Estimator(*bounds, case["observed"])
            for point, expected in zip(case["points"], case["log_densities"]):
                self.assertAlmostEqual(estimator.log_density(point), expected, delta=1e-12)

    def test_have_optunas_weights(self):
        for expected in reference("search_tpe.json")["weights"]:
            for weight, wanted in zip(weights_of(len(expected) - 1), expected, strict=True):
                self.assertAlmostEqual(weight, wanted, delta=1e-15)


class Distances(unittest.TestCase):
    def test_are_nnis(self):
        for pair in reference("search_distance.json")["pairs"]:
            a, b = map(descriptor_of, pair["networks"])
            self.assertAlmostEqual(edit_distance(a, b), pair["distance"], delta=1e-12)
            self.assertAlmostEqual(edit_distance(b, a), pair["distance"], delta=1e-12)

    def test_are_zero_where_networks_are_equal(self):
        for pair in reference("search_distance.json")["pairs"]:
            a, b = map(descriptor_of, pair["networks"])
            self.assertEqual(edit_distance(a, a), 0)
            self.assertEqual(Descriptor.is_equal(a, b), pair["distance"] < 1e-5)


if __name__ == "__main__":
    unittest.main()
