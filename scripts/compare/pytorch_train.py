#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one ensemble member in PyTorch with the recipe of an hpcai500 configuration.

Model, bootstrap distribution, augmentation, schedule and evaluation are the same as in hpcai500; only
the random numbers differ. Therefore the accuracies are comparable. Training images are
decoded once and kept in memory. Needs torch, torchvision and pillow.

    pytorch_train.py --config configs/ucmerced.yaml
    pytorch_train.py --config configs/ucmerced.yaml --data D/train --validation D/test --member 1
"""
import argparse
import math
import os
import random
import time

import numpy

import recipe
from pytorch_step import keep_freed_pages


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True, help="an hpcai500 YAML file")
    parser.add_argument("--data", help="training folder; default data.path")
    parser.add_argument("--validation", help="test folder; default data.validation_path")
    parser.add_argument("--epochs", type=int, help="default workload.epochs")
    parser.add_argument("--member", type=int, default=0, help="seed of the bootstrap and weights")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--predictions", help="write the softmax outputs as .npy")
    return parser.parse_args()


def random_resized_crop(image, size, settings, draw):
    """torchvision's RandomResizedCrop (ratio 3/4 to 4/3) and the flips, (size, size, 3) u8."""
    from PIL import Image

    width, height = image.size
    left, top, crop_width, crop_height = 0, 0, width, height
    for _ in range(10):
        area = width * height * draw.uniform(settings["data.random_area_minimum"], 1)
        ratio = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = draw.randint(0, width - w), draw.randint(0, height - h)
            crop_width, crop_height = w, h
            break
    box = (left, top, left + crop_width, top + crop_height)
    pixels = numpy.asarray(image.resize((size, size), Image.Resampling.BILINEAR, box=box))
    if draw.random() < settings["data.flip_probability"]:
        pixels = pixels[:, ::-1]
    if draw.random() < settings["data.vertical_flip_probability"]:
        pixels = pixels[::-1]
    return pixels


def learning_rate(settings, step, steps_per_epoch, epochs):
    """The rate of one step: linear warm-up from warmup_start, then the schedule, per step."""
    scale = settings["training.batch_size"] / settings["training.learning_rate_batch"]
    peak = settings["training.learning_rate"] * scale
    warmup = round(settings["training.warmup_epochs"] * steps_per_epoch)
    if step < warmup:
        start = settings["training.warmup_start"]
        return peak * (start + (1 - start) * (step + 1) / warmup)
    schedule = settings["training.schedule"]
    if schedule == "constant":
        return peak
    if schedule == "step":
        passed = sum(step >= e * steps_per_epoch for e in settings["training.schedule_epochs"])
        return peak * settings["training.schedule_factor"]**passed
    progress = (step - warmup) / max(1, epochs * steps_per_epoch - warmup)
    final = settings["training.final_learning_rate"] * scale
    if schedule == "cosine":
        return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * progress))
    if schedule == "polynomial":
        return final + (peak - final) * (1 - progress)**settings["training.schedule_power"]
    raise SystemExit(f"training.schedule: {schedule} is not supported by this script")


def build_optimizer(model, settings):
    import torch

    everywhere = settings["training.weight_decay_on_norm_and_bias"]
    decayed = [p for p in model.parameters() if everywhere or p.ndim > 1]
    plain = [p for p in model.parameters() if not everywhere and p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": settings["training.weight_decay"]}]
    if plain:
        groups.append({"params": plain, "weight_decay": 0.0})
    if settings["training.optimizer"] != "sgd":
        raise SystemExit(f"training.optimizer: {settings['training.optimizer']} is not supported by this script")
    return torch.optim.SGD(
        groups, lr=0.1, momentum=settings["training.momentum"],
        nesterov=settings["training.nesterov"], fused=True)


def draw_bootstrap(sampler, samples, generator):
    """The number of times each training image is in the member's data set."""
    if sampler == "poisson":
        return generator.poisson(1.0, samples)
    if sampler == "bootstrap":
        return numpy.bincount(generator.integers(0, samples, samples), minlength=samples)
    if sampler == "none":
        return numpy.ones(samples, dtype=int)
    raise SystemExit(f"bagging.sampler: {sampler} is not supported by this script")


def train(model, images, labels, settings, arguments):
    """Train all epochs; print one line per epoch."""
    import torch

    generator, draw = numpy.random.default_rng(arguments.member), random.Random(arguments.member)
    counts = draw_bootstrap(settings["bagging.sampler"], len(images), generator)
    order = numpy.repeat(numpy.arange(len(images)), counts)
    size, batch_size = settings["workload.image_size"], settings["training.batch_size"]
    steps = len(order) // batch_size
    epochs = arguments.epochs or settings["workload.epochs"]
    print(f"bootstrap: {len(order)} draws of {numpy.count_nonzero(counts)} images, "
          f"{epochs} epochs of {steps} steps of {batch_size}", flush=True)
    optimizer = build_optimizer(model, settings)
    loss_function = torch.nn.CrossEntropyLoss(
        label_smoothing=settings["training.label_smoothing"])
    bf16 = settings["training.precision"] in ("auto", "bf16")
    model.train()
    start = time.perf_counter()
    for epoch in range(epochs):
        generator.shuffle(order)
        loss_sum = 0.0
        for step in range(steps):
            chosen = order[step * batch_size:(step + 1) * batch_size]
            pixels = recipe.normalize(
                [random_resized_crop(images[i], size, settings, draw) for i in chosen], settings)
            rate = learning_rate(settings, epoch * steps + step, steps, epochs)
            for group in optimizer.param_groups:
                group["lr"] = rate
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
                outputs = model(pixels)
            loss = loss_function(outputs.float(), labels[chosen])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            loss_sum += loss.item()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch + 1}/{epochs} loss {loss_sum / max(1, steps):.4f} "
              f"{(epoch + 1) * steps * batch_size / seconds:.1f} images/s", flush=True)
    return time.perf_counter() - start


def main():
    arguments = parse_arguments()
    keep_freed_pages()
    import torch

    settings = recipe.read_config(arguments.config)
    training_root = arguments.data or settings["data.path"]
    validation_root = arguments.validation or settings["data.validation_path"]
    torch.manual_seed(arguments.member)
    torch.set_num_threads(arguments.threads)
    classes, samples = recipe.list_images(training_root)
    test_classes, test_samples = recipe.list_images(validation_root)
    if classes != test_classes:
        raise SystemExit("the class folders of the two data sets differ")
    images = [recipe.read_image(os.path.join(training_root, path)) for path, _ in samples]
    labels = torch.tensor([label for _, label in samples])
    model = recipe.build_model(settings, len(classes))
    seconds = train(model, images, labels, settings, arguments)
    size = settings["workload.image_size"]
    test_images = [
        recipe.evaluation_crop(recipe.read_image(os.path.join(validation_root, path)), size)
        for path, _ in test_samples
    ]
    outputs = recipe.predict(model, test_images, settings)
    if arguments.predictions:
        numpy.save(arguments.predictions, outputs)
    truth = numpy.array([label for _, label in test_samples])
    print(f"PyTorch {torch.__version__} member {arguments.member}: "
          f"top-1 {numpy.mean(outputs.argmax(1) == truth):.4f} on {len(truth)} images, "
          f"trained in {seconds:.1f} s")


if __name__ == "__main__":
    main()
