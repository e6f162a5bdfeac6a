#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run torchvision's Faster R-CNN with the sizes and the recipe of an hpcai500 configuration.

    torchvision_detector.py step  --config configs/extreme_weather.yaml --batch 2
    torchvision_detector.py step  --config configs/extreme_weather.yaml --batch 8 --device cuda
    torchvision_detector.py train --config configs/bccd.yaml

`step` measures the training step on random images and boxes in memory. `train` trains from scratch
on the training split of the configuration's VOC folder, and prints AP50 by pycocotools on the test
split. Both use bf16 autocast unless --dtype is fp32. torchvision pads sides to multiples of 32, so
bccd's 240 rows become 256.
Needs torch and torchvision; `train` also needs pillow and pycocotools.
"""
import argparse
import contextlib
import io
import json
import os
import random
import statistics
import time
import xml.etree.ElementTree

import numpy
import torch
import torchvision

import recipe
from pytorch_step import keep_freed_pages
from pytorch_train import build_optimizer, learning_rate


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["step", "train"])
    parser.add_argument("--config", required=True, help="an hpcai500 YAML file")
    parser.add_argument("--batch", type=int, help="default training.batch_size")
    parser.add_argument("--steps", type=int, default=5, help="timed steps")
    parser.add_argument("--epochs", type=int, help="default workload.epochs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="step: of the model")
    parser.add_argument("--output", help="step: also write the result as JSON to this file")
    return parser.parse_args()


def losses_of(model, images, targets, dtype):
    with torch.autocast(images[0].device.type, dtype=torch.bfloat16, enabled=dtype == "bf16"):
        return sum(model(images, targets).values())


def random_batch(settings, batch):
    """Images, each with eight boxes whose sides are an eighth to half of the image's."""
    height, width = recipe.image_shape(settings)
    generator = torch.Generator().manual_seed(1)
    images = [torch.randn(settings["workload.channels"], height, width, generator=generator)
              for _ in range(batch)]
    targets = []
    for _ in range(batch):
        sides = (0.125 + 0.375 * torch.rand(8, 2, generator=generator)) * torch.tensor(
            [width, height])
        corners = torch.rand(8, 2, generator=generator) * (torch.tensor([width, height]) - sides)
        labels = torch.randint(1, settings["workload.classes"] + 1, (8,), generator=generator)
        targets.append({"boxes": torch.cat([corners, corners + sides], 1), "labels": labels})
    return images, targets


def measure_steps(settings, arguments):
    batch = arguments.batch or settings["training.batch_size"]
    device = torch.device(arguments.device)
    torch.backends.cudnn.benchmark = True
    model = recipe.build_detector(settings).to(device).train()
    optimizer = build_optimizer(model, settings)
    for group in optimizer.param_groups:
        group["lr"] = 1e-4
    images, targets = random_batch(settings, batch)
    images = [image.to(device) for image in images]
    targets = [{key: value.to(device) for key, value in target.items()} for target in targets]
    seconds = []
    for step in range(arguments.steps + 2):
        begin = time.perf_counter()
        loss = losses_of(model, images, targets, arguments.dtype)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if step >= 2:
            seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds)
    report = {"torch": torch.__version__, "torchvision": torchvision.__version__,
              "rows": [{"variant": "eager", "precision": f"{arguments.dtype}_detector", "batch": batch,
                        "threads": arguments.threads, "step_seconds": median,
                        "loss": loss.item() if torch.isfinite(loss) else None,
                        "images_per_second": batch / median}]}
    print(f"{batch / median:.3f} images/s, {median:.3f} s a step of {batch}, {arguments.dtype}, "
          f"{arguments.threads} threads, torch {torch.__version__}")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


