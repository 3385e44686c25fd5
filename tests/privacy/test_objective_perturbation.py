"""Objective perturbation of a ridge regression within a ball: searches for the largest privacy loss of its density.

The density of a solution follows from η(p), which the solver must invert. That is tested with the kernel itself. The
loss between neighbours is then a formula, and the search looks for inputs that exceed the bounds of sensitivity.py.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.zhang2018 import dp_pmf
from dpmf_cli.audit.bounds import best_threshold, counts_of, epsilon_of_event
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, SideRatings, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.sums import RatingsByRow
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from tests.algorithms.fitted import fitted

SCALE = Scale(1, 5, 1)
RADIUS, CLAMP, RIDGE, D = 1.5, 2.0, 3.0, 3


def unit_rows(count: int, rng: np.random.Generator) -> np.ndarray:
    rows = rng.normal(size=(count, D))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def noise_of(
    p: np.ndarray, multiplier: float, q: np.ndarray, targets: np.ndarray, ridge: float
) -> np.ndarray:
    """η for which p solves the problem with that multiplier of ‖p‖ ≤ R."""
    return np.asarray((targets - q @ p) @ q - (ridge + multiplier) * p)


def log_density(
    p: np.ndarray, multiplier: float, q: np.ndarray, targets: np.ndarray, ridge: float, scale: float
) -> float:
    """ln of the density of (p, multiplier) without terms that are equal for all data: K-norm noise, and the
    determinant."""
    hessian = q.T @ q + (ridge + multiplier) * np.eye(D)
    if (
        multiplier > 0
    ):  # on the boundary: the sphere's tangents alone, and the normal direction, which is constant
        normal = p / np.linalg.norm(p)
        tangents = np.linalg.svd(normal[None])[2][1:]
        hessian = tangents @ hessian @ tangents.T
    length = np.linalg.norm(noise_of(p, multiplier, q, targets, ridge))
    return float(-length / scale + np.linalg.slogdet(hessian)[1])


@pytest.mark.parametrize("on_boundary", [False, True])
def test_the_solver_inverts_the_noise(on_boundary: bool) -> None:
    rng = np.random.default_rng(int(on_boundary))
    for _ in range(20):
        count = int(rng.integers(1, 8))
        q, values = unit_rows(count, rng), rng.integers(1, 6, count).astype(np.float32)
        p = unit_rows(1, rng)[0] * RADIUS * (1 if on_boundary else 0.8 * rng.random())
        multiplier = float(rng.exponential(5)) if on_boundary else 0.0
        noise = noise_of(p, multiplier, q, np.clip(values - 3.0, -CLAMP, CLAMP), RIDGE)
        (lanes,) = factor_model(q, np.zeros((1, D)), np.zeros((count, 1)), np.full((1, 1), 3.0)).groups
        problem = RowProblem(np.array([RIDGE]), CLAMP, per_rating=False, ball=RADIUS)
        ratings = SideRatings(
            "items", RatingsByRow(np.array([0, count]), np.arange(count, dtype=np.int32), values)
        )
        solve_perturbed.run(
            lanes, LaneNoise(noise[None], np.array([1.0]), rounded=False), ratings, problem, RADIUS
        )
        assert lanes.rows("items")[0, :, 0] == pytest.approx(p, abs=1e-3)


def loss(rng: np.random.Generator, epsilon: float, ridge: float, *, extreme: bool) -> float:
    """The largest |log ratio| found for one random pair of neighbours that differ in the presence of a rating."""
    count = int(rng.integers(0, 6))
    q, targets = unit_rows(count + 1, rng), rng.uniform(-CLAMP, CLAMP, count + 1)
    multiplier = float(rng.exponential(3)) * rng.integers(0, 2)
    p = unit_rows(1, rng)[0] * RADIUS * (1.0 if multiplier else rng.random())
    if extreme:  # the rating that is added is as far from its prediction as can be
        q[-1], targets[-1] = -p / np.linalg.norm(p), CLAMP
    scale = sensitivity.ridge_objective_unbounded(RADIUS, 1.0, CLAMP).value / epsilon
    one, other = (
        log_density(p, multiplier, q[:rows], targets[:rows], ridge, scale) for rows in (count + 1, count)
    )
    return abs(one - other)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([0.05, 0.5, 4.0]), st.sampled_from([0.3, 3.0, 40.0]), st.booleans()
)
def test_no_rating_is_found_that_loses_more_than_is_proved(
    seed: int, epsilon: float, ridge: float, extreme: bool
) -> None:
    determinants = sensitivity.jacobian_epsilon(sensitivity.hessian_unbounded(1.0), np.array([ridge]))[0]
    assert loss(np.random.default_rng(seed), epsilon, ridge, extreme=extreme) <= epsilon + determinants + 1e-9


def test_the_parts_of_the_bound_are_both_needed() -> None:
    """The noise's part is attained if the determinant's is negligible, and the determinant's without other ratings."""
    losses = [loss(np.random.default_rng(seed), 0.5, 1e6, extreme=True) for seed in range(300)]
    assert 0.49 < max(losses) <= 0.5 + 1e-5
    losses = [loss(np.random.default_rng(seed), 1e-6, 0.3, extreme=True) for seed in range(300)]
    assert max(losses) == pytest.approx(math.log1p(1 / 0.3), rel=0.01)


def test_a_ridge_costs_the_epsilon_that_it_was_chosen_for() -> None:
    hessian, epsilon = sensitivity.hessian_unbounded(1.5), np.array([0.01, 0.3, 5.0])
    assert sensitivity.jacobian_epsilon(
        hessian, sensitivity.ridge_for_jacobian(hessian, epsilon)
    ) == pytest.approx(epsilon)


