"""Errors of predictions."""

import numpy as np
from numpy.typing import NDArray


def root_mean_squared_errors(
    predictions: NDArray[np.floating], values: NDArray[np.floating]
) -> NDArray[np.float64]:
    """(E,) RMSE of predictions (n, E) against values (n,): Friedman et al. 2016, equation 18.

    Each column is summed on its own, in float64: its figure does not depend on the other columns. A model
    that diverged (a prediction that is not finite) has the error inf.
    """
    errors = np.sqrt([_mean_square(column.astype(np.float64) - values) for column in predictions.T])
    return np.where(np.isnan(errors), np.inf, errors)


def _mean_square(errors: NDArray[np.float64]) -> float:
    """The mean square of errors (n,), which are overwritten."""
    return float(np.add.reduce(np.square(errors, out=errors)) / len(errors))
