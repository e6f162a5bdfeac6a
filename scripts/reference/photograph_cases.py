#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the results of Pillow and torchvision for forty real photographs, for
tests/data/torchvision_test.cpp: tests/data/reference/photographs.json (which files, their hashes,
the crops) and photographs.safetensors (pixels at the positions of sample_positions()). The photographs
themselves (UC Merced Land Use, BCCD) are not part of the repository.

Needs Pillow, torch, torchvision, NumPy and safetensors; the committed files were written by the
versions that photographs.json names.

usage: photograph_cases.py PHOTOGRAPHS      (a folder with ucmerced/ and bccd/)
"""
import hashlib
import json
import math
import pathlib
import sys

import numpy
import PIL
import torch
import torchvision
from PIL import Image, features
from safetensors.numpy import save_file
from torchvision import transforms
from torchvision.transforms import functional

from philox import CounterStream, check_known_answers
from random_crop_cases import training_view

SIZES = (64, 224)  # image_size
SPREAD, BORDER = 160, 64  # sampled pixels of a result, see sample_positions()
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SEED, MODEL, EPOCH = 0x5EED00000007, 3, 2  # seed, model and epoch of the training views
REPETITIONS = 2  # of each photograph in the epoch's order
AREA_MINIMUM, FLIP, VERTICAL_FLIP = 0.08, 0.5, 0.25
BILINEAR = transforms.InterpolationMode.BILINEAR


def chosen_files(root):
    """For each UC Merced class the first photograph that is not 256 x 256, else the first. For every
    third class also a second photograph. Every thirtieth photograph of BCCD."""
    files = []
    for index, folder in enumerate(sorted((root / "ucmerced" / "train").iterdir())):
        pictures = sorted(folder.glob("*.jpg"))
        odd = [path for path in pictures if Image.open(path).size != (256, 256)]
        files += odd[:1] or pictures[:1]
        if index % 3 == 0:
            files.append(odd[-1] if len(odd) > 1 else pictures[1])
    return files + sorted((root / "bccd" / "BCCD" / "JPEGImages").glob("*.jpg"))[::30][:12]


def sample_positions(size):
    """Flat indices of the sampled pixels of size x size: SPREAD over the area, BORDER at the edge."""
    spread = [k * 40503 % (size * size) for k in range(SPREAD)]
    side = size - 1
    border = []
    for k in range(BORDER):
        edge, step = divmod(k * 4 * side // BORDER, side)
        row, column = [(0, step), (step, side), (side, side - step), (side - step, 0)][edge]
        border.append(row * size + column)
    return spread + border


def sample(image):
    pixels = numpy.asarray(image)
    return pixels.reshape(-1, 3)[sample_positions(pixels.shape[0])]


def given_boxes(number, width, height):
    """(left, top, width, height) of the whole picture and of a small, a tall and a corner crop."""
    small = (48 + 5 * number % 40, 40 + 7 * number % 50)
    tall = (width // 2 + number, height - 1 - number % 9)
    corner = (width * 2 // 3, height // 2 + 3 * number % 60)
    return [(0, 0, width, height), (11 + number, 3 + 2 * number, *small),
            (number % 16, number % 9, *tall),
            (width - corner[0], height - corner[1], *corner)]


def crop(image, box, size):
    left, top, width, height = box
    return functional.resized_crop(image, top, left, height, width, [size, size], BILINEAR)


def evaluate(image, size):
    resize = transforms.Resize(round(size * 256 / 224), BILINEAR)
    return transforms.CenterCrop(size)(resize(image))


def normalize(image):
    tensor = transforms.Normalize(MEAN, DEVIATION)(transforms.ToTensor()(image))
    return sample(tensor.permute(1, 2, 0))[::4]


def mirror(image, flip, vertical_flip):
    if flip:
        image = functional.hflip(image)
    return functional.vflip(image) if vertical_flip else image


def reduced(path, denominator):
    """The photograph as Pillow's JPEG decoder reduces it to 1 / denominator of its size."""
    with Image.open(path) as image:
        expected = tuple(-(-side // denominator) for side in image.size)
        if denominator > 1:
            image.draft("RGB", tuple(side // denominator for side in image.size))
        image = image.convert("RGB")
    assert image.size == expected
    return image


def crop_reduced(path, box, size):
    """The crop from the photograph, decoded at the largest reduction that leaves `size` pixels. It is
    cut to whole reduced pixels, then resized from the exact position."""
    left, top, width, height = box
    denominator = next(d for d in (8, 4, 2, 1) if min(width, height) >= d * size or d == 1)
    edges = [edge / denominator for edge in (left, top, left + width, top + height)]
    start = [math.floor(edge) for edge in edges[:2]]
    picture = reduced(path, denominator)
    cut = picture.crop((*start, *(math.ceil(edge) for edge in edges[2:])))
    exact_box = [edge - offset for edge, offset in zip(edges, start * 2)]
    return cut.resize((size, size), Image.Resampling.BILINEAR, box=exact_box)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def describe(root, path, number):
    image = reduced(path, 1)
    streams = [CounterStream(SEED, "augmentation", MODEL, number, EPOCH << 16 | repetition)
               for repetition in range(REPETITIONS)]
    views = [training_view(stream, image.size, AREA_MINIMUM, (FLIP, VERTICAL_FLIP))
             for stream in streams]
    return {
        "file": str(path.relative_to(root)), "sha256": sha256(path.read_bytes()),
        "width": image.width, "height": image.height,
        "decoded": {by: sha256(reduced(path, by).tobytes()) for by in (1, 2, 4, 8)},
        "boxes": given_boxes(number, image.width, image.height),
        "views": [{"box": box, "flip": flip, "vertical_flip": vertical}
                  for box, flip, vertical in views]}


def results(path, case, size):
    """Name of a tensor -> one photograph's row of it."""
    image = reduced(path, 1)
    crops = [crop(image, box, size) for box in case["boxes"]]
    views = [(view["box"], (view["flip"], view["vertical_flip"])) for view in case["views"]]
    evaluated = evaluate(image, size)
    out = {"evaluation": sample(evaluated), "network_input": normalize(evaluated),
           "crops": numpy.stack([sample(picture) for picture in crops]),
           "views": numpy.stack([sample(mirror(crop(image, box, size), *flips))
                                 for box, flips in views])}
    if size == SIZES[0]:
        out["flip"] = sample(functional.hflip(crops[1]))
        out["vertical_flip"] = sample(functional.vflip(crops[1]))
        out["reduced_views"] = numpy.stack([sample(mirror(crop_reduced(path, box, size), *flips))
                                            for box, flips in views])
    return {f"{name}_{size}": row for name, row in out.items()}


def main():
    check_known_answers()
    root = pathlib.Path(sys.argv[1])
    target = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    files = chosen_files(root)
    cases = [describe(root, path, number) for number, path in enumerate(files)]
    rows = [{name: row for size in SIZES for name, row in results(path, case, size).items()}
            for path, case in zip(files, cases)]
    tensors = {name: numpy.stack([row[name] for row in rows]) for name in rows[0]}
    versions = {"Pillow": PIL.__version__, "libjpeg-turbo": features.version("libjpeg_turbo"),
                "torch": torch.__version__.split("+")[0],
                "torchvision": torchvision.__version__.split("+")[0], "NumPy": numpy.__version__}
    header = {"versions": versions, "seed": SEED, "model": MODEL, "epoch": EPOCH,
              "area_minimum": AREA_MINIMUM, "flip": FLIP, "vertical_flip": VERTICAL_FLIP,
              "mean": MEAN, "standard_deviation": DEVIATION, "spread": SPREAD, "border": BORDER}
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = json.dumps(header)[:-1] + ',\n"photographs": [\n' + lines + "]}\n"
    (target / "photographs.json").write_text(text)
    save_file(tensors, target / "photographs.safetensors", {"versions": json.dumps(versions)})
    (target / "photographs.safetensors").chmod(0o644)


if __name__ == "__main__":
    main()
