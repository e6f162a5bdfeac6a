#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference/detection.safetensors: the operations of Faster R-CNN, computed by
torchvision's own RegionProposalNetwork, RoIHeads and MultiScaleRoIAlign in float64. Their random
samplers are replaced by samplers that draw by the keys of hpcai/ops/box_math.hpp.

The format is that of op_cases.py. Logits and deltas of anchors are exact in bf16, boxes are whole
numbers, and no two scores are equal.

usage: detection_cases.py [FILE]
Needs PyTorch, torchvision, NumPy and safetensors; the file names the versions that wrote it.
"""
import pathlib
import sys

import torch
from torchvision.models.detection import roi_heads as heads
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.rpn import RegionProposalNetwork, concat_box_prediction_layers
from torchvision.ops import MultiScaleRoIAlign

import op_cases
from faster_rcnn_network import sampling_keys

HEIGHT, WIDTH, STRIDES, PER_CELL = 64, 96, (4, 8, 16, 32, 64), 3


class Cases(op_cases.Cases):
    def add(self, name, settings, given, expected):
        """Adds a case. Its inputs need only be exact in fp32."""
        self.settings[name] = settings
        for role, tensor in given.items():
            assert tensor.equal(tensor.float().to(tensor.dtype)), f"{name}/{role}: not in fp32"
            self.tensors[f"{name}/{role}"] = op_cases.smallest(tensor.detach().contiguous())
        for role, tensor in expected.items():
            self.tensors[f"{name}/expected.{role}"] = op_cases.smallest(
                tensor.detach().contiguous())


class KeySampler:
    """Replaces BalancedPositiveNegativeSampler. `numbers` has, for each image, the candidate number of each
    row of labels; None: its index."""

    def __init__(self, samples, share, stage):
        self.samples, self.share, self.stage = samples, share, stage
        self.keys, self.numbers = [], None

    def draw(self, rows, count, key, numbers):
        keys = dict(zip(rows, sampling_keys(key, self.stage, [numbers[row] for row in rows])))
        return sorted(rows, key=keys.get)[:count]

    def __call__(self, labels_of_images):
        positive_masks, negative_masks = [], []
        for image, labels in enumerate(labels_of_images):
            numbers = self.numbers[image] if self.numbers else range(len(labels))
            key = int(self.keys[image])
            positive = self.draw(torch.where(labels >= 1)[0].tolist(),
                                 int(self.samples * self.share), key, numbers)
            negative = self.draw(torch.where(labels == 0)[0].tolist(),
                                 self.samples - len(positive), key, numbers)
            for rows, masks in ((positive, positive_masks), (negative, negative_masks)):
                mask = torch.zeros_like(labels, dtype=torch.uint8)
                mask[rows] = 1
                masks.append(mask)
        return positive_masks, negative_masks


def make_network(samples=64, per_level=100, limit=60):
    generator = AnchorGenerator(tuple((4 * stride,) for stride in STRIDES), ((0.5, 1.0, 2.0),) * 5)
    network = RegionProposalNetwork(
        generator, torch.nn.Identity(), 0.7, 0.3, samples, 0.5,
        {"training": per_level, "testing": per_level}, {"training": limit, "testing": limit}, 0.7)
    network.fg_bg_sampler = KeySampler(samples, 0.5, 0)
    return network


def anchors_of(network, images):
    maps = [torch.zeros(images, 1, -(-HEIGHT // s), WIDTH // s).double() for s in STRIDES]
    image = torch.zeros(images, 16, HEIGHT, WIDTH).double()
    all_anchors = network.anchor_generator(ImageList(image, [(HEIGHT, WIDTH)] * images), maps)
    levels = [{"height": m.shape[2], "width": m.shape[3], "stride": s, "cell": cell.tolist()}
              for m, s, cell in zip(maps, STRIDES, network.anchor_generator.cell_anchors)]
    settings = {"levels": levels, "image_height": HEIGHT, "image_width": WIDTH}
    return all_anchors, settings


def boxes_of(numbers, images, rows):
    """Boxes with whole coordinates inside the image, (images, rows, 4)."""
    width = 2 + numbers.integers((images, rows), 40)
    height = 2 + numbers.integers((images, rows), 30)
    x = numbers.integers((images, rows), 1 << 20) % (WIDTH + 1 - width)
    y = numbers.integers((images, rows), 1 << 20) % (HEIGHT + 1 - height)
    return torch.stack([x, y, x + width, y + height], 2).double()


def labelled_of(numbers, images, rows):
    """(images, rows, 5) with classes 1 to 4. Image i has rows - i boxes, except the last, which has none."""
    labels = 1 + numbers.integers((images, rows), 4)
    for image in range(images):
        labels[image, rows - image:] = 0
    labels[-1] = 0
    return torch.cat([boxes_of(numbers, images, rows), labels.double()[..., None]],
                     2) * (labels > 0)[..., None]


def targets_of(labelled):
    return [{"boxes": rows[rows[:, 4] > 0][:, :4], "labels": rows[rows[:, 4] > 0][:, 4].long()}
            for rows in labelled]


def padded(rows, count, value):
    """`rows`, filled up to `count` with rows of zeros and `value`, a pair of column and number."""
    rest = torch.zeros(count - len(rows), rows.shape[1]).double()
    rest[:, value[0]] = value[1]
    return torch.cat([rows.double(), rest])


def anchor_targets(network, anchors, labelled, keys):
    """The rows of AnchorTargets, (images, samples, 6)."""
    network.fg_bg_sampler.keys = keys
    targets = targets_of(labelled)
    labels, matched = network.assign_targets_to_anchors(anchors, targets)
    deltas = network.box_coder.encode(matched, anchors)
    output = []
    for image, (positive, negative) in enumerate(zip(*network.fg_bg_sampler(labels))):
        rows = []
        for mask, label in ((positive, 1), (negative, 0)):
            index = torch.where(mask)[0]
            target = deltas[image][index] * label if label else torch.zeros(len(index), 4)
            rows.append(torch.cat([index[:, None].double(),
                                   torch.full((len(index), 1), float(label)).double(),
                                   target.double()], 1))
        output.append(padded(torch.cat(rows), network.fg_bg_sampler.samples, (0, -1)))
    return torch.stack(output), labels, deltas


def add_anchor_targets(cases):
    for stream, samples in enumerate((16, 64, 2000), 1000):
        numbers, images = op_cases.Numbers(stream), 4
        network = make_network(samples)
        anchors, settings = anchors_of(network, images)
        labelled, keys = labelled_of(numbers, images, 6), numbers.integers((images,), 1 << 20)
        output, _, _ = anchor_targets(network, anchors, labelled, keys)
        cases.add(f"{samples} anchors", {"operation": "anchor_targets", "anchors": settings,
                                         "samples": samples},
                  {"input.0": labelled, "input.1": keys.int()}, {"output": output})


def anchor_numbers(numbers, images):
    """Logits, all distinct and exact in bf16, and deltas of each level, (images, channels, H, W)."""
    grades = torch.cat([(128 + torch.arange(128)).double() * 2.0 ** e for e in range(-13, -4)])
    grades = torch.cat([grades, -grades])
    shapes = [(-(-HEIGHT // s), WIDTH // s) for s in STRIDES]
    count = sum(h * w for h, w in shapes) * PER_CELL
    order = torch.stack([torch.argsort(numbers.integers((len(grades),), 1 << 30))[:count]
                         for _ in range(images)])
    logits, begin = [], 0
    for h, w in shapes:
        logits.append(grades[order[:, begin:begin + h * w * PER_CELL]].reshape(images, PER_CELL, h, w))
        begin += h * w * PER_CELL
    deltas = [numbers.uniform((images, 4 * PER_CELL, h, w), largest=63) for h, w in shapes]
    return logits, deltas


def channels_last(images):
    """The images with channels last."""
    return [image.permute(0, 2, 3, 1) for image in images]


def add_rpn_losses(cases):
    for stream, (samples, scale) in enumerate(((64, 8),), 1100):
        numbers, images = op_cases.Numbers(stream), 2
        network = make_network(samples)
        anchors, settings = anchors_of(network, images)
        labelled, keys = labelled_of(numbers, images, 5), numbers.integers((images,), 1 << 20)
        rows, labels, targets = anchor_targets(network, anchors, labelled, keys)
        rows = rows.float().double()
        logits, deltas = anchor_numbers(numbers, images)
        values = op_cases.leaves(*logits, *deltas)
        losses = []
        for image in range(images):
            flat_logits, flat_deltas = concat_box_prediction_layers(
                [x[image:image + 1] for x in values[:5]], [x[image:image + 1] for x in values[5:]])
            network.fg_bg_sampler.keys = keys[image:image + 1]
            losses.append(torch.stack(network.compute_loss(
                flat_logits, flat_deltas, [labels[image].double()],
                [targets[image].float().double()])))
        losses = torch.stack(losses)
        found = torch.autograd.grad(losses.sum() * scale, values)
        cases.add(f"rpn loss of {samples}", {"operation": "rpn_loss", "anchors": settings,
                                             "loss_scale": scale},
                  {**op_cases.numbered("input", [*channels_last(logits), *channels_last(deltas), rows])},
                  {"output": losses, **op_cases.numbered("input_gradient", channels_last(found))})


def add_proposals(cases):
    for stream, (per_level, limit) in enumerate(((7, 20), (200, 900)), 1200):
        numbers, images = op_cases.Numbers(stream), 2
        network = make_network(per_level=per_level, limit=limit)
        anchors, settings = anchors_of(network, images)
        logits, deltas = anchor_numbers(numbers, images)
        flat_logits, flat_deltas = concat_box_prediction_layers(list(logits), list(deltas))
        decoded = network.box_coder.decode(flat_deltas, anchors).view(images, -1, 4)
        counts = [x[0].numel() for x in logits]
        boxes, scores = network.filter_proposals(decoded, flat_logits, [(HEIGHT, WIDTH)] * images,
                                                 counts)
        output = torch.stack([padded(torch.cat([b, s[:, None]], 1), limit, (4, -1))
                              for b, s in zip(boxes, scores)])
        cases.add(f"{per_level} proposals a level, {limit} in all",
                  {"operation": "proposals", "anchors": settings, "per_level": per_level,
                   "limit": limit},
                  op_cases.numbered("input", [*channels_last(logits), *channels_last(deltas)]), {"output": output})


def make_heads(samples=64, limit=30, threshold=0.05):
    result = heads.RoIHeads(None, None, None, 0.5, 0.5, samples, 0.25, None, threshold, 0.5, limit)
    result.fg_bg_sampler = KeySampler(samples, 0.25, 1)
    return result


def proposals_of(numbers, images, rows, unused=3):
    """(images, rows, 5); the last rows of each image are unused."""
    scores = numbers.integers((images, rows), 256).double() / 256
    proposals = torch.cat([boxes_of(numbers, images, rows), scores[..., None]], 2)
    proposals[:, rows - unused:] = torch.tensor([0, 0, 0, 0, -1]).double()
    return proposals


def roi_targets(network, proposals, labelled, keys):
    """The rows of RoiTargets, (images, samples, 9)."""
    images, rows = proposals.shape[:2]
    used = [rows[rows[:, 4] >= 0][:, :4] for rows in proposals]
    sampler = network.fg_bg_sampler
    sampler.keys, sampler.numbers = keys, []
    for candidates, boxes in zip(used, labelled):
        valid = torch.where(boxes[:, 4] > 0)[0].tolist()
        sampler.numbers.append([*range(len(candidates)), *(rows + box for box in valid)])
    kept, _, labels, deltas = network.select_training_samples(used, targets_of(labelled))
    output = []
    for box, label, delta in zip(kept, labels, deltas):
        target = torch.where(label[:, None] > 0, delta, 0)  # deltas are NaN in an image without boxes
        row = torch.cat([box, label[:, None].double(), target], 1)
        row = torch.cat([row[label > 0], row[label == 0]])
        output.append(padded(row, sampler.samples, (4, -1)))
    return torch.stack(output)


def add_roi_targets(cases):
    for stream, samples in enumerate((8, 40, 100), 1300):
        numbers, images = op_cases.Numbers(stream), 4
        proposals, labelled = proposals_of(numbers, images, 60), labelled_of(numbers, images, 6)
        keys = numbers.integers((images,), 1 << 20)
        output = roi_targets(make_heads(samples), proposals, labelled, keys)
        cases.add(f"{samples} regions", {"operation": "roi_targets", "samples": samples},
                  {"input.0": proposals, "input.1": labelled, "input.2": keys.int()},
                  {"output": output})


def add_roi_align(cases):
    for stream, (channels, pooled, ratio) in enumerate(((3, 7, 2), (16, 3, 1)), 1400):
        numbers, images, rows, height, width = op_cases.Numbers(stream), 2, 16, 64, 128
        pyramid = [numbers.uniform((images, channels, height // s, width // s))
                   for s in STRIDES[:4]]
        regions = proposals_of(numbers, images, rows, unused=2)
        # Boxes for all levels, some partly outside the image.
        growth = (2.0 ** (torch.arange(rows) % 5))[None, :, None]
        regions[..., :4] = regions[..., :4] * growth - 8 * (regions[..., 4:] >= 0)
        pooler = MultiScaleRoIAlign(["0", "1", "2", "3"], pooled, ratio)
        values = op_cases.leaves(*pyramid)
        used = [boxes[boxes[:, 4] >= 0][:, :4] for boxes in regions]
        found = pooler({str(i): x for i, x in enumerate(values)}, used, [(height, width)] * images)
        found = found.permute(0, 2, 3, 1).reshape(images, rows - 2, -1)
        unused = torch.zeros(images, 2, found.shape[2]).double()
        output = torch.cat([found, unused], 1).flatten(0, 1)
        gradient = numbers.uniform(output.shape)
        gradients = torch.autograd.grad(output, values, gradient)
        cases.add(f"regions of {channels} channels in {pooled}x{pooled} bins",
                  {"operation": "roi_align", "pooled": pooled, "sampling_ratio": ratio},
                  {**op_cases.numbered("input", [*channels_last(pyramid), regions]),
                   "output_gradient.0": gradient},
                  {"output": output, **op_cases.numbered("input_gradient", channels_last(gradients))})


def add_roi_losses(cases):
    for stream, (samples, classes, scale) in enumerate(((8, 5, 1), (40, 5, 0.125)), 1500):
        numbers, images = op_cases.Numbers(stream), 3
        rows = roi_targets(make_heads(samples), proposals_of(numbers, images, 60),
                           labelled_of(numbers, images, 6), numbers.integers((images,), 1 << 20))
        rows = rows.float().double()
        logits, deltas = op_cases.leaves(numbers.uniform((images * samples, classes)),
                                         numbers.uniform((images * samples, 4 * classes), 127))
        losses = []
        for image, row in enumerate(rows):
            used = row[:, 4] >= 0
            part = slice(image * samples, (image + 1) * samples)
            losses.append(torch.stack(heads.fastrcnn_loss(
                logits[part][used], deltas[part][used], [row[used, 4].long()],
                [row[used, 5:].double()])))
        losses = torch.stack(losses)
        found = torch.autograd.grad(losses.sum() * scale, [logits, deltas])
        cases.add(f"roi loss of {samples}", {"operation": "roi_loss", "classes": classes,
                                             "loss_scale": scale},
                  op_cases.numbered("input", [logits.detach(), deltas.detach(), rows]),
                  {"output": losses, **op_cases.numbered("input_gradient", found)})


def add_detections(cases):
    for stream, (classes, limit) in enumerate(((2, 10), (5, 30), (5, 400)), 1600):
        numbers, images, rows = op_cases.Numbers(stream), 2, 80
        proposals = proposals_of(numbers, images, rows)
        logits = numbers.integers((images * rows, classes), 1 << 16).double() / (1 << 13) - 4
        deltas = numbers.uniform((images * rows, 4 * classes), largest=127)
        used = proposals[..., 4].flatten() >= 0
        found = make_heads(limit=limit).postprocess_detections(
            logits[used], deltas[used], [rows[rows[:, 4] >= 0][:, :4] for rows in proposals],
            [(HEIGHT, WIDTH)] * images)
        output = []
        for boxes, scores, labels in zip(*found):
            assert len(set(scores.tolist())) == len(scores), "equal scores"
            output.append(padded(torch.cat([boxes, scores[:, None], labels[:, None].double()], 1),
                                 limit, (0, 0)))
        cases.add(f"{limit} detections of {classes} classes",
                  {"operation": "detections", "classes": classes, "image_height": HEIGHT,
                   "image_width": WIDTH, "limit": limit},
                  op_cases.numbered("input", [logits, deltas, proposals]),
                  {"output": torch.stack(output)})


def main():
    default = pathlib.Path(__file__).parents[2] / "tests/data/reference/detection.safetensors"
    cases = Cases()
    for add in (add_anchor_targets, add_rpn_losses, add_proposals, add_roi_targets, add_roi_align,
                add_roi_losses, add_detections):
        add(cases)
    cases.write(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)


if __name__ == "__main__":
    main()
