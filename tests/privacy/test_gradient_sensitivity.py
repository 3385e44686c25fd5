"""Sensitivities of gradients of similarities: searches over neighbouring data, through the kernel that learns.

Averages and similarities are released earlier, so a search may set them to any values. The tested steps use all
users: a sample would only leave users out.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.neighbourhood import all_others, error_bound, most_co_rated
from dpmf_cli.algorithms.wang2017.dpps_pnbm import PosteriorPNBM
from dpmf_cli.algorithms.wang2017.dpsgd_pnbm import PrivatePNBM
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.kernels.releasing import GUARD
from dpmf_cli.kernels.similarities import neighbourhood_model
from dpmf_cli.kernels.similarity_descent import (
    LearnedRatings,
    SimilarityStep,
    descend_noisy_similarities,
    descend_similarities,
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


def random_values(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Array:
    """Ratings over the full scale, only at its ends, or all nearly the same."""
    if spread == 1:
        return rng.uniform(1, 5, shape)
    return (
        rng.choice([1.0, 5.0], shape) if spread == 0 else np.clip(4 + spread * rng.normal(size=shape), 1, 5)
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", KINDS)
@given(
    n_items=st.integers(3, 12),
    spreads=st.tuples(st.sampled_from([0.0, 1e-6, 1e-3, 1.0]), st.sampled_from([0.0, 1e-3, 1.0])),
    flags=st.tuples(st.booleans(), st.booleans()),
    sizes=st.tuples(st.sampled_from([0.01, 1.0, 100.0]), st.sampled_from([1e-6, 1e-3, 0.3, 10.0])),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=100, deadline=None)
def test_no_neighbouring_data_moves_a_gradient_by_more_than_its_bound(
    noise: str,
    kind: Neighbours,
    n_items: int,
    spreads: tuple[float, float],
    flags: tuple[bool, bool],
    sizes: tuple[float, float],
    seed: int,
) -> None:
    """`enough`: the user has exactly as many ratings as required, and is left out with one less."""
    (spread, of_averages), (signed, enough), (strength, contribution) = spreads, flags, sizes
    rng, norm = np.random.default_rng(seed), NOISES[noise]
    rows = random_values(rng, (3, n_items), spread)
    rows[:2] *= rng.random((2, n_items)) < 0.5
    averages = random_values(rng, (n_items,), of_averages)
    s = strength * rng.lognormal(0, 2, (n_items, n_items - 1))
    s *= np.where(signed & (rng.random(s.shape) < 0.5), -1, 1)
    least = n_items if enough else 0
    entry = certified(noise, kind, clip=contribution, initial_similarity=strength, least_ratings=least)
    first, second = (
        entry.clipped(entry.learned_from(train, Streams(0, "data", "", 0, 0)))
        for train in neighbouring(rows, kind, 0, 6 - rows[-1, 0])
    )
    moved = move(first, second, s, averages, norm)
    bound = clipped_contributions(contribution / strength, norm, kind).value
    target(moved / bound)
    assert moved <= bound * (1 + ROUNDING)


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
    return LearnedRatings.clipped(train, np.full(train.n_users, np.inf), NOISES[noise])


def clipped_one_by_one(train: Ratings, noise: str) -> LearnedRatings:
    return LearnedRatings.clipped(train, np.full(train.n_users, C), NOISES[noise])


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_nearly_attained_and_an_exchange_moves_by_more_than_one_contribution(
    kind: Neighbours,
) -> None:
    _, (first, second), s, averages = adversary(kind)
    entry = certified("gaussian", kind, clip=C)
    moved = move(entry.clipped(first), entry.clipped(second), s, averages, 2)
    if kind is Neighbours.USER:
        assert moved == pytest.approx(GUARD * C, rel=1e-4)
    else:
        assert 1.7 * C < moved <= 2 * C


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


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("more", [{}, {"algorithm": "dpps_pnbm", "most_ratings": 20}])
def test_a_users_limits_add_up_to_its_contribution(noise: str, more: dict[str, Any]) -> None:
    """In L2, as rows of their own: √(Σ limit²) = c; in L1 Σ limit = c; in units of 1/s₀, as gradients are."""
    common = {"algorithm": "dpsgd_pnbm", "neighbours": "user", "mode": "corrected", "initial_similarity": 4}
    entry = (PosteriorPNBM if more else PrivatePNBM).model_validate({**common, "noise": noise, **more})
    train = table(np.tril(np.full((9, 9), 3.0)))
    learned = entry.clipped(train)
    assert learned.norm == NOISES[noise]
    for user in range(9):
        limits = np.full(train.user_counts[user], learned.limits[user], np.float64)
        assert np.linalg.norm(limits, learned.norm) == pytest.approx(entry.clip / 4, rel=1e-6)


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


@pytest.mark.slow
def test_the_published_sensitivity_is_exceeded_on_real_ratings(real_data: Path, session_cache: Path) -> None:
    """ML-100K, s₀ = 1, C = 15, N_k = 500, one rating of each of nine users, from 21 to 737 ratings, turned to the other
    end of the scale, four times each: the mini-batch gradient moves in L1 by 0.7 to 27 times Δ_t (median 5.1) at t = 1,
    by 0.8 to 38 times (median 9.6) at t = 10. Five of those users here, one rating each: 5 to 26 times.
    """
    spec = CatalogSpec(name="ml-100k")
    train = load(spec, Folders(real_data, session_cache, real_data)).ratings
    neighbours = most_co_rated(train, 500)
    averages = np.bincount(train.items, train.values, train.n_items)[:, None] / train.item_counts[:, None]
    bound = error_bound(SCALE, 1)
    claimed = published_similarity_gradients(SCALE, bound, 15.0).value

    def of_user(data: Ratings, user: int) -> Array:
        model = neighbourhood_model(data, neighbours, 1.0, averages)
        step = SimilarityStep(data.users == user, np.array([GREAT]), error_bound=bound, floor=15.0)
        descend_similarities(model, unclipped(data, "laplace"), step)
        return model.groups[0].rows()[:, :, 0] / GREAT

    factors = []
    for user in np.argsort(train.user_counts, kind="stable")[[50, 300, 700, 900, 942]]:
        rows = np.flatnonzero(train.users == user)
        values = train.values.copy()
        values[rows[0]] = 1 if values[rows[0]] >= 3 else 5
        moved = np.abs(of_user(replace(train, values=values), user) - of_user(train, user))
        factors.append(moved.sum() / claimed)
    assert np.median(factors) > 3
    assert 5 < max(factors) < 50


@pytest.mark.parametrize("size", [1e-3, 1e37])
def test_a_user_whose_gradient_is_not_finite_adds_nothing(size: float) -> None:
    """Otherwise one user would decide whether anything finite is released, because similarities near the
    largest float32 overflow."""
    train = make_ratings(3, n_users=8, n_items=12, density=0.9)
    model = neighbourhood_model(train, all_others(12), size, np.full((12, 1), 3.0))
    learned = LearnedRatings.clipped(train, np.full(8, 0.1), 2)
    descend_similarities(model, learned, SimilarityStep(np.ones(len(train), np.bool_), np.ones(1)))
    assert np.isfinite(model.groups[0].rows()).all()
