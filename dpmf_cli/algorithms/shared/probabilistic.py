"""PMF: probabilistic matrix factorisation by mini-batch gradient descent, and by objective perturbation.

Salakhutdinov and Mnih 2007, as Zhang, Liu, Chen and Zhong 2018, section 3.1, run it; their theorem 4 as they mean it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.cost import BATCH_VISIT, LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, KnownModel, initial_factors
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import (
    Descent,
    SampledVisits,
    sample_bits,
    step_items,
    step_users,
    sum_gradients,
)
from dpmf_cli.lane_groups import MAXIMUM_WIDTH, groups, padded_grid
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Entry, Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings, average_of
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import StrictModel

CHUNKS_PER_BATCH = 8
"""A batch is this many chunks of ratings if a model has all ratings; more if it has a sample."""

LARGEST_RATE = 0.1
"""The limit of γ/b. It keeps sets of a few hundred ratings from diverging at once; |r| ≤ 5 would allow 0.2."""

Kept = NDArray[np.bool_]
"""(n_ratings, E) whether each model has each training rating."""


@dataclass(frozen=True)
class Stretch:
    """The visits [first, last) between two steps.

    place  the number of the place of the step, among all places where a step may be; independent of the models
    rates  (E,) γ/b in the models whose batch of b ratings ends here, 0 in the others
    """

    first: int
    last: int
    place: int
    rates: NDArray[np.float32]


@dataclass(frozen=True)
class Schedule:
    """The visits and steps of an epoch, for all models of the grid. All epochs have the same."""

    visits: SampledVisits
    stretches: tuple[Stretch, ...]


def make_schedule(
    train: Ratings,
    kept: Kept,
    batches_of: Callable[[int], int],
    learning_rate: float,
    order: NDArray[np.int64],
) -> Schedule:
    """Makes fixed batches of each model's sample, of about equal size. `batches_of` maps a model's number of ratings
    to its number of batches.

    The ratings are cut into chunks, in the random `order` (n_ratings,). A batch of a model that has all ratings is
    eight chunks. Each chunk is sorted for the cache's sake. Batches consist of complete chunks, so a model's batches
    do not depend on the samples of the other models. Without ratings there is no step.
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
    stretches = tuple(
        Stretch(int(first), int(starts[place + 1]), int(place), rates[place])
        for first, place in zip(firsts, places, strict=True)
    )
    return Schedule(visits, stretches)


class GradientDescentPMF(StrictModel):
    """The base of PMF and DP-PMF: min ½Σ(r_ui − u·v)² + λ/2·Σ‖u‖² + λ/2·Σ‖v‖², equation 1, by equations 2–5.

    The printed γ = 50 is the step of Salakhutdinov's reference implementation, which divides the gradient of a batch
    by its size. Sums that are not divided diverge. λ enters once per row and step.
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

    def descend(self, train: Ratings, kept: Kept, streams: Streams) -> tuple[FactorModel, Schedule]:
        """Runs k₁ epochs of U and V together, each model on its own sample: algorithm 2, lines 1 to 13."""
        users, items = initial_factors(train, self.initial_factors, self.factors, streams)
        order = streams.generator("batches").permutation(len(train))
        schedule = make_schedule(train, kept, self.batches_of, self.learning_rate, order)
        grid = kept.shape[1]
        model = factor_model(users, items, np.zeros((train.n_users, grid)), np.zeros((train.n_items, grid)))
        descent = Descent(model, self.momentum)
        for _ in range(self.epochs):
            for batch in schedule.stretches:
                sum_gradients(descent, schedule.visits, batch.first, batch.last)
                step_users(descent, batch.rates, self.regularization)
                step_items(descent, batch.rates, self.regularization)
        return model, schedule

    def batches_of(self, ratings: int) -> int:
        """The number of batches of a model with `ratings` ratings."""
        return self.batches or max(1, round(ratings / self.batch_size))

    def descent_cost(self, shape: Shape, grid: int, epochs: int) -> Cost:
        """The cost of so many epochs on both sides, for `grid` models with a sample each."""
        passes, batches = epochs * padded_grid(grid) / MAXIMUM_WIDTH, self.batches_of(shape.ratings)
        seconds = passes * self.factors * (shape.ratings * BATCH_VISIT + shape.rows * batches * 1e-8)
        factors = 2 * shape.rows * (self.factors + 1) * LINE * (len(groups(grid)) + 1)
        return Cost(seconds + 2e-7 * shape.ratings, factors + (60.0 + 2 * grid) * shape.ratings)


def sampled_model(train: Ratings, kept: Kept, model: FactorModel) -> KnownModel:
    """Predicts u·v, or the average of a model's sample for users and items without ratings in that sample."""
    users, items, averages = [], [], []
    for rows in kept.T:
        users.append(np.bincount(train.users[rows], minlength=train.n_users) > 0)
        items.append(np.bincount(train.items[rows], minlength=train.n_items) > 0)
        averages.append(average_of(train.values[rows], train.scale.middle))
    return KnownModel(model, np.stack(users, 1), np.stack(items, 1), np.array(averages, np.float32))


