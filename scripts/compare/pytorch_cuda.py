# SPDX-License-Identifier: Apache-2.0
"""The part of pytorch_step.py that measures precisions, batches and variants on a GPU."""
import gc
import json
import statistics
import time

import torch
import torchvision

MEAN = (123.675, 116.28, 103.53)  # of ImageNet, in units of a byte
DEVIATION = (58.395, 57.12, 57.375)
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}


class Step:
    """One training step on bytes in device memory: normalise, forward, loss, backward, SGD.

    Memory is channels_last, weights are fp32, autocast has the dtype; fp16 scales the loss as
    torch.amp does. With `compiled`, normalisation, forward and loss are compiled together.
    """

    # With torch.amp's initial 65536 the first steps may overflow, so that their updates are skipped.
    initial_scale = 1024.0

    def __init__(self, device, dtype, batch, arguments, compiled):
        torch.manual_seed(1)
        model = torchvision.models.resnet50(num_classes=arguments.classes)
        model = model.to(device, memory_format=torch.channels_last).train()
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
        # The fused optimizer allocates its momentum by empty_like in the first step. If that step
        # overflows, its kernel writes nothing, and later steps read uninitialized memory.
        for parameter in model.parameters():
            self.optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        self.scaler = torch.amp.GradScaler(
            device, init_scale=self.initial_scale, enabled=dtype == torch.float16)
        size = arguments.image_size
        pixels = torch.randint(0, 256, (batch, size, size, 3), dtype=torch.uint8, device=device)
        labels = torch.randint(0, arguments.classes, (batch,), device=device)
        mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        scale = 1 / torch.tensor(DEVIATION, device=device).view(1, 3, 1, 1)
        loss_function = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

        def forward():
            images = ((pixels.permute(0, 3, 1, 2) - mean) * scale).to(dtype)
            with torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
                return loss_function(model(images), labels)

        self.forward = torch.compile(forward, dynamic=False) if compiled else forward
        self.gradients = self.compute_gradients

    def compute_gradients(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward()
        self.scaler.scale(loss).backward()
        return loss.detach()

    def capture(self):
        """From now on, compute gradients by one CUDA graph, without SGD and the scaler."""
        self.loss = None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self.compute_gradients()

        def replay():
            graph.replay()
            return self.loss

        self.gradients = replay

    def __call__(self):
        loss = self.gradients()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss


def warm_up(step, steps):
    """Run on a side stream, as required before a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(steps):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def measure(step, steps):
    """Seconds between the ends of steps on the device, without host synchronization in between, and
    the last loss, which is None if it is not finite."""
    step()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    events[0].record()
    for event in events[1:]:
        loss = step()
        event.record()
    torch.cuda.synchronize()
    seconds = [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])]
    return seconds, loss.item() if torch.isfinite(loss) else None


def ceilings():
    """The two ceilings of the device: bytes per second that a large copy reads and writes, and FLOP/s of
    a large product in bf16 on random numbers."""

    def seconds_of(run):
        for _ in range(3):
            run()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e4

    source = torch.randint(0, 256, (1 << 31,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copied = seconds_of(lambda: target.copy_(source))
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    product = torch.empty_like(a)
    multiplied = seconds_of(lambda: torch.mm(a, b, out=product))
    return {"copy_bytes_per_second": 2 * source.numel() / copied,
            "product_flops": 2 * 8192**3 / multiplied}


def row(variant, precision, batch, measured, prepared):
    seconds, loss = measured
    median = statistics.median(seconds)
    return {"variant": variant, "precision": precision, "batch": batch, "step_seconds": median,
            "step_seconds_minimum": min(seconds), "step_seconds_maximum": max(seconds),
            "images_per_second": batch / median, "loss": loss, "preparation_seconds": prepared,
            "peak_bytes": torch.cuda.max_memory_allocated()}


def rows_of(precision, batch, compiled, arguments):
    """Yields the rows of the step, eager or compiled, and of this step captured in a CUDA graph."""
    name = "compile" if compiled else "eager"
    variants = [name, "graphs" if name == "eager" else f"{name}_graphs"]
    wanted = [variant for variant in variants if variant in arguments.variants]
    if not wanted:
        return
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    step = Step("cuda", DTYPES[precision], batch, arguments, compiled)
    warm_up(step, max(3, arguments.warmup))
    for variant in wanted:
        if variant == variants[1]:
            step.capture()
        prepared = time.perf_counter() - start
        yield row(variant, precision, batch, measure(step, arguments.steps), prepared)
        start = time.perf_counter()


def run(arguments):
    """Run all configurations in the order of the arguments until the time ends. A failed configuration is
    a row with its error. The report is rewritten after each row."""
    begin = time.perf_counter()
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    report = {"framework": f"PyTorch {torch.__version__}", "device": torch.cuda.get_device_name(),
              "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
              "image_size": arguments.image_size, "steps": arguments.steps,
              "input": "bytes resident on the device", "rows": [], "skipped": []}
    try:
        report["ceilings"] = ceilings()
    except torch.cuda.OutOfMemoryError:
        report["ceilings"] = None
    torch.cuda.empty_cache()
    plan = [(compiled, precision, batch) for precision in arguments.precisions
            for batch in arguments.batches for compiled in (False, True)]
    for compiled, precision, batch in plan:
        case = {"variant": "compile" if compiled else "eager", "precision": precision,
                "batch": batch}
        if time.perf_counter() - begin > arguments.seconds:
            report["skipped"].append(case)
        else:
            try:
                for result in rows_of(precision, batch, compiled, arguments):
                    report["rows"].append(result)
                    print(f"PyTorch {result['variant']:<14} {precision:<5} batch {batch:>4}: "
                          f"{result['images_per_second']:9.1f} images/s", flush=True)
                    write(report, arguments)
            except Exception as error:  # out of memory, a missing compiler, ...
                report["rows"].append({**case, "error": f"{type(error).__name__}: {error}"[:400]})
            torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()
        write(report, arguments)
    return report


def write(report, arguments):
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
