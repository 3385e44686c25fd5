"""Objective perturbation of a ridge regression within a ball: searches for the largest privacy loss of its density.

The density of a solution follows from η(p), which the solver must invert. That is tested with the kernel itself. The
loss between neighbours is then a formula, and the search looks for inputs that exceed the bounds of sensitivity.py.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.zhang2018 import private_pmf as dp_pmf
from dpmf_cli.audit.bounds import best_threshold, epsilon_of_event
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, SideRatings, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.sums import RatingsByRow
from dpmf_cli.privacy import sensitivity
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


def separating_epsilon(seen: np.ndarray) -> float:
    """A lower bound, at 99 %, of the ε that separates two rows of independent outputs."""
    event = best_threshold(seen[0, ::2], seen[1, ::2], 0)
    return epsilon_of_event(event.counts(seen[0, 1::2], seen[1, 1::2]), 0, 0.99)


def item_factors(mode: str, ratings: Ratings, epsilon: float, streams: Streams, **more: Any) -> np.ndarray:
    """(n_items,) the one factor of each item, which is what the paper releases."""
    own = {"algorithm": "dp_pmf", "mode": mode, "neighbours": "unbounded", "factors": 1, **more}
    model, _ = fitted(PRIVATE["dp_pmf"].model_validate(own), ratings, [epsilon], streams)
    factors = model.factors if isinstance(model, KnownModel) else model
    assert isinstance(factors, FactorModel)
    return factors.groups[0].rows("items")[:, 0, 0]


def test_few_noisy_steps_as_published_hide_nothing_at_all() -> None:
    """One item that everybody gave 1 star, except one user who gave it 5, with and without that rating. With k₂ = 1
    what is released is nearly the V of the ratings themselves."""
    users, none = np.arange(24, dtype=np.int32), np.zeros(24, np.int32)
    start = {"distribution": "positive_sphere", "scale": 1}
    listed = {"learning_rate": 0.05, "initial_factors": start, "epochs": 150, "noisy_epochs": 1}
    whole = Ratings(users, none, np.where(users, 1, 5).astype(np.float32), 24, 1, SCALE)
    seen = [
        [
            item_factors("published", ratings, 1.0, Streams(side, "d", "dp_pmf", 0, run), **listed)[0]
            for run in range(160)
        ]
        for side, ratings in enumerate((whole, whole.select(users > 0)))
    ]
    assert separating_epsilon(np.array(seen)) > 2.6


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
    return np.array(
        [
            item_factors("corrected", ratings, epsilon, Streams(side, "d", "dp_pmf", 0, 0))
            for side, ratings in enumerate((whole, whole.select(users == 0)))
        ]
    )


@pytest.mark.parametrize(("epsilon", "weaker"), [(0.5, 4.0), (1.0, 4.0), (3.0, 8.0)])
def test_corrected_items_are_not_told_apart_beyond_their_epsilon(
    epsilon: float, weaker: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less noise would be noticed; a smaller excess is for the search of the exact density to find."""
    assert 0 < separating_epsilon(corrected_items(epsilon, monkeypatch)) < epsilon
    with monkeypatch.context() as patch:
        assert separating_epsilon(corrected_items(epsilon, patch, weaker)) > epsilon
