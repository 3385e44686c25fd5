"""Black box: a lower bound on ε from many fits on two neighbours, by an event that happens more often on one of them.

Half of the fits choose the event, and the other half count it. So the bound holds at its confidence, however many
events there were to choose from. The statistics are: the projection of released numbers on the direction in which a
replay has seen them move, single predictions that privacy covers, and items' mean predictions. A bound is about one
pair and these statistics. The ceiling beside it is the largest bound that as many fits can show for any method.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit import bounds
from dpmf_cli.audit.fits import covered, fitted, predictions
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.audit.sides import PASSED_ON, Place
from dpmf_cli.privacy.release import Numbers, Release, Witness
from dpmf_cli.ratings import Ratings

PREDICTIONS = 40
"""The number of single predictions that are tried as statistics."""

AVERAGED = 500
"""The approximate number of users over whom mean predictions are taken."""

NOT_A_NUMBER = 1e300
"""The number that stands for a prediction which is not a number: an event like any other."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on ε that trials have shown.

    statistic   the statistic that told the two data sets apart
    trials      the number of fits on each of the two data sets; one half of them chose the event
    confidence  the confidence with which `epsilon` holds
    gaussian    the bound that holds if the statistic is normal on both sides, as a sum of Gaussian noise is; nan for
                pure ε
    """

    statistic: str
    epsilon: float
    ceiling: float
    trials: int
    confidence: float
    gaussian: float = float("nan")
    gaussian_ceiling: float = float("nan")


class _Listener(Witness):
    """A witness that adds up the projections of published numbers on given directions."""

    offset = 0.0

    def __init__(self, directions: Mapping[Place, NDArray[np.float64]]) -> None:
        self._directions = directions
        self._seen: dict[Place, float] = {}

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        place = release.entry.step, release.draw, first
        direction = self._directions.get(place)
        if direction is not None and release.leaves and direction.size == noisy.size and direction.any():
            scale = 1.0 if release.told is not None else float(release.scale[0])
            along = direction / (scale or 1.0) ** 2
            self._seen[place] = float(along @ np.nan_to_num(noisy.ravel()))
        return noisy

    def projections(self, places: list[Place]) -> list[float]:
        """Returns the sum of all projections, weighted as for independent normal noise, and then each projection."""
        each = [self._seen.get(place, 0.0) for place in places]
        return [sum(each), *each]


def distinguish(
    algorithm: PrivateAlgorithm,
    pair: Pair,
    epsilon: float,
    trials: int,
    *,
    confidence: float = 0.95,
    directions: Mapping[Place, NDArray[np.float64]] | None = None,
) -> LowerBound:
    """Returns the lower bound that `trials` fits on each side give.

    directions  the directions in which a replay has seen releases move; without them only predictions are used as
                statistics, and the compiled kernels run without their twins
    """
    strongest = sorted(
        (place for place, moves in (directions or {}).items() if moves.any()),
        key=lambda place: -float(np.abs((directions or {})[place]).max()),
    )[:8]
    users, items = _statistics(algorithm, pair)
    names = ["all releases along their moves", *(f"{step}, draw {draw + 1}" for step, draw, _ in strongest)]
    names = names if strongest else []
    names += [f"prediction of user {u}, item {i}" for u, i in zip(users, items, strict=True)]
    averaged = _averaged(pair)
    names += [f"mean prediction of item {i}" for i in range(len(averaged[1]))]
    names += [f"the same, of item {i} less item 0" for i in range(1, len(averaged[1]))]

    def trial(ratings: Ratings, run: int) -> NDArray[np.float64]:
        listener = _Listener({place: (directions or {})[place] for place in strongest})
        try:
            model, _ = fitted(algorithm, ratings, epsilon, run=run, witness=listener if strongest else None)
            seen = np.concatenate([predictions(model, users, items), _means(model, *averaged)])
        except PASSED_ON:
            raise
        except Exception:
            return np.full(len(names), NOT_A_NUMBER)
        projected = listener.projections(strongest) if strongest else []
        values = np.concatenate([projected, seen])
        return np.asarray(np.nan_to_num(values, nan=NOT_A_NUMBER, posinf=1e299, neginf=-1e299))

    here = np.array([trial(pair.here, 1 + 2 * number) for number in range(trials)])
    there = np.array([trial(pair.there, 2 + 2 * number) for number in range(trials)])
    delta, half = algorithm.spends_delta, trials // 2
    scored = [
        (_training_bound(here[:half, column], there[:half, column], delta), column)
        for column in range(len(names))
    ]
    best = max(scored, default=(0.0, -1))[1]
    if best < 0:
        return LowerBound("nothing", 0.0, bounds.ceiling(half, half, delta, confidence), trials, confidence)
    ours, theirs = here[:half, best], there[:half, best]
    tested = here[half:, best], there[half:, best]
    counts = bounds.counts_of(bounds.best_threshold(ours, theirs, delta), *tested)
    left = trials - half
    found = LowerBound(
        names[best],
        bounds.epsilon_of_event(*counts, delta, confidence),
        bounds.ceiling(left, left, delta, confidence),
        trials,
        confidence,
    )
    if not delta:
        return found
    counts = bounds.counts_of(bounds.best_threshold_for_mu(ours, theirs), *tested)
    return LowerBound(
        found.statistic,
        found.epsilon,
        found.ceiling,
        trials,
        confidence,
        bounds.gaussian_epsilon_of_event(*counts, delta, confidence),
        bounds.gaussian_ceiling(left, left, delta, confidence),
    )


def _averaged(pair: Pair) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Returns the users and the items of the mean predictions; the user who differs is left out."""
    step = max(1, pair.here.n_users // AVERAGED)
    users = np.arange(0, pair.here.n_users, step, dtype=np.int32)
    return users[users != pair.changed], np.arange(min(pair.here.n_items, 6), dtype=np.int32)


def _means(model: Any, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
    """Returns each item's mean prediction, and its difference from the first item's for each other item."""
    if not len(users):
        return np.zeros(2 * len(items) - 1)
    seen = predictions(model, np.tile(users, len(items)), np.repeat(items, len(users)))
    with np.errstate(all="ignore"):
        means = seen.reshape(len(items), -1).mean(axis=1, dtype=np.float64)
        return np.asarray(np.append(means, means[1:] - means[0]))


def _training_bound(here: NDArray[np.float64], there: NDArray[np.float64], delta: float) -> float:
    """Returns how well a statistic tells training fits apart, as a bound on ε."""
    event = bounds.best_threshold(here, there, delta)
    return bounds.epsilon_of_event(*bounds.counts_of(event, here, there), delta, bounds.TRAINING_CONFIDENCE)


def _statistics(algorithm: PrivateAlgorithm, pair: Pair) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Returns the predictions to try as statistics, first those of the user who differs and of that user's items."""
    users, items = covered(algorithm, pair)
    own = [ratings.items[ratings.users == pair.changed] for ratings in (pair.here, pair.there)]
    last = np.lexsort((items, users, ~np.isin(items, np.concatenate(own)), users != pair.changed))
    chosen = last[:: max(1, len(last) // PREDICTIONS)][: PREDICTIONS // 2]
    chosen = np.unique(np.concatenate([last[: PREDICTIONS // 2], chosen]))
    return users[chosen], items[chosen]
