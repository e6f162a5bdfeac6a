# SPDX-License-Identifier: Apache-2.0
"""steps.csv of a group against the configuration and the group's record."""
import json
import math

from arithmetic import total
from tables import PHASES, format_number

ROUNDING_SECONDS = 1e-6
MAX_PAUSE_SECONDS = 5.0  # between the end of an epoch's last step and the reading of the epoch's end


def phases_of(step):
    """Sum of the seconds of all phases that were measured."""
    return total(getattr(step, phase) for phase in PHASES if getattr(step, phase) is not None)


def step_seconds(steps):
    ends = [0] + [step.end_seconds for step in steps]
    return [end - begin for begin, end in zip(ends, ends[1:])]


def scheduled_rate(config, step, warm, per_epoch):
    """training.schedule after a warm-up of `warm` steps."""
    def setting(name):
        return float(config["training." + name])

    scale = setting("batch_size") / setting("learning_rate_batch")
    peak, final = setting("learning_rate") * scale, setting("final_learning_rate") * scale
    last = int(config["workload.epochs"]) * per_epoch
    share = min(max((step - warm) / (last - warm), 0), 1) if last > warm else 1
    kind = config["training.schedule"]
    if kind == "step":
        epochs = json.loads(config["training.schedule_epochs"])
        return peak * setting("schedule_factor") ** sum(step >= epoch * per_epoch for epoch in epochs)
    if kind == "cosine":
        return final + (peak - final) * (1 + math.cos(math.pi * share)) / 2
    if kind == "polynomial":
        return final + (peak - final) * (1 - share) ** setting("schedule_power")
    return peak


def learning_rate(config, step, per_epoch):
    """The rate of a step, counted from 0, with the warm-up."""
    warm = math.floor(float(config["training.warmup_epochs"]) * per_epoch + 0.5)
    if step >= warm:
        return scheduled_rate(config, step, warm, per_epoch)
    start = float(config["training.warmup_start"])
    return scheduled_rate(config, warm, warm, per_epoch) * (start + (1 - start) * (step + 1) / warm)


class StepsCheck:
    """Samples, epochs, learning rates and phases of the steps, and the seconds of the epochs."""

    def __init__(self, run, group, steps, folder, parts):
        """`parts` are (configuration, epochs) that were trained one after the other."""
        self.parts = parts
        self.config, self.add_finding = run.config, run.findings.add
        self.group, self.steps = group, steps
        self.name, self.record_name = folder + "steps.csv", folder + "record.json"
        self.batch = int(self.config["training.batch_size"])
        self.per_epoch = max(group["samples_drawn"] // self.batch, 1)

    def check(self):
        self.check_counts()
        self.check_learning_rates()
        self.check_phases()
        self.check_epochs()

    def check_counts(self):
        for key, wanted, source in (
                ("samples", lambda step: self.batch, "training.batch_size"),
                ("epoch", lambda step: step.step // self.per_epoch, "samples_drawn")):
            wrong = next((step for step in self.steps if getattr(step, key) != wanted(step)), None)
            if wrong:
                self.add_finding(self.name, f"{key} of step {wrong.step} is {getattr(wrong, key)}; "
                                     f"must be {wanted(wrong)}, according to {source}")

    def check_learning_rates(self):
        first = 0
        for config, epochs in self.parts:
            end = first + epochs * self.per_epoch
            if end > len(self.steps) or not self.check_rates_of(config, self.steps[first:end]):
                return
            first = end

    def check_rates_of(self, config, steps):
        """Whether the rates of `steps`, which begin a schedule, are right."""
        peak = float(config["training.learning_rate"])
        allowed = 1e-12 * peak * self.batch / float(config["training.learning_rate_batch"])
        for number, step in enumerate(steps):
            wanted = learning_rate(config, number, self.per_epoch)
            if abs(step.learning_rate - wanted) > allowed:
                self.add_finding(self.name, f"learning_rate of step {step.step} is {format_number(step.learning_rate)}; "
                                     f"must be {wanted}, according to training.schedule")
                return False
        return True

    def check_phases(self):
        for step, length in zip(self.steps, step_seconds(self.steps)):
            phases = phases_of(step)
            if step.input_wait_seconds is not None and phases > length + ROUNDING_SECONDS:
                self.add_finding(self.name, f"phases of step {step.step} take {phases} s; "
                                     f"must take {length} s or less, according to end_seconds")
                return

    def check_epochs(self):
        epochs, stored = sum(epochs for _, epochs in self.parts), self.group["epoch_seconds"]
        if len(stored) != epochs:
            self.add_finding(self.record_name, f"record.epoch_seconds has {len(stored)} epochs; "
                                        f"must have {epochs}, according to config")
            return
        before = 0.0
        for epoch, seconds in enumerate(stored):
            ends = [step.end_seconds for step in self.steps if step.epoch == epoch]
            if not ends:
                return
            least, most = ends[-1] - ends[0], ends[-1] - before + MAX_PAUSE_SECONDS
            if not least - ROUNDING_SECONDS <= seconds <= most:
                self.add_finding(self.record_name, f"record.epoch_seconds[{epoch}] is {seconds}; "
                                            f"must be {least} to {most}, according to {self.name}")
                return
            before = ends[-1]
