# SPDX-License-Identifier: Apache-2.0
"""launch.json, and speeds that no launch can have."""
import re

from json_reader import read_json
from result_files import sha256

NAME = "launch.json"
EQUAL = ("staging", "determinism", "invocations")
OF_RANK_0 = ("roofline", "environment")  # measured and read by the rank that writes the file
PLACE_OF_LAUNCH = ("host", "node", "local_rank")  # in the result, a group that finished earlier keeps its own

# Published dense 16-bit peaks of the fastest variant, in TFLOP/s, by a word of the device's name.
PEAKS = {"V100": 130, "T4": 65, "A30": 165, "A40": 150, "A100": 312, "L4": 121, "L40S": 362, "H100": 989.4,
         "H200": 989.4, "GH200": 989.4, "B200": 2250, "GB200": 2500}
THREAD_PEAK = 10  # TFLOP/s; AMX has 1024 bf16 FLOPs per cycle, about 4 TFLOP/s
INT8 = 2  # int8 peak / 16-bit peak
MAX_FRACTION = 2  # other programs can reduce the measured ceiling
MAX_OF_PEAK = 1.1  # table3 also counts operations other than matrix products


def check_launch(run):
    """Compares launch.json with the result. If group 0 failed, different ranks wrote them."""
    record, launch = run.record, read_json(run.files, NAME)

    def compare(key, stored, expected, source="result.json"):
        run.findings.must_be(NAME, key, stored, expected, source)

    compare("config_sha256", launch["config_sha256"], sha256(run.files.read("config.yaml")), "config.yaml")
    for key, expected in (("started_utc", record["time"]["started_utc"]),
                          ("samples_sha256", record["workload"]["samples_sha256"]),
                          ("precision", record["workload"]["precision"])):
        compare(key, launch[key], expected)
    is_of_rank_0 = not record["work"]["groups"][0]["failure"]
    for key in EQUAL + (OF_RANK_0 if is_of_rank_0 else ()):
        compare(key, launch[key], record[key])
    staging_seconds = record["time"]["staging_seconds"]
    if is_of_rank_0 and staging_seconds is not None:
        compare("staging_seconds", launch["staging_seconds"], staging_seconds)
    ignored = PLACE_OF_LAUNCH if len(record["invocations"]) > 1 else ()
    for key in sorted(record["topology"].keys() - {"map"} - ({"nodes"} if ignored else set())):
        compare("topology." + key, launch["topology"][key], record["topology"][key])
    places, expected = ([{key: value for key, value in place.items() if key not in ignored}
                         for place in owner["topology"]["map"]] for owner in (launch, record))
    compare("topology.map", places, expected)


def peak_of(place):
    """The peak of a rank's device in TFLOP/s; 0 for an unknown device."""
    words = set(re.split("[^0-9A-Za-z]+", place["device"]))
    if words & {"thread", "threads"}:
        return THREAD_PEAK * max(place["threads"], 1)
    return next((peak for name, peak in PEAKS.items() if name in words), 0)


def check_speed(run):
    """Reports speeds above the measured ceiling or the published peaks, with margins."""
    record = run.record
    fraction, flops = record["utilization"]["fraction"] or 0, record["scores"]["flops"] or 0
    if fraction > MAX_FRACTION and record["roofline"]["source"] == "measured before training":
        run.findings.add("result.json", f"utilization.fraction is {fraction}; must be at most {MAX_FRACTION}")
    peaks = [peak_of(place) for place in record["topology"]["map"]]
    peak = sum(peaks) * (INT8 if record["workload"]["precision"] == "int8" else 1)
    for key, rate in (("scores.flops", flops), ("search.ops", (record.get("search") or {"ops": 0})["ops"])):
        if all(peaks) and rate > MAX_OF_PEAK * peak * 1e12:
            run.findings.add("result.json", f"{key} is {rate}; must be at most {MAX_OF_PEAK} x {peak} TFLOP/s, "
                                            "according to the published peaks of the devices")
