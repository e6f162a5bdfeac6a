# SPDX-License-Identifier: Apache-2.0
"""The cases of faster_rcnn_cases.py: sizes; weights, images and boxes by formula; the samplers that
draw by ops::sampling_key; and torchvision's network with these weights."""
import dataclasses
import math

import numpy
import torch
import torchvision
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor
from torchvision.ops import FrozenBatchNorm2d

from resnet50_cases import hashes, uniform

CHANNELS, CLASSES, LEVELS, RATIOS = 16, 5, 5, (0.5, 1.0, 2.0)
SHIFT = 10  # of open channels, see faster_rcnn_cases.py
FULL_SIZES = (32, 64, 128, 256, 512)


@dataclasses.dataclass
class Case:
    name: str
    number: int  # of the images
    frozen: bool
    height: int
    width: int
    boxes: tuple  # number of boxes of each image
    anchor_sizes: tuple
    training_proposals: int
    inference_proposals: int
    anchor_samples: int
    region_samples: int
    detections: int

    def batch(self):
        return len(self.boxes)


SMALL_SIZES = (8, 16, 32, 64, 128)
CASES = [Case("batch_norm", 2, False, 128, 192, (5, 0), SMALL_SIZES, 200, 100, 256, 64, 50),
         Case("frozen", 1, True, 128, 192, (0, 6), SMALL_SIZES, 200, 100, 256, 64, 50),
         Case("full", 1, False, 768, 1152, (9,), FULL_SIZES, 300, 100, 256, 128, 100)]
MAX_BOXES = 15

# part of a name -> numerator of the variance of weights; the denominator is the number of inputs.
SPREADS = {"inner_blocks": 4, "layer_blocks": 3, "rpn.head.conv": 1, "rpn.head.cls_logits": 9,
           "rpn.head.bbox_pred": 0.25, "fc6": 0.75, "fc7": 4, "cls_score": 12, "box_predictor": 4}
PAIRED = ("inner_blocks", "rpn.head.cls_logits", "rpn.head.bbox_pred", "fc7", "box_predictor")
OPEN = ("rpn.head.conv", "fc6", "fc7")


