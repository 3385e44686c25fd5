"""The distribution of absolute errors: the fraction of predictions that are off by no more than x."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def error_cdf(
    predictions: NDArray[np.floating], values: NDArray[np.floating], limits: Sequence[float]
) -> NDArray[np.float64]:
    """(E, L) the fraction of |prediction − value| ≤ x for each x of `limits` (L,), ascending, rating scale.

    predictions (n, E), values (n,). Zhang et al. 2018, section 6.1, "CDF". Columns do not affect each other. A
    prediction that is not finite is off by more than any limit. Raises ValueError where there are no values, or where
    the limits do not ascend or are negative.
    """
    bounds = np.asarray(limits, dtype=np.float64)
    if not len(values):
        raise ValueError("no values to compare predictions with")
    if np.any(bounds < 0) or np.any(np.diff(bounds) <= 0):
        raise ValueError(f"the limits must be 0 or more and ascend: {list(limits)}")
    fractions = np.empty((predictions.shape[1], len(bounds)))
    for column, prediction in enumerate(predictions.T):
        errors = np.abs(prediction.astype(np.float64) - values)
        errors.sort()
        fractions[column] = np.searchsorted(errors, bounds, side="right") / len(values)
    return fractions
