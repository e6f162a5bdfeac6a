#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: scripts/verify_result.py DIR

Checks the result directory of a run, or of several (run.repeat), without hpcai500: a second implementation of `hpcai500 verify` with
nothing but Python's standard library. Prints the RESULT line and exits with 0 when all holds;
prints a line for each finding and exits with 10 when not, with 2 where there is no such directory.

Left out, and done by `hpcai500 verify` only: the size of each bootstrap from run.seed; the interval
of a segmentation's quality; those of a detector's and those over members where they take more than some ten million additions;
ledgers but table3; how ranks lie on nodes, stages and parts; the summary but for its last line and its
digest; legal values, order and spelling of the configuration's keys; and keys of the JSON files that no
number here needs.
"""
import array
import bisect
import collections
import datetime
import functools
import hashlib
import itertools
import json
import math
import operator
import os
import re
import struct
import sys

EPSILON = 2.0 ** -52
FINDINGS = []
FOLDER = [""]  # of the run that is checked, in that of several


def find(file, text):
    FINDINGS.append((FOLDER[0] + file, text))


def must_be(file, key, stored, expected, source=""):
    """Equal, or a finding; two numbers to the last bit."""
    if stored != expected or type(stored) is not type(expected):
        texts = [json.dumps(value) for value in (stored, expected)]
        start = max(0, len(os.path.commonprefix(texts)) - 60)  # that where they differ is seen
        show = lambda value: ("..." if start else "") + json.dumps(value)[start:start + 100]
        find(file, f"{key} is {show(stored)}; must be {show(expected)}" + (f", by {source}" if source else ""))


def printable(text):
    """What a terminal shows as it stands."""
    escapes = {"\n": "\\n", "\t": "\\t"}
    return "".join(escapes.get(letter, f"\\x{ord(letter):02x}") if letter < " " or letter == "\x7f" else letter
                   for letter in text)


class Broken(Exception):
    """What is missing or no file of its kind."""


class Result:
    """The files of a directory that are there at the start; none is read through a link."""

    def __init__(self, directory):
        self.directory = directory
        self.counters = {}  # of groups that finished: what each read of its nodes
        self.present, self.regular = files_below(directory)

    def read(self, name, most=1 << 30):
        """At most so many bytes."""
        if name not in self.present:
            raise Broken(f"{name}: is missing")
        if name not in self.regular:
            raise Broken(f"{name}: is no regular file")
        path = os.path.join(self.directory, name)
        if os.path.getsize(path) > most:
            raise Broken(f"{name}: has {os.path.getsize(path)} bytes; must have at most {most}")
        with open(path, "rb") as file:
            return file.read()

    def text(self, name):
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Broken(f"{name}: is no UTF-8: {error}") from error


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# --- JSON -------------------------------------------------------------------------------------

def layout_of(digits, point):
    """0.`digits` x 10^`point`, as the program writes it."""
    if len(digits) <= point <= 15:
        return digits + "0" * (point - len(digits)) + ".0"
    if 0 < point <= 15:
        return digits[:point] + "." + digits[point:]
    if -4 < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{mantissa}e{'-' if point < 1 else '+'}{abs(point - 1):02}"


def canonical_float(text):
    """The shortest digits that give the number, or 16 or 17 where its printer has found no shorter ones."""
    match = re.fullmatch(r"-?(\d+)(?:\.(\d+))?(?:e([+-]\d+))?", text, re.ASCII)
    whole, fraction, exponent = match.groups("") if match else ("", "", "")
    leading = (whole + fraction).lstrip("0")
    digits = leading.rstrip("0") or "0"
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(leading)) if leading else 1
    shortest = re.sub(r"e.*|\D", "", repr(abs(float(text)))).strip("0") or "0"
    if not match or text.lstrip("-") != layout_of(digits, point) or (digits != shortest and len(digits) not in (16, 17)):
        raise Broken(f"the number {text} is not as the program writes it")
    if math.isinf(float(text)):
        raise Broken(f"the number {text} is none that a double has")
    return float(text)


def unique(pairs):
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise Broken("a key occurs twice")
    return keys


def refuse_constant(text):
    raise Broken(f"{text} is no JSON number")


def read_json(result, name, checks_layout=True):
    """As the program writes it: two spaces, keys in their order, no number in another form."""
    text = result.text(name)
    try:
        value = json.loads(text, parse_float=canonical_float, object_pairs_hook=unique,
                           parse_constant=refuse_constant)
        raw = json.loads(text, parse_float=lambda number: "\0" + number)
    except (ValueError, RecursionError) as error:
        raise Broken(f"{name}: {error}") from error
    except Broken as error:
        raise Broken(f"{name}: {error}") from error
    layout = re.sub(r'"\\u0000([^"]*)"', r"\1", json.dumps(raw, indent=2, ensure_ascii=False)) + "\n"
    # The program escapes control characters as this does, but for 0x7f, which both leave.
    if checks_layout and layout != text:
        lines = itertools.zip_longest(text.split("\n"), layout.split("\n"))
        number, (got, wanted) = next((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1])
        find(name, f"line {number} is {got!r}; must be {wanted!r}")
    return value


# --- the manifest -----------------------------------------------------------------------------

def files_below(directory):
    """All that is no folder, and which of it are regular files."""
    present, regular = set(), set()

    def refuse(error):
        find(os.path.relpath(error.filename, directory), f"cannot be listed: {error.strerror}")

    for folder, folders, files in os.walk(directory, onerror=refuse):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in files + links:
            path = os.path.join(folder, name)
            present.add(os.path.relpath(path, directory))
            if os.path.isfile(path) and not os.path.islink(path):
                regular.add(os.path.relpath(path, directory))
    return present, regular


def check_manifest(result):
    present = {name for name in result.present - {"manifest.sha256", "summary.txt"} if not name.startswith("checkpoints/")}
    data = result.read("manifest.sha256")
    listed, names = {}, []
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if lines.pop() != "":
        find("manifest.sha256", "ends without the end of a line")
    for number, line in enumerate(lines, 1):
        match = re.fullmatch(r"(\\?)([0-9a-f]{64})  (.+)", line, re.DOTALL)
        if not match or (match[1] == "\\") != ("\\" in match[3]) or "\r" in line:
            raise Broken(f"manifest.sha256: line {number} is none that the program writes")
        name = match[3]
        if match[1]:
            name = re.sub(r"\\([\\nr])", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), name)
        if os.path.normpath(name) != name:
            raise Broken(f"manifest.sha256: line {number} has a path that the program does not write")
        listed[name] = match[2]
        names.append(os.fsencode(name))
    if names != sorted(set(names)):
        find("manifest.sha256", "lists a file twice or not in the order of the names")
    for name, digest in sorted(listed.items()):
        if name not in present:
            find(name, "is missing; manifest.sha256 lists it")
        elif name not in result.regular:
            find(name, "is no regular file; manifest.sha256 lists one")
        else:
            hashed = hashlib.sha256()
            with open(os.path.join(result.directory, name), "rb") as file:
                while piece := file.read(1 << 22):
                    hashed.update(piece)
            if hashed.hexdigest() != digest:
                find(name, f"has the SHA-256 {hashed.hexdigest()}; must have {digest}, as manifest.sha256 lists it")
    for name in sorted(present - listed.keys()):
        find(name, "is there; manifest.sha256 does not list it")
    return sha256(data)


# --- configuration ----------------------------------------------------------------------------

SETTINGS = {  # all keys of the configuration, by section
    "run":
        "name seed output deterministic audit_steps loss_steps measure_phases trace trace_steps level "
        "roofline meters evaluate_epochs repeat checkpoint_steps time_limit_seconds "
        "first_step_timeout_seconds step_timeout_seconds group_patience_seconds",
    "submission":
        "system_name organization contact hardware operating_system communication_libraries "
        "acceleration_libraries framework parallel_mode algorithm hyper_parameters problem",
    "workload":
        "kind model classes image_size image_width channels backbone_width target_quality penalty_exponent "
        "epochs",
    "detector":
        "normalization trained_stages pyramid_channels head_features anchor_sizes "
        "anchor_ratios anchor_samples region_samples training_proposals inference_proposals "
        "score_threshold fusion_overlap",
    "bagging":
        "M P_degree sampler subsample_fraction aggregation out_of_bag",
    "parallel":
        "mode data_degree pipeline_degree model_degree micro_batches schedule",
    "data":
        "kind path validation_path on_bad_sample max_boxes synthetic_samples "
        "synthetic_validation_samples image_path validation_image_path training_split validation_split "
        "class_names random_area_minimum flip_probability vertical_flip_probability climate_augmentation "
        "climate_precision mean standard_deviation prefetch_batches decode_threads decoded_cache_mib "
        "resident_mib staging staging_directory staging_cleanup staging_pack_mib staging_reserve_mib",
    "training":
        "batch_size batch_norm_samples optimizer learning_rate learning_rate_batch schedule "
        "schedule_epochs schedule_factor schedule_power final_learning_rate warmup_epochs warmup_start "
        "momentum nesterov momentum_correction beta1 beta2 epsilon trust_coefficient weight_decay "
        "weight_decay_on_norm_and_bias label_smoothing zero_gamma batch_norm_momentum precision "
        "loss_scale fusion initial_weights",
    "communication":
        "backend algorithm precision torus_columns ranks_per_node bucket_mib overlap",
    "device":
        "kind threads layout autotune plan_cache recording",
}


def parse_config(text):
    """What config::to_yaml writes: sections of `key: value`."""
    config, section = {}, ""
    lines = text.split("\n")
    if lines.pop() != "":
        raise Broken("result.json: config ends without the end of a line")
    for line in lines:
        if match := re.fullmatch(r"(\w+):", line):
            section = match[1]
        elif match := re.fullmatch(r"  (\w+): (.*)", line):
            value = match[2]
            quoted = value.startswith('"')
            if f"{section}.{match[1]}" in config:
                raise Broken(f"result.json: config has {section}.{match[1]} twice")
            config[f"{section}.{match[1]}"] = json.loads(value) if quoted else value
        else:
            raise Broken(f"result.json: config has the line {line!r}, which the program does not write")
    for key in config:
        if key.partition(".")[2] not in SETTINGS.get(key.partition(".")[0], "").split():
            raise Broken(f"result.json: config has {key}, which is no key")
    for key in (f"{section}.{name}" for section, names in SETTINGS.items() for name in names.split()):
        if key not in config:
            raise Broken(f"result.json: config has no {key}")
    return config


# --- arrays, tables, weights ------------------------------------------------------------------

HEADER_BYTES = 1 << 16


def read_npy(result, name, code, shape):
    data = result.read(name, 4 * math.prod(shape) + HEADER_BYTES)
    if data[:8] != b"\x93NUMPY\x01\x00" or len(data) < 10:
        raise Broken(f"{name}: is not an npy file of version 1.0")
    size = struct.unpack("<H", data[8:10])[0]
    extents = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    kind = "<f4" if code == "f" else "<i4"
    wanted = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}"
    if not re.fullmatch(re.escape(wanted) + " *\n", data[10:10 + size].decode("latin-1")):
        raise Broken(f"{name}: has another npy header; must have {wanted}")
    values = array.array(code)
    if len(data) - 10 - size != 4 * math.prod(shape):
        raise Broken(f"{name}: has {len(data) - 10 - size} bytes of elements; must have {4 * math.prod(shape)}")
    values.frombytes(data[10 + size:])
    if sys.byteorder == "big":
        values.byteswap()
    return values, sha256(data)


COLUMNS = ("step,epoch,samples,end_seconds,learning_rate,loss,input_wait_seconds,forward_seconds,"
           "backward_seconds,communication_seconds,optimizer_seconds,other_seconds")


Step = collections.namedtuple("Step", COLUMNS.split(","))
PHASES = Step._fields[6:]
ROUNDING = 1e-6  # seconds
PAUSE = 5.0  # seconds, by which the end of an epoch may be read late


def number_in(cell):
    """Of a table; None in an empty cell."""
    number = float(cell) if cell else None
    if number is not None and (not math.isfinite(number) or repr(number).removesuffix(".0") != cell):
        raise ValueError
    return number


def whole_number_in(cell):
    if not re.fullmatch("0|[1-9][0-9]*", cell):
        raise ValueError
    return int(cell)


def read_table(result, name, columns, row_of):
    """row_of(cells) of each line behind the header."""
    lines = result.text(name).split("\n")
    if lines[0] != columns or lines[-1] != "":
        raise Broken(f"{name}: has another header or was cut off")
    rows = []
    for number, line in enumerate(lines[1:-1], 2):
        cells = line.split(",")
        if len(cells) != columns.count(",") + 1:
            raise Broken(f"{name}: line {number} has {len(cells)} cells")
        try:
            rows.append(row_of(cells))
        except ValueError as error:
            raise Broken(f"{name}: line {number} has a cell that is no number as the program writes it") from error
    return rows


def read_steps(result, name):
    steps = read_table(result, name, COLUMNS,
                       lambda cells: Step(*map(whole_number_in, cells[:3]), *map(number_in, cells[3:])))
    for number, step in enumerate(steps):
        if step.step != number or step.end_seconds is None or step.learning_rate is None:
            raise Broken(f"{name}: line {number + 2} is no step {number}")
        if number and step.end_seconds < steps[number - 1].end_seconds:
            raise Broken(f"{name}: line {number + 2}: end_seconds goes back")
    return steps


def total(numbers):
    """From the left, as the program adds; sum() of a later Python rounds less."""
    return functools.reduce(operator.add, numbers, 0.0)


def shown(number):
    """As the program prints it."""
    return "nan" if number is None else repr(number).removesuffix(".0")


def phases_of(step):
    return total(getattr(step, phase) for phase in PHASES if getattr(step, phase) is not None)


def lengths_of(steps):
    return [step.end_seconds - (steps[index - 1].end_seconds if index else 0) for index, step in enumerate(steps)]


def learning_rate(config, step, per_epoch):
    """training.schedule behind its warm-up; steps count from 0."""
    def setting(name):
        return float(config["training." + name])

    scale = setting("batch_size") / setting("learning_rate_batch")
    peak, final = setting("learning_rate") * scale, setting("final_learning_rate") * scale
    warm, last = math.floor(setting("warmup_epochs") * per_epoch + 0.5), int(config["workload.epochs"]) * per_epoch

    def after(at):
        share = min(max((at - warm) / (last - warm), 0), 1) if last > warm else 1
        kind = config["training.schedule"]
        if kind == "step":
            passed = sum(at >= epoch * per_epoch for epoch in json.loads(config["training.schedule_epochs"]))
            return peak * setting("schedule_factor") ** passed
        if kind == "cosine":
            return final + (peak - final) * (1 + math.cos(math.pi * share)) / 2
        if kind == "polynomial":
            return final + (peak - final) * (1 - share) ** setting("schedule_power")
        return peak

    if step >= warm:
        return after(step)
    start = setting("warmup_start")
    return after(warm) * (start + (1 - start) * (step + 1) / warm)


def check_steps(config, group, steps, folder):
    """Samples, epochs, learning rates and phases of the steps, and the group's clock of the epochs."""
    name, batch = folder + "steps.csv", int(config["training.batch_size"])
    per_epoch = max(group["samples_drawn"] // batch, 1)
    for key, wanted, source in (("samples", lambda step: batch, "training.batch_size"),
                                ("epoch", lambda step: step.step // per_epoch, "samples_drawn")):
        wrong = next((step for step in steps if getattr(step, key) != wanted(step)), None)
        if wrong:
            find(name, f"{key} of step {wrong.step} is {getattr(wrong, key)}; must be {wanted(wrong)}, by {source}")
    allowed = 1e-12 * float(config["training.learning_rate"]) * batch / float(config["training.learning_rate_batch"])
    for step in steps:
        wanted = learning_rate(config, step.step, per_epoch)
        if abs(step.learning_rate - wanted) > allowed:
            find(name, f"learning_rate of step {step.step} is {shown(step.learning_rate)}; must be {wanted}, by training.schedule")
            break
    for step, length in zip(steps, lengths_of(steps)):
        if step.input_wait_seconds is not None and phases_of(step) > length + ROUNDING:
            find(name, f"phases of step {step.step} take {phases_of(step)} s; must take {length} s or less, by end_seconds")
            break
    epochs = int(config["workload.epochs"])
    if len(group["epoch_seconds"]) != epochs:
        find(folder + "record.json", f"record.epoch_seconds has {len(group['epoch_seconds'])} epochs; must have {epochs}, by config")
        return
    before = 0.0
    for epoch, seconds in enumerate(group["epoch_seconds"]):
        ends = [step.end_seconds for step in steps if step.epoch == epoch]
        if not ends:
            return
        least, most = ends[-1] - ends[0], ends[-1] - before + PAUSE
        if not least - ROUNDING <= seconds <= most:
            find(folder + "record.json", f"record.epoch_seconds[{epoch}] is {seconds}; must be {least} to {most}, by {name}")
            return
        before = ends[-1]


RANK_COLUMNS = ("group_rank,world_rank,host,steps,median_step_seconds,p99_step_seconds,longest_step_seconds,"
                + ",".join(PHASES) + ",hidden_communication_seconds,peak_memory_bytes")
Rank = collections.namedtuple("Rank", RANK_COLUMNS.split(","))


def read_ranks(result, name):
    return read_table(result, name, RANK_COLUMNS,
                      lambda cells: Rank(*map(whole_number_in, cells[:2]), cells[2], whole_number_in(cells[3]),
                                         *map(number_in, cells[4:])))


def median(values):
    values, middle = sorted(values), len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def nearest_rank(ordered, share):
    return ordered[math.ceil(share * len(ordered)) - 1]


def check_leader(leader, steps, folder):
    """The row of the rank that has stored the steps."""
    def compare(column, wanted, allowed):
        stored = getattr(leader, column)
        if stored != wanted and (None in (stored, wanted) or not abs(stored - wanted) <= allowed):
            find(folder + "ranks.csv", f"{column} of rank 0 is {shown(stored)}; must be {shown(wanted)}, by {folder}steps.csv")

    for phase in PHASES:
        known = [getattr(step, phase) for step in steps if getattr(step, phase) is not None]
        compare(phase, total(known) / len(known) if known else None, 0)
    if any(step.input_wait_seconds is None for step in steps):
        return  # a GPU's clock, which does not show how long a step took
    begins = [not index or steps[index - 1].epoch != step.epoch for index, step in enumerate(steps)]
    lengths = sorted(phases_of(step) if begin else length for step, begin, length in zip(steps, begins, lengths_of(steps)))
    compare("median_step_seconds", median(lengths), ROUNDING)
    compare("p99_step_seconds", nearest_rank(lengths, 0.99), ROUNDING)
    compare("longest_step_seconds", lengths[-1], ROUNDING)


def weights_digest(result, name, model, batches):
    elements = sum(math.prod(shape) for _, *shape in model.parameters) + sum(3 * size for _, size in model.statistics)
    data = result.read(name, 8 * elements + 100_000_000)
    try:
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
    except (ValueError, struct.error) as error:
        raise Broken(f"{name}: is no safetensors file") from error
    header.pop("__metadata__", None)
    digest, spans = hashlib.sha256(), []

    def bytes_of(tensor, kind, count):
        entry = header.pop(tensor, None)
        if entry is None or entry["dtype"] != kind:
            raise Broken(f"{name}: has no {tensor} of {kind}")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if end - begin != count * (8 if kind == "I64" else 4) or end > len(data) or begin < 8 + size:
            raise Broken(f"{name}: tensor {tensor} has another size")
        spans.append((begin, end))
        return data[begin:end]

    for tensor, rows, channels, pixels in model.parameters:
        stored = bytes_of(tensor, "F32", rows * channels * pixels)
        if pixels > 1:  # (rows, channels, pixels) to (rows, pixels, channels)
            values, row = array.array("f", stored), channels * pixels
            ordered = array.array("f")
            for start, pixel in itertools.product(range(0, rows * row, row), range(pixels)):
                ordered.extend(values[start + pixel:start + row:pixels])
            stored = ordered.tobytes()
        digest.update(stored)
    for norm, channels in model.statistics:
        digest.update(bytes_of(norm + ".running_mean", "F32", channels))
        digest.update(bytes_of(norm + ".running_var", "F32", channels))
        steps = struct.unpack("<q", bytes_of(norm + ".num_batches_tracked", "I64", 1))[0]
        must_be(name, norm + ".num_batches_tracked", steps, batches)
    if header:
        raise Broken(f"{name}: has tensors that the model has not: {sorted(header)[:3]}")
    spans.sort()
    if [begin for begin, _ in spans] + [len(data)] != [8 + size] + [end for _, end in spans]:
        raise Broken(f"{name}: has bytes between or behind its tensors")
    return digest.hexdigest()


# --- the models' layers -----------------------------------------------------------------------

class Model:
    """Parameters in their order, and FLOPs of a sample by table 3 of the paper, forward."""

    def __init__(self, config):
        self.flops, self.parameters, self.statistics = 0, [], []
        kind = predictions_of(config)
        self.detects = kind is Detection
        self.strides_on_3x3 = config["workload.model"] != "resnet50_v1"
        self.kind = config["detector.normalization"] if self.detects else "batch"
        height = int(config["workload.image_size"])
        width = config["workload.image_width"]
        size = (height, height if width == "auto" else int(width), int(config["workload.channels"]))
        if self.detects:
            self.detector(config, size)
        elif kind is Segmentation:
            self.segmentation(config, size)
        else:
            height, width, channels = self.backbone("", size, int(config["workload.backbone_width"]))[-1]
            self.flops += height * width * channels  # the mean over pixels
            self.linear("fc", 1, channels, int(config["workload.classes"]), False)

    def convolution(self, name, size, filters, kernel, stride=1, is_first=True):
        height, width, channels = size
        if is_first:
            self.parameters.append((name + ".weight", filters, channels, kernel * kernel))
        height, width = -(-height // stride), -(-width // stride)
        self.flops += 2 * kernel * kernel * channels * filters * height * width
        return height, width, filters

    def norm(self, name, size):
        self.parameters += [(name + ".weight", size[2], 1, 1), (name + ".bias", size[2], 1, 1)]
        if self.kind != "group":
            self.statistics.append((name, size[2]))
        self.flops += math.prod(size)

    def linear(self, name, rows, inputs, outputs, relu, pixels=1):
        self.parameters += [(name + ".weight", outputs, inputs // pixels, pixels), (name + ".bias", outputs, 1, 1)]
        self.flops += rows * outputs * (inputs + relu)

    def block(self, name, size, width, stride):
        first, second = (1, stride) if self.strides_on_3x3 else (stride, 1)
        x = self.convolution(name + ".conv1", size, width, 1, first)
        self.norm(name + ".bn1", x)
        self.flops += math.prod(x)
        x = self.convolution(name + ".conv2", x, width, 3, second)
        self.norm(name + ".bn2", x)
        self.flops += math.prod(x)
        x = self.convolution(name + ".conv3", x, 4 * width, 1)
        if stride != 1 or size[2] != 4 * width:
            self.convolution(name + ".downsample.0", size, 4 * width, 1, stride)
            self.norm(name + ".downsample.1", x)
        self.norm(name + ".bn3", x)
        self.flops += 2 * math.prod(x)  # addition and ReLU
        return x

    def backbone(self, prefix, size, width, depths=(3, 4, 6, 3)):
        x = self.convolution(prefix + "conv1", size, width, 7, 2)
        self.norm(prefix + "bn1", x)
        self.flops += 2 * math.prod(x)  # ReLU and the pooling of its output
        x = -(-x[0] // 2), -(-x[1] // 2), width
        stages = []
        for stage, blocks in enumerate(depths):
            for index in range(blocks):
                x = self.block(f"{prefix}layer{stage + 1}.{index}", x, width << stage, 2 if stage and not index else 1)
            stages.append(x)
        return stages

    def segmentation(self, config, size):
        stages = self.backbone("backbone.", size, 16, (1, 1, 1, 1))
        for stage in (3, 2, 1):
            finer = self.convolution(f"pyramid.lateral{stage + 1}", stages[stage], 64, 1)
            self.flops += math.prod(finer) if stage < 3 else 0  # the coarser one is added
        x = self.convolution("head.conv1", finer, 64, 3)
        self.norm("head.bn1", x)
        self.flops += math.prod(x)  # ReLU
        classes = int(config["workload.classes"]) + 1
        self.convolution("head.conv2", x, classes, 1)
        self.parameters.append(("head.conv2.bias", classes, 1, 1))

    def detector(self, config, size):
        channels, classes = int(config["detector.pyramid_channels"]), int(config["workload.classes"]) + 1
        stages = self.backbone("backbone.body.", size, int(config["workload.backbone_width"]))
        pyramid = []
        for kind, kernel in (("inner_blocks", 1), ("layer_blocks", 3)):
            for level, stage in enumerate(pyramid or stages):
                name = f"backbone.fpn.{kind}.{level}.0"
                pyramid = pyramid[:level] + [self.convolution(name, stage, channels, kernel)] + pyramid[level + 1:]
                self.parameters.append((name + ".bias", channels, 1, 1))
        self.flops += sum(math.prod(level) for level in pyramid[:3])  # coarser levels are added
        self.flops += math.prod(pyramid[3])  # and the coarsest pooled
        pyramid.append((-(-pyramid[3][0] // 2), -(-pyramid[3][1] // 2), channels))
        ratios = len(config["detector.anchor_ratios"].split(","))
        for name, filters, kernel in (("conv.0.0", channels, 3), ("cls_logits", ratios, 1), ("bbox_pred", 4 * ratios, 1)):
            for index, level in enumerate(pyramid):
                made = self.convolution("rpn.head." + name, level, filters, kernel, 1, index == 0)
                self.flops += math.prod(made) if kernel == 3 else 0  # ReLU
            self.parameters.append((f"rpn.head.{name}.bias", filters, 1, 1))
        regions, features = int(config["detector.region_samples"]), int(config["detector.head_features"])
        self.linear("roi_heads.box_head.fc6", regions, 49 * channels, features, True, 49)
        self.linear("roi_heads.box_head.fc7", regions, features, features, True)
        self.linear("roi_heads.box_predictor.cls_score", regions, features, classes, False)
        self.linear("roi_heads.box_predictor.bbox_pred", regions, features, 4 * classes, False)


# --- classification ---------------------------------------------------------------------------

def predicted(row):
    """The class of the highest score, the lowest of equals; None with a NaN."""
    if any(map(math.isnan, row)):
        return None
    return row.index(max(row))


def top_k(values, labels, classes):
    """Right among the first, among the first five, and scored."""
    first = five = scored = 0
    for sample, label in enumerate(labels):
        if label == -1:
            continue
        if not 0 <= label < classes:
            raise Broken(f"evaluation/labels.npy: sample {sample} has the label {label}")
        scored += 1
        row = values[sample * classes:(sample + 1) * classes]
        if predicted(row) is None:
            continue
        mine = row[label]
        ahead = sum(score > mine or (score == mine and index < label) for index, score in enumerate(row))
        first += ahead == 0
        five += ahead < 5
    return first, five, scored


def share(count, scored):
    return count / scored if scored else None


class Classification:
    files = ("predictions.npy", "ensemble.npy", "labels.npy")
    metric = "top_1_accuracy"

    def __init__(self, result, record, config, cells=1, classes=None):
        self.result, self.config = result, config
        self.samples, self.classes = record["workload"]["validation_samples"], classes or int(config["workload.classes"])
        self.rows = self.samples * cells
        self.row_name = "sample" if cells == 1 else "cell"
        self.labels, self.labels_sha256 = read_npy(result, "evaluation/labels.npy", "i", (self.rows,))
        self.unscored = self.count_unscored(cells)
        if self.unscored and config["data.on_bad_sample"] != "skip":
            self.find_unscored("none, by data.on_bad_sample")
        lines = result.text("evaluation/samples.txt").count("\n")
        if lines != self.samples:
            find("evaluation/samples.txt", f"has {lines} lines; must have {self.samples}, one a sample")
        self.soft, self.votes, self.members, self.member_values = None, None, 0, []

    def count_unscored(self, cells):
        """Samples without a label, which each has in all its rows or in none."""
        unscored = 0
        for sample in range(self.samples):
            absent = self.labels[sample * cells:(sample + 1) * cells].count(-1)
            unscored += absent > 0
            if 0 < absent < cells:
                find("evaluation/labels.npy", f"sample {sample} has {absent} of {cells} cells that do not count; "
                                              "must have none or all")
                break
        return unscored

    def find_unscored(self, wanted):
        find("evaluation/labels.npy", f"has {self.unscored} samples that do not count; must have {wanted}")

    def read(self, name):
        return read_npy(self.result, name, "f", (self.rows, self.classes))

    def judge(self, name):
        values, digest = self.read(name)
        votes = array.array("f", bytes(4 * len(values)))
        for row in range(self.rows):
            choice = predicted(values[row * self.classes:(row + 1) * self.classes])
            if choice is not None:
                votes[row * self.classes + choice] = 1
        zeros = array.array("f", bytes(4 * len(values)))
        self.soft = array.array("f", map(operator.add, self.soft or zeros, values))
        self.votes = array.array("f", map(operator.add, self.votes or zeros, votes))
        self.members += 1
        self.member_values.append(values)
        return self.judge_member(values), digest

    def judge_member(self, values):
        first, five, scored = top_k(values, self.labels, self.classes)
        return {"quality": share(first, scored), "quality_top_5": share(five, scored)}

    def combined(self):
        """The mean of the members, and the share of their votes."""
        soft = array.array("f", (value / self.members for value in self.soft))
        majority = array.array("f")
        for index in range(self.rows):
            row = self.votes[index * self.classes:(index + 1) * self.classes]
            majority.extend(count / self.members for count in row) if any(row) else \
                majority.extend([math.nan] * self.classes)
        return soft, majority

    def ensemble(self):
        name = "evaluation/ensemble.npy"
        stored, digest = self.read(name)
        soft, majority = self.combined()
        by_majority = self.config["bagging.aggregation"] == "majority"
        allowed = 0 if self.members < 3 else self.members * 2.0 ** -23
        for index, (said, wanted) in enumerate(zip(stored, majority if by_majority else soft)):
            if math.isnan(said) and math.isnan(wanted) or abs(said - wanted) <= allowed:
                continue
            find(name, f"{self.row_name} {index // self.classes}, class {index % self.classes} is {said}; must be {wanted}, "
                       "as groups/*/predictions.npy give it")
            break
        quality, interval = self.judge_vote(stored, stored if by_majority else majority)
        return quality, digest, interval

    def judge_vote(self, said, majority):
        first, five, scored = top_k(said, self.labels, self.classes)
        majority_first, _, _ = top_k(majority, self.labels, self.classes)
        quality = {"ensemble": share(first, scored), "ensemble_top_5": share(five, scored),
                   "ensemble_majority": share(majority_first, scored), "ensemble_voc_ap50": None,
                   "ensemble_ap10": None, "categories": [], "ensemble_pixel_accuracy": None, "segments": []}
        return quality, wilson_interval(first, scored)

    def members_interval(self, seed):
        """(low, high); False where it would take too long here, and for what hpcai500 objects to."""
        scored = [sample for sample, label in enumerate(self.labels) if label != -1]
        draws = draws_of_members(seed, self.members)
        if len(scored) * self.classes * self.members * len(set(draws)) > 10 ** 7 or 1000 * len(scored) > 2 * 10 ** 6:
            return False
        if not scored:
            return None
        right = {weights: self.right(weights, scored) for weights in set(draws)}
        shares = []
        for replicate, weights in enumerate(draws):
            stream, mine = Stream(seed, 7, replicate, 2), right[weights]
            shares.append(sum(mine[stream.below(len(scored))] for _ in scored) / len(scored))
        shares.sort()
        return shares[25], shares[-26]

    def right(self, weights, scored):
        """Whether the members, with these weights, say the label of each sample."""
        by_majority, found = self.config["bagging.aggregation"] == "majority", []
        for sample in scored:
            scores = [0.0] * self.classes
            for weight, rows in zip(weights, self.member_values):
                row = rows[sample * self.classes:(sample + 1) * self.classes]
                if weight and by_majority:
                    choice = predicted(row)
                    row = [float(index == choice) for index in range(self.classes)]
                if weight:
                    scores = [score + weight * value for score, value in zip(scores, row)]
            mine, label = scores[self.labels[sample]], self.labels[sample]
            found.append(not (by_majority and mine == 0) and all(
                score < mine if index < label else score <= mine for index, score in enumerate(scores)))
        return found


# --- segmentation -----------------------------------------------------------------------------

class Segmentation(Classification):
    """Rows are cells of 8 x 8 pixels."""
    metric = "mean_iou"

    def __init__(self, result, record, config):
        height, width = config["workload.image_size"], config["workload.image_width"]
        cells = math.prod(-(-int(side) // 8) for side in (height, height if width == "auto" else width))
        super().__init__(result, record, config, cells, int(config["workload.classes"]) + 1)
        *self.names, rest = result.text("evaluation/classes.txt").split("\n")
        if rest:
            find("evaluation/classes.txt", "its last line does not end")
            self.names.append(rest)
        must_be("evaluation/classes.txt", "the number of lines", len(self.names), self.classes)

    def segments(self, values):
        """Each class's [cells, predicted, hits]."""
        counts = [[0, 0, 0] for _ in range(self.classes)]
        for cell, label in enumerate(self.labels):
            if label == -1:
                continue
            if not 0 <= label < self.classes:
                raise Broken(f"evaluation/labels.npy: cell {cell} has the label {label}")
            counts[label][0] += 1
            said = predicted(values[cell * self.classes:(cell + 1) * self.classes])
            if said is not None:
                counts[said][1] += 1
                counts[said][2] += said == label
        return counts

    def members_interval(self, seed):
        return None

    def mean_iou(self, counts):
        ious = [share(hits, cells + said - hits) for cells, said, hits in counts]
        found = [iou for iou in ious if iou is not None]
        return ious, functools.reduce(operator.add, found) / len(found) if found else None

    def judge_member(self, values):
        return {"quality": self.mean_iou(self.segments(values))[1], "quality_top_5": None}

    def judge_vote(self, said, majority):
        counts = self.segments(said)
        ious, mean = self.mean_iou(counts)
        rows = [{"name": name, "cells": cells, "predicted": predicted_cells, "hits": hits, "iou": iou}
                for name, (cells, predicted_cells, hits), iou in zip(self.names, counts, ious)]
        accuracy = share(sum(hits for _, _, hits in counts), sum(cells for cells, _, _ in counts))
        return {"ensemble": mean, "ensemble_top_5": None, "ensemble_majority": self.mean_iou(self.segments(majority))[1],
                "ensemble_voc_ap50": None, "ensemble_ap10": None, "categories": [],
                "ensemble_pixel_accuracy": accuracy, "segments": rows}, None


class Stream:
    """The numbers of (seed, purpose, a, b): Philox4x32-10 (Salmon et al., SC 2011), block by block."""

    def __init__(self, seed, purpose, a, b):
        self.key, self.name, self.block, self.words = (seed & 0xFFFFFFFF, seed >> 32), (purpose << 24, a, b, 0), 0, []

    def next(self):
        if not self.words:
            first = self.name[0] | self.block
            counter, key = (first, *self.name[1:]), self.key
            for _ in range(10):
                one, two = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
                counter = ((two >> 32) ^ counter[1] ^ key[0], two & 0xFFFFFFFF,
                           (one >> 32) ^ counter[3] ^ key[1], one & 0xFFFFFFFF)
                key = (key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF
            self.words = list(reversed(counter))
            self.block += 1
        return self.words.pop()

    def below(self, n):
        """Lemire's method with rejection."""
        if n < 2:
            return 0
        product = self.next() * n
        if product & 0xFFFFFFFF < n:
            while product & 0xFFFFFFFF < 2 ** 32 % n:
                product = self.next() * n
        return product >> 32


def draws_of_members(seed, members):
    """How often each member is in each of 1000 draws of as many."""
    draws = []
    for replicate in range(1000):
        stream, weights = Stream(seed, 7, replicate, 1), [0] * members
        for _ in range(members):
            weights[stream.below(members)] += 1
        draws.append(tuple(weights))
    return draws


def wilson_interval(correct, samples):
    """E. B. Wilson, J. Am. Stat. Assoc. 22 (1927)."""
    if not samples:
        return None
    z, n = 1.959963984540054, float(samples)
    p = correct / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


# --- detection --------------------------------------------------------------------------------

def intersection(a, b):
    end, other = a[2] + a[0], b[2] + b[0]
    width = (other if other < end else end) - (b[0] if b[0] > a[0] else a[0])
    if not width > 0:
        return 0
    end, other = a[3] + a[1], b[3] + b[1]
    height = (other if other < end else end) - (b[1] if b[1] > a[1] else a[1])
    return width * height if height > 0 else 0


def overlap(a, b):
    shared = intersection(a, b)
    return shared / (a[2] * a[3] + b[2] * b[3] - shared) if shared > 0 else 0


def matches(boxes, said, threshold):
    """(score, hit) of the detections of one image and category, as pycocotools matches them."""
    taken, found = [False] * len(boxes), []
    for score, box in sorted(said, key=lambda one: -one[0])[:100]:
        best, choice = min(threshold, 1 - 1e-10), None
        for index, truth in enumerate(boxes):
            if not taken[index] and overlap(box, truth) >= best:
                best, choice = overlap(box, truth), index
        if choice is not None:
            taken[choice] = True
        found.append((score, choice is not None))
    return found


def precisions(ranks, positives):
    """COCO's mean at 101 recalls, and the area under Pascal VOC's curve; of the hits' ranks, the best is 1."""
    recall = [hits / positives for hits in range(1, len(ranks) + 1)]
    precision = [hits / (rank + EPSILON) for hits, rank in enumerate(ranks, 1)]
    for index in range(len(precision) - 1, 0, -1):
        precision[index - 1] = max(precision[index - 1], precision[index])

    place = bisect.bisect_left(recall, 1.0)
    coco, place = precision[place] if place < len(recall) else 0, 0
    for index in range(100):
        while place < len(recall) and recall[place] < index * 0.01:
            place += 1
        if place == len(recall):
            break  # the others are 0
        coco += precision[place]
    area = before = 0
    for r, p in zip(recall, precision):
        area += (r - before) * p
        before = r
    return coco / 101, area


class Detection:
    files = ("detections.json", "ensemble.json", "annotations.json")
    metric = "coco_ap50"

    def __init__(self, result, record, config):
        self.result, self.config = result, config
        name = "evaluation/annotations.json"
        truth = read_json(result, name, False)
        self.labels_sha256 = sha256(result.read(name))
        self.images = {image["id"]: index for index, image in enumerate(sorted(truth["images"], key=lambda i: i["id"]))}
        self.categories = sorted(truth["categories"], key=lambda one: one["id"])
        must_be(name, "the number of images", len(self.images), record["workload"]["validation_samples"], "result.json")
        must_be(name, "the number of categories", len(self.categories), int(config["workload.classes"]), "config.yaml")
        self.boxes = {}
        for box in truth["annotations"]:
            if box.get("iscrowd"):
                raise Broken(f"{name}: has a crowd, which this program does not know")
            self.boxes.setdefault((box["category_id"], self.images[box["image_id"]]), []).append(box["bbox"])
        self.pooled = {}
        self.members = self.unscored = 0

    def read(self, name):
        """(image, category, score, box) by image."""
        said = read_json(self.result, name, False)
        rows = [(self.images[one["image_id"]], one["category_id"], one["score"], one["bbox"]) for one in said]
        return sorted(rows, key=lambda row: row[0]), sha256(self.result.read(name))

    def ranked(self, said, threshold):
        """Of each category (image, score, hit), best first, and the image of each box."""
        by_place, found = {}, []
        for image, category, score, box in said:
            by_place.setdefault((category, image), []).append((score, box))
        for category in self.categories:
            rows, boxes = [], []
            for image in range(len(self.images)):
                place = (category["id"], image)
                truth = self.boxes.get(place, [])
                boxes += [image] * len(truth)
                rows += [(image, *one) for one in matches(truth, by_place.get(place, []), threshold)]
            found.append((sorted(rows, key=lambda row: -row[1]), boxes))
        return found

    def quality(self, said, threshold):
        """[category] -> (boxes, detections, hits, (coco, area) or None), and the two means."""
        rows = []
        for ranked, boxes in self.ranked(said, threshold):
            hits = [hit for _, _, hit in ranked]
            ranks = [rank for rank, hit in enumerate(hits, 1) if hit]
            rows.append((len(boxes), len(hits), len(ranks), precisions(ranks, len(boxes)) if boxes else None))
        counted = [row[3] for row in rows if row[3]]
        means = [total(one[kind] for one in counted) / len(counted) if counted else None for kind in (0, 1)]
        return rows, means

    def mean_of_draw(self, categories, stream):
        """Mean COCO precision where as many images are drawn; of each category the images of the detections, the
        best first, which of these are hits, and the images of the boxes."""
        times, found = [0] * len(self.images), []
        for _ in times:
            times[stream.below(len(times))] += 1
        for images, hits, boxes in categories:
            positives = sum(times[image] for image in boxes)
            if positives:
                ends = list(itertools.accumulate(map(times.__getitem__, images)))
                ranks = [rank for hit in hits for rank in range(ends[hit] - times[images[hit]] + 1, ends[hit] + 1)]
                found.append(precisions(ranks, positives)[0])
        return total(found) / len(found) if found else None

    def judge(self, name):
        said, digest = self.read(name)
        for image, category, score, box in said:
            self.pooled.setdefault(image, []).append((category, score, box, self.members))
        self.members += 1
        return {"quality": self.quality(said, 0.5)[1][0], "quality_top_5": None}, digest

    def can_be_drawn(self, draws):
        """Whether it takes seconds here, not hours."""
        detections = sum(map(len, self.pooled.values()))
        return len(set(draws)) * detections <= 10 ** 5 and 1000 * (detections + len(self.images)) <= 10 ** 7

    def interval_of(self, draws, seed, of_samples):
        """(low, high); None without a box; False where it would take too long here."""
        if not self.can_be_drawn(draws):
            return False
        found = {weights: [([image for image, _, _ in ranked], [i for i, row in enumerate(ranked) if row[2]], boxes)
                           for ranked, boxes in self.ranked(self.combined(weights), 0.5)] for weights in set(draws)}
        means = [self.mean_of_draw(found[weights], Stream(seed, 7, replicate, of_samples))
                 for replicate, weights in enumerate(draws)]
        means = sorted(mean for mean in means if mean is not None)
        tail = len(means) // 40
        return (means[tail], means[-1 - tail]) if means else None

    def members_interval(self, seed):
        return self.interval_of(draws_of_members(seed, self.members), seed, 2)

    def fuse(self, candidates, weighted, least, weights):
        """Clusters of one category, best first: weighted boxes fusion, or suppression."""
        clusters, boxes = [], []
        for _, score, box in candidates:
            best, found = least, None
            for index, other in enumerate(boxes):
                shared = overlap(other, box)
                if shared > best:
                    best, found = shared, index
            if found is None:
                clusters.append([0, 0, 0, 0, 0, 0])
                boxes.append(box)
                found = len(clusters) - 1
            elif not weighted:
                continue
            corners = (box[0], box[1], box[0] + box[2], box[1] + box[3])
            cluster = clusters[found]
            cluster[:] = [cluster[0] + score, cluster[1] + 1, *(c + score * x for c, x in zip(cluster[2:], corners))]
            if cluster[1] > 1:
                left, top, right, bottom = (corner / cluster[0] for corner in cluster[2:])
                boxes[found] = [left, top, right - left, bottom - top]
        if not weighted:
            return [(cluster[0], box) for cluster, box in zip(clusters, boxes)]
        models = sum(weight > 0 for weight in weights)
        return [(cluster[0] / cluster[1] * min(models, cluster[1]) / sum(weights), box)
                for cluster, box in zip(clusters, boxes)]

    def combined(self, weights=None):
        """What the members' detections fuse to; `weights`, if any, of the members."""
        weights = weights or [1] * self.members
        weighted = self.config["bagging.aggregation"] == "wbf"
        least = float(self.config["detector.fusion_overlap"]) or (0.55 if weighted else 0.5)
        lowest = float(self.config["detector.score_threshold"])
        fused = []
        for image in sorted(self.pooled):
            kept = [(category, (weights[member] if weighted else 1) * score, box)
                    for category, score, box, member in self.pooled[image]
                    if weights[member] and box[2] * box[3] > 0 and score > 0 and score >= lowest]
            kept.sort(key=lambda one: (one[0], -one[1]))
            rows = [(image, category, score, box) for category, some in itertools.groupby(kept, key=lambda one: one[0])
                    for score, box in self.fuse(list(some), weighted, least, weights)]
            fused += sorted(rows, key=lambda row: -row[2])[:100]
        return fused

    def ensemble(self):
        name = "evaluation/ensemble.json"
        stored, digest = self.read(name)
        fused = self.combined()
        if [(*row[:3], list(row[3])) for row in fused] != [(*row[:3], list(row[3])) for row in stored]:
            index = next((i for i, (a, b) in enumerate(zip(fused, stored)) if (*a[:3], list(a[3])) != (*b[:3], list(b[3]))),
                         min(len(fused), len(stored)))
            find(name, f"detection {index} of {len(stored)} is not that of {len(fused)} which groups/*/detections.json fuse to")
        strict, (coco, area) = self.quality(fused, 0.5)
        tolerant, (ap10, _) = self.quality(fused, 0.1)
        rows = [{"name": category["name"], "boxes": one[0], "detections": one[1], "hits": one[2],
                 "ap50": one[3] and one[3][0], "voc_ap50": one[3] and one[3][1], "ap10": other[3] and other[3][0]}
                for category, one, other in zip(self.categories, strict, tolerant)]
        return {"ensemble": coco, "ensemble_top_5": None, "ensemble_majority": None, "ensemble_voc_ap50": area,
                "ensemble_ap10": ap10, "categories": rows, "ensemble_pixel_accuracy": None, "segments": []}, digest, \
            self.interval_of([(1,) * self.members] * 1000, 1, 0)


def predictions_of(config):
    kinds = {"faster_rcnn_r50_fpn": Detection, "segmentation_net": Segmentation}
    return kinds.get(config["workload.model"], Classification)


# --- the verdict ------------------------------------------------------------------------------

DETECTOR = {"trained_stages": "5", "pyramid_channels": "256", "head_features": "1024",
            "anchor_sizes": "[32, 64, 128, 256, 512]", "anchor_ratios": "[0.5, 1, 2]", "anchor_samples": "256",
            "region_samples": "512", "training_proposals": "2000", "inference_proposals": "1000"}


def rules_of(config, record, bad_samples):
    """docs/RULES.md, 1 to 7 and 9: (number, what, required, found, kept, what to say when it is broken)."""
    rules, workload = [], record["workload"]
    if config["run.level"] == "custom":
        return rules

    def rule(number, what, required, found, kept, broken=None):
        rules.append((number, what, str(required), str(found), kept,
                      broken or f"rule {number}: {what} must be {required}, is {found}"))

    def equal(number, what, required, found):
        rule(number, what, required, found, str(required) == str(found))

    def key(number, name, required, kept):
        rule(number, name, required, config[name] or "empty", kept)

    def no_objection():
        objections = workload["data_objections"]
        more = f" (and {len(objections) - 1} more)" if len(objections) > 1 else ""
        found = objections[0] + more if objections else "none"
        rule(1, "objections to the data", "none", found, not objections, f"rule 1: {found}")

    kind = config["workload.kind"]
    if kind == "image_classification":
        key(1, "data.kind", "image_folder (the photographs of ImageNet-1k)", config["data.kind"] == "image_folder")
        equal(1, "the number of training samples", 1281167, workload["training_samples"])
        equal(1, "the number of validation samples", 50000, workload["validation_samples"])
        no_objection()
        for number, name, required in ((1, "classes", 1000), (2, "image_size", 224), (2, "backbone_width", 64),
                                       (3, "epochs", 90), (4, "target_quality", 0.763), (4, "penalty_exponent", 5)):
            equal(number, "workload." + name, required, config["workload." + name])
    elif kind == "extreme_weather":
        key(1, "data.kind", "climate_hdf5 (years of the ExtremeWeather data)", config["data.kind"] == "climate_hdf5")
        for what in ("training", "validation"):
            found = workload[what + "_samples"]
            rule(1, f"the number of {what} samples", "1460 or more", found, found >= 1460)
        no_objection()
        width = config["workload.image_width"]
        equal(1, "workload.classes", 4, config["workload.classes"])
        equal(2, "workload.image_size", 768, config["workload.image_size"])
        equal(2, "workload.image_width", 1152, config["workload.image_size"] if width == "auto" else width)
        for number, name, required in ((2, "channels", 16), (2, "backbone_width", 64), (3, "epochs", 50),
                                       (4, "target_quality", 0.35), (4, "penalty_exponent", 10)):
            equal(number, "workload." + name, required, config["workload." + name])
        for name, required in DETECTOR.items():
            equal(2, "detector." + name, required, config["detector." + name])
    else:
        key(1, "workload.kind", "image_classification or extreme_weather", False)
    key(5, "bagging.sampler", "bootstrap or poisson", config["bagging.sampler"] in ("bootstrap", "poisson"))
    key(6, "training.initial_weights", "empty", not config["training.initial_weights"])
    equal(7, "the number of bad samples", 0, bad_samples)
    if config["run.level"] != "free":
        equal(9, "training.batch_norm_samples", "auto", config["training.batch_norm_samples"])
    return rules


SUBMISSION = ("system_name", "organization", "contact", "hardware", "operating_system", "communication_libraries",
              "acceleration_libraries", "framework", "parallel_mode", "algorithm", "hyper_parameters", "problem")


def submission_of(config):
    """As the configuration tells, and what a ranking lacks in it."""
    submission = {key: config["submission." + key] for key in SUBMISSION}
    missing = [key for key in SUBMISSION if key != "contact" and not submission[key].strip(" \t\r\n")]
    return {**submission, "missing": missing}


def errors_of(gpu):
    """Rule 10, for one GPU."""
    count, xids = gpu["uncorrected_ecc_errors"] or 0, [f"Xid {xid}" for xid in gpu["xids"]]
    errors = [f"{count:.0f} uncorrected memory error{'' if count == 1 else 's'}"] if count > 0 else []
    return ", ".join(errors + xids[:4] + [f"{len(xids) - 4} more"] * (len(xids) > 4))


def judge(config, record, groups):
    """The whole verdict."""
    failures = [f"group {index}: {group['failure']}" for index, (group, _) in enumerate(groups) if group["failure"]]
    diverged = sum(bool(group["failure"]) and group["audit"]["diverged_at_step"] > 0 for group, _ in groups)
    rules = rules_of(config, record, sum(bad for _, bad in groups))
    broken = [rule[5] for rule in rules if not rule[4]]
    eighth = f"rule 8: the ranks of a group must hold the same model, those of {diverged} of {len(groups)} groups did not"
    rules.append((8, "groups whose ranks held different models", "0", str(diverged), not diverged, eighth))
    watched = [gpu for group, _ in groups if not group["failure"] for gpu in group["device_health"]]
    ill = [f"rank {gpu['world_rank']} on {gpu['host']}: {errors}" for gpu in watched if (errors := errors_of(gpu))]
    if watched:
        found = "none" if not ill else ill[0] + (f" (and {len(ill) - 1} more)" if len(ill) > 1 else "")
        rules.append((10, "GPUs with uncorrected memory errors or Xids", "none", found, not ill, f"rule 10: {found}"))
        broken += [f"rule 10: {found}"] * bool(ill)
    rules.sort(key=lambda rule: rule[0])
    names = ("number", "what", "required", "found", "kept")

    def verdict(status, reasons, code, rankable=False):
        return {"status": status, "reasons": reasons, "exit_code": code, "rankable": rankable,
                "rules": [dict(zip(names, rule)) for rule in rules]}

    reasons = [eighth] if diverged else []
    if len(failures) == len(groups):
        stored = record["verdict"]["exit_code"]  # nothing else in the record says why they failed
        return verdict("INVALID", reasons + failures, 9 if diverged else 4 if stored == 4 else 5)
    if record["scores"]["vflops"] is None:
        reasons.append("the score is not a number")
    reasons += broken
    if reasons:
        return verdict("INVALID", reasons + failures, 9)
    if failures:
        finished = len(groups) - len(failures)
        return verdict("PARTIAL", [f"{finished} of {len(groups)} groups finished"] + failures, 7)
    if config["run.level"] == "custom":
        return verdict("CUSTOM", ["run.level is custom: not rankable"], 0)
    missing = submission_of(config)["missing"]
    lacks = [f"not rankable: the section submission lacks {', '.join(missing)}"] if missing else []
    went_on = any(group["continuations"] for group, _ in groups)
    if went_on:
        lacks.append("a group went on from a checkpoint in another program: not rankable, as the time "
                     "between is not counted")
    return verdict("VALID", lacks, 0, not missing and not went_on)


# --- the numbers ------------------------------------------------------------------------------

def result_directory(arguments):
    return next((one.directory for one in arguments if isinstance(one, Result)), ".")


def attempt(function, *arguments):
    """The function's result; a finding and None where a file is not what it must be."""
    try:
        return function(*arguments)
    except Broken as error:
        name, _, text = str(error).partition(": ")
        find(name, text)
    except OSError as error:
        find(os.path.relpath(error.filename or result_directory(arguments), result_directory(arguments)),
             f"cannot be read: {error.strerror}")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, struct.error, ArithmeticError,
            RecursionError, MemoryError) as error:
        find("result.json", f"or a file beside it lacks or mistypes a value: {error!r}")
    return None


def learning_curve(config, steps, group, quality):
    """Of a group that finished; what its model was worth before the last epoch nobody else knows."""
    every, last, stored = int(config["run.evaluate_epochs"]), int(config["workload.epochs"]), group["quality_by_epoch"]
    if not every or quality is None:
        return []
    curve = []
    for index, epoch in enumerate(range(every, last, every)):
        seconds = max([0.0] + [step.end_seconds for step in steps if step.epoch < epoch])
        said = stored[index]["quality"] if index < len(stored) else 0.0
        curve.append({"epoch": epoch, "training_seconds": seconds, "quality": said})
    return curve + [{"epoch": last, "training_seconds": group["training_seconds"], "quality": quality}]


def time_to_quality(config, record, groups):
    """The longest time of all groups that finished until the first quality of at least the target."""
    times = []
    for group in groups if int(config["run.evaluate_epochs"]) else []:
        reached = [one["training_seconds"] for one in group["quality_by_epoch"]
                   if one["quality"] >= record["quality"]["target"]]
        if not group["failure"] and not reached:
            return None
        times += reached[:1] if not group["failure"] else []
    return max(times, default=None)


def stragglers_of(number, ranks):
    """Ranks of one stage whose work takes more than 1.2 times its median."""
    if any(None in rank[7:10] for rank in ranks) or len(ranks) < 2:
        return []
    works = [rank.input_wait_seconds + rank.forward_seconds + rank.backward_seconds for rank in ranks]
    middle, found = median(works), []
    for rank, work in zip(ranks, works):
        if middle and work / middle > 1.2:
            excess = [getattr(rank, phase) - median([getattr(one, phase) for one in ranks]) for phase in PHASES[:3]]
            slow = PHASES[excess.index(max(excess))].removesuffix("_seconds")
            found.append({"group": number, "group_rank": rank.group_rank, "world_rank": rank.world_rank,
                          "host": rank.host, "phase": slow, "ratio": work / middle})
    return found


SPREAD = ("minimum", "median", "p99", "maximum")


def check_breakdown(stored, ranks, folder):
    """time_breakdown of a group, but for the stragglers."""
    def compare(key, is_, wanted):
        must_be(folder + "record.json", "record.time_breakdown." + key, is_, wanted, folder + "ranks.csv")

    for column in (*PHASES, "hidden_communication_seconds"):
        values, name = [getattr(rank, column) for rank in ranks], column.removesuffix("_seconds")
        ordered = sorted(values) if None not in values else None
        spread = (ordered[0], median(ordered), nearest_rank(ordered, 0.99), ordered[-1]) if ordered else (None,) * 4
        for key, value in zip(SPREAD, spread):
            compare(f"{name}.{key}", stored[name][key], value)
    medians = [rank.median_step_seconds for rank in ranks]
    compare("step_seconds", stored["step_seconds"], None if None in medians else median(medians))


def check_ranks(group, ranks, steps, folder, places, has_stages):
    if len(ranks) != group["ranks"]:
        find(folder + "ranks.csv", f"has {len(ranks)} ranks; must have {group['ranks']}")
        return
    for number, rank in enumerate(ranks):
        place = next(one for one in places if one["group"] == group["group"] and one["group_rank"] == number)
        host = re.sub('[^!-~]|[,"]', "_", place["host"].encode().decode("latin-1"))
        for key, wanted in (("group_rank", number), ("world_rank", place["world_rank"]), ("host", host),
                            ("steps", group["iterations"])):
            if getattr(rank, key) != wanted:
                find(folder + "ranks.csv", f"{key} of rank {number} is {getattr(rank, key)}; must be {wanted}")
    if steps:
        check_leader(ranks[0], steps, folder)
    check_breakdown(group["time_breakdown"], ranks, folder)
    if not has_stages:
        must_be(folder + "record.json", "record.time_breakdown.stragglers", group["time_breakdown"]["stragglers"],
                stragglers_of(group["group"], ranks), folder + "ranks.csv")


def nothing_of(row):
    """What a row has where nothing was stored."""
    counts = {"group", "ranks", "samples_drawn", "samples_trained", "iterations", "skipped_steps", "passed",
              "diverged_at_step"}
    blank = {}
    for key, value in row.items():
        if key in counts and not isinstance(value, list):  # an audit has "ranks", too
            blank[key] = 0
        elif isinstance(value, (dict, list, str)):
            if not key.endswith("_reason"):
                blank[key] = nothing_of(value) if isinstance(value, dict) else type(value)()
        else:
            blank |= {key: None, key + "_reason": "not measured"}
    return blank


def check_group(result, number, listed, record, model, predictions, config):
    """The group's record as it must be, all that is stored of it, its quality and its digest."""
    folder = f"groups/{number}/"
    name = folder + "record.json"
    if listed["failure"] and not os.path.exists(os.path.join(result.directory, name)):
        known = {"group": number, "ranks": record["topology"]["degree"], "failure": listed["failure"]}
        return nothing_of(listed) | known, {}, None, ""
    stored = attempt(read_json, result, name)
    if stored is None:
        return listed, {}, None, ""
    group = dict(stored["record"])
    must_be(name, "record.group", group["group"], number, "its folder")
    must_be(name, "record.ranks", group["ranks"], record["topology"]["degree"], "result.json")
    hosts = sorted({place["host"] for place in record["topology"]["map"] if place["group"] == number})
    must_be(name, "record.hosts", group["hosts"], hosts, "topology.map in result.json")
    audit, counts = group["audit"], ("samples_drawn", "samples_trained", "iterations", "skipped_steps")
    for key, count in (("bad_samples", stored["bad_samples"]), *(("record." + key, group[key]) for key in counts),
                       *(("record.audit." + key, audit[key]) for key in ("passed", "diverged_at_step"))):
        if count < 0:
            find(name, f"{key} is {count}; must be 0 or more")
    quality, digest = stored["quality"], stored["training_digest"]
    if not group["failure"]:
        must_be(name, "record.audit.diverged_at_step", audit["diverged_at_step"], 0, "a group that finished")
        if config["bagging.sampler"] == "poisson":
            usual = record["workload"]["training_samples"]
            if abs(group["samples_drawn"] - usual) > 10 * math.sqrt(usual):
                find(name, f"record.samples_drawn is {group['samples_drawn']}; must be near {usual}, by the sampler")
        steps = attempt(read_steps, result, folder + "steps.csv")
        if steps is not None:
            wanted = int(config["workload.epochs"]) * (group["samples_drawn"] // int(config["training.batch_size"]))
            if len(steps) != wanted or not steps:
                find(folder + "steps.csv", f"has {len(steps)} steps; must have {wanted}, those of all epochs")
            check_steps(config, group, steps, folder)
            samples, seconds = sum(step.samples for step in steps), steps[-1].end_seconds if steps else None
            for key, value in (("samples_trained", samples), ("iterations", len(steps)), ("training_seconds", seconds)):
                must_be(name, "record." + key, group[key], value, folder + "steps.csv")
                group[key] = value
        ranks = attempt(read_ranks, result, folder + "ranks.csv")
        if ranks is not None:
            has_stages = config["parallel.mode"] in ("pipeline", "mixed")
            check_ranks(group, ranks, steps or [], folder, record["topology"]["map"], has_stages)
        if group["training_seconds"]:
            for key, work in (("images_per_second", 1), ("flops", 3 * model.flops)):
                value = float(group["samples_trained"]) * float(work) / group["training_seconds"]
                must_be(name, "record." + key, group[key], value, folder + "steps.csv")
                group[key] = value
        if predictions and not listed["failure"] and predictions.unscored > stored["bad_samples"]:
            predictions.find_unscored(f"at most {stored['bad_samples']}, the bad_samples of {name}")
        judged = attempt(predictions.judge, folder + predictions.files[0]) if predictions and not listed["failure"] else None
        if judged:
            for key, value in judged[0].items():
                must_be(name, key, stored[key], value, folder + predictions.files[0] + " and labels")
            must_be(name, "record.predictions_sha256", group["predictions_sha256"], judged[1], folder + predictions.files[0])
            quality, group["predictions_sha256"] = judged[0]["quality"], judged[1]
        elif predictions and not listed["failure"]:
            predictions.members = -10 ** 9  # no ensemble without this member
        if steps:
            curve = learning_curve(config, steps, group, quality)
            must_be(name, "record.quality_by_epoch", group["quality_by_epoch"], curve, folder + "steps.csv")
            group["quality_by_epoch"] = curve
        batches = group["iterations"] * int(config["parallel.micro_batches"])
        found = attempt(weights_digest, result, folder + "weights.safetensors", model, batches)
        if found:
            must_be(name, "training_digest", digest, found, folder + "weights.safetensors")
            digest = found
        check_continuations(name, group, record["time"]["started_utc"])
        check_health(name, number, group["device_health"], record, config)
        if group["continuations"]:
            must_be(name, "counters", stored["counters"], [], "record.continuations")
        else:
            check_steps_counter(name, stored["counters"], group, folder + "steps.csv")
        if not listed["failure"]:
            result.counters[number] = stored["counters"]
        group["failure"] = listed["failure"]
    return group, {**stored, "record": group}, quality, digest


def check_numbers(result, record, config):
    must_be("result.json", "name", record["name"], config["run.name"], "config")
    must_be("result.json", "submission", record["submission"], submission_of(config), "config")
    workload = record["workload"]
    for key, source in (("kind", "workload.kind"), ("model", "workload.model"), ("level", "run.level"),
                        ("classes", "workload.classes"), ("image_size", "workload.image_size"),
                        ("channels", "workload.channels"), ("epochs", "workload.epochs"),
                        ("batch_size", "training.batch_size"), ("sampler", "bagging.sampler"),
                        ("aggregation", "bagging.aggregation"), ("seed", "run.seed"), ("data_kind", "data.kind")):
        stored = workload[key]
        must_be("result.json", "workload." + key, str(stored), config[source], "config")
    if config["data.kind"] in ("synthetic", "climate_synthetic"):
        for key, source in (("training", "data.synthetic_samples"), ("validation", "data.synthetic_validation_samples")):
            must_be("result.json", f"workload.{key}_samples", workload[key + "_samples"], int(config[source]), "config")
    if config["training.precision"] != "auto":
        must_be("result.json", "workload.precision", workload["precision"], config["training.precision"], "config")
    topology, rows = record["topology"], record["work"]["groups"]
    must_be("result.json", "topology.ranks", topology["ranks"], len(topology["map"]), "topology.map")
    must_be("result.json", "topology.ranks", topology["ranks"], topology["groups"] * topology["degree"], "eq. 5")
    must_be("result.json", "topology.groups", topology["groups"], len(rows), "work.groups")
    model = Model(config)
    must_be("result.json", "flops.convention", record["flops"]["convention"], "table3", "docs/METRICS.md")
    official = [dict(record["flops"]), *(one for one in record["flops"]["ledgers"] if one["convention"] == "table3")]
    for one in official:
        must_be("result.json", "flops.forward_per_sample", one["forward_per_sample"], model.flops, "the model's layers")
        must_be("result.json", "flops.training_per_sample", one["training_per_sample"], 3 * model.flops, "the model's layers")
    voted = [row for row in rows if not row["failure"]]
    predictions = attempt(predictions_of(config), result, record, config) if voted else None
    groups, results, members, digests = [], [], [], []
    for number, row in enumerate(rows):
        checked = attempt(check_group, result, number, row, record, model, predictions, config)
        if checked is None:
            return
        group, stored, quality, digest = checked
        must_be("result.json", f"work.groups[{number}]", row, group, f"groups/{number}/record.json and what it is made of")
        groups.append((group, stored.get("bad_samples", 0)))
        results.append(stored)
        members.append(quality if not group["failure"] else None)
        digests.append(digest if not group["failure"] else "")
    must_be("result.json", "training_digest", record["training_digest"], digests, "groups/<m>/weights.safetensors")
    check_scores(result, record, config, groups, members, predictions)
    check_parameters(record, config, sum(bad for _, bad in groups))
    check_ceiling(record, config)
    for (group, _), quality in zip(groups, members):
        attempt(check_log, result, record, group, quality)
    check_extremes(record, config, [group for group, _ in groups], results)


# Rows of the summary that say what is in force, not what was set.
IN_FORCE = ("bagging.M", "bagging.P_degree", "training.precision", "training.batch_norm_samples", "parallel.data_degree",
            "parallel.pipeline_degree", "parallel.model_degree", "parallel.micro_batches")


def check_parameters(record, config, bad_samples):
    """The rows of the summary's parameters, but for their meanings."""
    rows = [(row["key"], row["value"]) for row in record["parameters"]]
    settings = [row for row in rows if row[0] in config]
    facts = [row for row in rows if row[0] not in config]
    for key, value in settings:
        if key not in IN_FORCE:
            must_be("result.json", f"parameters has {key}, which", value, config[key], "config")
    must_be("result.json", "parameters has rows twice, which", len(set(dict(rows))), len(rows))
    for key, wanted in (("bagging.M", record["topology"]["groups"]), ("bagging.P_degree", record["topology"]["degree"])):
        must_be("result.json", f"parameters has {key}, which", dict(rows).get(key), str(wanted), "topology")
    must_be("result.json", "parameters has training.precision, which", dict(rows).get("training.precision"),
            record["workload"]["precision"], "workload.precision")
    wanted = ["staged"] if record["staging"]["scope"] != "none" else []
    wanted += ["bad samples"] if bad_samples > 0 else []
    must_be("result.json", "parameters has besides settings what", [key for key, _ in facts], wanted, "staging and work.groups")
    if bad_samples > 0:
        must_be("result.json", "parameters has bad samples, which", dict(facts).get("bad samples"), str(bad_samples), "work.groups")


def check_ceiling(record, config):
    ceiling, source = record["roofline"], config["run.roofline"]
    wanted = "measured before training" if source == "measure" else source
    must_be("result.json", "roofline.source", ceiling["source"], wanted, "config")
    must_be("result.json", "roofline.precision", ceiling["precision"], record["workload"]["precision"], "workload.precision")
    parts = [ceiling[key] for key in ("gemm_flops", "model_convolution_flops") if ceiling[key] is not None]
    must_be("result.json", "roofline.ceiling_flops", ceiling["ceiling_flops"], max(parts, default=None), "the larger of its parts")


def check_log(result, record, group, quality):
    """What a log for MLPerf says of a group's seed, quality and end; `verify` compares all of it."""
    name, said = f"mllog/result_{group['group']}.txt", {}
    for line in result.text(name).split("\n")[:-1]:
        event = json.loads(line.removeprefix(":::MLLOG "))
        said.setdefault(event["key"], []).append(event)
    if [event["value"] for event in said.get("seed", [])] != [record["workload"]["seed"]]:
        find(name, f"is not what result.json gives: seed must be {record['workload']['seed']}")
    wanted = [one["quality"] for one in group["quality_by_epoch"] if one["epoch"] < record["workload"]["epochs"]]
    wanted += [quality] if not group["failure"] and quality is not None else []
    if [event["value"] for event in said.get("eval_accuracy", [])] != wanted:
        find(name, f"is not what result.json gives: eval_accuracy must be {wanted}")
    status = "aborted" if group["failure"] else "success"
    if [event["metadata"]["status"] for event in said.get("run_stop", [])] != [status]:
        find(name, f"is not what result.json gives: the status of run_stop must be {status}")


def check_scores(result, record, config, groups, members, predictions):
    quality, scores = record["quality"], record["scores"]
    kind = predictions_of(config)
    must_be("result.json", "quality.metric", quality["metric"], kind.metric, "config")
    must_be("result.json", "quality.target", quality["target"], float(config["workload.target_quality"]), "config")
    must_be("result.json", "quality.exponent", quality["exponent"], float(config["workload.penalty_exponent"]), "config")
    must_be("result.json", "quality.members", quality["members"], members, "groups/<m>/" + kind.files[0])
    ensemble = attempt(predictions.ensemble) if predictions and predictions.members > 0 else None
    source = f"evaluation/{kind.files[1]} and evaluation/{kind.files[2]}"
    if ensemble:
        numbers, digest, interval = ensemble
        for key, value in numbers.items():
            stored = quality[key]
            if key in ("categories", "segments"):
                stored = [{name: one[name] for name in value[0]} for one in stored] if value else stored
            must_be("result.json", "quality." + key, stored, value, source)
        must_be("result.json", "quality.ensemble_sha256", quality["ensemble_sha256"], digest, "evaluation/" + kind.files[1])
        if interval:
            for key, value in zip(("low", "high"), interval):
                must_be("result.json", "quality.confidence_interval." + key, quality["confidence_interval"][key], value, source)
    if ensemble:
        found = predictions.members_interval(int(config["run.seed"]))
        stored = quality["members_interval"]
        ends = [stored["low"], stored["high"]]
        if found is None or ends == [None, None] and "are too many" in stored.get("low_reason", ""):
            found = (None, None)
        if found is not False:
            must_be("result.json", "quality.members_interval", ends, list(found), "groups/<m>/" + kind.files[0])
    if all(group["failure"] for group, _ in groups):
        must_be("result.json", "quality.ensemble", quality["ensemble"], None, "groups that all failed")
    if predictions:
        must_be("result.json", "quality.labels_sha256", quality["labels_sha256"], predictions.labels_sha256, "evaluation/" + kind.files[2])
    finished = [member for (group, _), member in zip(groups, members) if not group["failure"]]
    achieved = quality["ensemble"]
    mean = 0.0 if not finished else total(member or 0 for member in finished) / len(finished)
    has_mean = finished and achieved is not None
    must_be("result.json", "quality.members_mean", quality["members_mean"], mean if has_mean else None, "quality.members")
    must_be("result.json", "quality.ensemble_gain", quality["ensemble_gain"], achieved - mean if has_mean else None, "quality")
    check_work(record, [group for group, _ in groups])
    must_be("result.json", "time.time_to_quality_seconds", record["time"]["time_to_quality_seconds"],
            time_to_quality(config, record, [group for group, _ in groups]), "work.groups")
    penalty = None
    if achieved is not None:
        penalty = (achieved / quality["target"]) ** quality["exponent"]
        if scores["penalty_coefficient"] is not None and abs(scores["penalty_coefficient"] - penalty) <= 1e-15 * penalty:
            penalty = scores["penalty_coefficient"]  # another machine's pow()
    must_be("result.json", "scores.penalty_coefficient", scores["penalty_coefficient"], penalty, "eq. 8")
    vflops = None if penalty is None or scores["flops"] is None else scores["flops"] * penalty
    must_be("result.json", "scores.vflops", scores["vflops"], vflops, "eq. 7")
    has_members = quality["members_interval"]["low"] is not None
    interval = quality["members_interval" if has_members else "confidence_interval"]
    for key in ("low", "high"):
        end, stored = None, scores["vflops_interval"][key]
        if interval[key] is not None and scores["flops"] is not None:
            end = scores["flops"] * (interval[key] / quality["target"]) ** quality["exponent"]
            if stored is not None and abs(stored - end) <= 2e-15 * end:
                end = stored
        must_be("result.json", "scores.vflops_interval." + key, stored, end, "eq. 7 and 8")
    check_energy(result, record, config, vflops)
    for key, value in judge(config, record, groups).items():
        must_be("result.json", "verdict." + key, record["verdict"][key], value, "docs/RULES.md")


def check_work(record, groups):
    """Eq. 6, and the sums over groups."""
    finished = [group for group in groups if not group["failure"]]
    samples = sum(group["samples_trained"] for group in finished)
    must_be("result.json", "work.samples_trained", record["work"]["samples_trained"], samples, "work.groups")
    must_be("result.json", "work.iterations", record["work"]["iterations"], sum(g["iterations"] for g in finished), "work.groups")
    longest = max([0.0] + [group["training_seconds"] or 0.0 for group in groups])
    must_be("result.json", "time.training_seconds", record["time"]["training_seconds"], longest, "work.groups")
    epochs = [max(group["epoch_seconds"][epoch] for group in groups if epoch < len(group["epoch_seconds"]))
              for epoch in range(max([0] + [len(group["epoch_seconds"]) for group in finished]))]
    must_be("result.json", "time.epoch_seconds", record["time"]["epoch_seconds"], epochs, "work.groups")
    speed = float(samples) / longest if finished and longest > 0 else None
    work = float(record["flops"]["training_per_sample"])
    flops = float(samples) * work / longest if speed is not None else None
    must_be("result.json", "throughput.images_per_second", record["throughput"]["images_per_second"], speed, "work.groups")
    per_rank = None if speed is None else speed / record["topology"]["ranks"]
    must_be("result.json", "throughput.per_rank", record["throughput"]["per_rank"], per_rank, "work.groups")
    must_be("result.json", "scores.flops", record["scores"]["flops"], flops, "eq. 6")


# --- energy and interfaces --------------------------------------------------------------------

METERS = {"nvml": "NVML", "nvml-power": "NVML", "rapl": "RAPL"}


def check_steps_counter(name, counters, group, source):
    """That of the leader: when the core phase began, and when the last step ended."""
    steps = next((one for one in counters if one["name"] == "training:steps"), None)
    if steps is None or not steps["readings"]:
        raise Broken(f"{name}: counters has no readings of training:steps")
    begin = steps["readings"][0]["utc_seconds"]
    expected = [{"utc_seconds": begin, "value": 0.0},
                {"utc_seconds": begin + group["training_seconds"], "value": float(group["iterations"])}]
    must_be(name, "counters training:steps", steps["readings"], expected, source)


def check_continuations(name, group, started):
    """Each program goes on at a step that the one before has taken, or at the first."""
    step = 0
    for one in group["continuations"]:
        if not (step <= one["step"] <= group["iterations"] and one["started_utc"] >= started):
            find(name, f"record.continuations has step {one['step']} at {one['started_utc']}; must be from step {step} "
                       f"to {group['iterations']} and not before {started}")
            return
        step, started = one["step"], one["started_utc"]


def check_health(name, number, gpus, record, config):
    """What drivers told of the group's GPUs, as far as they can have told it."""
    last, places = -1, record["topology"]["map"]
    for gpu in gpus:
        rank = gpu["world_rank"]
        if not last < rank < len(places) or places[rank]["group"] != number or config["run.meters"] == "none":
            find(name, f"record.device_health has rank {rank} behind {last}; must have the ranks of the group in order, "
                       "and none with run.meters none")
            return
        last = rank
        must_be(name, "record.device_health[].host", gpu["host"], places[rank]["host"], "topology.map in result.json")
        share = gpu["slowed_share"]
        share = bool(gpu["slowed_by"]) if share is None else share
        counts = [gpu[key] or 0.0 for key in ("corrected_ecc_errors", "uncorrected_ecc_errors")]
        if not 0 <= share <= 1 or (share > 0) != bool(gpu["slowed_by"]) or any(one < 0 or one % 1 for one in counts):
            find(name, f"record.device_health has a share of looks or a count of errors of rank {rank} that cannot be")


def value_at(readings, when, read_then):
    """What another group read then, if that lies between two readings, else on the straight line."""
    for left, right in zip(readings, readings[1:]):
        if left["utc_seconds"] <= when < right["utc_seconds"]:
            if read_then is not None and left["value"] <= read_then <= right["value"]:
                return read_then
            rise = (right["value"] - left["value"]) * (when - left["utc_seconds"])
            return left["value"] + rise / (right["utc_seconds"] - left["utc_seconds"])
    return readings[0 if when < readings[0]["utc_seconds"] else -1]["value"]


def growth(series):
    """Of one counter that several groups read: each stretch of time once."""
    if any(one["failure"] or not one["readings"] for one in series):
        return None
    spans = [(one["readings"][0]["utc_seconds"], one["readings"][-1]["utc_seconds"], one["readings"]) for one in series]
    now, total, read_last = min(begin for begin, _, _ in spans), 0.0, None
    while any(end > now for _, end, _ in spans):
        covering = [span for span in spans if span[0] <= now < span[1]]
        if not covering:
            return None
        _, end, readings = max(covering, key=lambda span: span[1])  # the first of those that end last
        total += readings[-1]["value"] - value_at(readings, now, read_last)
        now = end
        if not series[0]["name"].startswith("nvml-power:"):
            read_last = readings[-1]["value"]
    return total


def utc_text(seconds):
    milliseconds = math.floor(seconds * 1000)
    time = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
    return time.isoformat(timespec="milliseconds") + "Z"


def total_of_hosts(rows, key, hosts):
    """None where one is None, or a host has no row."""
    if any(row[key] is None for row in rows) or not hosts <= {row["host"] for row in rows}:
        return None
    return sum((row[key] for row in rows), 0.0)


def check_energy(result, record, config, vflops):
    series = {}
    went_on = any(group["continuations"] for group in record["work"]["groups"])  # none has read the whole training
    for number in [] if went_on else sorted(result.counters):
        for one in result.counters[number]:
            series.setdefault((one["host"], one["name"]), []).append(one)
    energy, communication, source = record["energy"], record["communication"], "counters in groups/<m>/record.json"
    ends = [(one["readings"][0]["utc_seconds"], one["readings"][-1]["utc_seconds"])
            for (_, name), some in series.items() if name == "training:steps" for one in some]
    longest = max((end - begin for begin, end in ends), default=0)
    if ends and max(end for _, end in ends) - min(begin for begin, _ in ends) > longest + max(5, 0.01 * longest):
        ends = []  # the hosts' clocks differ
    if int(config["run.evaluate_epochs"]):  # evaluations between the steps are nobody's core phase
        ends = []
    begin, end = min((pair[0] for pair in ends), default=None), max((pair[1] for pair in ends), default=None)
    for key, when in (("core_begin_utc", begin), ("core_end_utc", end)):
        must_be("result.json", "energy." + key, energy[key], "" if when is None else utc_text(when), source)
    meters, interfaces = [], []
    for (host, name), some in sorted(series.items(), key=lambda item: [part.encode() for part in item[0]]):
        if name.split(":")[0] in METERS:
            meters.append({"host": host, "name": name, "joules": growth(some)})
        elif name.startswith(("net:", "ib:")) and name.endswith(":sent"):
            received = series.get((host, name[:-len("sent")] + "received"))
            interfaces.append({"host": host, "name": name[:-len(":sent")], "sent_bytes": growth(some),
                               "received_bytes": received and growth(received)})
    for key, stored, expected in (("energy.meters", energy["meters"], meters),
                                  ("communication.interfaces", communication["interfaces"], interfaces)):
        must_be("result.json", key, [{name: value for name, value in row.items() if not name.endswith("_reason")}
                                     for row in stored], expected, source)
    places = record["topology"]["map"]
    hosts = {place["host"] for place in places}
    by_kind = {}
    for row in meters:
        by_kind.setdefault(METERS[row["name"].split(":")[0]], []).append(row)
    kinds = [kind for kind in ("NVML", "RAPL") if any(row["joules"] is not None for row in by_kind.get(kind, []))]
    sums = [total_of_hosts(by_kind[kind], "joules", hosts) for kind in kinds]
    told_apart = len(hosts) == len({(place["host"], place["node"]) for place in places})
    joules = sum(sums, 0.0) if kinds and None not in sums and told_apart else None
    sent = total_of_hosts(interfaces, "sent_bytes", hosts) if told_apart and interfaces else None
    watts = joules / (end - begin) if joules is not None and ends and end > begin else None
    per_watt = vflops / watts if vflops is not None and watts else None
    for key, stored, expected in (("energy.source", energy["source"], " and ".join(kinds)),
                                  ("energy.joules", energy["joules"], joules),
                                  ("energy.average_watts", energy["average_watts"], watts),
                                  ("scores.vflops_per_watt", record["scores"]["vflops_per_watt"], per_watt),
                                  ("communication.counted_sent_bytes", communication["counted_sent_bytes"], sent)):
        must_be("result.json", key, stored, expected, source)


def check_extremes(record, config, groups, results):
    """The largest or least of the groups."""
    def compare(section, key, wanted, source="work.groups"):
        must_be("result.json", f"{section}.{key}", record[section][key], wanted, source)

    def known(values):
        return [value for value in values if value is not None]

    flops, ceiling = record["scores"]["flops"], record["roofline"]["ceiling_flops"]
    per_rank = None if flops is None else flops / record["topology"]["ranks"]
    compare("utilization", "flops_per_rank", per_rank, "scores.flops")
    compare("utilization", "fraction", None if None in (per_rank, ceiling) else per_rank / ceiling, "roofline.ceiling_flops")
    finished = [group["time_breakdown"] for group in groups if not group["failure"]]
    compare("time_breakdown", "step_seconds", max(known(one["step_seconds"] for one in finished), default=None))
    for name in (*(phase.removesuffix("_seconds") for phase in PHASES), "hidden_communication"):
        for key in SPREAD:
            wanted = max(known(one[name][key] for one in finished), default=None)
            must_be("result.json", f"time_breakdown.{name}.{key}", record["time_breakdown"][name][key], wanted, "work.groups")
    compare("time_breakdown", "stragglers", [row for one in finished for row in one["stragglers"]])
    for key in ("algorithm", "precision"):
        compare("communication", key, config["communication." + key], "config")
    backends = sorted({one["sum_backend"] for one in results if one.get("sum_backend")})
    compare("communication", "backend", " and ".join(backends) or "none")
    for key in ("gradient_bytes", "buckets", "statistics_sums_per_step", "statistics_bytes_per_step"):
        compare("communication", key, max(one.get(key, 0) for one in results))
    for key in ("sent_bytes_per_step", "between_nodes_bytes_per_step", "out_of_node_bytes_per_step", "statistics_seconds"):
        compare("communication", key, max(known(one.get(key) for one in results), default=None))
    bandwidths = known(one.get("bandwidth_bytes_per_second") for one in results)
    compare("communication", "bandwidth_bytes_per_second", min(bandwidths, default=None))
    exposed = [(group["communication_seconds"], group["iterations"]) for group in groups]
    exposed = [one for one in exposed if one[0] is not None]
    compare("communication", "exposed_seconds", max((seconds for seconds, _ in exposed), default=None))
    compare("communication", "exposed_seconds_per_step", max((seconds / steps for seconds, steps in exposed if steps), default=None))
    parallel = record["parallel"]
    stages, parts, batches = (parallel[key] for key in ("pipeline_degree", "model_degree", "micro_batches"))
    for key in ("mode", "schedule"):
        compare("parallel", key, config["parallel." + key], "config")
    compare("parallel", "micro_batches", int(config["parallel.micro_batches"]), "config")
    degree = record["topology"]["degree"]
    must_be("result.json", "parallel.data_degree", parallel["data_degree"], degree // (stages * parts), "topology.degree")
    compare("parallel", "bubble_fraction", (stages - 1) / (batches + stages - 1) if stages > 1 else None)
    for section, ranks in (("message", stages), ("part", parts)):
        waits = known(one.get(section + "_wait_seconds") for one in results)
        compare("parallel", section + "_wait_seconds", max(waits, default=None) if ranks > 1 else None)
    sent = max(one.get("message_bytes_per_step", 0) for one in results)
    compare("parallel", "message_bytes_per_step", sent if stages > 1 else 0)
    compare("parallel", "part_bytes_per_step", max(one.get("part_bytes_per_step", 0) for one in results))


# --- the summary ------------------------------------------------------------------------------

def result_line(record, manifest):
    number = lambda value, form: "n/a" if value is None else format(value, form)
    scores, quality, topology = record["scores"], record["quality"], record["topology"]
    return (f"RESULT {record['verdict']['status']}  workload={record['workload']['kind']} M={topology['groups']} "
            f"P={topology['degree']} FLOPS={number(scores['flops'], '.3e')} VFLOPS={number(scores['vflops'], '.3e')} "
            f"quality={number(quality['ensemble'], '.4f')} target={quality['target']:.4f} manifest={manifest}")


def check_summary(result, record, manifest):
    text = result.text("summary.txt")
    body, mark, digest = text.rpartition("manifest=")
    must_be("summary.txt", "its last line", (text.rstrip("\n").split("\n"))[-1], result_line(record, manifest), "result.json and manifest.sha256")
    must_be("summary.txt", "what stands behind the last manifest=", digest, manifest + "\n")
    must_be("summary.txt", "its SHA-256 up to the last manifest=", sha256((body + mark + "\n").encode()), record["summary_sha256"], "result.json")


def check_run(directory):
    """The record as stored, or None, and the manifest's SHA-256."""
    result = Result(directory)
    manifest = attempt(check_manifest, result)
    record = attempt(read_json, result, "result.json")
    if record is not None:
        environment = attempt(read_json, result, "environment.json")
        if environment is not None:
            must_be("environment.json", "the environment", environment, record.get("environment"), "result.json")
        text = attempt(result.text, "config.yaml")
        if text is not None:
            must_be("config.yaml", "the text", text, record.get("config"), "config in result.json")
        attempt(check_summary, result, record, manifest or "")
        config = attempt(lambda: parse_config(record["config"]))
        if config is not None:
            attempt(check_numbers, result, record, config)
    return record, manifest or ""


# --- several runs -----------------------------------------------------------------------------

SPREADS = ("flops", "vflops", "quality", "training_seconds")


def check_spread(summary, key):
    values = [one[key] for one in summary["repetitions"] if one["counted"] and one[key] is not None]
    names = ("median", "minimum", "maximum", "median_absolute_deviation")
    wanted = [None] * 4
    if values:
        middle = median(values)
        wanted = [middle, min(values), max(values), median([abs(value - middle) for value in values])]
    must_be("repetitions.json", key, [summary[key][name] for name in names], wanted, "the runs")


def check_repetition(number, row, record, manifest, first):
    """The row of repetitions.json against the run's own record; the configuration with the first seed."""
    failed = any(group["failure"] for group in record["work"]["groups"])
    expected = {"directory": f"repetition_{number}", "seed": record["workload"]["seed"],
                "status": record["verdict"]["status"], "exit_code": record["verdict"]["exit_code"],
                "counted": not failed, "flops": record["scores"]["flops"], "vflops": record["scores"]["vflops"],
                "quality": record["quality"]["ensemble"],
                "training_seconds": record["time"]["training_seconds"], "manifest": manifest}
    for key, value in expected.items():
        must_be("repetitions.json", f"repetitions[{number - 1}].{key}", row[key], value, f"repetition_{number}/result.json")
    config = parse_config(record["config"])
    config["run.seed"] = str(int(config["run.seed"]) - number + 1)
    for key in sorted(config.keys() | (first or config).keys()):
        if first and first.get(key) != config.get(key):
            find(f"repetition_{number}/config.yaml", f"{key} is not as in repetition_1")
    return first or config


def check_series(directory):
    summary = attempt(read_json, Result(directory), "repetitions.json")
    if summary is None:
        return None
    rows, first = summary["repetitions"], None
    known = {"repetitions.json"} | {f"repetition_{number}" for number in range(1, len(rows) + bool(summary["stopped"]) + 1)}
    for name in sorted(set(os.listdir(directory)) - known):
        find(name, "is there; repetitions.json does not list it")
    if len(rows) > summary["requested"] or (len(rows) == summary["requested"]) == bool(summary["stopped"]):
        find("repetitions.json", "has too many runs, or no reason why there are fewer")
    order = [0, 7, 9, 4, 5]
    worst = 0
    for number, row in enumerate(rows, 1):
        worst = max(worst, row["exit_code"], key=lambda one: order.index(one) if one in order else len(order))
        folder = os.path.join(directory, f"repetition_{number}")
        if os.path.islink(folder) or not os.path.isdir(folder):
            find(f"repetition_{number}", "is missing; repetitions.json lists it")
            continue
        FOLDER[0] = f"repetition_{number}/"
        record, manifest = check_run(folder)
        FOLDER[0] = ""
        if record is None:
            continue
        for key, value in (("name", record["name"]), ("program_version", record["program_version"])):
            must_be("repetitions.json", key, summary[key], value, f"repetition_{number}/result.json")
        first = check_repetition(number, row, record, manifest, first)
    must_be("repetitions.json", "exit_code", summary["exit_code"], worst, "the runs")
    for key in SPREADS:
        check_spread(summary, key)
    return summary


def repetitions_line(summary, digest):
    number = lambda key, form: "n/a" if summary[key]["median"] is None else format(summary[key]["median"], form)
    return (f"REPETITIONS {len(summary['repetitions'])} of {summary['requested']}  FLOPS={number('flops', '.3e')} "
            f"VFLOPS={number('vflops', '.3e')} quality={number('quality', '.4f')} sha256={digest}")


def main(arguments):
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    directory = arguments[0]
    if not os.path.isdir(directory):
        print(f"verify_result.py: {directory}: expected the directory of a result", file=sys.stderr)
        return 2
    is_series = os.path.lexists(os.path.join(directory, "repetitions.json"))
    if is_series:
        summary = attempt(check_series, directory)
    else:
        record, manifest = check_run(directory)
    for file, text in FINDINGS:
        print(printable(f"{file}: {text}"))
    if not FINDINGS:
        print(repetitions_line(summary, sha256(Result(directory).read("repetitions.json"))) if is_series
              else result_line(record, manifest))
    return 10 if FINDINGS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
