#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/faster_rcnn*: the whole Faster R-CNN on ResNet-50 with a feature
pyramid, 16 channels, 5 classes, by torchvision in float64.

Weights and images are formulas of integer hashes (faster_rcnn_network.py), which
tests/parity/faster_rcnn_formula.hpp computes again to the same bits. They are of the "open" kind
(see resnet50_cases.py): the ReLU of a channel passes all of its values or none. Two neighbouring
channels have the same shift, and later layers without normalization have opposite weights for them,
so that the constant parts cancel and do not dominate.

Both samplers draw by ops::sampling_key. No result may depend on rounding. Therefore the script rejects
a case (faster_rcnn_detector.py) if fp32 could decide differently: if an IoU, a score or a logit is too
near to a threshold or to its neighbour in an order, or a value before a ReLU too near to zero. The
images of the cases were chosen, by their numbers, so that no case is rejected.

torchvision divides its losses by the samples of all images; hpcai500 divides the loss of an image by
the samples of this image. Both agree if all images have equally many samples, which is checked.

faster_rcnn_statistics.safetensors has running statistics to go with the weights. A case's file has
boxes, keys, and fingerprints (see resnet50_cases.py) of values and gradients. It has all sampled
anchors and regions, proposals and detections in full. Values have their channels last, and regions
are in hpcai500's order. faster_rcnn.json has the names and shapes of the benchmark's model,
its anchors, and the distances of torchvision's own fp32 from float64.

usage: faster_rcnn_cases.py [--search CASE] [DIRECTORY]
DIRECTORY is tests/data/reference of this repository by default. --search writes nothing and prints
the next image number with which CASE is not rejected. Needs PyTorch, torchvision, NumPy and
safetensors, 16 GB of memory and about ten minutes on two idle cores.
"""
import argparse
import dataclasses
import json
import math
import pathlib

import numpy
import safetensors.numpy
import torch
import torchvision

from faster_rcnn_detector import Detector, Rejected
from faster_rcnn_network import CASES, LEVELS, boxes_of, images, keys_of, make_network
from resnet50_cases import fingerprint, relative

LOSSES = ("loss_objectness", "loss_rpn_box_reg", "loss_classifier", "loss_box_reg")


def channels_last(tensor):
    return tensor.detach().permute(0, 2, 3, 1).double().numpy().ravel()


def padded(rows, count, filler):
    """`count` rows of fp32, the unused ones `filler`."""
    rows = torch.as_tensor(rows, dtype=torch.float64).numpy().reshape(-1, len(filler))
    unused = numpy.tile(numpy.array(filler, numpy.float64), (count - len(rows), 1))
    return numpy.concatenate([rows, unused]).astype(numpy.float32)


def proposal_rows(detector, limit):
    boxes, scores = detector.recorded["proposals"]
    return numpy.stack([padded(torch.cat([box, score[:, None]], 1), limit, (0, 0, 0, 0, -1))
                        for box, score in zip(boxes, scores)])


def anchor_target_rows(detector):
    """(N, samples, 6) of anchor number, label and deltas; positive rows first."""
    _, matched = detector.recorded["anchor_labels"]
    result = []
    for image, (positive, negative) in enumerate(detector.network.rpn.fg_bg_sampler.drawn):
        anchors = detector.recorded["anchors"][image]
        deltas = detector.network.rpn.box_coder.encode([matched[image][positive].double()],
                                                       [anchors[positive].double()])[0]
        rows = torch.zeros(len(positive) + len(negative), 6, dtype=torch.float64)
        rows[:, 0] = torch.cat([positive, negative])
        rows[:len(positive), 1] = 1
        rows[:len(positive), 2:] = deltas
        result.append(padded(rows, detector.case.anchor_samples, (-1, 0, 0, 0, 0, 0)))
    return numpy.stack(result)


def region_order(detector):
    """Per image the order of torchvision's sampled regions in hpcai500: foreground first."""
    return [torch.cat([torch.where(labels > 0)[0], torch.where(labels == 0)[0]])
            for labels in detector.recorded["regions"][2]]


def region_rows(detector):
    """(N, samples, 9) of box, class and targets."""
    boxes, _, labels, targets = detector.recorded["regions"]
    result = []
    for image, order in enumerate(region_order(detector)):
        foreground = (labels[image] > 0)[:, None]
        rows = torch.cat([boxes[image], labels[image][:, None],
                          torch.where(foreground, targets[image], 0)], 1)[order]
        result.append(padded(rows, detector.case.region_samples, (0, 0, 0, 0, -1, 0, 0, 0, 0)))
    return numpy.stack(result)


def values_of(detector):
    """Values of a training step, flat."""
    recorded = detector.recorded
    order = torch.cat([rows + image * detector.case.region_samples
                       for image, rows in enumerate(region_order(detector))])
    values = {f"P{level + 2}": channels_last(feature)
              for level, feature in enumerate(recorded["features"].values())}
    for part, name in enumerate(("rpn_logits", "rpn_deltas")):
        for level in range(LEVELS):
            values[f"{name}.P{level + 2}"] = channels_last(recorded["rpn"][part][level])
    values["roi_align"] = channels_last(recorded["roi_align"][order])
    for part, name in enumerate(("class_logits", "class_deltas")):
        values[name] = recorded["head"][part].detach()[order].double().numpy().ravel()
    return values