def parameter(name, shape):
    """fp32 values of torchvision's parameter `name`, by the index of the element in its order."""
    count = math.prod(shape)
    u = uniform(name, count)
    index = numpy.arange(count)
    spread = next((value for part, value in SPREADS.items() if part in name), None)
    pair_shift = u[index & ~1] / 8 + numpy.where(index // 2 % 4 == 3, -SHIFT, SHIFT)
    if len(shape) == 1 and spread:
        values = pair_shift if any(part in name for part in OPEN) else u / 8
    elif len(shape) == 1:
        size = 0.25 if ".bn3." in name else 1
        values = (pair_shift if name.endswith("bias") else 1 + u / 8) * size
    elif spread:
        if any(part in name for part in PAIRED):
            u = u[index & ~1] * numpy.where(index & 1, -1, 1)
        values = u * math.sqrt(spread / math.prod(shape[1:]))
    else:
        values = u * math.sqrt(6 / (shape[0] * shape[2] * shape[3]))  # variance 2 / fan out
    return torch.from_numpy(values.astype(numpy.float32).reshape(shape))


def images(number, batch, height, width):
    """Multiples of 1/256 in [-2, 2), (N, H, W, C): squares of 32 and of 8 pixels, and noise."""
    total = numpy.zeros((batch, height, width, CHANNELS), numpy.uint32)
    for name, side, times in (("blobs", 32, 2), ("squares", 8, 1), ("grain", 1, 1)):
        shape = (batch, height // side, width // side, CHANNELS)
        level = (hashes(f"{name} {number}", math.prod(shape)) >> 24).reshape(shape)
        total += times * level.repeat(side, 1).repeat(side, 2)
    return torch.from_numpy(total.astype(numpy.float32) / 256 - 2)


def boxes_of(case):
    """(N, MAX_BOXES, 5) of x1, y1, x2, y2, class, with corners in quarters of a pixel."""
    rows = numpy.zeros((case.batch(), MAX_BOXES, 5), numpy.float32)
    for image, count in enumerate(case.boxes):
        for box in range(count):
            word = hashes(f"box {case.number} {image} {box}", 5)
            sides = [max(6 * 2 ** (word[i] % 512 / 128), 8) * case.height / 128 for i in (0, 1)]
            width, height = (round(min(side, 0.9 * case.height) * 4) / 4 for side in sides)
            x = word[2] % int(4 * (case.width - width)) / 4
            y = word[3] % int(4 * (case.height - height)) / 4
            rows[image, box] = x, y, x + width, y + height, 1 + box % (CLASSES - 1)
    return rows


def keys_of(case):
    return hashes(f"keys {case.number}", case.batch()).astype(numpy.int32)


def sampling_keys(image_key, stage, candidates):
    """ops::sampling_key: the high half of SplitMix64's finalizer."""
    mask = 2**64 - 1
    def key(candidate):
        word = ((image_key & 0xFFFFFFFF) << 32) + candidate
        word = word + 0x9E3779B97F4A7C15 * (stage + 1) & mask
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
        return (word ^ word >> 31) >> 32
    return [key(int(candidate)) for candidate in candidates]


class Sampler:
    """Replaces BalancedPositiveNegativeSampler: takes the smallest keys, and in a tie the lower number.
    `number(image, indices)` returns the candidates' numbers."""

    def __init__(self, samples, share, stage, keys, number):
        self.samples, self.max_positive = samples, int(samples * share)
        self.stage, self.keys, self.number = stage, keys, number
        self.drawn = []  # per image: positive and negative indices, ascending

    def __call__(self, labels):
        self.drawn = []
        for image, row in enumerate(labels):
            positive = self.draw(image, torch.where(row >= 1)[0], self.max_positive)
            negative = self.draw(image, torch.where(row == 0)[0],
                                 self.samples - len(positive))
            self.drawn.append((positive, negative))
        assert len({len(p) + len(n) for p, n in self.drawn}) == 1, "images have different numbers of samples"
        return tuple([torch.zeros_like(row, dtype=torch.uint8).index_fill_(0, drawn[sign], 1)
                      for row, drawn in zip(labels, self.drawn)] for sign in (0, 1))

    def draw(self, image, indices, limit):
        numbers = self.number(image, indices)
        keys = sampling_keys(int(self.keys[image]), self.stage, numbers)
        order = sorted(range(len(keys)), key=lambda i: (keys[i], int(numbers[i])))[:limit]
        return indices[sorted(order)]


def make_network(case, statistics, dtype):
    """`statistics`: name -> values for a frozen network; None: statistics of the batch."""
    norm = FrozenBatchNorm2d if case.frozen else torch.nn.BatchNorm2d
    body = torchvision.models.resnet50(weights=None, norm_layer=norm)
    body.conv1 = torch.nn.Conv2d(CHANNELS, 64, 7, 2, 3, bias=False)
    anchors = AnchorGenerator(tuple((size,) for size in case.anchor_sizes), (RATIOS,) * LEVELS)
    network = FasterRCNN(
        _resnet_fpn_extractor(body, 3 if case.frozen else 5), CLASSES, min_size=case.height,
        max_size=case.width, image_mean=[0] * CHANNELS, image_std=[1] * CHANNELS,
        rpn_anchor_generator=anchors, rpn_pre_nms_top_n_train=case.training_proposals,
        rpn_post_nms_top_n_train=case.training_proposals,
        rpn_pre_nms_top_n_test=case.inference_proposals,
        rpn_post_nms_top_n_test=case.inference_proposals,
        rpn_batch_size_per_image=case.anchor_samples,
        box_batch_size_per_image=case.region_samples, box_detections_per_img=case.detections)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if name.endswith(("running_mean", "running_var")):
                if statistics is not None:
                    value.copy_(torch.from_numpy(statistics[name]))
            elif not name.endswith("num_batches_tracked"):
                value.copy_(parameter(name, tuple(value.shape)))
    return network.to(dtype)
