"""Sensitivities of gradients of similarities: searches over neighbouring data, through the kernel that learns.

Averages and similarities are released earlier, so a search may set them to any values. The tested steps use all
users: a sample would only leave users out.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.neighbourhood import all_others, error_bound
from dpmf_cli.algorithms.wang2017.descent_and_sampling import PrivatePNBM
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.similarities import (
    LearnedRatings,
    SimilarityStep,
    descend_noisy_similarities,
    descend_similarities,
    neighbourhood_model,
)
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.sensitivity import clipped_contributions, published_similarity_gradients
from tests.conftest import make_ratings

Array = NDArray[Any]
Pair = tuple[Ratings, Ratings]

SCALE = Scale(1, 5)
NOISES = {"laplace": 1, "gaussian": 2}
KINDS = (Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER)
ROUNDING = 2e-7
"""Of the similarities, float32, from which a gradient is read: 2⁻²⁴ for each of two gradients, and of their norm."""
GREAT = 2.0**60
"""A rate at which s − rate·g is −rate·g to all digits."""


def certified(noise: str, kind: Neighbours, **more: Any) -> PrivatePNBM:
    return PrivatePNBM.model_validate(
        {"algorithm": "dpsgd_pnbm", "noise": noise, "mode": "corrected", "neighbours": kind, **more}
    )


def gradient(
    learned: LearnedRatings, s: Array, averages: Array, centre: Array | None = None, **more: Any
) -> Array:
    """(n_items, n_items − 1) the sum to which noise is added, with every other item as a neighbour, minus a
    `centre`. The kernel subtracts the centre in float64, as noise, so differences between two data sets are
    read in all digits."""
    neighbours = all_others(len(averages))
    model = neighbourhood_model(learned.train, neighbours, s.astype(np.float32), averages[:, None])
    fine = 2.0**-200  # the scale, so that the grid is finer than any digit
    unit = np.zeros(neighbours.size) if centre is None else -centre.ravel().astype(np.float64) / fine
    step = SimilarityStep(np.ones(len(learned.train), np.bool_), np.array([GREAT]), **more)
    (group,) = model.groups
    descend_noisy_similarities.run(group, LaneNoise(unit, np.array([fine])), learned, step)
    return np.asarray((s.astype(np.float32) - group.rows()[:, :, 0].astype(np.float64)) / GREAT)


def move(before: LearnedRatings, after: LearnedRatings, s: Array, averages: Array, norm: int) -> float:
    centre = gradient(before, s, averages).astype(np.float32)
    first, second = (gradient(learned, s, averages, centre) for learned in (before, after))
    return float(np.linalg.norm((second - first).ravel(), norm))


def neighbouring(rows: Array, kind: Neighbours, at: int, value: float) -> Pair:
    """Two data sets, from a table of ratings (0: none), that differ in their last user: in the value of the
    rating of item `at`, in its presence, or in the complete user."""
    other = rows.copy()
    if kind is Neighbours.USER:
        other[-1] = 0
    else:
        other[-1, at] = value if kind is Neighbours.BOUNDED else 0
    return table(rows), table(other)


def table(rows: Array) -> Ratings:
    users, items = (part.astype(np.int32) for part in np.nonzero(rows))
    n_users, n_items = rows.shape
    return Ratings(users, items, rows[users, items].astype(np.float32), n_users, n_items, SCALE)


def adversary(kind: Neighbours) -> tuple[Array, Pair, Array, Array]:
    """(rows, a pair of them, similarities, averages): a user's 60 ratings, the first of which, once a neighbour, counts
    for a quarter of every prediction.

    Without it, or with another value, the offsets and with them all errors change their sign. What they are multiplied
    with does not, for every fifth item is rated as far from its average as can be.
    """
    own, far = np.zeros(60), np.arange(60) % 5 == 0
    own[far] = -4
    own[np.flatnonzero(far)[:3]] = 4
    averages = np.select([own > 0, own < 0], [1.0, 5.0], 3.0)
    rows = (averages + own)[None]
    rows[0, 0], averages[0] = 5.0, 1.6
    s = np.ones((60, 59))
    s[1:, 0] = 20.0
    return rows, neighbouring(rows, kind, 0, 1.0), s, averages


C = 0.01


def unclipped(train: Ratings, noise: str) -> LearnedRatings:
    return LearnedRatings.of(train, np.full(train.n_users, np.inf), NOISES[noise])


def clipped_one_by_one(train: Ratings, noise: str) -> LearnedRatings:
    return LearnedRatings.of(train, np.full(train.n_users, C), NOISES[noise])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", KINDS)
def test_without_clipping_of_whole_users_the_bound_is_exceeded(noise: str, kind: Neighbours) -> None:
    """The searches have something to find: without clipping, and with every *rating* clipped to c, which is not
    enough."""
    _, (first, second), s, averages = adversary(kind)
    bound = clipped_contributions(C, NOISES[noise], kind).value
    for learned in (unclipped, clipped_one_by_one):
        assert move(learned(first, noise), learned(second, noise), s, averages, NOISES[noise]) > 5 * bound
    entry = certified(noise, kind, clip=C)
    assert move(entry.clipped(first), entry.clipped(second), s, averages, NOISES[noise]) <= bound


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_other_ratings_do_not_round_a_bound_away(noise: str, kind: Neighbours) -> None:
    """When contributions are added in float32, one user also changes how the others' contributions are rounded."""
    rows, _, s, averages = adversary(kind)
    rng = np.random.default_rng(0)
    others = rng.integers(1, 6, (2000, 60)) * (rng.random((2000, 60)) < 0.85)
    pair = neighbouring(np.concatenate([others, rows]), kind, 0, 1.0)
    alone = neighbouring(rows, kind, 0, 1.0)
    entry, norm = certified(noise, kind, clip=C), NOISES[noise]
    # The user whose ratings differ comes first.
    first, second = (entry.clipped(table(dense(train)[::-1])) for train in pair)
    assert len(second.train) > 100_000
    moved = move(first, second, s, averages, norm)
    first, second = (entry.clipped(train) for train in alone)
    wanted = move(first, second, s, averages, norm)
    assert moved == pytest.approx(wanted, rel=ROUNDING)
    assert moved <= clipped_contributions(C, norm, kind).value


