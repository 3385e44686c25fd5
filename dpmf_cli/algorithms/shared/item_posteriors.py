"""Estimates of items from released sums: their counts, their averages, and the features that users regress on.

Everything is computed from released numbers and the known scale of their noise, each ε by itself, and so costs no ε.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Scale

QUALITY, TREND, CENTRE = 0.4, 0.5, 1.0
"""Prior deviations, in stars: of items' averages around the trend, of the trend's slope over popularity, and of the
trend's centre."""
FARTHEST = 2.0
"""The limit of an item's popularity, in deviations from the mean over ratings."""
NODES = 96
"""Nodes of the quadrature of a count, over twelve deviations of its noise."""
LEAST = 1e-12
"""A lower bound of variances, for items with neither noise nor raters."""

Lanes = NDArray[np.float64]


@dataclass(frozen=True)
class Items:
    """Estimates of items for each ε of the grid; all (n_items, E).

    base        the average, rating scale
    spread      the variance of the true average around `base`
    weight      Σ_u w_u over the raters, where w_u is the weight of each rating of user u in the sums of later steps
    popularity  the standardised logarithm of how often the item is rated
    """

    base: Lanes
    spread: Lanes
    weight: Lanes
    popularity: Lanes

    @property
    def quality(self) -> Lanes:
        """(n_items, E) the part of the average that popularity does not explain, standardised."""
        rest = (
            (weight, standardised(base, weight), popularity)
            for base, weight, popularity in zip(self.base.T, self.weight.T, self.popularity.T, strict=True)
        )
        return np.stack(
            [
                standardised(base - popularity * _mean(base * popularity, weight), weight)
                for weight, base, popularity in rest
            ],
            axis=1,
        )


def counts_of(noisy: Lanes, deviation: Lanes, least: float) -> tuple[Lanes, Lanes]:
    """The posterior means of counts, and of ln(count + offset), (n_items, E) each, given noise of `deviation` (E,).

    The prior is Lomax, p(c) ∝ (c + m)⁻³, which is as long-tailed as popularity; m is the mean of the noisy counts.
    `offset` is the larger of `least` and 0.3 deviations. The noise is treated as normal. Without noise, the posterior
    mean of a count is the count.
    """
    lanes = [_counts(column, s, least) for column, s in zip(noisy.T, deviation, strict=True)]
    means, logarithms = (np.stack(each, axis=1) for each in zip(*lanes, strict=True))
    return means, logarithms


def _counts(noisy: Lanes, deviation: float, least: float) -> tuple[Lanes, Lanes]:
    noisy, offset = np.ascontiguousarray(noisy), max(least, 0.3 * deviation)
    if deviation == 0:
        return np.maximum(noisy, 0), np.log(np.maximum(noisy, 0) + offset)
    lowest = np.maximum(noisy - 6 * deviation, 0)
    nodes = lowest[:, None] + deviation * 12 * (np.arange(NODES) + 0.5) / NODES
    exponents = -(((nodes - noisy[:, None]) / deviation) ** 2) / 2
    chances = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    chances *= (nodes + max(float(noisy.mean()), 1e-3 * deviation)) ** -3.0
    chances /= chances.sum(axis=1, keepdims=True)
    return (chances * nodes).sum(axis=1), (chances * np.log(nodes + offset)).sum(axis=1)


def popularity_of(logarithms: Lanes, counts: Lanes) -> Lanes:
    """(n_items, E) the logarithms, standardised over ratings and clipped to ±FARTHEST, which bounds the trend."""
    lanes = zip(logarithms.T, counts.T, strict=True)
    popularity = np.stack([standardised(column, weight) for column, weight in lanes], axis=1)
    return np.clip(popularity, -FARTHEST, FARTHEST)


def standardised(feature: Lanes, weight: Lanes) -> Lanes:
    """(n,) the feature, scaled to mean 0 and mean square 1 under weights (n,); 0 if the feature is constant."""
    centred = np.ascontiguousarray(feature) - _mean(feature, weight)
    square = _mean(centred**2, weight)
    return centred / np.sqrt(square) if square > LEAST else np.zeros_like(centred)


def _mean(feature: Lanes, weight: Lanes) -> float:
    total = float(np.ascontiguousarray(weight).sum())
    return float((np.ascontiguousarray(weight) * feature).sum()) / total if total > 0 else 0.0


def averages_of(
    sums: Lanes, weight: Lanes, popularity: Lanes, variance: Lanes, centre: Lanes, scale: Scale
) -> tuple[Lanes, Lanes]:
    """The posterior means of items' averages, within the scale, and their variances, (n_items, E) each.

        sum_i = weight_i·(a + s·popularity_i + δ_i) + N(0, variance_i),   δ_i ~ N(0, QUALITY²)

    The sums are of ratings minus `centre` (n_items, E). The trend a, s is estimated from all items at once.
    """
    lanes = [
        _averages(*map(np.ascontiguousarray, each))
        for each in zip(sums.T, weight.T, popularity.T, variance.T, strict=True)
    ]
    means, spreads = (np.stack(each, axis=1) for each in zip(*lanes, strict=True))
    return np.clip(centre + means, scale.minimum, scale.maximum), spreads


def _averages(sums: Lanes, weight: Lanes, popularity: Lanes, variance: Lanes) -> tuple[Lanes, Lanes]:
    variance = variance + LEAST
    trend = np.stack([np.ones_like(popularity), popularity], axis=1)
    seen = trend * weight[:, None]
    precise = seen / (weight**2 * QUALITY**2 + variance)[:, None]
    prior = np.diag([CENTRE**-2, TREND**-2])
    trended = trend @ np.linalg.solve(precise.T @ seen + prior, precise.T @ sums)
    gain, spread = updated(QUALITY**2, weight, variance)
    return trended + gain * (sums - weight * trended), spread


def updated(spread: float | Lanes, weight: Lanes, variance: Lanes) -> tuple[Lanes, Lanes]:
    """Returns the gain of an update, and the variance after it. Kalman 1960.

    The prior variance of a number is `spread`. The observation is `weight` times that number, with noise of variance
    `variance`.
    """
    gain = weight * spread / (weight**2 * spread + variance + LEAST)
    return gain, spread * (1 - gain * weight)
