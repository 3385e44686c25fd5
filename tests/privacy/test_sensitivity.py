"""No pair of neighbours moves a measurement further than its sensitivity, and some pair comes near.

The measurements are those that the algorithms really make: a replay records every number to which noise would be
added, on pairs of neighbours that are made to move them. A later step may use an earlier release. The step's
sensitivity holds if both neighbours have the *same* earlier release, so the second fit is given the releases of the
first. Single kernels are searched in the other files beside this one.
"""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.audit.entries import registered
from dpmf_cli.audit.judge import Flaw, replay
from dpmf_cli.audit.pairs import SHAPES, tiny_pairs
from dpmf_cli.core.ratings import Scale
from dpmf_cli.kernels.normal_equations import isometric
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.testing import fit, make_ratings
from tests.recorders import Noting

LESS = {
    "isgd, gram, unbounded": {"projected residuals": 0.92},
    "pals, bounded": {"item factors": 0.6, "user factors": 0.6},
    "pals, unbounded": {"item factors": 0.8, "user factors": 0.8},
    "pknn, bounded": {"covariance": 0.94},
    "mm_knn, laplace, unbounded": {"covariance": 0.28},
    "mm_knn, gaussian, unbounded": {"covariance": 0.95},
    "dp_pmf, unbounded": {"objective, item factors": 0.75},
    "pg_mf, user": {"gradients": 0.49, "mean of ratings": 0.49},
    "dpsgd_pnbm, laplace, bounded": {"gradient #": 0.75},
    "dpsgd_pnbm, gaussian, bounded": {"gradients": 0.85},
    "dpsgd_pnbm, laplace, unbounded": {"gradient #": 0.55},
    "dpsgd_pnbm, gaussian, unbounded": {"gradients": 0.65},
    "own_regression, bounded": {"products of coefficients #": 0.8},
    "own_regression, unbounded": {"item sums #": 0.5, "products of coefficients #": 0.6},
    "own_regression, public features, bounded": {"products of coefficients #": 0.8},
    "own_regression, public features, unbounded": {"item sums #": 0.5, "products of coefficients #": 0.6},
}
"""The steps of which no pair comes within a thousandth of the sensitivity, with the part of it that some pair reaches."""

THE_SAME = (
    "samples",
    "refitted",
    "personalized",
    "mm_svd",
    "mm_public",
    "public_knn",
    "private_constant",
    "local_m",
)
"""Words in the labels of variants whose steps are those of other variants."""

SEARCHED = {
    each.name.removesuffix(", corrected"): each
    for each in registered()
    if each.mode is Mode.CORRECTED and not any(word in each.name for word in THE_SAME)
}

OTHERWISE: dict[str, list[dict[str, Any]]] = {
    "pals": [
        {"regularization": 0.05, "ridge": 1, "item_norm": 2},
        {"regularization": 5, "ridge": 30, "user_norm": 3},
    ],
    "pals_objective": [{"regularization": 0.05, "item_norm": 2}, {"regularization": 5, "user_norm": 3}],
    "pbgd": [{"clip": 0.05}, {"clip": 2, "item_norm": 3}],
    "mm_knn": [
        {"effects": {"residual_clamp": 0.3, "beta_u": 1}},
        {"effects": {"residual_clamp": 3, "beta_u": 0}},
    ],
    "dpsgd_pnbm": [
        {"clip": 0.05, "initial_similarity": 3, "least_ratings": 1},
        {"clip": 2, "initial_similarity": 0.2},
    ],
    "dpps_pnbm": [{"clip": 0.05, "initial_similarity": 3}, {"clip": 2, "most_ratings": 20}],
    "own_regression": [{"clip": 0.05, "factors": 2}, {"clip": 20}],
    "dpals": [
        {"selection": "tail", "centring": "overall", "user_norm": 1e-3},
        {"selection": "uniform", "most_ratings": 2, "rating_clip": 3, "user_norm": 7, "user_ridge": 0.01},
        {"weight_exponent": 1, "most_ratings": 9, "frequency_exponent": 0.2, "rating_clip": 0.1},
        {"averages": 0.1, "weight_exponent": 1, "user_norm": 7},
    ],
    "dpam": [
        {"selection": "tail", "centring": "overall", "clip": 0.1},
        {"weight_exponent": 1, "user_norm": 7},
        {"averages": 0.1, "weight_exponent": 1},
    ],
    "private_popularity": [{"most_ratings": 2, "at_least": 3}],
    "dp_sgd": [{"clip": 0.05, "user_norm": 9}, {"clip": 20, "user_norm": 0.01, "user_ridge": 0.01}],
}
"""Other parameters than the defaults, by method."""


