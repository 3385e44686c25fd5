"""PMF: probabilistic matrix factorisation by mini-batch gradient descent, for one or several samples at once.

Salakhutdinov and Mnih 2007, as Zhang, Liu, Chen and Zhong 2018, section 3.1, run it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.cost import BATCH_VISIT, LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, KnownModel, initial_factors
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, groups, padded_grid
from dpmf_cli.core.ratings import Ratings, average_of
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, SampledVisits, sample_bits, step_side, sum_gradients

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
                step_side(descent, "users", batch.rates, self.regularization)
                step_side(descent, "items", batch.rates, self.regularization)
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
    users, items = (
        np.stack([np.bincount(of[rows], minlength=n) > 0 for rows in kept.T], 1)
        for of, n in ((train.users, train.n_users), (train.items, train.n_items))
    )
    averages = [average_of(train.values[rows], train.scale.middle) for rows in kept.T]
    return KnownModel(model, users, items, np.array(averages, np.float32))
