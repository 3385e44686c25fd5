"""What factorisations share: start factors, the order of visits, models, and PMF by mini-batch gradient descent.

PMF is of Salakhutdinov and Mnih 2007, as Zhang, Liu, Chen and Zhong 2018, section 3.1, run it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Algorithm, Arrays, Model, for_new_users
from dpmf_cli.algorithms.shared.cost import BATCH_VISIT, LINE, Cost, Shape
from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, LaneValues, groups, padded_grid
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale, UserMajor, average_of
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel, later
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, SampledVisits, sample_bits, step_side, sum_gradients
from dpmf_cli.kernels.releasing import project_side
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

    def draw(self, rows: int, factors: int, rng: np.random.Generator) -> Doubles:
        """(rows, factors) start factors."""
        if self.distribution == "normal":
            return rng.normal(0.0, self.scale, (rows, factors))
        if self.distribution == "uniform":
            return rng.uniform(0.0, self.scale, (rows, factors))
        direction = rng.standard_normal((rows, factors))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return self.scale * (np.abs(direction) if self.distribution == "positive_sphere" else direction)


@dataclass(frozen=True)
class UnitModel:
    """The predictions of `unit`, which are on [0, 1], on the rating scale.

    known_users (n_users,), known_items (n_items,)  whether a user, or an item, has training ratings
    fallback  (E,) the prediction on [0, 1] if one of them has none
    """

    unit: Model
    scale: Scale
    known_users: Flags
    known_items: Flags
    fallback: Doubles

    def predict(self, users: Ints, items: Ints) -> Floats:
        known = (self.known_users[users] & self.known_items[items])[:, None]
        unit = np.where(known, self.unit.predict(users, items), self.fallback)
        return np.asarray(self.scale.minimum + self.scale.width * unit)

    def for_new_users(self, entry: Algorithm, own: Ratings) -> Self:
        """The same for users to whom it was not fitted, from their `own` ratings."""
        return replace(self, unit=for_new_users(self.unit, entry, own), known_users=own.user_counts > 0)


@dataclass(frozen=True)
class KnownModel:
    """r̂_ui = p_u·q_i, or a model's average if the model has seen no rating of the user or of the item.

    known_users (n_users, E), known_items (n_items, E) bool; averages (E,) rating scale, or a model that predicts them
    """

    factors: FactorModel
    known_users: Flags
    known_items: Flags
    averages: Singles | Model

    def predict(self, users: Ints, items: Ints) -> Floats:
        known = self.known_users[users] & self.known_items[items]
        of_others = self.averages
        if not isinstance(of_others, np.ndarray):
            of_others = of_others.predict(users, items)
        return np.where(known, self.factors.predict(users, items), of_others)


def initial_factors(
    pairs: UserMajor, initial: InitialFactors, factors: int, streams: Streams
) -> tuple[Doubles, Doubles]:
    """Start factors (n_users, factors) and (n_items, factors), the same for all models of a grid."""
    users = initial.draw(pairs.n_users, factors, streams.start("initial user factors"))
    items = initial.draw(pairs.n_items, factors, streams.start("initial item factors"))
    return users, items


def start_model(
    pairs: UserMajor, entry: Any, streams: Streams, *effects: Doubles, grid: int = 1
) -> FactorModel:
    """Start factors as the entry has them, and effects of users (n_users, E) and items (n_items, E). Without any,
    effects are 0 in `grid` models."""
    start = initial_factors(pairs, entry.initial_factors, entry.factors, streams)
    return factor_model(
        *start, *(effects or (np.zeros((rows, grid)) for rows in (pairs.n_users, pairs.n_items)))
    )


LEAST_SPREAD = 0.3
"""Public features are divided by their deviation, or by this if it is smaller."""


def public_features(entry: Any, train: Ratings) -> Doubles:
    """(n_items, k) the public features of items, each with mean 0 and, but for rare genres, of a similar size; k = 0
    if the entry's `item_features` is None. Raises DpmfError if the data set has none."""
    if entry.item_features is None:
        return np.zeros((train.n_items, 0))
    if not train.item_columns:
        fix = (
            "write `dataset: {kind: catalog, name: ml-1m, item_features: true}`, or drop `item_features` here"
        )
        raise DpmfError(f"{entry.name}: the data set has no public features of its items; {fix}")
    columns = np.column_stack(list(train.item_columns.values())).astype(np.float64)
    centred = columns - columns.mean(axis=0)
    return np.asarray(centred / np.maximum(centred.std(axis=0), LEAST_SPREAD))


def regress(model: FactorModel, own: Ratings, ridge: float) -> FactorModel:
    """The model, with each user's factors set, in place, to the ridge regression of own ratings on the items."""
    solve_rows(model, by_user(own), RowProblem(ridge, math.inf, per_rating=False))
    return model


