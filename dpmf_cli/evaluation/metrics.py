"""Metrics: errors of predictions, and nDCG and recall of the first k items for each user.

Errors are also those of groups: quarters of users by activity and of items by popularity, in training ratings. That
privacy costs groups unequally is a finding of Müllner et al. 2024, for users of unpopular items.

A user's candidates are all items of the catalogue except those that the user rated in training, ordered by the
model's unclipped predictions. An item is relevant if the user's held-out rating of it is at or above a threshold.

    nDCG@k    Σ 1/log₂(rank + 1) over the relevant items among the first k, divided by the same sum for the best order
              (Järvelin and Kekäläinen 2002, with gains of 1)
    Recall@k  number of relevant items among the first k, divided by min(k, number of relevant items)
              (Liang et al. 2018, section 4.2, whose protocol Chien et al. 2021 follow)

Both are means over the users with a relevant held-out item, because for others every order is equally good.

Candidates with equal scores have no order. The metric is the expectation over all their orders, each equally likely
(McSherry and Najork 2008): a relevant item counts the mean of the places that its score shares, so that item numbers
do not favour any item. An infinite score is the largest or the smallest of all, and a score that is not a number is
the smallest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints, Longs
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.strict_model import StrictModel


@dataclass(frozen=True)
class Metric:
    """A metric that curves, tables and crossings can show.

    key     its name in configs and `--metric`: "rmse", "ndcg@10"
    title   its name on axes and in tables: "RMSE", "nDCG@10"
    """

    key: str
    title: str
    larger_is_better: bool = False

    @property
    def sign(self) -> int:
        """The factor that turns a value into one where smaller is better: −1 or 1."""
        return -1 if self.larger_is_better else 1


RMSE = Metric("rmse", "RMSE")
MAE = Metric("mae", "MAE")

BESIDE = (MAE,)
"""The errors that every task measures beside RMSE, and that tables and files show beside it."""


def errors_of(predictions: Floats, values: Floats) -> dict[str, Doubles]:
    """(E,) each, by key: `RMSE` and all `BESIDE` of predictions (n, E) against values (n,), in rating units.

    Friedman et al. 2016, equation 18. Each column is summed on its own, in float64, so its figures do not depend on
    the other columns. A model that diverged (a prediction is not finite) has the errors inf.
    """
    sums = np.empty((2, predictions.shape[1]))
    for column, prediction in enumerate(predictions.T):
        errors = prediction.astype(np.float64) - values
        sums[1, column] = np.add.reduce(np.abs(errors, out=errors))
        sums[0, column] = np.add.reduce(np.square(errors, out=errors))
    square, absolute = np.where(np.isnan(sums), np.inf, sums) / len(values)
    return {RMSE.key: np.sqrt(square), MAE.key: absolute}


def error_cdf(predictions: Floats, values: Floats, limits: Sequence[float]) -> Doubles:
    """(E, L) the fraction of |prediction − value| ≤ x for each x of `limits` (L,), ascending, rating scale.

    predictions (n, E), values (n,), n > 0. Zhang et al. 2018, section 6.1, "CDF". Columns do not affect each other. A
    prediction that is not finite is off by more than any limit.
    """
    fractions = np.empty((predictions.shape[1], len(limits)))
    for column, prediction in enumerate(predictions.T):
        errors = np.sort(np.abs(prediction.astype(np.float64) - values))
        fractions[column] = np.searchsorted(errors, limits, side="right") / len(values)
    return fractions


GROUPED = (
    Metric("rmse_least_active", "RMSE, least active users"),
    Metric("rmse_most_active", "RMSE, most active users"),
    Metric("rmse_least_popular", "RMSE, least popular items"),
    Metric("rmse_most_popular", "RMSE, most popular items"),
    Metric("share_who_gain", "share of users who gain over IA with its defaults", larger_is_better=True),
)
"""What a task measures if its config asks for `groups`, in the order of `errors_by_group`."""


def quarters(counts: Longs) -> tuple[Flags, Flags]:
    """(n,) each: which users are the quarter with the fewest training ratings, and which that with the most.

    Users, or items, are ranked by their numbers of training ratings, `counts` (n,), equal ones by index. A quarter is
    the first or the last ⌈n/4⌉ of them, so those without a training rating come first.
    """
    order, size = np.argsort(counts, kind="stable"), -(-len(counts) // 4)
    fewest, most = np.zeros((2, len(counts)), np.bool_)
    fewest[order[:size]] = most[order[-size:]] = True
    return fewest, most


def errors_by_group(predictions: Floats, average: Doubles, train: Ratings, test: Ratings) -> Doubles:
    """(5, E) the metrics `GROUPED` of predictions (n, E) of the n test ratings; RMSE in the unit of the ratings.

    The RMSE of a group is over its test ratings. A user gains whose squared errors sum to less than with `average`
    (n,), the item average's predictions; the share is of the users who have test ratings. Columns do not affect each
    other, and a prediction that is not finite has the error inf. Raises `DpmfError` if a group has no test rating.
    """
    sides = (train.user_counts, test.users), (train.item_counts, test.items)
    groups = [quarter[rows] for counts, rows in sides for quarter in quarters(counts)]
    for metric, group in zip(GROUPED[:-1], groups, strict=True):
        if not group.any():
            fix = "use fewer `folds`, or another `split`, or remove `groups`"
            raise DpmfError(f"{metric.title}: no held-out rating is in this group; {fix}")

    def squares(prediction: Floats) -> Doubles:
        found: Doubles = np.square(prediction.astype(np.float64) - test.values)
        return np.where(np.isnan(found), np.inf, found)

    def by_user(errors: Doubles) -> Doubles:
        return np.bincount(test.users, errors, test.n_users).astype(np.float64, copy=False)

    of_average, users = by_user(squares(average)), len(np.unique(test.users))
    found = np.empty((len(GROUPED), predictions.shape[1]))
    for column, prediction in enumerate(predictions.T):
        errors = squares(prediction)
        found[:-1, column] = [np.sqrt(errors[group].mean()) for group in groups]
        found[-1, column] = np.count_nonzero(by_user(errors) < of_average) / users
    return found


SCORES_AT_ONCE = 1 << 22
"""Number of scores in a block of users, over all lanes. If one user has more, a block is one user."""

LEAST_LANES = 8
"""A pair counts as at least this many scores, because it needs memory of its own, too."""
GROUPS = 4
"""Groups for each of the first k places in the bound of the k-th largest score. More are tighter and cost more."""

Predict = Callable[[Ints, Ints], Floats]
"""Maps n pairs (users, items) to (n, E) scores."""


class TopItems(StrictModel):
    """The ranking metrics that a config asks for."""

    threshold: float = Field(description="held-out ratings at or above it are relevant, in rating units")
    ndcg: int = Field(10, ge=1, le=1000, description="k of nDCG@k")
    recall: int = Field(20, ge=1, le=1000, description="k of Recall@k")

    @property
    def metrics(self) -> tuple[Metric, Metric]:
        """The two metrics, in the order of results."""
        ndcg, recall = f"nDCG@{self.ndcg}", f"Recall@{self.recall}"
        return Metric(ndcg.lower(), ndcg, larger_is_better=True), Metric(
            recall.lower(), recall, larger_is_better=True
        )


def top_items(predict: Predict, train: Ratings, test: Ratings, asked: TopItems, *, lanes: int) -> Doubles:
    """(E, 2) `asked.metrics` of a model for each of E ε (`lanes`).

    The ε do not affect each other, and the size of blocks does not affect results. Time grows with users × items × E.
    Raises `DpmfError` where no held-out rating is relevant.
    """
    relevant = test.values >= asked.threshold
    if not relevant.any():
        raise DpmfError(
            f"no held-out rating is {asked.threshold:g} or more; lower `threshold` in `ranking`, or hold out more"
        )
    users, items = test.users[relevant], test.items[relevant]
    starts = np.flatnonzero(np.diff(users, prepend=-1))[:: users_at_once(train.n_items, lanes)]
    blocks = zip(np.split(users, starts[1:]), np.split(items, starts[1:]), strict=True)
    per_user = np.concatenate([_of_users(predict, train, *block, asked) for block in blocks])
    # Each column is contiguous, so that the order of the additions does not depend on the number of columns.
    sums: Doubles = np.ascontiguousarray(np.moveaxis(per_user, 0, -1)).sum(axis=-1)
    return sums / len(per_user)


def users_at_once(n_items: int, lanes: int) -> int:
    return max(1, SCORES_AT_ONCE // (n_items * max(lanes, LEAST_LANES)))


def _of_users(predict: Predict, train: Ratings, users: Ints, items: Ints, asked: TopItems) -> Doubles:
    """(U, E, 2) the metrics of each of U users; (users, items) are their relevant items, users ascending."""
    each, rows, counts = np.unique(users, return_inverse=True, return_counts=True)
    scores = _scores(predict, train, each)
    above, equal = _places(scores, rows, items, max(asked.ndcg, asked.recall))
    found = np.empty((len(each), scores.shape[2], 2))
    weights = (1 / np.log2(np.arange(2, asked.ndcg + 2)), np.ones(asked.recall))
    for metric, of_place in enumerate(weights):
        # worth[j] is the value of a list whose first j places all hold relevant items.
        k, worth = len(of_place), np.concatenate([[0.0], np.cumsum(of_place)])
        share = (worth[np.minimum(above + equal, k)] - worth[np.minimum(above, k)]) / equal
        for lane, column in enumerate(share.T):
            found[:, lane, metric] = np.bincount(rows, column, len(each)) / worth[np.minimum(counts, k)]
    return found


def _scores(predict: Predict, train: Ratings, users: Ints) -> Floats:
    """(U, n_items, E) finite scores of the candidates of U users; −∞ for items that they rated in training."""
    n_items = train.n_items
    every = np.arange(n_items, dtype=np.int32)
    predicted = predict(np.repeat(users, n_items).astype(np.int32), np.tile(every, len(users)))
    scores = np.array(predicted).reshape(len(users), n_items, -1)
    if not np.isfinite(scores).all():
        most = float(np.finfo(scores.dtype).max)
        scores[np.isnan(scores)] = -most
        np.clip(scores, -most, most, out=scores)
    for row, user in enumerate(users):
        scores[row, train.items[train.user_starts[user] : train.user_starts[user + 1]]] = -np.inf
    return scores


def _places(
    scores: Floats, rows: NDArray[np.intp], items: Ints, k: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(R, E) each: how many candidates have a larger score than each relevant item, and how many have the same score.

    If k or more have a larger score, the result may be the number of all items, and 1. So candidates are counted only
    for relevant items whose score is at least a bound of the k-th largest score.
    """
    n_items = scores.shape[1]
    own = scores[rows, items]
    above, equal = np.full(own.shape, n_items), np.ones(own.shape, np.intp)
    near, lane = np.nonzero(own >= _bound(scores, k)[rows])
    at_once = max(1, scores.size // n_items)
    for first in range(0, len(near), at_once):
        few, of = near[first : first + at_once], lane[first : first + at_once]
        candidates, asked = scores[rows[few], :, of], own[few, of][:, None]
        above[few, of] = np.count_nonzero(candidates > asked, axis=1)
        equal[few, of] = np.count_nonzero(candidates == asked, axis=1)
    return above, equal


def _bound(scores: Floats, k: int) -> Floats:
    """(U, E) a lower bound, and a close one, of the k-th largest of scores (U, n_items, E).

    Items are dealt out to groups. The bound is the k-th largest of the groups' maxima, each of which is the score of
    another item. With fewer than k items, the bound is the smallest score.
    """
    users, n_items, lanes = scores.shape
    k = min(k, n_items)
    groups = min(GROUPS * k, n_items)
    whole = n_items // groups * groups
    largest = scores[:, :whole].reshape(users, -1, groups, lanes).max(axis=1)
    left = largest[:, : n_items - whole]
    np.maximum(left, scores[:, whole:], out=left)
    return np.partition(largest, groups - k, axis=1)[:, groups - k]
