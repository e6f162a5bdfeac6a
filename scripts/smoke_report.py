#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarize the outputs of scripts/gpu_smoke.sh as JSON and as a table.

    smoke_report.py facts WORK OUT     writes WORK/facts.json; exit code 3 if there is no GPU, 2 if the
                                       file exists and is of another program or GPU
    smoke_report.py report WORK OUT    writes OUT/gpu_smoke.json and OUT/gpu_smoke.txt from the files in
                                       WORK and prints the table; exit code 1 if a part did not pass
"""
import csv
import ctypes
import datetime
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

VARIANTS = ("eager", "graphs", "compile", "compile_graphs")
# PyTorch's autocast dtype for our precision; with "_detector", torchvision's Faster R-CNN.
PYTORCH_DTYPES = {"mixed": "fp16", "bf16": "bf16", "bf16_detector": "bf16_detector"}
SMI_FIELDS = ("name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,"
              "power.limit,temperature.gpu")


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def version_of(library, function, by_value):
    """The version number that a library's function returns; None if that is not found."""
    try:
        call = getattr(ctypes.CDLL(library), function)
    except (OSError, AttributeError):
        return None
    if by_value:
        call.restype = ctypes.c_size_t
        return call()
    number = ctypes.c_int(0)
    return number.value if call(ctypes.byref(number)) == 0 else None


def gpu_problem():
    """The reason why there is no GPU; None if the driver works."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "libcuda.so.1, the driver's library, is not on this machine"
    code, count = driver.cuInit(0), ctypes.c_int(0)
    if code != 0:
        return f"the driver does not start (cuInit returns {code})"
    driver.cuDeviceGetCount(ctypes.byref(count))
    return None if count.value else "the driver finds no device"


def program_digest():
    """SHA-256 of hpcai500 and of the CUDA engine in its bundle."""
    program = shutil.which("hpcai500") or ""
    hashed = hashlib.sha256()
    for path in program, os.path.join(os.path.dirname(program), "../lib/libhpcai_cuda.so"):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                hashed.update(file.read())
    return hashed.hexdigest()


def describe_subject(facts):
    """The program and the GPU, which must be the same for all parts in a folder."""
    gpu = (facts["gpu"] or {}).get("name", "a GPU without a name")
    return f"{facts['program']} (SHA-256 {facts.get('program_sha256', 'unknown')[:12]}) on {gpu}"


def collect_facts(work, out):
    reason = gpu_problem()
    if reason:
        print(f"gpu_smoke: no GPU to test: {reason}", file=sys.stderr)
        return 3
    smi = output_of("nvidia-smi", f"--query-gpu={SMI_FIELDS}", "--format=csv,noheader")
    nvcc = output_of("nvcc", "--version") or output_of("/usr/local/cuda/bin/nvcc", "--version")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": dict(zip(SMI_FIELDS.split(","), smi.splitlines()[0].split(", "))) if smi else None,
        "cuda": version_of("libcudart.so.13", "cudaRuntimeGetVersion", False),
        "driver_cuda": version_of("libcuda.so.1", "cuDriverGetVersion", False),
        "cudnn": version_of("libcudnn.so.9", "cudnnGetVersion", True),
        "nccl": version_of("libnccl.so.2", "ncclGetVersion", False),
        "nvcc": nvcc.splitlines()[-1] if nvcc else None,
        "program": (output_of("hpcai500", "--version") or "unknown").splitlines()[0],
        "program_sha256": program_digest(),
        "cuda_library_path": os.environ.get("LD_LIBRARY_PATH", ""),
    }
    earlier = read(os.path.join(work, "facts.json"))
    if earlier and describe_subject(earlier) != describe_subject(facts):
        print(f"gpu_smoke.sh: {out} has results of {describe_subject(earlier)}; this run is of "
              f"{describe_subject(facts)}", file=sys.stderr)
        return 2
    write(work, "facts.json", facts)
    print(json.dumps(facts, indent=2))
    return 0


def write(folder, name, value):
    path = os.path.join(folder, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
    os.replace(path + ".part", path)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def read_parts(work):
    parts = []
    with open(os.path.join(work, "parts.tsv"), encoding="utf-8") as file:
        for line in file:
            name, result, seconds = line.rstrip("\n").split("\t")
            parts.append({"name": name, "result": "passed" if result == "0" else result,
                          "seconds": int(seconds)})
    return parts


def summarize_tests(logs):
    """Counts and failures from GoogleTest logs, including logs of programs that were stopped."""
    results = {"OK": 0, "FAILED": 0, "SKIPPED": 0}
    failures, unfinished = [], []
    for path in logs:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        running, message = None, []
        for line in lines:
            mark = re.match(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+?),?(?: .*)?$", line)
            if mark is None:
                message.append(line)
            elif mark[1] == "RUN":
                running, message = mark[2], []
            elif mark[2] == running:
                results[mark[1]] += 1
                if mark[1] == "FAILED":
                    failures.append({"test": running, "message": "\n".join(message)[:600]})
                running = None
        if running is not None:
            unfinished.append({"test": running, "message": "\n".join(message)[-600:]})
    return {"tests": sum(results.values()) + len(unfinished), "failed": results["FAILED"],
            "skipped": results["SKIPPED"], "unfinished": unfinished, "failures": failures}


def result_lines(work):
    """The results of trainings and validate, the speed of epochs and the sources of images, by the part's name."""
    shown = (r"RESULT |VALIDATE |Worst: |epoch \d+: \d+ images/s$|With data|.*(nvJPEG |the GPU decoded )|"
             r"(training step|files|crops|images|batches)[ ,].* \d+\.\d\d$")
    results = {}
    for path in sorted(glob.glob(os.path.join(work, "logs", "[itv][nra][pal]*.log"))):  # input, training*, validate*
        with open(path, encoding="utf-8", errors="replace") as file:
            results[os.path.basename(path)[:-4]] = [line.strip() for line in file if re.match(shown, line)]
    return results


