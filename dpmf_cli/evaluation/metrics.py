"""Defines metrics, and computes the errors of predictions and their distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Metric:
    """A metric that curves, tables and crossings can show.

    key     its name in configs and `--metric`: "rmse", "ndcg@10"
    title   its name on axes and in tables: "RMSE", "nDCG@10"
    """

    key: str
    title: str
    larger_is_better: bool = False

    @property
    def sign(self) -> int:
        """The factor that turns a value into one where smaller is better: −1 or 1."""
        return -1 if self.larger_is_better else 1


RMSE = Metric("rmse", "RMSE")
MAE = Metric("mae", "MAE")

BESIDE = (MAE,)
"""The errors that every task measures beside RMSE, and that tables and files show beside it."""


def errors_of(
    predictions: NDArray[np.floating], values: NDArray[np.floating]
) -> dict[str, NDArray[np.float64]]:
    """(E,) each, by key: `RMSE` and all `BESIDE` of predictions (n, E) against values (n,), in rating units.

    Friedman et al. 2016, equation 18. Each column is summed on its own, in float64, so its figures do not depend on
    the other columns. A model that diverged (a prediction is not finite) has the errors inf.
    """
    means = np.array([_of_column(column.astype(np.float64) - values) for column in predictions.T])
    found = {RMSE.key: np.sqrt(means[:, 0]), MAE.key: means[:, 1]}
    return {key: np.where(np.isnan(errors), np.inf, errors) for key, errors in found.items()}


def _of_column(errors: NDArray[np.float64]) -> tuple[float, float]:
    """The mean square and the mean absolute value of errors (n,). Overwrites `errors`."""
    absolute = np.add.reduce(np.abs(errors, out=errors))
    return float(np.add.reduce(np.square(errors, out=errors)) / len(errors)), float(absolute / len(errors))


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
