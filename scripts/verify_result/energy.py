# SPDX-License-Identifier: Apache-2.0
"""Energy and network traffic of the core phase, from the counters of all groups."""
import datetime
import math

from configuration import has_evaluations
from counters import growth, series_of

METERS = {"nvml": "NVML", "nvml-power": "NVML", "rapl": "RAPL"}
SOURCE = "counters in groups/<m>/record.json"


def utc_text(seconds):
    milliseconds = math.floor(seconds * 1000)
    time = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
    return time.isoformat(timespec="milliseconds") + "Z"


def total_of_hosts(rows, key, hosts):
    """The sum of `key` over the rows; None if a row has no number or a host has no row."""
    if any(row[key] is None for row in rows) or not hosts <= {row["host"] for row in rows}:
        return None
    return sum((row[key] for row in rows), 0.0)


def core_phase(series):
    """(begin, end) over all groups in UTC seconds; None if unknown or if the hosts' clocks differ."""
    spans = [(counter["readings"][0]["utc_seconds"], counter["readings"][-1]["utc_seconds"])
             for (_, name), group in series.items() if name == "training:steps" for counter in group]
    if not spans:
        return None
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    longest = max(last - first for first, last in spans)
    return None if end - begin > longest + max(5, 0.01 * longest) else (begin, end)


def meters_and_interfaces(series):
    """Rows of energy.meters and communication.interfaces."""
    meters, interfaces = [], []
    for (host, name), group in sorted(series.items(), key=lambda item: [part.encode() for part in item[0]]):
        if name.split(":")[0] in METERS:
            meters.append({"host": host, "name": name, "joules": growth(group)})
        elif name.startswith(("net:", "ib:")) and name.endswith(":sent"):
            interface = name.removesuffix(":sent")
            received = series.get((host, interface + ":received"))
            interfaces.append({"host": host, "name": interface, "sent_bytes": growth(group),
                               "received_bytes": received and growth(received)})
    return meters, interfaces


def without_reasons(rows):
    return [{key: value for key, value in row.items() if not key.endswith("_reason")} for row in rows]


class EnergyCheck:
    def __init__(self, run):
        self.run, self.record = run, run.record
        groups, places = self.record["work"]["groups"], self.record["topology"]["map"]
        # No single program has read the whole training of a resumed run.
        was_resumed = any(group["continuations"] for group in groups)
        self.series = {} if was_resumed else series_of(run.counters)
        self.hosts = {place["host"] for place in places}
        nodes = {(place["host"], place["node"]) for place in places}
        self.hosts_are_nodes = len(self.hosts) == len(nodes)

    def check(self, vflops):
        span = core_phase(self.series)
        if has_evaluations(self.run.config):  # the meters would include evaluations between the steps
            span = None
        for key, index in (("core_begin_utc", 0), ("core_end_utc", 1)):
            self.compare("energy", key, utc_text(span[index]) if span else "")
        meters, interfaces = meters_and_interfaces(self.series)
        for section, key, rows in (("energy", "meters", meters),
                                   ("communication", "interfaces", interfaces)):
            self.run.must_be(f"{section}.{key}", without_reasons(self.record[section][key]), rows, SOURCE)
        self.check_totals(meters, interfaces, span, vflops)

    def compare(self, section, key, expected):
        self.run.must_be(f"{section}.{key}", self.record[section][key], expected, SOURCE)

    def check_totals(self, meters, interfaces, span, vflops):
        kinds, joules = self.joules_of(meters)
        watts = joules / (span[1] - span[0]) if joules is not None and span and span[1] > span[0] else None
        self.compare("energy", "source", " and ".join(kinds))
        self.compare("energy", "joules", joules)
        self.compare("energy", "average_watts", watts)
        self.compare("scores", "vflops_per_watt", vflops / watts if vflops is not None and watts else None)
        sent = None
        if self.hosts_are_nodes and interfaces:
            sent = total_of_hosts(interfaces, "sent_bytes", self.hosts)
        self.compare("communication", "counted_sent_bytes", sent)

    def joules_of(self, meters):
        """(kinds of meters with a reading, their sum or None)."""
        by_kind = {}
        for row in meters:
            by_kind.setdefault(METERS[row["name"].split(":")[0]], []).append(row)
        kinds = [kind for kind in ("NVML", "RAPL")
                 if any(row["joules"] is not None for row in by_kind.get(kind, []))]
        sums = [total_of_hosts(by_kind[kind], "joules", self.hosts) for kind in kinds]
        is_known = kinds and None not in sums and self.hosts_are_nodes
        return kinds, sum(sums, 0.0) if is_known else None