METRICS = {"gpu__time_duration.sum": "seconds", "dram__bytes.sum": "bytes"}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "nsecond": 1e-9, "usecond": 1e-6,
         "msecond": 1e-3, "second": 1, "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def number_of(cell):
    """The number in a cell of ncu's CSV; None for "n/a", and if the row is incomplete."""
    try:
        return float((cell or "").replace(",", ""))
    except ValueError:
        return None


def sum_kernels(work):
    """Launches, seconds and bytes of device memory of each kernel in ncu's CSV, by decreasing time."""
    lines = []
    for path in sorted(glob.glob(os.path.join(work, "logs", "kernel_times*.log")))[:1]:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if line.startswith('"') and line.endswith('"\n')]
    sums = {}
    for row in csv.DictReader(lines):
        metric, unit = row.get("Metric Name"), UNITS.get(row.get("Metric Unit"))
        value = number_of(row.get("Metric Value"))
        if metric not in METRICS or unit is None or value is None:
            continue
        total = sums.setdefault(row["Kernel Name"], {"launches": 0, "seconds": 0.0, "bytes": 0.0})
        total["launches"] += METRICS[metric] == "seconds"
        total[METRICS[metric]] += value * unit
    kernels = [{"kernel": name[:90], **total} for name, total in sums.items()]
    return sorted(kernels, key=lambda kernel: -kernel["seconds"])


def read_benches(work):
    """The outputs bench_<precision>_<batch>[_unfused|_detector].json."""
    benches = []
    for path in sorted(glob.glob(os.path.join(work, "bench_*.json"))):
        precision, _, *suffix = os.path.basename(path)[len("bench_"):-len(".json")].split("_")
        bench = read(path) or {}
        if "images_per_second" in bench:
            benches.append({**bench, "precision": "_".join([precision, *suffix])})
    return benches


def read_pytorch(work):
    """The outputs of pytorch_step.py, merged into one report."""
    reports = [read(path) for path in sorted(glob.glob(os.path.join(work, "pytorch*.json")))]
    reports = [report for report in reports if report]
    facts = {key: value for report in reversed(reports) for key, value in report.items() if value}
    return {**facts, "rows": [row for report in reports for row in report["rows"]]} if facts else None


def gather(work):
    logs = {}
    for path in sorted(glob.glob(os.path.join(work, "logs", "*.[0-9]*.log"))):
        logs.setdefault(os.path.basename(path).split(".")[0], []).append(path)
    return {
        "schema": "hpcai500-gpu-smoke/2",
        "facts": read(os.path.join(work, "facts.json")),
        "parts": read_parts(work),
        "tests": {name: summarize_tests(paths) for name, paths in logs.items()},
        "training": result_lines(work),
        "bench": read_benches(work),
        "pytorch": read_pytorch(work),
        "kernels": sum_kernels(work),
    }


def images_per_second_table(report):
    """(precision of hpcai500, batch) -> images/s by column."""
    table = {}

    def add(precision, batch, column, result):
        row = table.setdefault((precision, batch), {})
        row[column] = result["images_per_second"]
        if result.get("loss", 0) is None:
            row["not finite"] = [*row.get("not finite", []), column]

    for bench in report["bench"]:
        add(bench["precision"], bench["batch_size"], "hpcai500", bench)
    precisions = {dtype: precision for precision, dtype in PYTORCH_DTYPES.items()}
    for row in (report["pytorch"] or {}).get("rows", []):
        if "images_per_second" in row and row["precision"] in precisions:
            add(precisions[row["precision"]], row["batch"], row["variant"], row)
    return dict(sorted(table.items(), key=lambda item: (item[0][0] != "mixed", -item[0][1])))


