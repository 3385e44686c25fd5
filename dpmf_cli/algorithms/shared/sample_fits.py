"""Fits an algorithm on samples of the training ratings, one sample for each model."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.personal_sampling import PersonalSampling
from dpmf_cli.algorithms.shared.probabilistic import Kept
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

T = TypeVar("T")


@dataclass(frozen=True)
class Columns:
    """A part of the models that were fitted together."""

    model: Model
    columns: slice

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        return self.model.predict(users, items)[:, self.columns]


def shared_fit_of(base: Algorithm) -> str | None:
    """The `shared_fit` of an entry with that base, which makes entries with equal bases one fit. They differ only in
    samples and thresholds. None if the base cannot have a different sample in each lane.
    """
    return json.dumps(base.parameters(), sort_keys=True) if base.shares_lanes else None


class AroundABase(PersonalSampling, Algorithm):
    """An algorithm that fits another algorithm, its `base`, on the sample that personal privacy draws.

    A subclass says which bases are allowed, and overrides `fit_together`.
    """

    base: Algorithm

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "base": self.base.parameters()}

    @property
    def shared_fit(self) -> str | None:
        return shared_fit_of(self.base)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        return self.fit_together([self], train, [epsilons], streams=streams, curators=[curator])[0]


def refuse_what_a_base_ignores(base: Algorithm) -> None:
    """Raises PydanticCustomError if an entry's `base` sets a key that is only read from the entry itself."""
    for key in ("label", "clip_predictions", "by_epsilon"):
        if getattr(base, key, None):
            raise PydanticCustomError("base", "set `{key}` on the entry, not on its `base`", {"key": key})


def sample(train: Ratings, probability: NDArray[np.float64], streams: Streams) -> Kept:
    """(n, E) whether a record is in the sample: algorithm 1. One uniform draw for each record serves all ε."""
    return np.asarray(streams.of_ratings("sampling", train)[:, None] < probability)


def fit_samples(
    base: Algorithm, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
) -> Model:
    """Fits one model for each column of `kept` (n, E), with the ε at the same place.

    All lanes are fitted in one pass if the base can do that, otherwise one after the other.
    """
    if base.shares_lanes:
        return base.fit_samples(train, kept, epsilons, streams=streams, curator=curator)

    def fit(place: int, epsilon: Epsilons, alone: Curator) -> Model:
        return base.fit(train.select(kept[:, place]), epsilon, streams=streams, curator=alone)

    return SideBySide(tuple(one_by_one(fit, epsilons, curator)))


def one_by_one(fit: Callable[[int, Epsilons, Curator], T], epsilons: Epsilons, curator: Curator) -> list[T]:
    """Calls `fit` for each ε separately, with the place of that ε in the grid. Enters each step in the ledger once,
    for all ε."""
    found, accounts = [], []
    for place, epsilon in enumerate(epsilons):
        alone = curator.apart([epsilon], first=place)
        accounts.append(alone.ledger)
        found.append(fit(place, np.array([epsilon]), alone))
    for steps in zip(*(account.entries for account in accounts), strict=True):
        curator.ledger.spend(
            steps[0].step,
            steps[0].mechanism,
            steps[0].sensitivity,
            np.concatenate([step.claimed for step in steps]),
            np.concatenate([step.provable for step in steps]),
            calibrated_to=steps[0].calibrated_to,
        )
    return found


@dataclass(frozen=True)
class SideBySide:
    """Joins models of one ε each. Each is a column of the predictions."""

    models: tuple[Model, ...]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        return np.concatenate([model.predict(users, items) for model in self.models], axis=1)
