#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that exported weights predict the same classes in torchvision as in hpcai500.

Loads the safetensors file of `hpcai500 export` into torchvision's resnet50, evaluates the test
images that DIR/evaluation/samples.txt names with Pillow's preprocessing, and compares the classes
with DIR/groups/M/predictions.npy. Exit code 1 if fewer than 99 % agree. Needs torch,
torchvision, pillow and safetensors.

    check_export.py DIR --group 0 --weights m0.safetensors --data D/test --config configs/x.yaml

With --network FILE, the network is that of the exported Python file, which needs no torchvision.

The weights of a detector are loaded into torchvision's Faster R-CNN with the configuration's sizes.
Exit code 1 if names or shapes differ, or if detections are not finite.
tests/parity/faster_rcnn_test.cpp checks that both compute the same detections.

    check_export.py DIR --weights m0.safetensors --config configs/extreme_weather.yaml
"""
import argparse
import os
import runpy
import sys

import numpy

import recipe


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR", help="result directory of a run")
    parser.add_argument("--group", type=int, default=0)
    parser.add_argument("--weights", required=True, help="file of `hpcai500 export`")
    parser.add_argument("--network", help="exported Python file; default: torchvision's ResNet-50")
    parser.add_argument("--data", help="root of the test images; not for a detector")
    parser.add_argument("--config", required=True, help="the run's configuration")
    parser.add_argument("--least", type=float, default=0.99, help="fraction that must agree")
    return parser.parse_args()


def find_image(root, name):
    """A sample's name is its path below the root, with or without the root's own name."""
    for candidate in (os.path.join(root, name), os.path.join(os.path.dirname(root), name), name):
        if os.path.isfile(candidate):
            return candidate
    raise SystemExit(f"{name}: not found below {root}")


def load(model, weights):
    """Load into a torchvision model, which must have the same names and shapes."""
    import safetensors.torch

    missing, unexpected = model.load_state_dict(safetensors.torch.load_file(weights), strict=False)
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    unexpected = [name for name in unexpected if not name.endswith("num_batches_tracked")]
    if missing or unexpected:
        raise SystemExit(f"weights: missing {missing}, unexpected {unexpected}")


def check_detector(settings, weights):
    import torch

    model = recipe.build_detector(settings)
    load(model, weights)
    shape = (settings["workload.channels"], *recipe.image_shape(settings))
    image = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = model.eval()([image])[0]
    finite = all(bool(torch.isfinite(values).all()) for values in found.values())
    print(f"{len(model.state_dict())} tensors loaded; {len(found['boxes'])} detections in a random "
          f"image, {'all' if finite else 'not all'} of them finite")
    sys.exit(0 if finite else 1)


def main():
    arguments = parse_arguments()
    settings = recipe.read_config(arguments.config)
    if settings["workload.model"] == "faster_rcnn_r50_fpn":
        check_detector(settings, arguments.weights)
    if not arguments.data:
        raise SystemExit("--data: expected the root of the test images")
    predictions = numpy.load(
        os.path.join(arguments.directory, "groups", str(arguments.group), "predictions.npy"))
    with open(os.path.join(arguments.directory, "evaluation", "samples.txt"),
              encoding="utf-8") as file:
        names = file.read().splitlines()
    if len(names) != len(predictions):
        raise SystemExit(f"{len(names)} names but {len(predictions)} predictions")
    if arguments.network:
        model = runpy.run_path(arguments.network)["Network"]()
    else:
        model = recipe.build_model(settings, predictions.shape[1])
    load(model, arguments.weights)
    size = settings["workload.image_size"]
    root = arguments.data.rstrip("/")
    images = [
        recipe.evaluation_crop(recipe.read_image(find_image(root, name)), size) for name in names
    ]
    outputs = recipe.predict(model, images, settings)
    equal = float(numpy.mean(outputs.argmax(1) == predictions.argmax(1)))
    difference = float(numpy.abs(outputs - predictions).max())
    logarithms = numpy.abs(numpy.log(outputs) - numpy.log(predictions)).max()
    print(f"group {arguments.group}: {equal:.4f} of {len(names)} images get the same class, largest "
          f"difference {difference:.2g} of a softmax, {logarithms:.2g} of its logarithm")
    sys.exit(0 if equal >= arguments.least else 1)


if __name__ == "__main__":
    main()
