#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/random_crop.json for tests/data/random_crop_test.cpp: how
torchvision's RandomResizedCrop distributes its crops, as histograms of many draws, and its crops for
the random numbers of this project's streams. torchvision's own get_params computes all crops. Its
random numbers are replaced: by this project's streams, or by NumPy's PCG64 for the histograms.

Needs torch, torchvision and NumPy; the committed file names the versions that wrote it.

usage: random_crop_cases.py        (takes minutes)
"""
import contextlib
import json
import math
import pathlib
from unittest import mock

import numpy
import torch
import torchvision
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms import transforms as implementation

from philox import CounterStream, check_known_answers

RATIOS = (3 / 4, 4 / 3)
DRAWS = 200_000
BINS = 20
VIEWS = 100
SEED, MODEL, EPOCH, FLIPS = 0x123456789ABCDEF, 5, 9, (0.5, 0.25)  # of the training views
LOG_RATIO = 0.3  # half the range of the histogram; log(4/3) is 0.288
# Width, height, smallest area. The last two often reject all draws and take the central crop.
CASES = [(256, 256, 0.08), (640, 480, 0.08), (247, 256, 0.25), (600, 200, 0.2), (90, 300, 0.2)]


class TorchWithRandomNumbers:
    """Replaces torch in torchvision's module. Every random number comes from the given functions,
    uniform() in [0, 1) and below(n) in 0 ... n - 1. All else is torch, in double precision."""

    def __init__(self, uniform, below):
        self.uniform, self.below = uniform, below

    def __getattr__(self, name):
        return getattr(torch, name)

    def tensor(self, values):
        return torch.tensor(values, dtype=torch.float64)

    def empty(self, _):
        return self

    def uniform_(self, low, high):
        return self.tensor(float(low) + (float(high) - float(low)) * self.uniform())

    def randint(self, low, high, size):
        assert low == 0 and size == (1,)
        return self.tensor(self.below(high)).long()


@contextlib.contextmanager
def torchvision_crops(uniform, below):
    """A function of (width, height) and the smallest area: the crop (left, top, width, height) that
    torchvision chooses with these random numbers."""
    def draw(size, area_minimum):
        picture = mock.Mock(size=size)
        scale = (area_minimum, 1.0)
        top, left, height, width = RandomResizedCrop.get_params(picture, scale, RATIOS)
        return left, top, width, height

    with mock.patch.object(implementation, "torch", TorchWithRandomNumbers(uniform, below)), \
            mock.patch.object(implementation.F, "get_dimensions", lambda image: [3, *image.size[::-1]]):
        yield draw


def bin_of(value, low, high):
    return min(max(int((value - low) / (high - low) * BINS), 0), BINS - 1)


def bins_of(crop, size):
    """The bins of area, log(width / height) and both coordinates of a crop."""
    left, top, width, height = crop
    return {"area": bin_of(width * height / (size[0] * size[1]), 0, 1),
            "ratio": bin_of(math.log(width / height), -LOG_RATIO, LOG_RATIO),
            "left": bin_of((left + 0.5) / (size[0] - width + 1), 0, 1),
            "top": bin_of((top + 0.5) / (size[1] - height + 1), 0, 1)}


def histograms(size, area_minimum):
    random = numpy.random.Generator(numpy.random.PCG64([*size, 500]))
    counts = {name: [0] * BINS for name in ("area", "ratio", "left", "top")}
    central = 0
    with torchvision_crops(random.random, lambda n: int(random.integers(n))) as draw:
        fallback = draw_central(size)
        for _ in range(DRAWS):
            crop = draw(size, area_minimum)
            central += crop == fallback
            for name, number in bins_of(crop, size).items():
                counts[name][number] += 1
    return {"width": size[0], "height": size[1], "area_minimum": area_minimum, "draws": DRAWS,
            "fallback": fallback, "fallbacks": central, **counts,
            "views": views(size, area_minimum)}


def training_view(stream, size, area_minimum, flips):
    """The draws of the augmentation from a stream: the crop, then the two flips with their
    probabilities."""
    with torchvision_crops(stream.uniform, stream.below) as draw:
        crop = draw(size, area_minimum)
    return crop, stream.uniform() < flips[0], stream.uniform() < flips[1]


def views(size, area_minimum):
    """(left, top, width, height, flip, vertical flip) of samples 0, 1, ..."""
    out = []
    for sample in range(VIEWS):
        stream = CounterStream(SEED, "augmentation", MODEL, sample, EPOCH << 16)
        crop, flip, vertical = training_view(stream, size, area_minimum, FLIPS)
        out.append([*crop, int(flip), int(vertical)])
    return out


def draw_central(size):
    """torchvision's crop after ten rejected draws, which an impossible area forces."""
    with torchvision_crops(lambda: 0.5, lambda n: 0) as draw:
        return draw(size, 1e9)


def main():
    check_known_answers()
    target = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    versions = {"torch": torch.__version__.split("+")[0],
                "torchvision": torchvision.__version__.split("+")[0], "NumPy": numpy.__version__}
    cases = [histograms((width, height), area) for width, height, area in CASES]
    lines = ",\n".join(json.dumps(case) for case in cases)
    (target / "random_crop.json").write_text(
        json.dumps({"versions": versions, "log_ratio": LOG_RATIO, "seed": SEED, "model": MODEL,
                    "epoch": EPOCH, "flips": FLIPS})[:-1]
        + ',\n"cases": [\n' + lines + "]}\n")


if __name__ == "__main__":
    main()
