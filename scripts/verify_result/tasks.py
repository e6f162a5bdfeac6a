# SPDX-License-Identifier: Apache-2.0
"""The task of a model, and the comparison of stored with recomputed quality."""
from classification import Classification
from detection import Detection
from model import DETECTOR, SEGMENTATION
from segmentation import Segmentation

TASKS = (Classification, Detection, Segmentation)


def task_of(config):
    """The class of the task."""
    kinds = {DETECTOR: Detection, SEGMENTATION: Segmentation}
    return kinds.get(config["workload.model"], Classification)


def check_numbers(compare, keys_of, task, stored, numbers):
    """Calls compare(key, stored, recomputed) for each number; numbers of other tasks must be empty.

    `keys_of` gives the keys of a task in the compared object.
    """
    for key, value in numbers.items():
        found = stored[key]
        if isinstance(value, list) and value:  # rows also have reasons, which are not compared
            found = [{name: row[name] for name in value[0]} for row in found]
        compare(key, found, value)
    others = {key for other in TASKS for key in keys_of(other)} - set(keys_of(task))
    for key in sorted(others & stored.keys()):
        compare(key, stored[key], [] if isinstance(stored[key], list) else None)