def alternate(model: FactorModel, train: Ratings, problem: RowProblem, iterations: int) -> None:
    """Alternating least squares without noise, in place: all users, then all items, so many times."""
    ratings_by_user, ratings_by_item = by_user(train), by_item(train)
    for _ in range(iterations):
        solve_rows(model, ratings_by_user, problem)
        solve_rows(model, ratings_by_item, problem)


def visiting_order(
    pairs: UserMajor, kind: Literal["user_major", "shuffled"], rng: np.random.Generator
) -> Longs:
    """(n_ratings,) the order in which SGD visits ratings, drawn once and kept for all epochs.

    `user_major`, which visits user after user and shuffles each user's items, converges as well as `shuffled`, one
    permutation of all ratings, and keeps the user's factors in the nearest cache.
    """
    if kind == "shuffled":
        return rng.permutation(len(pairs))
    order = np.empty(len(pairs), np.int64)
    for ratings, places in shuffled_blocks(pairs, rng):
        np.add(places, ratings.start, out=order[ratings])
    return order


BLOCK = 1 << 20
"""About how many ratings are shuffled at a time. The size of the blocks does not change the order."""


def shuffled_blocks(pairs: UserMajor, rng: np.random.Generator) -> Iterator[tuple[slice, Longs]]:
    """Yields the order `user_major` in blocks: a slice of all ratings of some users, and the order of visits in it,
    numbered from its first rating."""
    starts, first = pairs.user_starts, 0
    while first < pairs.n_users:
        last = int(np.searchsorted(starts, starts[first] + BLOCK, side="right")) - 1
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


def at_most(ratings: Ratings, limit: int, draws: Doubles) -> Ratings:
    """At most `limit` ratings of each user, chosen by uniform `draws` (n_ratings,)."""
    order = shuffle_within(ratings.user_starts, draws)
    within = np.arange(len(ratings)) - ratings.user_starts[ratings.users]
    kept = np.zeros(len(ratings), np.bool_)
    kept[order[within < limit]] = True
    return ratings.select(kept)


