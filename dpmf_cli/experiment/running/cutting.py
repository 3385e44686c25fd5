"""Cuts the ratings of a data set: into portions, into folds, and into training and test ratings.

McSherry and Mironov (2009, figure 2) measure how the cost of privacy changes as ratings accumulate.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.core.streams import Seed, named_generator
from dpmf_cli.datasets import Dataset
from dpmf_cli.evaluation.curves import Order, Portion
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.task import Cut


def cut_ratings(
    ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed, test: Ratings | None = None
) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) of the data set with key `dataset`; `test` is the fixed test set, if any."""
    if test is not None:
        return ratings.select(~in_ratings(ratings, test)), test
    return split(ratings, folds_of(ratings, cut, dataset=dataset, seed=seed), cut.fold)


def folds_of(ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating, independent of which fold the cut holds out.

    A rating outside the cut's portion has fold −1. A rating that is never held out has fold `cut.folds`. Raises
    `DpmfError` if the cut needs an order of time and there is none.
    """
    used = np.full(len(ratings), cut.portion == 1)
    if cut.portion < 1:
        used[first_share(arrivals(ratings, cut.order, dataset=dataset, seed=seed), cut.portion)] = True
    folds = np.full(len(ratings), -1, dtype=np.int16)
    if cut.test == "recent":
        times = times_of(ratings, "most recent", "`test: folds`")
        rng = named_generator(seed, dataset, cut.folds, "recent")
        folds[used] = assign_latest(ratings.select(used), times[used], cut.folds, rng)
    else:
        folds[used] = fold_assignment(dataset, seed, cut.folds, len(ratings))[used]
    return folds


def fold_assignment(dataset: str, seed: Seed, folds: int, n_ratings: int) -> NDArray[np.int16]:
    """(n_ratings,) the folds of a data set under a seed: the same for every algorithm and run.

    A random partition into folds whose sizes differ by at most one rating. Ratings are drawn one by one, not user by
    user (Friedman et al. 2016, footnote 3: MATLAB's `crossvalind`).

    Folds are public, also under a secret seed. Then each fit draws a seed of its own, but all fits need the same
    folds, so the folds are drawn from the word `secret` instead. No proof needs hidden folds, because ε is spent on
    the training ratings as they are.
    """
    assignment = np.resize(np.arange(folds, dtype=np.int16), n_ratings)
    named_generator(seed, dataset, folds, "folds").shuffle(assignment)
    return assignment


LATEST = 9
"""Number of a user's ratings that count as the most recent."""


def assign_latest(
    ratings: Ratings, times: NDArray[np.generic], folds: int, rng: np.random.Generator
) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating, where only each user's `LATEST` most recent ratings are ever held out.

    A most recent rating is in each fold with probability 1/folds. All earlier ratings get the number `folds`, which
    is never held out. Ratings of the same time come in a random order. `times` (n_ratings,) says when each was made.

    McSherry and Mironov 2009, section 5: "the 9 most recent ratings for each user chosen with probability 1/3 each".
    """
    order = np.lexsort((rng.random(len(ratings)), times, ratings.users))
    ends = np.repeat(ratings.user_starts[1:], ratings.user_counts)
    latest = order[ends - np.arange(len(ratings)) <= LATEST]
    assignment = np.full(len(ratings), folds, dtype=np.int16)
    assignment[latest] = rng.integers(folds, size=len(ratings))[latest]
    return assignment


def split(ratings: Ratings, assignment: NDArray[np.int16], fold: int) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) with `fold` held out; a rating of fold −1 is in neither."""
    return ratings.select((assignment != fold) & (assignment >= 0)), ratings.select(assignment == fold)


def arrivals(ratings: Ratings, order: Order, *, dataset: str, seed: Seed) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings in an order; those of the same time are ordered by position.

    The random order depends on the data set and seed. Raises `DpmfError` where there is no time to order by.
    """
    if order == "random":
        return named_generator(seed, dataset, "growth").permutation(len(ratings))
    return np.argsort(times_of(ratings, "first", "`order: random` in `growth`"), kind="stable")


def times_of(ratings: Ratings, which: str, instead: str) -> NDArray[np.generic]:
    """(n_ratings,) the time stamp of each rating.

    Raises `DpmfError` where time stamps are missing or all the same. The message says that there are no `which`
    ("first") ratings, and to use `instead`.
    """
    times = ratings.columns.get("timestamp")
    if times is None or times.min() == times.max():
        missing = "no time stamps" if times is None else "the same time stamp on every rating"
        raise DpmfError(f"these ratings have {missing}, so no {which} ones; use {instead}")
    return times


def first_share(positions: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    """The first share, in (0, 1], of ranked positions; a larger share begins with a smaller one."""
    return positions[: round(share * len(positions))]


def portion(ratings: Ratings, share: float, order: Order, positions: NDArray[np.intp]) -> Portion:
    """Describes the portion with this share, whose ratings (at least one) are at `positions`."""
    days = None
    if order == "timestamp":
        times = ratings.columns["timestamp"]
        days = (float(times[positions].max()) - float(times.min())) / 86_400
    return Portion(share, len(positions), len(np.unique(ratings.users[positions])), days)


def portions_of(config: ExperimentConfig, dataset: Dataset) -> tuple[Portion, ...]:
    """The portions of a config with growth; none for a config without.

    Raises `DpmfError` if the config needs an order of time and there is none, or if a fold has no training or no test
    rating.
    """
    ratings, identity, found = dataset.ratings, dataset.identity, []
    growth, recent = config.growth, config.test == "recent"
    if len(ratings) < config.folds:
        fewer = f"fewer than the {config.folds} folds asked for"
        raise DpmfError(f"{identity.title} has {len(ratings)} ratings, {fewer}")
    if growth is None and not recent:
        return ()
    order: Order = growth.order if growth else "timestamp"
    for share in config.portions:
        cut = Cut(config.folds, 0, share, order, config.test)
        try:
            folds = folds_of(ratings, cut, dataset=identity.stream, seed=config.seed)
        except DpmfError as error:
            raise DpmfError(f"{identity.title}: {error}") from None
        counts = np.bincount(folds[folds >= 0], minlength=config.folds)
        if not (counts[: config.folds_run].all() and (counts > 0).sum() > 1):
            fix = "begin `growth.portions` with a larger portion" if growth else "take fewer `folds`"
            few = f"too few for a test and a training rating in each of {config.folds} folds"
            what = f"{share:g} of the ratings are {counts.sum()}"
            raise DpmfError(f"{identity.title}: {what}, {few}; {fix}")
        found.append(portion(ratings, share, order, np.flatnonzero(folds >= 0)))
    return tuple(found) if growth else ()
