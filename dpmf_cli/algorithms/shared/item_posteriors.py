"""What released sums say of items: their counts, their averages, and the features that users regress on.

All of it is computed from released numbers and the known scale of their noise, each ε by itself: it costs nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Scale

QUALITY, TREND, CENTRE = 0.4, 0.5, 1.0
"""Prior deviations, in stars: of items' averages around their trend, of the trend over popularity, of its centre."""
FARTHEST = 2.0
"""How many deviations from the mean rating's popularity an item's may be."""
NODES = 96
"""Of the quadrature of a count, over twelve deviations of its noise."""
LEAST = 1e-12
"""A variance of what has neither noise nor raters."""

Lanes = NDArray[np.float64]


@dataclass(frozen=True)
class Items:
    """What is known of items, for each ε of the grid; all (n_items, E).

    base        the average, rating scale
    spread      the variance of the true average around it
    weight      Σ_u w_u over the raters, w_u what each rating of user u counts in the sums of later steps
    popularity  how often it is rated: a standardised logarithm
    """

    base: Lanes
    spread: Lanes
    weight: Lanes
    popularity: Lanes

    @property
    def quality(self) -> Lanes:
        """(n_items, E) what of the average popularity does not tell, standardised."""
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
    """(n_items, E) each: the posterior means of counts, and of ln(count + offset), given noise of `deviation` (E,).

    The prior is Lomax, p(c) ∝ (c + m)⁻³, as long-tailed as popularity is, m the mean of the noisy counts. `offset` is
    the larger of `least` and 0.3 deviations. Noise is taken for normal. Without noise a count is itself.
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
    """(n_items, E) the logarithms standardised over ratings, within ±FARTHEST: no trend reaches further."""
    lanes = zip(logarithms.T, counts.T, strict=True)
    popularity = np.stack([standardised(column, weight) for column, weight in lanes], axis=1)
    return np.clip(popularity, -FARTHEST, FARTHEST)


def standardised(feature: Lanes, weight: Lanes) -> Lanes:
    """(n,) the feature with mean 0 and mean square 1 under weights (n,); 0 where it is the same throughout."""
    centred = np.ascontiguousarray(feature) - _mean(feature, weight)
    square = _mean(centred**2, weight)
    return centred / np.sqrt(square) if square > LEAST else np.zeros_like(centred)


def _mean(feature: Lanes, weight: Lanes) -> float:
    total = float(np.ascontiguousarray(weight).sum())
    return float((np.ascontiguousarray(weight) * feature).sum()) / total if total > 0 else 0.0


def averages_of(
    sums: Lanes, weight: Lanes, popularity: Lanes, variance: Lanes, centre: Lanes, scale: Scale
) -> tuple[Lanes, Lanes]:
    """(n_items, E) each: the posterior means of items' averages, within the scale, and their variances.

        sum_i = weight_i·(a + s·popularity_i + δ_i) + N(0, variance_i),   δ_i ~ N(0, QUALITY²)

    of ratings less `centre` (n_items, E). The trend a, s is estimated from all items at once.
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
    """The gain with which a sum of `weight` times a number, with noise of `variance`, updates what is known of that
    number, which has variance `spread`; and the variance after it. Kalman 1960."""
    gain = weight * spread / (weight**2 * spread + variance + LEAST)
    return gain, spread * (1 - gain * weight)