class ObjectivePerturbation(StrictModel):
    """The parameters of objective perturbation, and the ε that it spends besides noise.

    Bounded: the noise η hides only the vectors Σ r̃·u (`sensitivity.least_squares_right_hand_side`). Unbounded: w is
    so large that the change of the determinant costs no more than its share of ε (`sensitivity.hessian_unbounded`).
    The rest of ε scales the noise (`sensitivity.ridge_objective_unbounded`). The same w, about 1/(share·ε), serves
    both.
    """

    least_ridge: float = Field(
        1.0,
        ge=1e-3,
        description="corrected: the least w; with less, float64 solves rows of 10⁵ ratings too inexactly",
    )
    passes: int = Field(1, ge=1, description="corrected: how often the items are solved")
    average_share: float = Field(
        0.05, ge=LEAST_SHARE, le=0.9, description="corrected: fraction of ε for the global average"
    )
    jacobian_share: float = Field(
        0.1,
        ge=LEAST_SHARE,
        le=0.9,
        description="corrected: fraction of a solution's ε for its determinant; sets w",
    )
    residual_clamp: float = Field(
        2.0, ge=1e-6, le=1e6, description="corrected: B, the clamp of ratings less their average"
    )
    item_norm: float = Field(
        1.5,
        ge=1e-6,
        le=1e6,
        description="corrected: R, the largest norm of an item's row; above the limit its square overflows float32",
    )
    public_constant: float = Field(0.9, ge=0, le=1, description="corrected: the constant in a unit row")

    def public_rows(self, rows: int, dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(rows, dimension) unit rows that do not depend on any rating."""
        if dimension == 1:
            return np.ones((rows, 1))
        direction = rng.standard_normal((rows, dimension - 1))
        direction *= np.sqrt(1 - self.public_constant**2) / np.linalg.norm(direction, axis=1, keepdims=True)
        return np.column_stack([np.full(rows, self.public_constant), direction])

    def norms(self, side: Side) -> tuple[float, float]:
        """The largest ‖row‖₂ of this side, and of the other side."""
        return (self.item_norm, 1.0) if side == "item" else (1.0, self.item_norm)

    def ridge(self, other: float, each: Epsilons) -> NDArray[np.float64]:
        """(E,) w of solutions that each spend ε `each` (E,), if the other side's rows have norms up to `other`."""
        hessian = sensitivity.hessian_unbounded(other)
        return np.maximum(
            self.least_ridge, sensitivity.ridge_for_jacobian(hessian, self.jacobian_share * each)
        )

    def spend_on_determinants(
        self, side: Side, other: float, count: int, each: Epsilons, curator: Curator
    ) -> Entry:
        """Enters the cost of the determinants of `count` solutions of one side in the ledger. Returns the entry."""
        hessian = sensitivity.hessian_unbounded(other)
        cost = sensitivity.jacobian_epsilon(hessian, self.ridge(other, each))
        return curator.ledger.spend(
            f"determinants, {side} factors",
            "change of variables" + (f" × {count}" if count > 1 else ""),
            hessian,
            count * cost,
            repetitions=count,
        )


def private_global_average(
    train: Ratings, epsilon: NDArray[np.float64], neighbours: Neighbours, *, curator: Curator
) -> NDArray[np.float64]:
    """(E,) the mean rating, measured with ε `epsilon` and clamped to the scale.

    The sum is of r − middle of the scale. Bounded: the number of ratings is public. Unbounded: it gets half of ε.
    """
    scale = train.scale
    centred = train.values.sum(dtype=np.float64) - len(train) * scale.middle
    unbounded = neighbours is Neighbours.UNBOUNDED
    total = laplace(
        "global sum",
        (),
        sensitivity=sensitivity.centred_rating_sums_unbounded(scale)
        if unbounded
        else sensitivity.rating_sums(scale),
        epsilon=epsilon / 2 if unbounded else epsilon,
        curator=curator,
    ).added_to(centred)
    count = np.full(len(epsilon), float(len(train)))
    if unbounded:
        count = laplace(
            "global count",
            (),
            sensitivity=sensitivity.rating_counts_unbounded(),
            epsilon=epsilon / 2,
            curator=curator,
        ).added_to(np.asarray(float(len(train))))
    average = scale.middle + total / np.maximum(count, 1)
    return np.asarray(np.clip(average, scale.minimum, scale.maximum))
