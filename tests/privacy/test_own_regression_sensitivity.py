"""Sensitivities of own regression: searches over neighbours, through the functions that measure."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from dpmf_cli.algorithms.beyond.learned_features import OwnRegression
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.normal_equations import isometric
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Numbers, Release, Witness
from dpmf_cli.privacy.sensitivity import (
    clipped_contributions,
    pooled_products,
    root_counts,
    weights_of_signs_unbounded,
)
from dpmf_cli.testing import fit, make_ratings

SCALE = Scale(1, 5)
RATINGS = make_ratings(6, n_users=12, n_items=9, density=0.5)


class Replaying(Witness):
    """Records what is measured, and publishes what another fit has published."""

    def __init__(self, published: dict[tuple[str, int], Any]) -> None:
        self.published_before = published
        self.clean: dict[tuple[str, int], Any] = {}

    def published(self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: Any) -> Any:
        place = release.entry.step, first
        self.clean[place] = (np.asarray(clean, dtype=np.float64).copy(), release.entry.sensitivity)
        return self.published_before.setdefault(place, noisy)


def moves(algorithm: OwnRegression, one: Ratings, other: Ratings, theta: float) -> dict[str, float]:
    """By step: how far the measurements move, as a fraction of the sensitivity, with equal earlier releases."""
    published: dict[tuple[str, int], Any] = {}
    seen = []
    for data in (one, other):
        witness = Replaying(published)
        fit(algorithm, data, [theta], witness=witness)
        seen.append(witness.clean)
    assert seen[0].keys() == seen[1].keys()
    return {
        step: float(np.linalg.norm((clean - seen[1][step, first][0]).ravel(), moved.norm)) / moved.value
        for (step, first), (clean, moved) in seen[0].items()
    }


def changed(ratings: Ratings, kind: str, place: int, value: float) -> Ratings:
    """A neighbour: another value, one rating less, or without one user, whose values are `value`."""
    if kind == "bounded":
        values = ratings.values.copy()
        values[place] = value
        return Ratings(ratings.users, ratings.items, values, ratings.n_users, ratings.n_items, SCALE)
    left = np.arange(len(ratings)) != place if kind == "unbounded" else ratings.users != ratings.users[place]
    return ratings.select(left)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["bounded", "unbounded", "user"]),
    st.integers(0, len(RATINGS) - 1),
    st.sampled_from([1.0, 5.0]),
    st.sampled_from([0.05, 0.6, 20.0]),
    st.sampled_from([3.0, 30.0]),
)
def test_no_step_moves_by_more_than_its_sensitivity(
    kind: str, place: int, value: float, clip: float, theta: float
) -> None:
    algorithm = PRIVATE["own_regression"].model_validate(
        {"algorithm": "own_regression", "neighbours": kind, "factors": 4, "iterations": 2, "clip": clip}
    )
    assert isinstance(algorithm, OwnRegression)
    found = moves(algorithm, RATINGS, changed(RATINGS, kind, place, value), theta)
    target(max(found.values()))
    assert max(found.values()) <= 1 + 1e-9


def test_users_reach_what_the_clip_leaves_them() -> None:
    """The bounds are no larger than necessary: with a small clip, a user is clipped in every sum of items."""
    algorithm = PRIVATE["own_regression"].model_validate(
        {"algorithm": "own_regression", "neighbours": "user", "factors": 2, "iterations": 2, "clip": 0.05}
    )
    assert isinstance(algorithm, OwnRegression)
    found = moves(algorithm, RATINGS, changed(RATINGS, "user", 0, 1.0), 30.0)
    reached = [found[step] for step in ("item counts", "item sums", "item sums 1", "item sums 2")]
    assert reached == pytest.approx([1.0] * 4, abs=1e-6)


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8), st.floats(0.1, 5))
def test_products_move_by_no_more_than_their_sensitivity(numbers: list[float], longest: float) -> None:
    both = np.array(numbers).reshape(2, 4)
    lengths = np.linalg.norm(both, axis=1, keepdims=True)
    both = both * longest / np.maximum(lengths, longest)
    below = np.tril_indices(4)
    one, other = (isometric(np.outer(p, p)[below][:, None], 4) for p in both)
    assert np.linalg.norm(one) <= pooled_products(longest, Neighbours.USER).value * (1 + 1e-9)
    for kind in (Neighbours.BOUNDED, Neighbours.UNBOUNDED):
        assert np.linalg.norm(one - other) <= pooled_products(longest, kind).value * (1 + 1e-9)


def test_orthogonal_coefficients_reach_the_bound() -> None:
    below = np.tril_indices(2)
    one, other = (isometric(np.outer(p, p)[below][:, None], 2) for p in 3 * np.eye(2))
    assert np.linalg.norm(one) == pytest.approx(pooled_products(3, Neighbours.USER).value)
    assert np.linalg.norm(one - other) == pytest.approx(pooled_products(3, Neighbours.BOUNDED).value)


def test_users_without_ratings_add_nothing() -> None:
    """Such users take no part: start coefficients are for other users only."""
    algorithm = PRIVATE["own_regression"].model_validate(
        {"algorithm": "own_regression", "neighbours": "user"}
    )
    nobody, witness = RATINGS.select(np.zeros(len(RATINGS), np.bool_)), Replaying({})
    fit(algorithm, nobody, [30.0], witness=witness)
    assert all(not clean.any() for clean, _ in witness.clean.values())


def test_where_nothing_is_learned_no_coefficients_are_measured() -> None:
    algorithm = PRIVATE["own_regression"].model_validate(
        {"algorithm": "own_regression", "neighbours": "user"}
    )
    witness = Replaying({})
    fit(algorithm, RATINGS, [1e-3], witness=witness)
    assert not witness.clean["products of coefficients 1", 0][0].any()
    assert witness.clean["item sums 1", 0][0].any()


def test_halves_and_roots_move_by_1() -> None:
    x = np.linspace(-1, 1, 9)
    assert np.abs((1 + x) / 2) + np.abs((1 - x) / 2) == pytest.approx(weights_of_signs_unbounded().value)
    roots = np.diff(np.sqrt(np.arange(50)))
    assert roots.max() == pytest.approx(root_counts().value)
    assert clipped_contributions(1.0, 2, Neighbours.USER).value == 1
