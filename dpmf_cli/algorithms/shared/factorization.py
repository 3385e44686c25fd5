"""What factorisations share: start factors, the order of visits, limits on users' ratings, and models."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.model import Arrays, Model
from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.core.ratings import Ratings, UserMajor
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.sgd import Sgd, descend_values
from dpmf_cli.kernels.sums import shuffle_within


class InitialFactors(StrictModel):
    """The distribution of the start factors, which the papers leave open.

    `normal`: N(0, scale²); `uniform`: U[0, scale), MATLAB's `rand` for scale 1; `sphere`: rows of norm `scale` in a
    uniformly random direction; `positive_sphere`: the same with every coordinate positive.
    """

    distribution: Literal["normal", "uniform", "sphere", "positive_sphere"] = "normal"
    scale: float = Field(
        0.1,
        ge=1e-6,
        le=100,
        description="scale of the distribution; outside its limits, products overflow or lose digits in float32",
    )

    def draw(self, rows: int, factors: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(rows, factors) start factors."""
        if self.distribution == "normal":
            return rng.normal(0.0, self.scale, (rows, factors))
        if self.distribution == "uniform":
            return rng.uniform(0.0, self.scale, (rows, factors))
        direction = rng.standard_normal((rows, factors))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return self.scale * (np.abs(direction) if self.distribution == "positive_sphere" else direction)


@dataclass(frozen=True)
class KnownModel:
    """r̂_ui = p_u·q_i, or a model's average if the model has seen no rating of the user or of the item.

    known_users (n_users, E), known_items (n_items, E) bool; averages (E,) rating scale, or a model that predicts them
    """

    factors: FactorModel
    known_users: NDArray[np.bool_]
    known_items: NDArray[np.bool_]
    averages: NDArray[np.float32] | Model

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        known = self.known_users[users] & self.known_items[items]
        of_others = self.averages
        if not isinstance(of_others, np.ndarray):
            of_others = of_others.predict(users, items)
        return np.where(known, self.factors.predict(users, items), of_others)


def initial_factors(
    pairs: UserMajor, initial: InitialFactors, factors: int, streams: Streams
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draws start factors (n_users, factors) and (n_items, factors), the same for all models of a grid."""
    users = initial.draw(pairs.n_users, factors, streams.start("initial user factors"))
    items = initial.draw(pairs.n_items, factors, streams.start("initial item factors"))
    return users, items


def start_model(
    train: Ratings, initial: InitialFactors, factors: int, streams: Streams, *, grid: int, centre: float = 0.0
) -> FactorModel:
    """Start factors for `grid` models, which predict `centre` besides."""
    start, items = initial_factors(train, initial, factors, streams), np.full((train.n_items, grid), centre)
    return factor_model(*start, np.zeros((train.n_users, grid)), items)


def alternate(model: FactorModel, train: Ratings, problem: RowProblem, iterations: int) -> None:
    """Alternating least squares without noise, in place: all users, then all items, so many times."""
    ratings_by_user, ratings_by_item = by_user(train), by_item(train)
    for _ in range(iterations):
        solve_rows(model, ratings_by_user, problem)
        solve_rows(model, ratings_by_item, problem)


def visiting_order(
    pairs: UserMajor, kind: Literal["user_major", "shuffled"], rng: np.random.Generator
) -> NDArray[np.int64]:
    """(n_ratings,) the order in which SGD visits ratings, drawn once and kept for all epochs.

    `shuffled` is one permutation of all ratings. `user_major` visits user after user and shuffles each user's items.
    It converges as well, and keeps the user's factors in the nearest cache.
    """
    if kind == "shuffled":
        return rng.permutation(len(pairs))
    order = np.empty(len(pairs), np.int64)
    for ratings, places in shuffled_blocks(pairs, rng):
        np.add(places, ratings.start, out=order[ratings])
    return order


def shuffled_blocks(
    pairs: UserMajor, rng: np.random.Generator, block: int = 1 << 20
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Yields the order `user_major` in blocks: a slice of ratings, and the order of visits in it, numbered from its
    first rating. A block holds all ratings of its users: about `block` of them, or those of one user who has more.
    The size of the blocks does not change the order."""
    starts, first = pairs.user_starts, 0
    while first < pairs.n_users:
        last = int(np.searchsorted(starts, starts[first] + block, side="right")) - 1
        last = min(max(last, first + 1), pairs.n_users)
        begin, end = int(starts[first]), int(starts[last])
        yield slice(begin, end), shuffle_within(starts[first : last + 1] - begin, rng.random(end - begin))
        first = last


def descend_in_order(
    model: FactorModel, pairs: UserMajor, values: LaneValues, entry: Any, streams: Streams
) -> None:
    """SGD on the values of pairs, visited in the `order` of the entry, in place."""
    order = visiting_order(pairs, entry.order, streams.generator("order of visits"))
    sgd = Sgd(entry.learning_rate, entry.regularization, epochs=entry.epochs)
    descend_values(model, pairs.users, pairs.items, order, values, sgd)


def at_most(ratings: Ratings, limit: int, draws: NDArray[np.float64]) -> Ratings:
    """`limit` ratings of each user who has more, chosen by uniform `draws` (n_ratings,), and all ratings of the other
    users."""
    order = shuffle_within(ratings.user_starts, draws)
    within = np.arange(len(ratings)) - ratings.user_starts[ratings.users]
    kept = np.zeros(len(ratings), np.bool_)
    kept[order[within < limit]] = True
    return ratings.select(kept)


@dataclass(frozen=True)
class OwnFactors:
    """Predicts from released items, and from the target user's own ratings.

    entry   an algorithm with `with_own_factors(items, beside, own)`: the items, and the users of `own`, each of whose
            effect and factors are made from that user's ratings
    items   the released items, without users
    beside  the other released arrays
    own     the ratings of every user who may ask; a prediction for user u uses only those of u
    """

    entry: Any
    items: FactorModel
    beside: Arrays
    own: Ratings

    @cached_property
    def solved(self) -> FactorModel:
        """The items and the users. The users' part is not released."""
        solved: FactorModel = self.entry.with_own_factors(self.items, self.beside, self.own)
        return solved

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        return self.solved.predict(users, items)

    @property
    def published(self) -> Arrays:
        """The items, and the other released arrays."""
        return {"factors": self.items.published["items"], **self.beside}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        if not hasattr(entry, "with_own_factors"):
            raise TypeError("its method makes no such model")
        factors = arrays["factors"]
        items = FactorModel.restored({"users": factors[:0], "items": factors}).without_users()
        beside = {name: array for name, array in arrays.items() if name != "factors"}
        return cls(entry, items, beside, own)