def dense(train: Ratings) -> Array:
    rows = np.zeros((train.n_users, train.n_items))
    rows[train.users, train.items] = train.values
    return rows


def published_move(pair: Pair, s: Array, averages: Array, bound: float, floor: float) -> Array:
    """(n_items, n_items − 1) how far each coordinate of the published gradient moves."""
    first, second = (
        gradient(unclipped(train, "laplace"), s, averages, error_bound=bound, floor=floor) for train in pair
    )
    return np.asarray(np.abs(second - first))


@pytest.mark.parametrize("step", [1, 10])
@pytest.mark.parametrize("s0", [1.0, 3.0])
def test_the_published_sensitivity_is_exceeded_c_over_s0_times_in_a_row_and_twice_that_in_all(
    step: int, s0: float
) -> None:
    """A user who rates everything four stars from its average, one half above, one below: C/s₀ = 15 times Δ_t in the
    row of the one rating that changes, for the errors of its prediction go from one bound to the other; 29.9 times over
    all rows, that rating being a neighbour in all others. No single coordinate moves by more than Δ_t.
    """
    n, floor = 201, 15.0
    upper = np.arange(n) % 2 == 1
    averages = np.where(upper, 1.0, 5.0)
    averages[0] = 3.0
    pair = neighbouring(np.where(upper, 5.0, 1.0)[None], Neighbours.BOUNDED, 0, 5.0)
    bound = error_bound(SCALE, step)
    claimed = published_similarity_gradients(SCALE, bound, floor)
    assert claimed.value == pytest.approx(2 * bound * 4 / floor)
    moved = published_move(pair, np.full((n, n - 1), s0), averages, bound, floor) / claimed.value
    assert moved[0].sum() == pytest.approx(floor / s0, rel=1e-3)
    assert moved.sum() == pytest.approx(2 * floor / s0, rel=0.01)
    assert moved.max() <= 1


@pytest.mark.parametrize("size", [1e-3, 1e37])
def test_a_user_whose_gradient_is_not_finite_adds_nothing(size: float) -> None:
    """Otherwise one user would decide whether anything finite is released, because similarities near the
    largest float32 overflow."""
    train = make_ratings(3, n_users=8, n_items=12, density=0.9)
    model = neighbourhood_model(train, all_others(12), size, np.full((12, 1), 3.0))
    learned = LearnedRatings.of(train, np.full(8, 0.1), 2)
    descend_similarities(model, learned, SimilarityStep(np.ones(len(train), np.bool_), np.ones(1)))
    assert np.isfinite(model.groups[0].rows()).all()