def training_tensors(detector, losses):
    case = detector.case
    labels = torch.stack(detector.recorded["anchor_labels"][0]).numpy().astype(numpy.float32)
    tensors = {"number": numpy.array([case.number], numpy.float64),
               "losses": numpy.array([losses[name] for name in LOSSES]),
               "boxes": boxes_of(case), "keys": keys_of(case).astype(numpy.float64),
               "proposals": proposal_rows(detector, case.training_proposals),
               "anchor_targets": anchor_target_rows(detector), "regions": region_rows(detector)}
    anchors = torch.stack(list(detector.recorded["anchors"])).double().numpy()
    tensors["anchors"] = fingerprint(anchors[0].ravel())
    tensors["anchor_labels"] = fingerprint(labels.astype(numpy.float64).ravel())
    tensors |= {f"value/{name}": fingerprint(value) for name, value in values_of(detector).items()}
    return tensors | {f"gradient/{name}": fingerprint(value)
                      for name, value in detector.gradients().items()}


def inference_tensors(detector):
    rows = []
    for found in detector.inference():
        columns = [found["boxes"], found["scores"][:, None], found["labels"][:, None]]
        rows.append(padded(torch.cat(columns, 1), detector.case.detections, (0,) * 6))
    detector.check_inference()
    return {"inference_proposals": proposal_rows(detector, detector.case.inference_proposals),
            "detections": numpy.stack(rows)}


def measured_statistics():
    """Statistics of the activations of one batch, fp32."""
    case = dataclasses.replace(CASES[0], number=1000)
    network = make_network(case, None, torch.float64).train()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    batch = images(case.number, case.batch(), case.height, case.width).permute(0, 3, 1, 2)
    with torch.no_grad():
        network.backbone(batch.double())
    return {name: value.numpy().astype(numpy.float32)
            for name, value in network.state_dict().items()
            if name.endswith(("running_mean", "running_var"))}


def tensors_of(case, statistics):
    training = Detector(case, statistics if case.frozen else None)
    losses = training.training()
    tensors = training_tensors(training, losses)
    inference = Detector(case, statistics)
    return tensors | inference_tensors(inference), training


def distance_of_fp32(case, statistics, exact, tensors):
    """Relative distances of torchvision's fp32 from float64 in one step, the largest of each kind."""
    detector = Detector(case, statistics if case.frozen else None, torch.float32)
    losses = detector.training()
    values, gradients = values_of(exact), exact.gradients()
    return {"losses": relative(numpy.array([losses[name] for name in LOSSES]), tensors["losses"]),
            "values": max(relative(value, values[name])
                          for name, value in values_of(detector).items()),
            "gradients": max(relative(value, gradients[name]) for name, value in
                             detector.gradients().items() if not name.endswith(".bias"))}


def model_description():
    case = next(case for case in CASES if case.name == "full")
    network = make_network(case, None, torch.float32)
    shapes = {name: list(value.shape) for name, value in network.state_dict().items()
              if not name.endswith("num_batches_tracked")}
    parameters = sum(value.numel() for value in network.parameters())
    grids = [(math.ceil(case.height / stride), math.ceil(case.width / stride))
             for stride in (4, 8, 16, 32, 64)]
    cells = [cell.tolist() for cell in network.rpn.anchor_generator.cell_anchors]
    return {"parameters": parameters, "anchors": sum(3 * h * w for h, w in grids),
            "cell_anchors": cells, "state": shapes}


def search(name, statistics):
    case = next(case for case in CASES if case.name == name)
    for number in range(case.number, case.number + 100):
        try:
            tensors_of(dataclasses.replace(case, number=number), statistics)
            print(number, "is not rejected", flush=True)
            return
        except Rejected as rejection:
            print(number, rejection, flush=True)


def main():
    parser = argparse.ArgumentParser(description="see the head of the file")
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reference"
    parser.add_argument("directory", nargs="?", type=pathlib.Path, default=default)
    parser.add_argument("--search", metavar="CASE")
    arguments = parser.parse_args()
    statistics = measured_statistics()
    if arguments.search:
        search(arguments.search, statistics)
        return
    arguments.directory.mkdir(parents=True, exist_ok=True)
    def save(name, tensors):
        path = arguments.directory / f"{name}.safetensors"
        safetensors.numpy.save_file(tensors, path, {"torch": torch.__version__})
        path.chmod(0o644)
    save("faster_rcnn_statistics", statistics)
    description = model_description()
    description["written_with"] = {module.__name__: module.__version__
                                   for module in (torch, torchvision, numpy)}
    description["distances_of_fp32"] = {}
    for case in CASES:
        tensors, exact = tensors_of(case, statistics)
        save(f"faster_rcnn_{case.name}", tensors)
        if case.name != "full":
            description["distances_of_fp32"][case.name] = distance_of_fp32(case, statistics, exact,
                                                                           tensors)
    text = json.dumps(description).replace("], ", "],\n").replace("}, ", "},\n")
    (arguments.directory / "faster_rcnn.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
