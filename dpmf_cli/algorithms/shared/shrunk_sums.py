"""Estimates of coefficients from noisy sums of residuals: the best linear prediction, and its error.

Rows (users, or items) have coefficients c with the law N(m, τ²) and ratings x = c·z + e, where e has variance σ². The
release for a row is s = Σ x·z with noise of variance v in each coordinate; G = Σ z·zᵀ is known. Then

    E[c | s] = m + τ²·G·(τ²·G² + σ²·G + v·I)⁻¹·(s − G·m)
    Cov[c | s] = τ²·(σ²·G + v·I)·(τ²·G² + σ²·G + v·I)⁻¹

(Robinson 1991, best linear unbiased prediction). An average has z = 1 and G = n. τ and σ are public guesses, and v
follows from ε. So the weight of a sum follows a public rule.
"""

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.pattern import Spectrum
from dpmf_cli.strict_model import StrictModel

LEAST = 1e-300
"""The lower bound of a variance in a denominator."""


class Law(StrictModel):
    """τ² and σ², in stars²: public guesses."""

    of_rows: float = Field(gt=0, le=100, description="τ², the variance of a row's coefficient around m")
    of_ratings: float = Field(gt=0, le=100, description="σ², the variance of a rating around its prediction")

    def star(self, bound: float) -> float:
        """The factor that turns a sum of clamp(x)/B into a sum of residuals x, in stars.

        A clamp to ±B passes the fraction P(|x| ≤ B) of a small shift of normal residuals. Dividing by it undoes that.
        """
        return bound / math.erf(bound / math.sqrt(2 * self.of_ratings))

    def of_sums(self, gram: NDArray[np.float64], noise: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """The variance of s around G·m, for eigenvalues of G."""
        return np.maximum(self.of_rows * gram**2 + self.of_ratings * gram + noise, LEAST)

    def believed(self, gram: NDArray[np.float64], noise: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """The factor that multiplies a sum, for eigenvalues of G and noise of variance v."""
        return self.of_rows * gram / self.of_sums(gram, noise)

    def error(self, gram: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
        """The variance of a coefficient that is left after the estimate."""
        return self.of_rows * (self.of_ratings * gram + noise) / self.of_sums(gram, noise)


RIDGE = 5.0
"""The ridge of the regression of averages on covariates: the inverse of the prior variance of its coefficients."""


def averages_of(
    sums: NDArray[np.float64],
    counts: NDArray[np.float64],
    covariates: NDArray[np.float64],
    law: Law,
    noise: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """(n,) the average of each row. Its m is from the weighted regression of all rows on `covariates` (n, k).

    sums, counts  (n,)
    noise         the variance of the noise in the sums, () or (n,)

    The first covariate is 1. A row whose count is 0 gets m.
    """
    weights = counts**2 / law.of_sums(counts, noise)
    normal = (covariates * weights[:, None]).T @ covariates
    normal += RIDGE * np.eye(covariates.shape[1])
    right = covariates.T @ (weights * sums / np.maximum(counts, 1e-9))
    centre = covariates @ np.linalg.solve(normal, right)
    return np.asarray(centre + law.believed(counts, noise) * (sums - counts * centre))


def coefficients_of(
    sums: NDArray[np.float64], spectrum: Spectrum, law: Law, noise: float
) -> NDArray[np.float64]:
    """(rows, k) the coefficients of each row from `sums` (rows, k), with m = 0."""
    values, vectors = spectrum
    turned = np.einsum("rij,ri->rj", vectors, sums) * law.believed(values, noise)
    return np.asarray(np.einsum("rij,rj->ri", vectors, turned))
