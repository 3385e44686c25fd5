"""Defines metrics, and computes the errors of predictions."""

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


def mean_errors(
    predictions: NDArray[np.floating], values: NDArray[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(E,), (E,) RMSE and MAE of predictions (n, E) against values (n,): Friedman et al. 2016, equation 18.

    Each column is summed on its own, in float64, so its figures do not depend on the other columns. A model
    that diverged (a prediction is not finite) has the errors inf.
    """
    means = np.array([_of_column(column.astype(np.float64) - values) for column in predictions.T])
    rmse, mae = np.sqrt(means[:, 0]), means[:, 1]
    return np.where(np.isnan(rmse), np.inf, rmse), np.where(np.isnan(mae), np.inf, mae)


def _of_column(errors: NDArray[np.float64]) -> tuple[float, float]:
    """The mean square and the mean absolute value of errors (n,). Overwrites `errors`."""
    absolute = np.add.reduce(np.abs(errors, out=errors))
    return float(np.add.reduce(np.square(errors, out=errors)) / len(errors)), float(absolute / len(errors))
