# SPDX-License-Identifier: Apache-2.0
"""What the comparison scripts share: hpcai500's configuration, image folders, evaluation images."""
import ast
import os
import re

import numpy
from PIL import Image

# The defaults of hpcai500 for the keys used here; `hpcai500 config explain` gives their meaning.
DEFAULTS = {
    "run.seed": 1,
    "workload.model": "resnet50_v1.5",
    "workload.classes": 1000,
    "workload.image_size": 224,
    "workload.epochs": 90,
    "bagging.sampler": "poisson",
    "data.path": "",
    "data.validation_path": "",
    "data.random_area_minimum": 0.08,
    "data.flip_probability": 0.5,
    "data.vertical_flip_probability": 0.0,
    "data.mean": [0.485, 0.456, 0.406],
    "data.standard_deviation": [0.229, 0.224, 0.225],
    "training.batch_size": 256,
    "training.optimizer": "sgd",
    "training.learning_rate": 0.1,
    "training.learning_rate_batch": 256,
    "training.schedule": "step",
    "training.schedule_epochs": [30, 60, 80],
    "training.schedule_factor": 0.1,
    "training.schedule_power": 2.0,
    "training.final_learning_rate": 0.0,
    "training.warmup_epochs": 5.0,
    "training.warmup_start": 0.0,
    "training.momentum": 0.9,
    "training.nesterov": False,
    "training.weight_decay": 1e-4,
    "training.weight_decay_on_norm_and_bias": False,
    "training.label_smoothing": 0.0,
    "training.zero_gamma": True,
    "training.batch_norm_momentum": 0.1,
    "training.precision": "auto",
}


def parse_value(text):
    text = re.sub(r"\s+#.*$", "", text).strip()
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def read_config(path):
    """hpcai500's YAML (sections of `key: value`, one a line) as {"section.key": value}."""
    settings, section = dict(DEFAULTS), ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = re.match(r"( *)([A-Za-z_]+):(.*)$", line.rstrip("\n"))
            if not match:
                raise SystemExit(f"{path}:{number}: expected `section:` or `key: value`")
            indent, key, value = match.groups()
            if not indent:
                section = key
            else:
                settings[f"{section}.{key}"] = parse_value(value)
    return settings


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


def build_model(settings, classes):
    """torchvision's ResNet-50; v1 has the stride of a bottleneck on its first convolution."""
    import torch
    import torchvision

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