@dataclass(frozen=True)
class OwnFactors:
    """Predictions from released items, and from the target user's own ratings.

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
        """The items, and the users, whose part is not released."""
        solved: FactorModel = self.entry.with_own_factors(self.items, self.beside, self.own)
        return solved

    def predict(self, users: Ints, items: Ints) -> Singles:
        return self.solved.predict(users, items)

    @property
    def published(self) -> Arrays:
        return {"factors": self.items.published["items"], **self.beside}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        if not hasattr(entry, "with_own_factors"):
            raise TypeError("its method makes no such model")
        factors = arrays["factors"]
        items = FactorModel.restored({"users": factors[:0], "items": factors}).without_users()
        beside = {name: array for name, array in arrays.items() if name != "factors"}
        return cls(entry, items, beside, own)


CHUNKS_PER_BATCH = 8
"""A batch is this many chunks of ratings if a model has all ratings; more if it has a sample."""

LARGEST_RATE = 0.1
"""The limit of γ/b. It keeps sets of a few hundred ratings from diverging at once; |r| ≤ 5 would allow 0.2."""

Kept = Flags
"""(n_ratings, E) whether each model has each training rating."""


class Stretch(NamedTuple):
    """The visits [first, last) between two steps.

    place  the number of the place of the step, among all places where a step may be; independent of the models
    rates  (E,) γ/b in the models whose batch of b ratings ends here, 0 in the others
    """

    first: int
    last: int
    place: int
    rates: Singles


class Schedule(NamedTuple):
    """The visits and steps of an epoch, the same in all epochs, for all models of the grid."""

    visits: SampledVisits
    stretches: Sequence[Stretch]


def make_schedule(
    train: Ratings, kept: Kept, batches_of: Callable[[int], int], learning_rate: float, order: Longs
) -> Schedule:
    """Fixed batches of each model's sample, of about equal size: `batches_of` its number of ratings.

    The ratings are cut into chunks, in the random `order` (n_ratings,), and each chunk is sorted for the cache's
    sake. Batches consist of complete chunks, so a model's batches do not depend on the samples of the other models.
    """
    if not len(train):
        return Schedule(SampledVisits(train.users, train.items, train.values, sample_bits(kept)), ())
    count = min(len(train), CHUNKS_PER_BATCH * batches_of(len(train)))
    starts = np.linspace(0, len(train), count + 1).round().astype(np.int64)
    rows = np.concatenate([np.sort(order[a:b]) for a, b in pairwise(starts)])
    mine = kept[rows]
    sizes = np.add.reduceat(mine, starts[:-1], axis=0, dtype=np.int64)
    rates = np.zeros(sizes.shape, np.float32)
    for lane, lane_sizes in enumerate(sizes.T):
        batches = min(count, batches_of(int(lane_sizes.sum())))
        ends = np.round(np.arange(1, batches + 1) * count / batches).astype(np.int64) - 1
        totals = np.diff(np.cumsum(lane_sizes)[ends], prepend=0)
        rates[ends, lane] = learning_rate / np.maximum(totals, learning_rate / LARGEST_RATE)
    visits = SampledVisits(train.users[rows], train.items[rows], train.values[rows], sample_bits(mine))
    places = np.flatnonzero(rates.any(axis=1))
    firsts = np.concatenate([[0], starts[places[:-1] + 1]])
    stretches = [
        Stretch(int(first), int(starts[place + 1]), int(place), rates[place])
        for first, place in zip(firsts, places, strict=True)
    ]
    return Schedule(visits, stretches)


class GradientDescentPMF(StrictModel):
    """The base of PMF and DP-PMF: min ½Σ(r_ui − u·v)² + λ/2·Σ‖u‖² + λ/2·Σ‖v‖², equation 1, by equations 2–5.

    The printed γ = 50 is the step of Salakhutdinov's reference implementation, which divides the gradient of a batch
    by its size; undivided sums diverge. Its λ per rating and its centring are keys here.
    """

    factors: int = Field(20, ge=1, le=256, description="d, section 6.1")
    regularization: float = Field(0.01, ge=0, description="λ_u = λ_v, section 6.1")
    learning_rate: float = Field(50.0, gt=0, description="γ, section 6.1, divided by the size of the batch")
    batch_size: int = Field(
        100_000, ge=1, description="approximate number of ratings in a batch; the paper has no batches"
    )
    batches: int | None = Field(
        None, ge=1, description="a fixed number of batches for any number of ratings, instead of `batch_size`"
    )
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum of the non-private descent")
    epochs: int = Field(50, ge=1, description="k₁, section 6.1")
    initial_factors: InitialFactors = InitialFactors(distribution="sphere", scale=1.0)
    regularized: Literal["rows", "ratings"] = later(
        "rows",
        description="λ enters a step once for each row (equations 4 and 5), or for each of its ratings in the batch "
        "(the reference implementation)",
    )
    unit_users: bool = later(
        False,
        description="users' rows are projected to ‖u‖ ≤ 1 after each step; section 3.1 supposes ‖u‖ ≤ 1",
    )
    centred: bool = later(
        False,
        description="ratings are fitted less the middle of the scale, which is public; the reference implementation "
        "subtracts the mean of the training ratings, which would cost ε",
    )

    def descend(self, train: Ratings, kept: Kept, streams: Streams) -> tuple[FactorModel, Schedule]:
        """The model after k₁ epochs of U and V together, each on its own sample (algorithm 2, lines 1 to 13), and the
        schedule."""
        order = streams.generator("batches").permutation(len(train))
        schedule = make_schedule(train, kept, self.batches_of, self.learning_rate, order)
        grid, (of_row, of_rating) = kept.shape[1], self.ridges
        centres = np.full((train.n_items, grid), self.centre(train.scale))
        model = start_model(train, self, streams, np.zeros((train.n_users, grid)), centres)
        descent = Descent(model, self.momentum)
        for _ in range(self.epochs):
            for batch in schedule.stretches:
                sum_gradients(descent, schedule.visits, batch.first, batch.last, ridge=of_rating)
                step_side(descent, "users", batch.rates, of_row)
                step_side(descent, "items", batch.rates, of_row)
                if self.unit_users:
                    project_side(model, "users", 1.0, batch.rates)
        return model, schedule

    @property
    def ridges(self) -> tuple[float, float]:
        """λ of a row in each step, and of each rating in a row's gradient. One of them is 0."""
        ridge = self.regularization
        return (ridge, 0.0) if self.regularized == "rows" else (0.0, ridge)

    def centre(self, scale: Scale) -> float:
        """What is subtracted from ratings, a public number."""
        return scale.middle if self.centred else 0.0

    def batches_of(self, ratings: int) -> int:
        return self.batches or max(1, round(ratings / self.batch_size))

    def descent_cost(self, shape: Shape, grid: int, epochs: int) -> Cost:
        """The cost of so many epochs on both sides, for `grid` models with a sample each."""
        passes, batches = epochs * padded_grid(grid) / MAXIMUM_WIDTH, self.batches_of(shape.ratings)
        seconds = passes * self.factors * (shape.ratings * BATCH_VISIT + shape.rows * batches * 1e-8)
        factors = 2 * shape.rows * (self.factors + 1) * LINE * (len(groups(grid)) + 1)
        return Cost(seconds + 2e-7 * shape.ratings, factors + (60.0 + 2 * grid) * shape.ratings)


def sampled_model(train: Ratings, kept: Kept, model: FactorModel) -> KnownModel:
    """The predictions u·v, or the average of a model's sample for users and items without ratings in that sample."""
    users, items = (
        np.stack([np.bincount(of[rows], minlength=n) > 0 for rows in kept.T], 1)
        for of, n in ((train.users, train.n_users), (train.items, train.n_items))
    )
    averages = [average_of(train.values[rows], train.scale.middle) for rows in kept.T]
    return KnownModel(model, users, items, np.array(averages, np.float32))
