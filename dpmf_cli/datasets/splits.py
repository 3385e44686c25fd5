"""The values that the `split:` key of a config may have: what is trained on, and what is predicted.

Each docstring says what a split means for the promise of an ε.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from dpmf_cli.core.arrays import Flags
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, last_of_each, times_of
from dpmf_cli.core.strict_model import StrictModel

PrizeSet = Literal["probe", "judging"]
SplitName = Literal["folds", "recent", "probe", "judging"]
"""Folds of all ratings, folds of each user's most recent ratings, or a test set of the Netflix Prize.

ε protects the ratings of a training set. Each rating is in most of them, so the ε of all folds would add up if their
models were released. Which rating is in which fold depends on their number and the seed, and on no value.
"""

Share = Annotated[float, Field(gt=0, lt=1)]


class OneCut(StrictModel, ABC):
    """A split of the ratings into one training and one test set."""

    by: str

    @abstractmethod
    def held_out(self, ratings: Ratings, rng: np.random.Generator) -> Flags:
        """(n_ratings,) whether each rating is predicted. Raises DpmfError if they cannot be cut as asked for."""

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self)


class FilesSplit(OneCut):
    """Own training and test files: `dataset` names the training ratings, and `path` those to predict, in the same
    form. A user or an item may be in one of them only. A pair stands once in both together.

    ε protects the ratings of the training file. It says nothing of the test file, nor of how somebody chose which
    rating is in which.
    """

    by: Literal["files"]
    path: str = Field(min_length=1, description="the file of the test ratings, relative to the config file")

    def held_out(self, ratings: Ratings, rng: np.random.Generator) -> Flags:
        return np.asarray(ratings.columns["test"] == 1)


class TimeSplit(OneCut):
    """One cut in time: everything from a moment on is predicted from everything before it.

    ε protects the ratings before the cut, a quantile of all time stamps. Neighbours that differ in the value of a
    rating have the same cut. One rating more moves it by at most one rating, so neighbours of `unbounded` may differ
    in two ratings before it, which takes 2ε. One `user` more moves ratings of others over it, which no ε covers.
    """

    by: Literal["time"]
    test: Share = Field(0.2, description="share of the ratings that is predicted: the latest")

    def held_out(self, ratings: Ratings, rng: np.random.Generator) -> Flags:
        times = times_of(ratings, "latest", "`split: folds`")
        count, ordered = len(times), np.sort(times)
        first = count - round(self.test * count)
        changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        nearest = int(changes[np.argmin(np.abs(changes - first))])
        if nearest != first:
            tied = f"the latest {self.test:g} of the ratings would begin among ratings of one time"
            raise DpmfError(f"{tied}; use `test: {1 - nearest / count:.10g}`, which cuts between two times")
        return np.asarray(times >= ordered[first])


class LeaveOutSplit(OneCut):
    """k ratings of each user are predicted, and the others are trained on. Of a user with k ratings or fewer, none is
    trained on. Chance decides between equal times.

    ε protects the ratings that are trained on. Which of a user's ratings these are depends on that user's times
    alone, or on chance. One rating more, be it held out or not, puts at most one rating more into the training set,
    so ε covers the choice as well, for all kinds of neighbours.
    """

    by: Literal["leave_out"]
    k: int = Field(1, ge=1, le=1000, description="ratings of each user that are predicted")
    which: Literal["last", "random"] = Field("last", description="the user's latest ratings, or random ones")

    def held_out(self, ratings: Ratings, rng: np.random.Generator) -> Flags:
        times = times_of(ratings, "last", "`which: random`") if self.which == "last" else None
        return last_of_each(ratings, self.k, rng, times)


class NewUsersSplit(OneCut):
    """Random users are left out of the training; a random part of their ratings, the fold-in, is given to predict the
    others from (Liang, Krishnan, Hoffman and Jebara 2018, section 4.2). Methods that cannot predict from items and
    own ratings are refused. At least one user is new, and one is not.

    ε protects the ratings that are trained on. No released number depends on a fold-in, so others learn nothing of
    new users, and whoever sees the predictions for one may learn all. No rating decides who is new.
    """

    by: Literal["new_users"]
    users: Share = Field(0.1, description="share of the users who are new")
    fold_in: Share = Field(0.8, description="share of a new user's ratings that is given, rounded down")

    def held_out(self, ratings: Ratings, rng: np.random.Generator) -> Flags:
        new = np.zeros(ratings.n_users, np.bool_)
        new[rng.permutation(len(new))[: min(max(1, round(self.users * len(new))), len(new) - 1)]] = True
        given = np.floor(self.fold_in * ratings.user_counts + 1e-9)  # 0.29·100 is below 29
        return last_of_each(ratings, np.where(new, ratings.user_counts - given, 0).astype(np.int64), rng)


Split = Annotated[
    Annotated[SplitName, Tag("name")]
    | Annotated[FilesSplit, Tag("files")]
    | Annotated[TimeSplit, Tag("time")]
    | Annotated[LeaveOutSplit, Tag("leave_out")]
    | Annotated[NewUsersSplit, Tag("new_users")],
    Discriminator(
        lambda value: value.get("by") if isinstance(value, dict) else getattr(value, "by", "name"),
        custom_error_type="split",
        custom_error_message="write `split: folds`, or `{by: …}` with files, time, leave_out or new_users",
    ),
]
