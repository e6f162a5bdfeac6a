#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/metrics_aiperf.json: FLOPs by AIPerf's own profiler, of single operators
and of AIPerf's ResNet-50.

usage: aiperf_cases.py PROFILER MODEL [DIRECTORY]     (default: tests/data/reference)
PROFILER is scripts/reports/profiler.py and MODEL is
examples/trials/network_morphism/imagenet/resnet50.json of github.com/thu-pacman/AIPerf; the
committed file was written from its commit 4dc060a302c5f2f67b120f263708b926464a0855.
"""
import importlib.util
import json
import pathlib
import sys
import tempfile


def load(path):
    spec = importlib.util.spec_from_file_location("profiler", path)
    profiler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(profiler)
    return profiler


def case(operation, counted, **sizes):
    """`counted` begins with the forward FLOPs and ends with the backward FLOPs."""
    return {"operation": operation, **sizes, "forward": counted[0], "backward": counted[-1]}


def convolution_cases(profiler):
    """Cases of (image size, kernel, stride, padding, input channels, output channels)."""
    shapes = [(224, 7, 2, 3, 3, 64), (56, 1, 1, 0, 64, 256), (56, 3, 2, 1, 128, 128),
              (13, 3, 2, 1, 5, 7), (9, 5, 1, 2, 4, 6), (8, 1, 2, 0, 16, 32)]
    for size, kernel, stride, padding, channels, filters in shapes:
        pixels = (size + 2 * padding - kernel) // stride + 1
        for first in (True, False):
            counted = profiler.cal_conv_flops(channels, filters, kernel, pixels, 0 if first else 1)
            yield case("convolution", counted, size=size, kernel=kernel, stride=stride,
                       padding=padding, channels=channels, filters=filters, first=first)


def other_cases(profiler):
    for channels, features in ((2048, 1000), (5, 7), (1, 2)):
        yield case("linear", profiler.cal_dense_flops(channels, features),
                   channels=channels, features=features)
        yield case("softmax_cross_entropy", profiler.cal_softmax_flops(features),
                   features=features)
    for size, channels in ((56, 256), (7, 3), (1, 2048)):
        image = [size, size, channels]
        yield case("batch_norm", profiler.cal_bn_flops(channels, image),
                   size=size, channels=channels)
        yield case("relu", profiler.cal_relu_flops(image), size=size, channels=channels)
        yield case("add", profiler.cal_add_flops(image), size=size, channels=channels)
        yield case("global_average_pool", profiler.cal_avgpool_flops(image),
                   size=size, channels=channels)
    for size, channels, kernel, stride in ((112, 64, 3, 2), (12, 5, 2, 2), (9, 4, 3, 3)):
        counted = profiler.cal_maxpool_flops([size, size, channels], kernel, stride)
        yield case("max_pool", counted, size=size, channels=channels, kernel=kernel, stride=stride)


def whole_model(profiler, model):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as settings:
        json.dump({"hyperparameter": {"kernel_size": 3, "dropout_rate": 0}}, settings)
        settings.flush()
        return profiler.cal_trial_flops_per_image(model, settings.name)


def main():
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    folder = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else default
    profiler = load(sys.argv[1])
    cases = [*convolution_cases(profiler), *other_cases(profiler)]
    for counts in cases:  # the profiler returns some counts as floats, but all are whole numbers
        for key in ("forward", "backward"):
            assert counts[key] == int(counts[key])
            counts[key] = int(counts[key])
    forward, training = whole_model(profiler, sys.argv[2])
    content = {"aiperf": "thu-pacman/AIPerf 4dc060a", "cases": cases,
               "resnet50_v1": {"forward": int(forward), "training": int(training)}}
    text = json.dumps(content, separators=(",", ":")).replace("},", "},\n")
    (folder / "metrics_aiperf.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