def test_what_is_published_is_no_bound() -> None:
    """Δ = r_max is exceeded by a rating that is far from its prediction, and λ = 0.01 by its determinant alone."""
    published = sensitivity.published_objective(SCALE, Neighbours.UNBOUNDED).value
    assert published == 5
    q, targets, epsilon = np.eye(D)[:1], np.array([5.0]), 1.0
    p = -q[0]  # ‖u‖ = 1, r = 5 and u·v = −1, all within the paper's assumptions
    moved = noise_of(p, 0, q, targets, 0.01) - noise_of(p, 0, q[:0], targets[:0], 0.01)
    assert np.linalg.norm(moved) == pytest.approx(6.0)
    for ridge, least in ((0.01, 3.4), (1e6, 1.19)):  # by the determinant above all; by the gradient alone
        one, other = (log_density(p, 0, q[:n], targets[:n], ridge, published / epsilon) for n in (1, 0))
        assert abs(one - other) > least * epsilon


RATED = 24
RUNS = 160


def with_and_without() -> tuple[Ratings, Ratings]:
    """One item that everybody gave 1 star, except one user who gave it 5. The neighbour lacks that user's rating."""
    values = np.ones(RATED, np.float32)
    values[0] = 5
    users = np.arange(RATED, dtype=np.int32)
    whole = Ratings(users, np.zeros(RATED, np.int32), values, RATED, 1, SCALE)
    return whole, whole.select(users > 0)


def released(algorithm: PrivateAlgorithm, ratings: Ratings, epsilon: float, streams: Streams) -> float:
    """The item's factor, which is what the paper releases."""
    model, _ = fitted(algorithm, ratings, [epsilon], streams)
    factors = model.factors if isinstance(model, KnownModel) else model
    assert isinstance(factors, FactorModel)
    return float(factors.groups[0].items[0])


def separating_epsilon(seen: np.ndarray) -> float:
    """A lower bound, at 99 %, of the ε that separates two rows of independent outputs."""
    event = best_threshold(seen[0, ::2], seen[1, ::2], 0)
    return epsilon_of_event(*counts_of(event, seen[0, 1::2], seen[1, 1::2]), 0, 0.99)


def of_one_factor(mode: str, **parameters: Any) -> PrivateAlgorithm:
    own = {"algorithm": "dp_pmf", "mode": mode, "neighbours": "unbounded", "factors": 1}
    return PRIVATE["dp_pmf"].model_validate({**own, **parameters})


def measured_epsilon(mode: str, epsilon: float, **parameters: Any) -> float:
    """`separating_epsilon` of the neighbours, from what is released."""
    algorithm = of_one_factor(mode, **parameters)

    def run(side: int, ratings: Ratings) -> list[float]:
        streams = (Streams(side, "d", "dp_pmf", 0, number) for number in range(RUNS))
        return [released(algorithm, ratings, epsilon, each) for each in streams]

    return separating_epsilon(np.array([run(side, data) for side, data in enumerate(with_and_without())]))


LISTED = {
    "learning_rate": 0.05,
    "initial_factors": {"distribution": "positive_sphere", "scale": 1},
    "epochs": 150,
}


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "least"), [(1.0, 2.6), (0.5, 1.3)])
def test_the_published_noise_averages_out(claim: float, least: float) -> None:
    """Drawn anew in each of k₂ steps, from a V that was fitted without noise: more is learned than it claims."""
    assert measured_epsilon("published", claim, noisy_epochs=150, **LISTED) > least


def test_few_noisy_steps_hide_nothing_at_all() -> None:
    """With k₂ = 1 what is released is nearly the V of the ratings themselves."""
    assert measured_epsilon("published", 1.0, noisy_epochs=1, **LISTED) > 2.6


def corrected_items(epsilon: float, monkeypatch: pytest.MonkeyPatch, weaker: float = 1.0) -> np.ndarray:
    """(2, 6000) factors of independent items that differ in the presence of one rating each, with and without.

    d = 1, the average taken for known; `weaker` divides the scale of the noise.
    """
    count, right = 6000, sensitivity.ridge_objective_unbounded
    users, items = np.divmod(np.arange(2 * count, dtype=np.int32), np.int32(count))
    whole = Ratings(users, items, np.where(users, 5, 3).astype(np.float32), 2, count, SCALE)

    def scaled(*bounds: float) -> sensitivity.Sensitivity:
        return replace(right(*bounds), value=right(*bounds).value / weaker)

    monkeypatch.setattr(dp_pmf, "private_global_average", lambda *_, **__: np.array([3.0]))
    monkeypatch.setattr(sensitivity, "ridge_objective_unbounded", scaled)
    algorithm = of_one_factor("corrected")
    factors = []
    for side, ratings in enumerate((whole, whole.select(users == 0))):
        model, _ = fitted(algorithm, ratings, [epsilon], Streams(side, "d", "dp_pmf", 0, 0))
        assert isinstance(model, FactorModel)
        factors.append(model.groups[0].rows("items")[:, 0, 0])
    return np.array(factors)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_corrected_items_are_not_told_apart_beyond_their_epsilon(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < separating_epsilon(corrected_items(epsilon, monkeypatch)) < epsilon


@pytest.mark.parametrize(("epsilon", "weaker"), [(0.5, 4.0), (1.0, 4.0), (3.0, 8.0)])
def test_less_noise_would_be_noticed(epsilon: float, weaker: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of the test above; a smaller excess is for the search of the exact density to find."""
    assert separating_epsilon(corrected_items(epsilon, monkeypatch, weaker)) > epsilon
