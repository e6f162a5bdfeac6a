#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/search_distance.json: edit distances of random pairs of networks by
nni's networkmorphism_tuner, which search/edit_distance.hpp follows.

usage: distance_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs nni 2.10.1 and scikit-learn. Stands in for torch and keras, which nni imports and these
functions do not use.
"""
import importlib.metadata
import json
import pathlib
import random
import sys
import types

PAIRS = 60


class Unused(types.ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for module in ("torch", "torch.nn", "torch.nn.functional", "keras"):
    sys.modules[module] = Unused(module)
sys.modules["torch"].nn = sys.modules["torch.nn"]

from nni.algorithms.hpo.networkmorphism_tuner import bayesian, layers  # noqa: E402
from nni.algorithms.hpo.networkmorphism_tuner.graph import NetworkDescriptor  # noqa: E402

MAKERS = {"convolution": lambda filters, kernel, stride: layers.StubConv2d(8, filters, kernel, stride),
          "pool": lambda padding, kernel, stride: layers.StubPooling2d(kernel, stride, padding),
          "norm": lambda *_: layers.StubBatchNormalization2d(8),
          "relu": lambda *_: layers.StubReLU(),
          "add": lambda *_: layers.StubAdd()}


def random_layer(stream):
    kind = stream.choice(["convolution", "convolution", "norm", "relu", "add", "pool"])
    attributes = {"convolution": [stream.choice([8, 16, 24, 64]), stream.choice([1, 3, 5]),
                                  stream.choice([1, 2])],
                  "pool": [stream.choice([0, 1]), stream.choice([2, 3]), 2]}
    return [kind, *attributes.get(kind, [0, 0, 0])]


def random_network(stream):
    count = stream.randrange(1, 40)
    skips = []
    for _ in range(stream.randrange(0, 9)):
        first = stream.randrange(0, count)
        skips.append([first, stream.randrange(first + 1, count + 1), stream.choice(["add", "add", "concat"])])
    return {"layers": [random_layer(stream) for _ in range(count)], "skips": skips}


def edited_network(network, stream):
    """A few changes, as between a parent and its child."""
    edited = json.loads(json.dumps(network))
    for _ in range(stream.randrange(0, 4)):
        place = stream.randrange(len(edited["layers"]) + 1)
        edited["layers"].insert(place, random_layer(stream))
        edited["skips"].append([0, place + 1, "add"])
    return edited


def descriptor_of(network):
    descriptor = NetworkDescriptor()
    for kind, *attributes in network["layers"]:
        descriptor.add_layer(MAKERS[kind](*attributes))
    for skip in network["skips"]:
        descriptor.add_skip_connection(*skip)
    return descriptor


def pair(number, stream):
    first = random_network(stream)
    second = random_network(stream) if number % 2 else edited_network(first, stream)
    distance = bayesian.edit_distance(descriptor_of(first), descriptor_of(second))
    return {"networks": [first, second], "distance": float(distance)}


def main():
    version = importlib.metadata.version("nni")
    assert version == "2.10.1", version
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    stream = random.Random(34)
    content = {"nni": version, "pairs": [pair(number, stream) for number in range(PAIRS)]}
    text = json.dumps(content, separators=(",", ":")).replace("]],", "]],\n").replace("},", "},\n")
    (folder / "search_distance.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
