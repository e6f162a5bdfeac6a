# SPDX-License-Identifier: Apache-2.0
"""Counters that groups read on their nodes during training, such as joules and bytes."""
from findings import MalformedFile


def check_steps_counter(findings, name, counters, group, source):
    """Checks the leader's counter of steps: its readings at begin and end of the training."""
    steps = next((counter for counter in counters if counter["name"] == "training:steps"), None)
    if steps is None or not steps["readings"]:
        raise MalformedFile(f"{name}: counters has no readings of training:steps")
    begin = steps["readings"][0]["utc_seconds"]
    expected = [{"utc_seconds": begin, "value": 0.0},
                {"utc_seconds": begin + group["training_seconds"], "value": float(group["iterations"])}]
    findings.must_be(name, "counters training:steps", steps["readings"], expected, source)


def value_at(readings, when, other_value):
    """A counter's value at `when`.

    It is `other_value`, which another group read at this time, if that lies between the neighbouring
    readings. Otherwise it is interpolated.
    """
    for left, right in zip(readings, readings[1:]):
        if left["utc_seconds"] <= when < right["utc_seconds"]:
            if other_value is not None and left["value"] <= other_value <= right["value"]:
                return other_value
            rise = (right["value"] - left["value"]) * (when - left["utc_seconds"])
            return left["value"] + rise / (right["utc_seconds"] - left["utc_seconds"])
    return readings[0 if when < readings[0]["utc_seconds"] else -1]["value"]


def growth(series):
    """The growth of one counter that several groups read. Counts each time interval once.

    None if a reading failed or if at some time no group read the counter.
    """
    if any(counter["failure"] or not counter["readings"] for counter in series):
        return None
    spans = [(readings[0]["utc_seconds"], readings[-1]["utc_seconds"], readings)
             for readings in (counter["readings"] for counter in series)]
    now, grown, last_value = min(begin for begin, _, _ in spans), 0.0, None
    while any(end > now for _, end, _ in spans):
        covering = [span for span in spans if span[0] <= now < span[1]]
        if not covering:
            return None
        _, end, readings = max(covering, key=lambda span: span[1])  # the first span of those that end last
        grown += readings[-1]["value"] - value_at(readings, now, last_value)
        now = end
        # Each group integrates the power from its own start, so values of two groups are unrelated.
        if not series[0]["name"].startswith("nvml-power:"):
            last_value = readings[-1]["value"]
    return grown


def series_of(counters):
    """(host, name) -> the series of all groups, in the order of the groups."""
    series = {}
    for group in sorted(counters):
        for counter in counters[group]:
            series.setdefault((counter["host"], counter["name"]), []).append(counter)
    return series
