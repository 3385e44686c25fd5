"""Cuts of the ratings of a data set into portions, and into training and test ratings."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Flags
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.core.streams import Seed, named_generator
from dpmf_cli.datasets import Dataset
from dpmf_cli.datasets.spec import AnyCut
from dpmf_cli.evaluation import folds as cuts
from dpmf_cli.evaluation.folds import Order, Portion, portion
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.privacy.noise import uniforms_of_cells


def cut_ratings(
    ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed, test: Ratings | None = None
) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) of the data set with key `dataset`; `test` is the fixed test set, if any."""
    if test is not None:
        return ratings.select(~in_ratings(ratings, test)), test
    folds = folds_of(ratings, cut, dataset=dataset, seed=seed)
    return ratings.select((folds != cut.fold) & (folds >= 0)), ratings.select(folds == cut.fold)


def folds_of(ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating, independent of which fold the cut holds out.

    Folds are public, also under a secret seed, where each fit draws a seed of its own, but all fits need the same
    folds, which are drawn from the word `secret` instead. No proof needs hidden folds, because ε is spent on the
    training ratings as they are.

    A rating outside the cut's portion has fold −1. A rating that is never held out has fold `cut.folds`. Raises
    `DpmfError` if the cut needs an order of time and there is none.
    """
    if not isinstance(cut.split, str):
        tested = held_out(ratings, cut.split, named_generator(seed, dataset, cut.split.by))
        return np.where(tested, 0, 1).astype(np.int16)
    used = np.full(len(ratings), cut.portion == 1)
    if cut.portion < 1:
        first = arrivals(ratings, cut.order, dataset=dataset, seed=seed)
        used[first[: round(cut.portion * len(ratings))]] = True
    folds = np.full(len(ratings), -1, dtype=np.int16)
    if cut.split == "recent":
        times = cuts.times_of(ratings, "most recent", "`split: folds`")[used]
        rng = named_generator(seed, dataset, cut.folds, "recent")
        latest = cuts.last_of_each(ratings.select(used), cuts.LATEST, times, rng.random(len(times)))
        folds[used] = np.where(latest, rng.integers(cut.folds, size=len(times)), cut.folds)
    else:
        rng = named_generator(seed, dataset, cut.folds, "folds")
        folds[used] = cuts.assign_folds(len(ratings), cut.folds, rng)[used]
    return folds


def held_out(ratings: Ratings, split: AnyCut, rng: np.random.Generator) -> Flags:
    """(n_ratings,) whether each rating is predicted. Raises `DpmfError` without the times that the split needs.

    A rating's chance is a function of its user, its item and a key, so that another rating does not change it.
    """
    if split.by == "files":
        return np.asarray(ratings.columns["test"] == 1)
    cells = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    chances = uniforms_of_cells(rng.integers(2**64, dtype=np.uint64), cells)
    if split.by == "time":
        times = cuts.times_of(ratings, "latest", "`split: folds`")
        ranks = np.lexsort((chances, times)).argsort()
        return np.asarray(ranks >= len(times) - round(split.test * len(times)))
    if split.by == "leave_out":
        order = cuts.times_of(ratings, "last", "`which: random`") if split.which == "last" else 0.0
        return cuts.last_of_each(ratings, split.k, order, chances)
    users, rated = ratings.n_users, ratings.user_counts
    new = rng.permutation(users) < min(max(1, round(split.users * users)), users - 1)
    given = np.floor(split.fold_in * rated + 1e-9).astype(np.int64)  # 0.29·100 is below 29
    return cuts.last_of_each(ratings, np.where(new, rated - given, 0), 0.0, chances)


def arrivals(ratings: Ratings, order: Order, *, dataset: str, seed: Seed) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings in an order. The random order depends on the data set and seed.

    Ratings of the same time are ordered by position. Raises `DpmfError` where there is no time to order by.
    """
    if order == "random":
        return named_generator(seed, dataset, "growth").permutation(len(ratings))
    return np.argsort(cuts.times_of(ratings, "first", "`order: random` in `growth`"), kind="stable")


def portions_of(config: ExperimentConfig, dataset: Dataset) -> tuple[Portion, ...]:
    """The portions of a config with growth; none for a config without.

    Raises `DpmfError` if the config needs an order of time and there is none, or if a fold has no training or no test
    rating.
    """
    ratings, identity, found = dataset.ratings, dataset.identity, []
    growth, split = config.growth, config.split
    if len(ratings) < config.folds:
        fewer = f"fewer than the {config.folds} folds asked for"
        raise DpmfError(f"{identity.title} has {len(ratings)} ratings, {fewer}")
    if growth is None and split in ("folds", "probe", "judging"):
        return ()
    order: Order = growth.order if growth else "random"
    for share in config.portions:
        cut = Cut(config.folds, 0, share, order, split)
        try:
            folds = folds_of(ratings, cut, dataset=identity.stream, seed=config.seed)
        except DpmfError as error:
            raise DpmfError(f"{identity.title}: {error}") from None
        counts = np.bincount(folds[folds >= 0], minlength=config.folds)
        if not (counts[: config.folds_run].all() and (counts > 0).sum() > 1):
            if not isinstance(split, str):
                raise DpmfError(
                    f"{identity.title}, {split}: nothing to train on, or to predict; change `split`"
                )
            fix = "begin `growth.portions` with a larger portion" if growth else "take fewer `folds`"
            few = f"too few for a test and a training rating in each of {config.folds} folds"
            what = f"{share:g} of the ratings are {counts.sum()}"
            raise DpmfError(f"{identity.title}: {what}, {few}; {fix}")
        found.append(portion(ratings, share, order, np.flatnonzero(folds >= 0)))
    return tuple(found) if growth else ()