def test_every_name_in_these_tables_is_one_of_a_variant() -> None:
    assert LESS.keys() <= SEARCHED.keys()
    assert OTHERWISE.keys() <= {each.algorithm for each in SEARCHED.values()}
    assert [word for word in THE_SAME if not any(word in each.name for each in registered())] == []


@pytest.mark.parametrize(
    ("name", "more"),
    [(name, more) for name, each in SEARCHED.items() for more in OTHERWISE.get(each.algorithm, [])],
    ids=str,
)
@pytest.mark.parametrize("count", [len(SHAPES), pytest.param(12, marks=pytest.mark.slow)])
def test_with_other_parameters_no_pair_moves_a_step_further(name: str, more: Any, count: int) -> None:
    usual = SEARCHED[name]
    algorithm = type(usual).model_validate(usual.model_dump(exclude_unset=True) | more)
    for number, pair in enumerate(tiny_pairs(algorithm.neighbours, count)):
        assert replay(algorithm, pair, 1.0 if number % 2 else 300.0).findings == []


@pytest.mark.parametrize("name", SEARCHED)
def test_no_pair_moves_a_step_further_than_its_sensitivity_and_some_pair_nearly_as_far(name: str) -> None:
    algorithm, furthest = SEARCHED[name], dict[str, float]()
    for number, pair in enumerate(tiny_pairs(algorithm.neighbours, 28)):
        seen = replay(algorithm, pair, 1.0 if number % 2 else 300.0)
        assert [each for each in seen.findings if each.flaw is Flaw.MOVES] == []
        for entry in seen.here.ledger.entries:
            step = re.sub(r"\d+", "#", entry.step)
            moved = seen.steps[entry.step].of_sensitivity if entry.step in seen.steps else 0.0
            furthest[step] = max(moved, furthest.get(step, 0.0))
    least = LESS.get(name, {})
    assert least.keys() <= furthest.keys()
    if algorithm.neighbours is Neighbours.USER:
        least = {"global sum of residuals": 0.65, **least}
    assert {step: part for step, part in furthest.items() if part < least.get(step, 0.999)} == {}


SCALES = st.sampled_from([Scale(1, 5, 1), Scale(0.5, 5, 0.5), Scale(-10, 10), Scale(0, 1)])
PART = st.floats(0, 1)


@given(SCALES, st.floats(0.1, 20), st.floats(-12, 12), PART, PART)
def test_clamped_residuals_move_by_no_more_than_their_sensitivity(
    scale: Scale, clamp: float, averages: float, one: float, other: float
) -> None:
    ratings = scale.minimum + scale.width * np.array([one, other])
    moved = np.ptp(np.clip(ratings - averages, -clamp, clamp))
    assert moved <= sensitivity.clamped_residuals(clamp, scale).value * (1 + 1e-9)
    for bound, expected in ((1.0, 2.0), (2.0, 4.0), (5.0, 4.0)):
        assert sensitivity.clamped_residuals(bound, Scale(1, 5, 1)).value == expected


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8), st.floats(0.1, 5))
def test_products_move_by_no_more_than_their_sensitivity(numbers: list[float], longest: float) -> None:
    """Orthogonal coefficients reach the bounds."""
    below = np.tril_indices(4)
    random = np.array(numbers).reshape(2, 4)
    random *= longest / np.maximum(np.linalg.norm(random, axis=1, keepdims=True), longest)
    for both, attained in ((random, False), (longest * np.eye(2, 4), True)):
        one, other = (isometric(np.outer(p, p)[below][:, None], 4) for p in both)
        for moved, kind in ((one, Neighbours.USER), (one - other, Neighbours.BOUNDED)):
            bound = sensitivity.pooled_products(longest, kind).value
            assert np.linalg.norm(moved) <= bound * (1 + 1e-9)
            assert not attained or np.linalg.norm(moved) == pytest.approx(bound)


def test_own_regression_measures_nothing_where_nothing_is_known_or_learned() -> None:
    """Start coefficients are for users with ratings only."""
    algorithm = PRIVATE["own_regression"].model_validate(
        {"algorithm": "own_regression", "neighbours": "user"}
    )
    ratings = make_ratings(6, n_users=12, n_items=9, density=0.5)
    of_nobody, of_little = Noting(), Noting()
    fit(algorithm, ratings.select(np.zeros(len(ratings), np.bool_)), [30.0], recorder=of_nobody)
    assert not any(np.any(clean) for clean in of_nobody.seen.values())
    fit(algorithm, ratings, [1e-3], recorder=of_little)
    assert not np.any(of_little.seen["products of coefficients 1", 0, 0, 0])
    assert np.any(of_little.seen["item sums 1", 0, 0, 0])
