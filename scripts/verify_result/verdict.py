# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run by docs/RULES.md."""
from configuration import SETTINGS
from rules import Rules, first_and_count, rule

SUCCESS, DATA, ALL_FAILED, PARTIAL, INVALID = 0, 4, 5, 7, 9  # exit codes
MAX_NAMED_XIDS = 4


def submission_of(config):
    """The section `submission`, and the keys that a ranking needs but lacks."""
    submission = {key: config["submission." + key] for key in SETTINGS["submission"].split()}
    missing = [key for key, value in submission.items() if key != "contact" and not value.strip(" \t\r\n")]
    return {**submission, "missing": missing}


def errors_of(gpu):
    """The errors of one GPU that break rule 10, as one string."""
    count, xids = gpu["uncorrected_ecc_errors"] or 0, [f"Xid {xid}" for xid in gpu["xids"]]
    errors = [f"{count:.0f} uncorrected memory error{'' if count == 1 else 's'}"] if count > 0 else []
    named, more = xids[:MAX_NAMED_XIDS], len(xids) - MAX_NAMED_XIDS
    return ", ".join(errors + named + ([f"{more} more"] if more > 0 else []))


def divergence_rule(groups):
    diverged = sum(bool(group["failure"]) and group["audit"]["diverged_at_step"] > 0 for group in groups)
    return rule(8, "groups whose ranks held different models", 0, diverged, not diverged,
                f"rule 8: the ranks of a group must hold the same model; in {diverged} of "
                f"{len(groups)} groups they did not")


def health_rules(groups):
    """Rule 10 in a list, which is empty if no GPU's health was recorded."""
    gpus = [gpu for group in groups if not group["failure"] for gpu in group["device_health"]]
    if not gpus:
        return []
    unhealthy = [f"rank {gpu['world_rank']} on {gpu['host']}: {errors}"
                 for gpu in gpus if (errors := errors_of(gpu))]
    found = first_and_count(unhealthy)
    return [rule(10, "GPUs with uncorrected memory errors or Xids", "none", found, not unhealthy,
                 f"rule 10: {found}")]


def wrong_clocks(counters):
    """Clocks that differ from UTC by more than 1 % plus 1 s. NTP changes a clock's speed by less than 0.1 %."""
    rows = []
    for number, clock in ((number, counter) for number in sorted(counters) for counter in counters[number]):
        if not clock["name"].startswith("clock:") or not clock["readings"]:
            continue
        first, last = clock["readings"][0], clock["readings"][-1]
        utc, own = (last[key] - first[key] for key in ("utc_seconds", "value"))
        if not abs(own - utc) <= 0.01 * abs(utc) + 1:  # also if huge readings give NaN
            rows.append(f"{clock['name']} of group {number} advanced by {own:.1f} s while UTC advanced by "
                        f"{utc:.1f} s: not rankable")
    return rows


class Verdict:
    def __init__(self, run, groups, bad_samples):
        self.config, self.record, self.groups, self.counters = run.config, run.record, groups, run.counters
        self.diverged = divergence_rule(groups)
        others = Rules(run.config, run.record).rows(bad_samples) + health_rules(groups)
        self.broken = [rule_row.broken for rule_row in others if not rule_row.kept]
        self.rules = sorted([*others, self.diverged], key=lambda rule_row: rule_row.number)

    def row(self, status, reasons, code, rankable=False):
        names = ("number", "what", "required", "found", "kept")
        return {"status": status, "reasons": reasons, "exit_code": code, "rankable": rankable,
                "rules": [{name: getattr(rule_row, name) for name in names} for rule_row in self.rules]}

    def record_object(self):
        """The object `verdict` of result.json."""
        failures = [f"group {index}: {group['failure']}"
                    for index, group in enumerate(self.groups) if group["failure"]]
        reasons = [] if self.diverged.kept else [self.diverged.broken]
        if len(failures) == len(self.groups):
            # Nothing else in the record distinguishes a run whose groups all failed on their data.
            stored = self.record["verdict"]["exit_code"]
            code = DATA if stored == DATA else ALL_FAILED
            return self.row("INVALID", reasons + failures, code if self.diverged.kept else INVALID)
        if self.record["scores"]["vflops"] is None:
            reasons.append("the score is not a number")
        reasons += self.broken
        if reasons:
            return self.row("INVALID", reasons + failures, INVALID)
        if failures:
            finished = len(self.groups) - len(failures)
            summary = f"{finished} of {len(self.groups)} groups finished"
            return self.row("PARTIAL", [summary] + failures, PARTIAL)
        if self.config["run.level"] == "custom":
            return self.row("CUSTOM", ["run.level is custom: not rankable"], SUCCESS)
        return self.valid()

    def valid(self):
        missing = submission_of(self.config)["missing"]
        reasons = []
        if missing:
            reasons.append(f"not rankable: the section submission lacks {', '.join(missing)}")
        if any(group["continuations"] for group in self.groups):
            reasons.append("a group was resumed: not rankable, because the time between "
                         "launches is not counted")
        if libraries := self.record["environment"].get("preloaded_libraries"):
            reasons.append(f"{libraries} was preloaded: not rankable, because it can replace the clock")
        reasons += [f"{end}: not rankable" for end in (self.record.get("search") or {}).get("early_ends", [])]
        reasons += wrong_clocks(self.counters)
        return self.row("VALID", reasons, SUCCESS, not reasons)
