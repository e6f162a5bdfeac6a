# SPDX-License-Identifier: Apache-2.0
"""Sums and order statistics in the program's order of operations."""
import functools
import math
import operator


def total(numbers):
    """Sum from the left, as the program adds. sum() of Python 3.12 compensates rounding errors."""
    return functools.reduce(operator.add, numbers, 0.0)


def median(values):
    values, middle = sorted(values), len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def nearest_rank(ordered, share):
    """The percentile `share` of sorted numbers by the nearest-rank method."""
    return ordered[math.ceil(share * len(ordered)) - 1]


def known(values):
    """Values that were measured."""
    return [value for value in values if value is not None]


def fraction(count, scored):
    return count / scored if scored else None


def penalty_coefficient(quality, target, exponent):
    """Eq. 8, or None if it is not a finite number."""
    try:
        penalty = (quality / target) ** exponent if quality >= 0 < target else math.nan
    except OverflowError:
        return None
    return penalty if math.isfinite(penalty) else None