def speed_lines(report):
    lines = ["", "training step, images/s, of ResNet-50 v1.5 or the detector; the last column: hpcai500 / "
             "best PyTorch", "{:<14}{:>6}{:>10} |{:>9}{:>9}{:>9}{:>16} |{:>7}".format(
                 "precision", "batch", "hpcai500", *VARIANTS, "ratio")]
    best = {"hpcai500": (0.0, ""), "PyTorch": (0.0, "")}
    for (precision, batch), row in images_per_second_table(report).items():
        pytorch = [row[variant] for variant in VARIANTS if variant in row]
        ours = row.get("hpcai500")
        ratio = f"{ours / max(pytorch):.3f}" if ours and pytorch else "-"
        cells = [f"{row[name]:.1f}{'*' * (name in row.get('not finite', []))}" if name in row else "-"
                 for name in ("hpcai500", *VARIANTS)]
        lines.append("{:<14}{:>6}{:>10} |{:>9}{:>9}{:>9}{:>16} |{:>7}".format(
            precision, batch, *cells, ratio))
        where = f"{precision}, batch {batch}"
        best["hpcai500"] = max(best["hpcai500"], (ours or 0.0, where))
        best["PyTorch"] = max(best["PyTorch"], (max(pytorch, default=0.0), where))
    lines += [f"best {name}: {speed:.1f} images/s ({where})"
              for name, (speed, where) in best.items() if speed]
    if any("not finite" in row for row in images_per_second_table(report).values()):
        lines.append("* the loss was not finite; such a step takes no longer, and often less time")
    return lines


def operation_lines(report):
    """The operations with the most time in our fastest step."""
    if not report["bench"]:
        return []
    fastest = max(report["bench"], key=lambda bench: bench["images_per_second"])
    sums = {}
    for operation in fastest["operations"]:
        key = f"{operation['operation']} {operation['pass']}"
        sums[key] = sums.get(key, 0.0) + operation["in_step_seconds"]
    lines = ["", f"time by operation, {fastest['precision']}, batch {fastest['batch_size']}: step "
             f"{1e3 * fastest['step_seconds']:.2f} ms"]
    for name, seconds in sorted(sums.items(), key=lambda item: -item[1])[:12]:
        share = 100 * seconds / fastest["step_seconds"]
        lines.append(f"{1e3 * seconds:9.3f} ms {share:5.1f} % {name}")
    return lines


def kernel_lines(report):
    lines = ["", "kernels by time (ncu)"] if report["kernels"] else []
    for kernel in report["kernels"][:15]:
        seconds = kernel["seconds"]
        lines.append(f"{1e3 * seconds:9.3f} ms {kernel['launches']:5} launches "
                     f"{kernel['bytes'] / max(seconds, 1e-12) / 1e9:7.0f} GB/s {kernel['kernel']}")
    return lines


def render_text(report):
    facts = report["facts"]
    gpu = facts["gpu"] or {}
    lines = [f"GPU smoke run of {facts['program']}, {facts['date']}: {gpu.get('name', 'GPU')}, "
             f"driver {gpu.get('driver_version')}, CUDA {facts['cuda']}, cuDNN {facts['cudnn']}, "
             f"NCCL {facts['nccl']}", ""]
    for part in report["parts"]:
        counts = report["tests"].get(part["name"])
        summary = "" if not counts else (f"  {counts['tests']} tests, {counts['failed']} failed, "
                                         f"{counts['skipped']} skipped")
        lines.append(f"{part['name']:<24}{part['seconds']:>4} s  {part['result']}{summary}")
    for counts in report["tests"].values():
        lines += [f"FAILED {failure['test']}" for failure in counts["failures"]]
        lines += [f"UNFINISHED {test['test']}" for test in counts["unfinished"]]
    lines += [f"{name}: {line}" for name, one in report["training"].items() for line in one]
    ceilings = (report["pytorch"] or {}).get("ceilings")
    if ceilings:
        copy, product = ceilings["copy_bytes_per_second"], ceilings["product_flops"]
        lines += ["", f"rates measured by PyTorch: copy {copy / 1e12:.2f} TB/s, bf16 product "
                  f"{product / 1e12:.0f} TFLOP/s"]
    lines += speed_lines(report) if report["bench"] or report["pytorch"] else []
    return "\n".join(lines + operation_lines(report) + kernel_lines(report)) + "\n"


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "facts":
        sys.exit(collect_facts(*sys.argv[2:]))
    if len(sys.argv) != 4 or sys.argv[1] != "report":
        sys.exit(__doc__)
    out = sys.argv[3]
    report = gather(sys.argv[2])
    write(out, "gpu_smoke.json", report)
    text = render_text(report)
    failed = [part["name"] for part in report["parts"]
              if part["result"] != "passed" and not part["result"].startswith("skipped")]
    if failed:
        text += f"\ndid not pass: {', '.join(failed)}; their logs are in logs.tar.gz\n"
    with open(os.path.join(out, "gpu_smoke.txt.part"), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(os.path.join(out, "gpu_smoke.txt.part"), os.path.join(out, "gpu_smoke.txt"))
    print(text, end="")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