def read_voc(settings, split):
    """[(pixels (H, W, 3) u8 of the network's size, boxes (n, 4), labels (n))]"""
    from PIL import Image

    root, names = settings["data.path"], settings["data.class_names"]
    height, width = recipe.image_shape(settings)
    with open(os.path.join(root, "ImageSets", "Main", f"{split}.txt"), encoding="utf-8") as file:
        stems = file.read().split()
    samples = []
    for stem in stems:
        image = Image.open(os.path.join(root, "JPEGImages", f"{stem}.jpg")).convert("RGB")
        scale = numpy.array([width / image.width, height / image.height] * 2)
        pixels = numpy.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
        boxes, labels = [], []
        tree = xml.etree.ElementTree.parse(os.path.join(root, "Annotations", f"{stem}.xml"))
        for item in tree.iter("object"):
            name, box = item.findtext("name"), item.find("bndbox")
            corners = [float(box.findtext(key)) for key in ("xmin", "ymin", "xmax", "ymax")]
            corners[0], corners[1] = corners[0] - 1, corners[1] - 1
            scaled = numpy.array(corners) * scale
            if name in names and (scaled[2:] - scaled[:2] >= 1).all():
                boxes.append(scaled)
                labels.append(names.index(name) + 1)
        samples.append((pixels, numpy.array(boxes, numpy.float32).reshape(-1, 4),
                        numpy.array(labels, numpy.int64)))
    return samples


def to_input(pixels, settings):
    mean, deviation = (numpy.array(settings[f"data.{key}"], numpy.float32)
                       for key in ("mean", "standard_deviation"))
    return torch.from_numpy((pixels / numpy.float32(255) - mean) / deviation).permute(2, 0, 1)


def flip_randomly(sample, settings, draw):
    pixels, boxes, labels = sample
    boxes = boxes.copy()
    height, width = pixels.shape[:2]
    if draw.random() < settings["data.flip_probability"]:
        pixels = pixels[:, ::-1]
        boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
    if draw.random() < settings["data.vertical_flip_probability"]:
        pixels = pixels[::-1]
        boxes[:, [1, 3]] = height - boxes[:, [3, 1]]
    return pixels, boxes, labels


def train(settings, arguments):
    samples = read_voc(settings, settings["data.training_split"])
    test = read_voc(settings, settings["data.validation_split"])
    batch = arguments.batch or settings["training.batch_size"]
    epochs, steps = arguments.epochs or settings["workload.epochs"], len(samples) // batch
    torch.manual_seed(arguments.seed)
    draw = random.Random(arguments.seed)
    model = recipe.build_detector(settings)
    optimizer = build_optimizer(model, settings)
    begin = time.perf_counter()
    for epoch in range(epochs):
        model.train()
        order, total = list(range(len(samples))), 0.0
        draw.shuffle(order)
        for step in range(steps):
            rate = learning_rate(settings, epoch * steps + step, steps, epochs)
            for group in optimizer.param_groups:
                group["lr"] = rate
            rows = [flip_randomly(samples[i], settings, draw)
                    for i in order[step * batch:(step + 1) * batch]]
            targets = [{"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels)}
                       for _, boxes, labels in rows]
            images = [to_input(pixels, settings) for pixels, _, _ in rows]
            loss = losses_of(model, images, targets, arguments.dtype)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{epochs}: loss {total / steps:.4f}, "
              f"{time.perf_counter() - begin:.0f} s", flush=True)
    print(f"AP50 {average_precision(model, test, settings, arguments):.4f}")


def average_precision(model, samples, settings, arguments):
    """COCO's AP at an IoU of 0.5."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    model.eval()
    truth = {"images": [{"id": i} for i in range(len(samples))], "annotations": [],
             "categories": [{"id": i + 1} for i in range(settings["workload.classes"])]}
    found = []
    for image, (pixels, boxes, labels) in enumerate(samples):
        for (x1, y1, x2, y2), label in zip(boxes.tolist(), labels.tolist()):
            truth["annotations"].append(
                {"id": len(truth["annotations"]) + 1, "image_id": image, "category_id": label,
                 "bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1), "iscrowd": 0})
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16,
                                             enabled=arguments.dtype == "bf16"):
            outputs = model([to_input(pixels, settings)])[0]
        for (x1, y1, x2, y2), label, score in zip(outputs["boxes"].tolist(), outputs["labels"].tolist(),
                                                  outputs["scores"].tolist()):
            found.append({"image_id": image, "category_id": label, "score": score,
                          "bbox": [x1, y1, x2 - x1, y2 - y1]})
    with contextlib.redirect_stdout(io.StringIO()):
        annotations = COCO()
        annotations.dataset = truth
        annotations.createIndex()
        evaluation = COCOeval(annotations, annotations.loadRes(found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats[1]


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    keep_freed_pages()
    settings = recipe.read_config(arguments.config)
    (measure_steps if arguments.command == "step" else train)(settings, arguments)


if __name__ == "__main__":
    main()
