#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarize the outputs of scripts/gpu_smoke.sh as JSON and as a table.

    smoke_report.py facts OUT     writes OUT/facts.json; exit code 3 where there is no GPU
    smoke_report.py report OUT    writes OUT/gpu_smoke.json and OUT/gpu_smoke.txt, prints the table
"""
import csv
import ctypes
import datetime
import glob
import json
import os
import subprocess
import sys

VARIANTS = ("eager", "graphs", "compile", "compile_graphs")
RIVALS = {"mixed": "fp16", "bf16": "bf16"}  # PyTorch's autocast dtype for our precision
SMI = ("name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,"
       "power.limit,temperature.gpu")


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def version_of(library, function, by_value):
    """The number from a library's version function; None if it is not found."""
    try:
        call = getattr(ctypes.CDLL(library), function)
    except (OSError, AttributeError):
        return None
    if by_value:
        call.restype = ctypes.c_size_t
        return call()
    number = ctypes.c_int(0)
    return number.value if call(ctypes.byref(number)) == 0 else None


def no_gpu():
    """The reason why there is no GPU; None if the driver works."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "libcuda.so.1, the driver's library, is not on this machine"
    code, count = driver.cuInit(0), ctypes.c_int(0)
    if code != 0:
        return f"the driver does not start (cuInit gives {code})"
    driver.cuDeviceGetCount(ctypes.byref(count))
    return None if count.value else "the driver sees no device"


def collect_facts(out):
    reason = no_gpu()
    if reason:
        print(f"gpu_smoke: no GPU to test: {reason}", file=sys.stderr)
        return 3
    smi = output_of("nvidia-smi", f"--query-gpu={SMI}", "--format=csv,noheader")
    nvcc = output_of("nvcc", "--version") or output_of("/usr/local/cuda/bin/nvcc", "--version")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": dict(zip(SMI.split(","), smi.splitlines()[0].split(", "))) if smi else None,
        "cuda": version_of("libcudart.so.13", "cudaRuntimeGetVersion", False),
        "driver_cuda": version_of("libcuda.so.1", "cuDriverGetVersion", False),
        "cudnn": version_of("libcudnn.so.9", "cudnnGetVersion", True),
        "nccl": version_of("libnccl.so.2", "ncclGetVersion", False),
        "nvcc": nvcc.splitlines()[-1] if nvcc else None,
        "program": output_of("hpcai500", "--version"),
        "cuda_library_path": os.environ.get("LD_LIBRARY_PATH", ""),
    }
    write(out, "facts.json", facts)
    print(json.dumps(facts, indent=2))
    return 0


def write(out, name, value):
    with open(os.path.join(out, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def read_parts(out):
    parts = []
    with open(os.path.join(out, "parts.tsv"), encoding="utf-8") as file:
        for line in file:
            name, result, seconds = line.rstrip("\n").split("\t")
            parts.append({"name": name, "result": "passed" if result == "0" else result,
                          "seconds": int(seconds)})
    return parts


def summarize_tests(report):
    """Counts and the first failures from the output of googletest."""
    failed, skipped = [], 0
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            skipped += test.get("result") == "SKIPPED"
            if test.get("failures"):
                failed.append({"test": f"{suite['name']}.{test['name']}",
                               "message": test["failures"][0]["failure"][:300]})
    return {"tests": report["tests"], "failed": len(failed), "skipped": skipped,
            "failures": failed[:20]}


def result_line(out):
    """The last line of the training run."""
    try:
        with open(os.path.join(out, "logs", "training.log"), encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.startswith("RESULT ")]
    except OSError:
        return None
    return lines[-1] if lines else None


METRICS = {"gpu__time_duration.sum": "seconds", "dram__bytes.sum": "bytes"}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "nsecond": 1e-9, "usecond": 1e-6,
         "msecond": 1e-3, "second": 1, "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def kernel_sums(out):
    """Kernels of ncu's CSV by name, by decreasing time: launches, seconds, bytes of device memory."""
    try:
        with open(os.path.join(out, "logs", "kernel_times.log"), encoding="utf-8") as file:
            lines = [line for line in file if line.startswith('"')]
    except OSError:
        return []
    sums = {}
    for row in csv.DictReader(lines):
        metric, unit = row.get("Metric Name"), UNITS.get(row.get("Metric Unit"))
        if metric not in METRICS or unit is None:
            continue
        one = sums.setdefault(row["Kernel Name"], {"launches": 0, "seconds": 0.0, "bytes": 0.0})
        one["launches"] += METRICS[metric] == "seconds"
        one[METRICS[metric]] += float(row["Metric Value"].replace(",", "")) * unit
    kernels = [{"kernel": name[:90], **one} for name, one in sums.items()]
    return sorted(kernels, key=lambda one: -one["seconds"])


def gather(out):
    scratch = os.path.join(out, "scratch")
    benches = []
    for path in sorted(glob.glob(os.path.join(scratch, "bench_*.json"))):
        asked = os.path.basename(path)[:-len(".json")].split("_")[1]
        benches.append({**(read(path) or {}), "precision": asked})
    tests = {os.path.basename(path).split(".")[0]: read(path)
             for path in sorted(glob.glob(os.path.join(scratch, "*.tests.json")))}
    return {
        "schema": "hpcai500-gpu-smoke/1",
        "facts": read(os.path.join(out, "facts.json")),
        "parts": read_parts(out),
        "tests": {name: summarize_tests(report) for name, report in tests.items() if report},
        "training": result_line(out),
        "bench": [bench for bench in benches if "images_per_second" in bench],
        "pytorch": read(os.path.join(scratch, "pytorch.json")),
        "kernels": kernel_sums(out),
    }


