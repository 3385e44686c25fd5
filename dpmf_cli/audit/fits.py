"""Fits for audits: an algorithm on one of two neighbours, for one ε, with or without a recorder.

A replay has two sides, fits on neighbouring ratings, of which the second publishes the numbers of the first.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmf_cli.algorithms.shared.base import Arrays, PrivateAlgorithm
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.core.arrays import Doubles, Floats, Ints
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, UserMajor
from dpmf_cli.core.streams import Streams, UnaccountedNoiseError, named_generator
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import uniforms_of_cells
from dpmf_cli.privacy.release import Numbers, Perturbed, Recorder, Release
from dpmf_cli.releasing.recommender import published


@dataclass(frozen=True)
class CoupledStreams(Streams):
    """Streams whose secret draw for a rating depends only on its (user, item) pair, not on the other ratings."""

    def of_ratings(self, purpose: str, pairs: UserMajor, *sets: int) -> Doubles:
        cells = pairs.users.astype(np.int64) * pairs.n_items + pairs.items
        keys = self.generator(purpose).integers(2**63, size=sets, dtype=np.uint64)
        drawn = [uniforms_of_cells(np.uint64(key), cells) for key in np.ravel(keys)]
        return np.array(drawn).reshape(*sets, len(pairs))


def fitted(
    algorithm: PrivateAlgorithm,
    ratings: Ratings,
    epsilon: float,
    *,
    run: int = 0,
    recorder: Recorder | None = None,
) -> tuple[Any, Ledger]:
    """The model for one ε, and the ledger of its fit. Each `run` has noise of its own."""
    streams = CoupledStreams(0, "audit", algorithm.algorithm, 0, run)
    ledger = Ledger([epsilon], algorithm.mode, algorithm.spends_delta)
    with np.errstate(all="ignore"):
        curator = Curator(ledger, streams, recorder)
        model = algorithm.fit(ratings, ledger.limit, streams=streams, curator=curator)
    return model, ledger


def predictions(model: Any, users: Ints, items: Ints) -> Floats:
    """(n,) predictions of a model for one ε."""
    with np.errstate(all="ignore"):
        return np.asarray(model.predict(users, items))[:, 0]


def covered(algorithm: PrivateAlgorithm, pair: Pair, most: int = 20_000) -> tuple[Ints, Ints]:
    """The predictions that privacy covers, as users (n,) and items (n,).

    If there are more than `most`, it returns a part: all items of the user who differs, and about `most` others at
    random. Of joint methods, and where a user is hidden with all ratings, privacy covers predictions for the others.
    """
    n_users, n_items = pair.here.n_users, pair.here.n_items
    if n_users * n_items <= most:
        users, items = np.divmod(np.arange(n_users * n_items), n_items)
    else:
        rng = named_generator("audit", "predictions", n_users, n_items)
        users = np.append(np.full(n_items, pair.changed), rng.integers(n_users, size=most))
        items = np.append(np.arange(n_items), rng.integers(n_items, size=most))
    if algorithm.joint or algorithm.neighbours is Neighbours.USER:
        stays = users != pair.changed
        users, items = users[stays], items[stays]
    return users.astype(np.int32), items.astype(np.int32)


PASSED_ON = (DpmfError, MemoryError, UnaccountedNoiseError)
"""Errors that end an audit, instead of counting as an error of the algorithm's fit."""

Place = tuple[str, int, int]
"""The place of released numbers: the step, the index of the draw, and the position of the first number."""


@dataclass(frozen=True)
class Seen:
    """Numbers of one release: the measured (`clean`) and the published (`out`) ones."""

    release: Release
    clean: Numbers
    out: Doubles
    volume: Doubles | None = None
    """For solutions: ln |det| for each row."""
    excess: Doubles | None = None
    """For solutions: the part of the noise that their constraints take up."""
    noise: Doubles | None = None
    """The noise draw for the numbers; None for solutions."""


class Side(Recorder):
    """One side of a replay: a recorder of all numbers of its fit, which publishes those of an earlier fit again.

    frozen  the numbers that the fit on the neighbour has published; None for the first fit

    After the fit it holds the ledger, predictions (n_pairs,) and the arrays that a release would hold, or the error.
    """

    def __init__(self, offset: float, frozen: "Mapping[Place, Seen] | None" = None) -> None:
        self.offset, self._frozen = offset, {} if frozen is None else frozen
        self.seen: dict[Place, Seen] = {}
        self.restless: set[str] = set()
        """Steps that have measured other numbers at a place that was published already."""
        self.ledger = Ledger([0.0])
        self.predictions: Floats = np.zeros(0)
        self.arrays: Arrays = {}
        self.error = ""

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: Doubles
    ) -> Doubles:
        place = release.entry.step, release.draw, first
        before = self.seen.get(place)
        if before is not None and before.clean.shape == clean.shape:
            if not np.array_equal(before.clean, clean, equal_nan=True):
                self.restless.add(release.entry.step)
            return before.out
        there = self._frozen.get(place)
        out = there.out if there and there.out.shape == noisy.shape else noisy
        if there and not release.leaves:
            out = 2 * out  # only the index of the least number may be told
        self.seen[place] = Seen(release, np.array(clean, np.float64), out, noise=noisy - clean)
        return out

    def solved(
        self, release: Release, lanes: slice, problems: Perturbed, drawn: Doubles
    ) -> tuple[Doubles, Doubles]:
        """The same solutions on both sides, with the same multipliers."""
        place = release.entry.step, release.draw, 0
        there = self._frozen.get(place)
        if not there or there.excess is None or there.out.shape != drawn.shape:
            solutions = problems.solve(drawn)
            excess = problems.noise_of(solutions) - drawn
        else:
            solutions, excess = there.out, there.excess
        needed = problems.noise_of(solutions)
        self.seen[place] = Seen(release, needed, solutions, problems.volume(), excess)
        return solutions, needed - excess


def both_sides(algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, run: int = 0) -> tuple[Side, Side]:
    """The fit on D, and the fit on D′ that publishes the same numbers."""
    here = Side(0.25)
    there = Side(-0.25, here.seen)
    for side, ratings in ((here, pair.here), (there, pair.there)):
        try:
            model, side.ledger = fitted(algorithm, ratings, epsilon, run=run, recorder=side)
            side.predictions = predictions(model, *covered(algorithm, pair))
            with suppress(DpmfError), np.errstate(all="ignore"):  # some models cannot be released
                side.arrays = published(model)[1]
        except PASSED_ON:
            raise
        except Exception as error:
            side.error = f"{type(error).__name__}: {error}"
    return here, there
