"""Fits of neighbourhood methods for their tests, with a record of each step of a fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.shared.neighbourhood import PrivateNeighbourhood, all_others
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy.accounting import mu_of_epsilon
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from tests.conftest import make_ratings

Array = NDArray[Any]

RATINGS = make_ratings(5, n_users=25, n_items=12, density=0.5)
SCALE = Scale(1, 5, 1)


def streams_of(algorithm: Algorithm) -> Streams:
    return Streams(3, "data", algorithm.algorithm, 0, 0)


def fit(algorithm: Algorithm, train: Ratings, epsilons: list[float] | None = None) -> tuple[Any, Ledger]:
    if isinstance(algorithm, PrivateAlgorithm):
        ledger = Ledger(epsilons or [1.0], algorithm.mode, algorithm.spends_delta)
    else:
        ledger = Ledger([np.inf])
    streams = streams_of(algorithm)
    return algorithm.fit(train, ledger.limit, streams=streams, curator=Curator(ledger, streams)), ledger


def start_of(algorithm: PrivateNeighbourhood, train: Ratings) -> NeighbourhoodModel:
    """The published start: averages without noise, and s_ij = 1 for all other items j."""
    curator = Curator(Ledger([1.0]), streams_of(algorithm))
    averages = algorithm.item_averages(train, curator.ledger.limit, curator)
    return neighbourhood_model(train, all_others(train.n_items), 1.0, averages)


def predictions(algorithm: Algorithm, train: Ratings) -> Array:
    """(n_users, n_items)"""
    users, items = (
        part.astype(np.int32) for part in np.divmod(np.arange(train.n_users * train.n_items), train.n_items)
    )
    found = fit(algorithm, train)[0].predict(users, items)[:, 0]
    return np.asarray(found.reshape(train.n_users, train.n_items))


def error_on(algorithm: Algorithm, train: Ratings, test: Ratings) -> float:
    found = fit(algorithm, train)[0].predict(test.users, test.items)[:, 0]
    return float(np.sqrt(np.mean((found - test.values) ** 2)))


@dataclass(frozen=True)
class Run:
    """A fit: similarities (K + 1, n_items, k, E) from before the first step on, the ratings of each sample, and
    the ledger."""

    states: Array
    samples: list[NDArray[np.bool_]]
    ledger: Ledger

    def moves(self, step: int, lane: int = 0) -> Array:
        """(n_items·k,) of step t = 1, 2, …"""
        return np.asarray(self.states[step] - self.states[step - 1])[..., lane].ravel()


def baseline(key: str, **parameters: Any) -> Algorithm:
    return BASELINES[key].model_validate({"algorithm": key, **parameters})


def entry(key: str, **parameters: Any) -> PrivateAlgorithm:
    return PRIVATE[key].model_validate({"algorithm": key, **parameters})


def has_law(sample: Array, law: Any) -> bool:
    """Kolmogorov and Smirnov's test. With 9,900 numbers it detects scales that are a fifth too small or too large."""
    return float(stats.kstest(sample, law.cdf).pvalue) > 1e-4


def assert_law(sample: Array, family: Any, scale: float) -> None:
    assert has_law(sample, family(scale=scale))
    for factor in (0.8, 1.25):
        assert not has_law(sample, family(scale=factor * scale))


SINGLES = Ratings(
    np.arange(200, dtype=np.int32),
    (np.arange(200) % 100).astype(np.int32),
    (np.arange(200) % 5 + 1).astype(np.float32),
    200,
    100,
    SCALE,
)
"""One rating for each user: nobody has rated a neighbour of anything, so a step is noise only, whatever the
averages are."""


def multiplier(epsilon: float, steps: int, exchange: bool) -> float:
    """σ/c of steps on everybody, whose μ is 0.4 of a θ that 0.02, 0.58 and 0.4 of together are μ(ε)."""
    theta = mu_of_epsilon(epsilon, 1e-6) / np.sqrt(0.02**2 + 0.58**2 + 0.4**2)
    return float((2 if exchange else 1) * np.sqrt(steps) / (0.4 * theta))
