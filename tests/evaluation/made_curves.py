"""Made-up curves and experiments for the tests of crossings."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment, Measured

INFINITE = np.array([np.inf])


def baseline(level: ArrayLike = 1.0, *, key: str = "ia", folds: int = 1) -> Measured:
    rmse = np.broadcast_to(np.reshape(np.asarray(level, dtype=float), (-1, 1, 1)), (folds, 1, 1))
    return Measured(key, key, INFINITE, rmse, INFINITE, INFINITE)


def curve(epsilons: ArrayLike, difference: ArrayLike, *, label: str = "pge") -> Measured:
    """A curve that lies `difference` above the RMSE 1; `difference` is (folds, runs, E), or (E,) for one fold
    and run."""
    grid = np.asarray(epsilons, dtype=float)
    rmse = 1.0 + np.array(difference, dtype=float, ndmin=3)
    return Measured("pge", label, grid, rmse, grid, 2 * grid, "bounded", "published")


def noise_free_of(rmse: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """A noise-free run with that RMSE in each fold."""
    return {"rmse": np.reshape(np.asarray(rmse, dtype=float), (-1, 1, 1))}


def experiment(*curves: Measured, baselines: tuple[Measured, ...] | None = None, seed: int = 7) -> Experiment:
    folds, runs, _ = curves[0].rmse.shape
    baselines = (baseline(folds=folds),) if baselines is None else baselines
    return Experiment("ml1m_bounded", "ml-1m", "MovieLens 1M", folds, folds, runs, seed, curves, baselines)


def crossing(epsilons: ArrayLike, difference: ArrayLike) -> Crossing:
    (found,) = find_crossings(experiment(curve(epsilons, difference)))
    return found


def noisy(
    seed: int, shape: tuple[int, ...], line: Sequence[float], *, sd: float = 0.1
) -> NDArray[np.float64]:
    """Differences that vary around `line` (E,), all values independent."""
    differences: NDArray[np.float64] = np.random.default_rng(seed).normal(0, sd, shape) + np.asarray(line)
    return differences


def order(end: float | Status | None) -> float:
    """An interval's end as a number."""
    if end is None or isinstance(end, float):
        return math.nan if end is None else end
    return -math.inf if end == Status.BELOW_GRID else math.inf
