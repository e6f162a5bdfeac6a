#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/sampling.json: the expected random streams of base/philox.hpp and the
expected bootstrap samples and epoch orders of plan/data_sampler.hpp. A second implementation computes them from
their contracts, with integers of any size, decimals of 60 digits and Python's own functions.

usage: sampling_cases.py [DIRECTORY]     (default: tests/data/reference of this repository)
Needs nothing but Python, and some seconds; the committed file names the version that wrote it.
"""
import decimal
import json
import math
import pathlib
import platform
import sys

from philox import MASK, PURPOSES, CounterStream, philox4x32

RARE = 7  # larger and equal counts are listed one by one


def draws(seed, purpose, a, b):
    """Yields draws of 64 bits. A Philox block has two; its counter contains the block's number."""
    block = 0
    while True:
        words = philox4x32([PURPOSES[purpose] << 24, a, b, block], [seed & MASK, seed >> 32])
        yield words[0] | words[1] << 32
        yield words[2] | words[3] << 32
        block += 1


def below(draw, n):
    return draw * n >> 64


def poisson_thresholds():
    """2^64 x P(k <= 0, 1, ...) of Poisson(1)."""
    probability = decimal.Decimal(-1).exp()
    distribution, thresholds = decimal.Decimal(0), []
    for k in range(24):
        distribution += probability
        probability /= k + 1
        thresholds.append(distribution * 2**64)
    return thresholds


def poisson(draw, thresholds):
    """The smallest k with P(at most k) > draw / 2^64."""
    k = 0
    while draw >= thresholds[k]:
        k += 1
    return k


def shuffle_first(values, taken, stream):
    for i in range(taken):
        j = i + below(next(stream), len(values) - i)
        values[i], values[j] = values[j], values[i]


def counts(case, model):
    samples = case["samples"]
    stream = draws(case["seed"], "bootstrap", model, 0)
    if case["sampler"] == "none":
        return [1] * samples
    if case["sampler"] == "poisson":
        thresholds = poisson_thresholds()
        return [poisson(next(stream), thresholds) for _ in range(samples)]
    counted = [0] * samples
    if case["sampler"] == "bootstrap":
        for _ in range(samples):
            counted[below(next(stream), samples)] += 1
        return counted
    taken = max(1, math.floor(case["fraction"] * samples + 0.5))
    order = list(range(samples))
    shuffle_first(order, taken, stream)
    for sample in order[:taken]:
        counted[sample] = 1
    return counted


def epoch_order(case, model, epoch):
    order = [i for i, count in enumerate(counts(case, model)) for _ in range(count)]
    shuffle_first(order, len(order), draws(case["seed"], "shuffle", model, epoch))
    return order


def bag(case):
    """The counts of a model as one string of digits, because no sample occurs ten times."""
    bags = [counts(case, model) for model in case["models"]]
    assert max(map(max, bags)) < 10
    return {**case, "counts": ["".join(map(str, counted)) for counted in bags],
            "orders": [epoch_order(case, model, case["epoch"]) for model in case["models"]]}


def bags():
    shapes = ({"seed": 1, "samples": 100, "models": [0, 1, 2], "epoch": 0},
              {"seed": 2022, "samples": 1001, "models": [0, 7], "epoch": 3},
              {"seed": 2**63 + 12345, "samples": 17, "models": [4294967295], "epoch": 4294967295})
    samplers = ({"sampler": "poisson"}, {"sampler": "bootstrap"}, {"sampler": "none"},
                {"sampler": "subsample", "fraction": 0.632},
                {"sampler": "subsample", "fraction": 0.05})
    return [bag({**sampler, **shape}) for sampler in samplers for shape in shapes]


def rare_counts(seed, model, samples):
    """[sample, count] of all samples that occur RARE times or more: the tail of Poisson(1)."""
    thresholds, stream = poisson_thresholds(), draws(seed, "bootstrap", model, 0)
    cut = thresholds[RARE - 1]
    found = [(i, draw) for i, draw in zip(range(samples), stream) if draw >= cut]
    return {"seed": seed, "model": model, "samples": samples, "at_least": RARE,
            "counts": [[i, poisson(draw, thresholds)] for i, draw in found]}


def normals(stream, pairs):
    values = []
    for _ in range(pairs):
        radius = math.sqrt(-2 * math.log(1 - stream.uniform()))
        angle = 2 * math.pi * stream.uniform()
        values += [radius * math.cos(angle), radius * math.sin(angle)]
    return values


def stream_case(*name):
    limits = [2, 3, 7, 10, 1000, 2**31, 2**31 + 1, 3 * 2**30, 2**32 - 1]
    words, uniforms, choices = CounterStream(*name), CounterStream(*name), CounterStream(*name)
    return {"name": [name[0], PURPOSES[name[1]], *name[2:]],
            "words": [words.next_u32() for _ in range(11)],
            "uniforms": [uniforms.uniform() for _ in range(9)],
            "below": [[n, choices.below(n)] for n in limits * 4],
            "normals": normals(CounterStream(*name), 50)}


def main():
    decimal.getcontext().prec = 60
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    content = {"python": platform.python_version(),
               "streams": [stream_case(1, "test", 0, 0, 0),
                           stream_case(2**64 - 2, "augmentation", 5, 2**32 - 1, 77)],
               "bags": bags(), "rare": rare_counts(3, 5, 2**20)}
    text = json.dumps(content, separators=(",", ":")).replace("],", "],\n").replace("},", "},\n")
    (folder / "sampling.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
