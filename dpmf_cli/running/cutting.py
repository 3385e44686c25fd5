"""How the ratings of a data set are cut: portions of them, and training and test ratings."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.costs.cost import Shape
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import Dataset
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.folds import assign_folds, split, without_pairs
from dpmf_cli.evaluation.portions import Order, Portion, first_share, portion, ranked
from dpmf_cli.ratings import Ratings
from dpmf_cli.results.task import Cut
from dpmf_cli.streams import Seed, named_generator


def cut_ratings(
    ratings: Ratings, cut: Cut, *, dataset: str, seed: Seed, test: Ratings | None = None
) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) of the data set of that key; `test` is the fixed test set where the cut has
    one."""
    if test is not None:
        return without_pairs(ratings, test), test
    assignment = fold_assignment(dataset, seed, cut.folds, len(ratings))
    if cut.portion < 1:
        first = first_share(arrivals(ratings, cut.order, dataset=dataset, seed=seed), cut.portion)
        used = np.full(len(ratings), -1, dtype=np.int16)
        used[first] = assignment[first]
        assignment = used
    return split(ratings, assignment, cut.fold)


def fold_assignment(dataset: str, seed: Seed, folds: int, n_ratings: int) -> NDArray[np.int16]:
    """(n_ratings,) the folds of a data set under a seed: the same for every algorithm and run.

    They are public. A secret seed is as good as its word here: every fit draws its own, in whichever process, and all
    must have the same folds. No proof needs them hidden, for ε is spent on the training ratings that there are.
    """
    return assign_folds(n_ratings, folds, named_generator(seed, dataset, folds, "folds"))


def arrivals(ratings: Ratings, order: Order, *, dataset: str, seed: Seed) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings as they come; of the random orders, that of a data set and a seed."""
    return ranked(ratings, order, rng=named_generator(seed, dataset, "growth"))


def portions_of(config: ExperimentConfig, dataset: Dataset) -> tuple[Portion, ...]:
    """What the portions of a config with growth hold, none for one without.

    Raises `DpmfError` where there is no order of time, or nothing to train on or to test in some fold.
    """
    ratings, identity, found = dataset.ratings, dataset.identity, []
    if len(ratings) < config.folds:
        raise DpmfError(
            f"{identity.title} has {len(ratings)} ratings, fewer than the {config.folds} folds asked for"
        )
    if config.growth is None:
        return ()
    order = config.growth.order
    folds = fold_assignment(identity.key, config.seed, config.folds, len(ratings))
    positions = arrivals(ratings, order, dataset=identity.key, seed=config.seed)
    for share in config.portions:
        first = first_share(positions, share)
        counts = np.bincount(folds[first], minlength=config.folds)
        if not (counts[: config.folds_run].all() and (counts > 0).sum() > 1):
            raise DpmfError(
                f"{identity.title}: {share:g} of the ratings are {counts.sum()}, too few for a test and a training "
                f"rating in each of {config.folds} folds; begin `growth.portions` with a larger one"
            )
        found.append(portion(ratings, share, order, first))
    return tuple(found)


def training_shape(
    users: int,
    items: int,
    ratings: int,
    folds: int,
    *,
    squares: float | None = None,
    portion: float = 1.0,
    order: Order = "timestamp",
) -> Shape:
    """The size of a training set: all but one of the folds, of a portion of the ratings.

    `squares` is Σ c_u² over all ratings, or None where it is not counted. It falls with the square of the share kept
    of each user's ratings; in the order of time whole users are kept or not, and it falls in proportion.
    """
    part = 1 - 1 / folds if folds > 1 else 1.0
    size = Shape(users, items, round(part * portion * ratings))
    if squares is None:
        return size
    kept = portion if order == "timestamp" else portion**2
    return replace(size, squares=squares * part**2 * kept)
