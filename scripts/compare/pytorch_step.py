#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of PyTorch's training step of ResNet-50 v1.5 on random data resident in memory.

Compare it with `hpcai500 bench`. A step is forward, loss, backward and optimizer, without an input
pipeline. PyTorch runs with its fastest settings: channels_last, autocast, the fused optimizer,
and an allocator that keeps its pages (about 10 % fewer CPU seconds per step). Run it on an idle machine,
because the threads wait for each other at every operation. Needs torch and torchvision.

    pytorch_step.py --threads 2 --batch 32 --image-size 224 --dtype bf16
    pytorch_step.py --threads 2 --batch 64 --image-size 64 --dtype fp32 --compile --json
    pytorch_step.py --device cuda --batches 400,256 --precisions fp16,bf16 --output F.json

On a GPU it measures all --batches, --precisions and --variants: eager, eager in a CUDA graph
(graphs), torch.compile (compile), and torch.compile in a CUDA graph (compile_graphs).
"""
import argparse
import ctypes
import ctypes.util
import json
import os
import statistics
import sys
import time

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # mallopt(3)


VARIANTS = ("eager", "graphs", "compile", "compile_graphs")


def numbers(text):
    """The positive numbers of a comma-separated list."""
    values = [int(number) for number in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values


def names_of(*legal):
    """A type for argparse: a comma-separated list of the legal names."""

    def names(text):
        values = text.split(",")
        if not set(values) <= set(legal):
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of {', '.join(legal)}")
        return values

    return names


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--warmup", type=int, default=5, help="steps before the timed ones")
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    cuda = parser.add_argument_group("with --device cuda")
    cuda.add_argument("--batches", type=numbers, default=numbers("400,256,128,64"))
    cuda.add_argument("--precisions", type=names_of("fp16", "bf16", "tf32"), default="fp16,bf16")
    cuda.add_argument("--variants", type=names_of(*VARIANTS), default=",".join(VARIANTS))
    cuda.add_argument("--seconds", type=float, default=150, help="start no configuration later than this")
    cuda.add_argument("--output", help="write JSON here, after each row")
    arguments = parser.parse_args()
    for name in ("threads", "batch", "image_size", "classes", "steps"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if arguments.warmup < 0:
        parser.error("--warmup must be at least 0")
    return arguments


def keep_freed_pages():
    """Prevent malloc from returning activations to the kernel, which causes page faults in every step."""
    libc = ctypes.CDLL(ctypes.util.find_library("c"))
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)
        libc.mallopt(M_TOP_PAD, 256 << 20)


def build_step(arguments):
    """A function of no arguments that does one training step and returns the loss tensor."""
    import torch
    import torchvision

    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    model = torchvision.models.resnet50(num_classes=arguments.classes)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
    loss_function = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    size = arguments.image_size
    images = torch.randn(arguments.batch, 3, size, size)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, arguments.classes, (arguments.batch,))
    bf16 = arguments.dtype == "bf16"

    def forward():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            return loss_function(model(images), labels)

    forward = torch.compile(forward) if arguments.compile else forward

    def step():
        loss = forward()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def measure(step, arguments):
    for _ in range(arguments.warmup):
        step()
    seconds = []
    for _ in range(arguments.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def run_on_gpu(arguments):
    import torch

    if not torch.cuda.is_available():
        sys.exit("pytorch_step.py: PyTorch sees no GPU")
    import pytorch_cuda

    report = pytorch_cuda.run(arguments)
    if not any("images_per_second" in row for row in report["rows"]):
        sys.exit(f"pytorch_step.py: no configuration ran: {report['rows'] or report['skipped']}")
    if arguments.json:
        print(json.dumps(report, indent=2))


def main():
    arguments = parse_arguments()
    if arguments.device == "cuda":
        run_on_gpu(arguments)
        return
    keep_freed_pages()
    os.environ.setdefault("OMP_NUM_THREADS", str(arguments.threads))  # read when torch loads
    seconds = measure(build_step(arguments), arguments)
    import torch

    median = statistics.median(seconds)
    result = {
        "framework": f"PyTorch {torch.__version__}",
        "variant": "compile" if arguments.compile else "eager",
        "device": arguments.device,
        "threads": arguments.threads,
        "batch": arguments.batch,
        "image_size": arguments.image_size,
        "dtype": arguments.dtype,
        "steps": arguments.steps,
        "step_seconds": median,
        "step_seconds_minimum": min(seconds),
        "step_seconds_maximum": max(seconds),
        "images_per_second": arguments.batch / median,
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['framework']} {result['variant']} resnet50 v1.5, batch {arguments.batch}, "
          f"{arguments.image_size} x {arguments.image_size}, {arguments.dtype}, "
          f"{arguments.threads} threads")
    print(f"step {median:.4f} s (median of {arguments.steps}, minimum {min(seconds):.4f}, "
          f"maximum {max(seconds):.4f}), {result['images_per_second']:.2f} images/s")


if __name__ == "__main__":
    main()
