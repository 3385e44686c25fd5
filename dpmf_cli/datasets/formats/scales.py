"""Guesses the scale that ratings are on."""

import math

import numpy as np
from numpy.typing import NDArray

_MOST_STEPS = 100
_PRECISION = 10_000


def scale_of(values: NDArray[np.floating]) -> tuple[float, float, float]:
    """Returns (minimum, maximum, step) of ratings (n,), n ≥ 1; step 0 if there is no regular step, or over 100."""
    different = np.unique(values[np.isfinite(values)].astype(np.float64))
    if not len(different):
        return math.nan, math.nan, 0.0
    low, high = float(different[0]), float(different[-1])
    if not high - low < 2**40:
        return low, high, 0.0
    steps = np.rint((different - low) * _PRECISION)
    step = float(np.gcd.reduce(steps.astype(np.int64))) / _PRECISION
    regular = step > 0 and (high - low) / step <= _MOST_STEPS
    exact = np.abs(different - low - steps / _PRECISION).max() < 1e-6 * max(1.0, high - low)
    return low, high, step if regular and exact else 0.0


def in_words(scale: tuple[float, float, float]) -> str:
    """Says in words which ratings occur."""
    low, high, step = scale
    return f"{low:g} to {high:g} occur{f' in steps of {step:g}' if step else ''}"
