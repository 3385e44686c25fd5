"""Splits a budget so that the sum of errors, predicted from public numbers, is least."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.shrunk_sums import Law

QUANTA = 50
"""Shares are integer multiples of 1/QUANTA, and none is 0."""

Predicted = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The mean squared error that a part leaves, for each ε that the part may get."""

NOISES = np.geomspace(1e-6, 1e18, 121)
"""Variances of noise for which an error is computed. Between them it is interpolated."""


def interpolated(
    error: Callable[[float], float], variance: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Predicted:
    """The error as a function of ε. `error` maps a variance of noise to an error, and `variance` maps ε to a variance
    of noise."""
    known = np.array([error(float(noise)) for noise in NOISES])
    logarithms = np.log(NOISES)
    return lambda epsilons: np.interp(np.log(np.maximum(variance(epsilons), NOISES[0])), logarithms, known)


def of_averages(law: Law, rated: NDArray[np.int64], covariates: int) -> Callable[[float], float]:
    """The error of averages, given the number of ratings `rated` of each row, as a function of the noise variance.

    It is the error left in a row's own average, plus the error of the regression on covariates.
    """
    counts = rated.astype(np.float64)

    def error(noise: float) -> float:
        own = float(counts @ law.error(counts, noise)) / max(float(counts.sum()), 1.0)
        weight = float((counts**2 / law.of_sums(counts, noise)).sum())
        return own + 1 / (1 / UNKNOWN + weight / covariates)

    return error


UNKNOWN = 0.3
"""The prior variance, in stars², of the predictions of a regression on covariates."""


def of_coefficients(law: Law, gram: NDArray[np.float64], ratings: int) -> Callable[[float], float]:
    """The error of coefficients, averaged over all ratings: Σ tr(G·Cov)/n, from all eigenvalues of G."""
    values = gram[gram > 0]
    return lambda noise: float(values @ law.error(values, noise)) / max(ratings, 1)


def shares_of(parts: Mapping[str, Predicted], epsilon: float) -> dict[str, float]:
    """The share of each part. Shares are multiples of 1/QUANTA that sum to 1, with the least sum of errors.

    Found by dynamic programming over the parts, because errors need not be convex. Those of vectors are not: noise
    drowns them at small ε.
    """
    quanta = np.arange(1, QUANTA + 1)
    errors = {name: predicted(quanta / QUANTA * epsilon) for name, predicted in parts.items()}
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for name, later in zip(errors, reversed(range(len(errors))), strict=True):
        best = _with_part(best, errors[name], QUANTA - later)
    return {name: chosen / QUANTA for name, chosen in zip(errors, best[QUANTA][1], strict=True)}


def _with_part(
    best: dict[int, tuple[float, tuple[int, ...]]], errors: Sequence[float] | NDArray[np.float64], most: int
) -> dict[int, tuple[float, tuple[int, ...]]]:
    """The best choice for each number of quanta spent, after one more part."""
    found: dict[int, tuple[float, tuple[int, ...]]] = {}
    for spent, (error, chosen) in best.items():
        for quanta in range(1, most - spent + 1):
            total = error + float(errors[quanta - 1])
            if total < found.get(spent + quanta, (np.inf, ()))[0]:
                found[spent + quanta] = total, (*chosen, quanta)
    return found