def speeds(report):
    """(precision of hpcai500, batch) -> images/s by column."""
    table = {}
    for bench in report["bench"]:
        row = table.setdefault((bench["precision"], bench["batch_size"]), {})
        row["hpcai500"] = bench["images_per_second"]
    ours = {rival: precision for precision, rival in RIVALS.items()}
    for one in (report["pytorch"] or {}).get("rows", []):
        if "images_per_second" in one and one["precision"] in ours:
            row = table.setdefault((ours[one["precision"]], one["batch"]), {})
            row[one["variant"]] = one["images_per_second"]
    return dict(sorted(table.items(), key=lambda item: (item[0][0] != "mixed", -item[0][1])))


def speed_lines(report):
    lines = ["", "ResNet-50 v1.5 training step, images/s; the last column: hpcai500 / best PyTorch",
             "{:<10}{:>6}{:>10} |{:>9}{:>9}{:>9}{:>16} |{:>7}".format(
                 "precision", "batch", "hpcai500", *VARIANTS, "ratio")]
    best = {"hpcai500": (0.0, ""), "PyTorch": (0.0, "")}
    for (precision, batch), row in speeds(report).items():
        rivals = [row[variant] for variant in VARIANTS if variant in row]
        mine = row.get("hpcai500")
        ratio = f"{mine / max(rivals):.3f}" if mine and rivals else "-"
        cells = [f"{row[name]:.1f}" if name in row else "-" for name in ("hpcai500", *VARIANTS)]
        lines.append("{:<10}{:>6}{:>10} |{:>9}{:>9}{:>9}{:>16} |{:>7}".format(
            precision, batch, *cells, ratio))
        where = f"{precision}, batch {batch}"
        best["hpcai500"] = max(best["hpcai500"], (mine or 0.0, where))
        best["PyTorch"] = max(best["PyTorch"], (max(rivals, default=0.0), where))
    lines += [f"best {name}: {speed:.1f} images/s ({where})"
              for name, (speed, where) in best.items() if speed]
    return lines


def operation_lines(report):
    """The operations with the most time in our fastest step."""
    if not report["bench"]:
        return []
    fastest = max(report["bench"], key=lambda bench: bench["images_per_second"])
    sums = {}
    for one in fastest["operations"]:
        key = f"{one['operation']} {one['pass']}"
        sums[key] = sums.get(key, 0.0) + one["in_step_seconds"]
    lines = ["", f"time by operation, {fastest['precision']}, batch {fastest['batch_size']}: step "
             f"{1e3 * fastest['step_seconds']:.2f} ms"]
    for name, seconds in sorted(sums.items(), key=lambda item: -item[1])[:12]:
        share = 100 * seconds / fastest["step_seconds"]
        lines.append(f"{1e3 * seconds:9.3f} ms {share:5.1f} % {name}")
    return lines


def kernel_lines(report):
    lines = ["", "kernels by time (ncu)"] if report["kernels"] else []
    for one in report["kernels"][:15]:
        lines.append(f"{1e3 * one['seconds']:9.3f} ms {one['launches']:5} launches "
                     f"{one['bytes'] / max(one['seconds'], 1e-12) / 1e9:7.0f} GB/s {one['kernel']}")
    return lines


def as_text(report):
    facts = report["facts"]
    gpu = facts["gpu"] or {}
    lines = [f"GPU smoke run of {facts['program']}, {facts['date']}: {gpu.get('name', 'GPU')}, "
             f"driver {gpu.get('driver_version')}, CUDA {facts['cuda']}, cuDNN {facts['cudnn']}, "
             f"NCCL {facts['nccl']}", ""]
    for one in report["parts"]:
        counts = report["tests"].get(one["name"])
        seen = "" if not counts else (f"  {counts['tests']} tests, {counts['failed']} failed, "
                                      f"{counts['skipped']} skipped")
        lines.append(f"{one['name']:<18}{one['seconds']:>4} s  {one['result']}{seen}")
    for counts in report["tests"].values():
        lines += [f"FAILED {one['test']}" for one in counts["failures"]]
    if report["training"]:
        lines += ["", f"training, two base models on one GPU: {report['training']}"]
    ceilings = (report["pytorch"] or {}).get("ceilings")
    if ceilings:
        copy, product = ceilings["copy_bytes_per_second"], ceilings["product_flops"]
        lines += ["", f"ceilings seen by PyTorch: copy {copy / 1e12:.2f} TB/s, bf16 product "
                  f"{product / 1e12:.0f} TFLOP/s"]
    lines += speed_lines(report) if report["bench"] or report["pytorch"] else []
    return "\n".join(lines + operation_lines(report) + kernel_lines(report)) + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("facts", "report"):
        sys.exit(__doc__)
    out = sys.argv[2]
    if sys.argv[1] == "facts":
        sys.exit(collect_facts(out))
    report = gather(out)
    write(out, "gpu_smoke.json", report)
    text = as_text(report)
    with open(os.path.join(out, "gpu_smoke.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text)
    failed = [one["name"] for one in report["parts"]
              if one["result"] != "passed" and not one["result"].startswith("skipped")]
    if failed:
        sys.exit(f"gpu_smoke: {', '.join(failed)} did not pass; logs in {out}/logs")


if __name__ == "__main__":
    main()
