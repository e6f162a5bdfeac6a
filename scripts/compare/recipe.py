# SPDX-License-Identifier: Apache-2.0
"""Shared by the comparison scripts: hpcai500's configuration, image folders, evaluation images."""
import json
import os
import pathlib
import subprocess
import sys

import numpy
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]  # a clone, or a folder of scripts/bundle.sh
PROGRAM = next((path for path in (ROOT / "bin/hpcai500", ROOT / "build/release/hpcai500") if path.exists()), "hpcai500")


def read_config(path):
    """All settings with the configuration `path` as {"section.key": value}, printed by hpcai500."""
    printed = subprocess.run([PROGRAM, "config", "print", "--json", "--config", path],
                             stdout=subprocess.PIPE, text=True, check=False)
    if printed.returncode != 0:  # hpcai500 has printed the reason
        sys.exit(printed.returncode)
    return {f"{section}.{key}": value for section, keys in json.loads(printed.stdout).items()
            for key, value in keys.items()}


def list_images(root):
    """(sorted class names, [(path relative to root, class index)]) of a folder of class folders."""
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    samples = []
    for index, name in enumerate(classes):
        for file in sorted(os.listdir(os.path.join(root, name))):
            if file.lower().endswith((".jpg", ".jpeg")):
                samples.append((os.path.join(name, file), index))
    return classes, samples


def read_image(path):
    with Image.open(path) as image:
        return image.convert("RGB")


def evaluation_crop(image, size):
    """Shorter side to size * 256 / 224 (antialiased bilinear), then the centre: (size, size, 3) u8."""
    width, height = image.size
    short = round(size * 256 / 224)
    scaled = (short, short * height // width) if width <= height else (short * width // height,
                                                                       short)
    image = image.resize(scaled, Image.Resampling.BILINEAR)
    left, top = round((scaled[0] - size) / 2), round((scaled[1] - size) / 2)
    return numpy.asarray(image.crop((left, top, left + size, top + size)))


def normalize(images, settings):
    """Stacked (H, W, C) u8 images as an (N, C, H, W) float tensor in channels_last memory."""
    import torch

    pixels = torch.from_numpy(numpy.stack(images)).permute(0, 3, 1, 2).float().div(255)
    mean = torch.tensor(settings["data.mean"]).view(1, -1, 1, 1)
    deviation = torch.tensor(settings["data.standard_deviation"]).view(1, -1, 1, 1)
    return ((pixels - mean) / deviation).contiguous(memory_format=torch.channels_last)


def check_width(settings):
    """Exit unless the width is 64, the only width of torchvision's resnet50."""
    width = settings["workload.backbone_width"]
    if width != 64:
        raise SystemExit("workload.backbone_width: expected 64, the width of torchvision's ResNet-50, "
                         f"got {width}")


def build_model(settings, classes):
    """torchvision's ResNet-50. For v1 the stride moves to the first convolution of a bottleneck."""
    import torch
    import torchvision

    check_width(settings)
    model = torchvision.models.resnet50(
        num_classes=classes, zero_init_residual=settings["training.zero_gamma"])
    if settings["workload.model"] == "resnet50_v1":
        for block in model.modules():
            if isinstance(block, torchvision.models.resnet.Bottleneck):
                block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = settings["training.batch_norm_momentum"]
    return model.to(memory_format=torch.channels_last)


def image_shape(settings):
    """(height, width) of the network's input."""
    height, width = settings["workload.image_size"], settings["workload.image_width"]
    return height, height if width == "auto" else width


def build_backbone(settings):
    """ResNet-50 with a feature pyramid and detector.trained_stages trained stages."""
    import torch
    import torchvision
    from torchvision.models.detection.backbone_utils import BackboneWithFPN

    check_width(settings)
    momentum = settings["training.batch_norm_momentum"]
    norms = {"batch": lambda width: torch.nn.BatchNorm2d(width, momentum=momentum),
             "group": lambda width: torch.nn.GroupNorm(32, width),
             "frozen_batch": torchvision.ops.FrozenBatchNorm2d}
    body = torchvision.models.resnet50(zero_init_residual=settings["training.zero_gamma"],
                                       norm_layer=norms[settings["detector.normalization"]])
    body.conv1 = torch.nn.Conv2d(settings["workload.channels"], 64, 7, 2, 3, bias=False)
    torch.nn.init.kaiming_normal_(body.conv1.weight, mode="fan_out", nonlinearity="relu")
    stages = ["layer4", "layer3", "layer2", "layer1", "conv1"]
    for stage in stages[settings["detector.trained_stages"]:]:
        getattr(body, stage).requires_grad_(False)
    return BackboneWithFPN(body, {f"layer{stage}": str(stage - 1) for stage in range(1, 5)},
                           [256, 512, 1024, 2048], settings["detector.pyramid_channels"])


def build_detector(settings):
    """torchvision's Faster R-CNN with the configuration's sizes, for images of its height and width.
    It does not normalize images and pads their sides to multiples of 32."""
    import torch
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.faster_rcnn import (FasterRCNN, FastRCNNPredictor,
                                                          TwoMLPHead)

    channels, shape = settings["workload.channels"], image_shape(settings)
    sizes = tuple((size,) for size in settings["detector.anchor_sizes"])
    ratios = (tuple(settings["detector.anchor_ratios"]),) * len(sizes)
    features = settings["detector.head_features"]
    model = FasterRCNN(
        build_backbone(settings), min_size=min(shape), max_size=max(shape),
        image_mean=[0.0] * channels, image_std=[1.0] * channels,
        rpn_anchor_generator=AnchorGenerator(sizes, ratios),
        rpn_pre_nms_top_n_train=settings["detector.training_proposals"],
        rpn_post_nms_top_n_train=settings["detector.training_proposals"],
        rpn_pre_nms_top_n_test=settings["detector.inference_proposals"],
        rpn_post_nms_top_n_test=settings["detector.inference_proposals"],
        rpn_batch_size_per_image=settings["detector.anchor_samples"],
        box_batch_size_per_image=settings["detector.region_samples"],
        box_score_thresh=settings["detector.score_threshold"],
        box_head=TwoMLPHead(49 * settings["detector.pyramid_channels"], features),
        box_predictor=FastRCNNPredictor(features, settings["workload.classes"] + 1))
    return model.to(memory_format=torch.channels_last)


def predict(model, images, settings, bf16=False):
    """Softmax outputs (N, classes) of u8 images, in chunks."""
    import torch

    model.eval()
    outputs = []
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        for start in range(0, len(images), 64):
            batch = normalize(images[start:start + 64], settings)
            outputs.append(model(batch).float().softmax(1))
    return torch.cat(outputs).numpy()
