"""Cuts the ratings of a data set into portions, and into training and test ratings."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, times_of
from dpmf_cli.core.streams import Seed, named_generator
from dpmf_cli.datasets import Dataset
from dpmf_cli.evaluation import folds as cuts
from dpmf_cli.evaluation.folds import Order, Portion, portion
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.task import Cut


def cut_ratings(
    ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed, test: Ratings | None = None
) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) of the data set with key `dataset`; `test` is the fixed test set, if any."""
    if test is not None:
        return cuts.without_pairs(ratings, test), test
    return cuts.split(ratings, folds_of(ratings, cut, dataset=dataset, seed=seed), cut.fold)


def folds_of(ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating, independent of which fold the cut holds out.

    A rating outside the cut's portion has fold −1. A rating that is never held out has fold `cut.folds`. Raises
    `DpmfError` if the cut needs an order of time and there is none, or cannot be made where it is asked for.
    """
    if not isinstance(cut.split, str):
        held_out = cut.split.held_out(ratings, named_generator(seed, dataset, cut.split.by))
        return np.where(held_out, 0, 1).astype(np.int16)
    used = np.full(len(ratings), cut.portion == 1)
    if cut.portion < 1:
        used[cuts.first_share(arrivals(ratings, cut.order, dataset=dataset, seed=seed), cut.portion)] = True
    folds = np.full(len(ratings), -1, dtype=np.int16)
    if cut.split == "recent":
        times = times_of(ratings, "most recent", "`split: folds`")
        rng = named_generator(seed, dataset, cut.folds, "recent")
        folds[used] = cuts.assign_latest(ratings.select(used), times[used], cut.folds, rng)
    else:
        folds[used] = fold_assignment(dataset, seed, cut.folds, len(ratings))[used]
    return folds


def fold_assignment(dataset: str, seed: Seed, folds: int, n_ratings: int) -> NDArray[np.int16]:
    """(n_ratings,) the folds of a data set under a seed: the same for every algorithm and run.

    Folds are public, also under a secret seed. Then each fit draws a seed of its own, but all fits need the same
    folds, so the folds are drawn from the word `secret` instead. No proof needs hidden folds, because ε is spent on
    the training ratings as they are.
    """
    return cuts.assign_folds(n_ratings, folds, named_generator(seed, dataset, folds, "folds"))


def arrivals(ratings: Ratings, order: Order, *, dataset: str, seed: Seed) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings in an order. The random order depends on the data set and seed."""
    return cuts.ranked(ratings, order, rng=named_generator(seed, dataset, "growth"))


def portions_of(config: ExperimentConfig, dataset: Dataset) -> tuple[Portion, ...]:
    """The portions of a config with growth; none for a config without.

    Raises `DpmfError` if the config needs an order of time and there is none, or if a fold has no training or no test
    rating.
    """
    ratings, identity, found = dataset.ratings, dataset.identity, []
    growth, plain = config.growth, config.split in ("folds", "probe", "judging")
    if len(ratings) < config.folds:
        fewer = f"fewer than the {config.folds} folds asked for"
        raise DpmfError(f"{identity.title} has {len(ratings)} ratings, {fewer}")
    if growth is None and plain:
        return ()
    order: Order = growth.order if growth else "timestamp"
    for share in config.portions:
        cut = Cut(config.folds, 0, share, order, config.split)
        try:
            folds = folds_of(ratings, cut, dataset=identity.stream, seed=config.seed)
        except DpmfError as error:
            raise DpmfError(f"{identity.title}: {error}") from None
        counts = np.bincount(folds[folds >= 0], minlength=config.folds)
        if not (counts[: config.folds_run].all() and (counts > 0).sum() > 1):
            fewer = "take fewer `folds`" if isinstance(config.split, str) else "change `split`"
            fix = "begin `growth.portions` with a larger portion" if growth else fewer
            few = f"too few for a test and a training rating in each of {config.folds} folds"
            what = f"{share:g} of the ratings are {counts.sum()}"
            raise DpmfError(f"{identity.title}: {what}, {few}; {fix}")
        if growth:
            found.append(portion(ratings, share, order, np.flatnonzero(folds >= 0)))
    return tuple(found)
