#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure training steps of hpcai500 and PyTorch alternately on one machine and print the ratio.

    scripts/compare/step_ratio.py --python PYTHON_WITH_TORCH --batch 32 --image-size 224

The ratio is between medians over the rounds of one invocation, because machines are noisy.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output_of(command):
    """The JSON that the command prints."""
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_hpcai500(arguments):
    settings = {
        "workload.image_size": arguments.image_size,
        "training.batch_size": arguments.batch,
        "training.precision": arguments.dtype,
        "device.kind": "cpu",
        "device.threads": arguments.threads,
    }
    command = [arguments.binary, "bench", "--json", "--steps", str(arguments.steps),
               "--config", str(ROOT / "configs/imagenet_torchvision.yaml")]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return output_of(command)


def measure_pytorch(arguments):
    return output_of([arguments.python, str(ROOT / "scripts/compare/pytorch_step.py"), "--json",
                      "--device", "cpu", "--threads", str(arguments.threads),
                      "--batch", str(arguments.batch), "--image-size", str(arguments.image_size),
                      "--dtype", arguments.dtype, "--steps", str(arguments.steps)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=str(ROOT / "build/release/hpcai500"))
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--steps", type=int, default=8, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    speeds, pytorch_speeds, overheads = [], [], []
    for round_number in range(1, arguments.rounds + 1):
        own, pytorch = measure_hpcai500(arguments), measure_pytorch(arguments)
        speeds.append(own["images_per_second"])
        pytorch_speeds.append(pytorch["images_per_second"])
        overheads.append(own["step_seconds"] / own["alone_sum_seconds"])
        print(f"round {round_number}: hpcai500 {speeds[-1]:.2f} images/s (step / sum of its "
              f"operations {overheads[-1]:.3f}), PyTorch {pytorch_speeds[-1]:.2f} images/s", flush=True)
    print(f"median: hpcai500 {statistics.median(speeds):.2f} images/s, PyTorch "
          f"{statistics.median(pytorch_speeds):.2f} images/s, ratio "
          f"{statistics.median(speeds) / statistics.median(pytorch_speeds):.3f}, step / sum "
          f"{statistics.median(overheads):.3f}")


if __name__ == "__main__":
    main()
