"""How far Σ a·aᵀ can move: a search over users, through the sums that a fit makes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.frank_wolfe import clipped_gram
from dpmf_cli.privacy.covariance_sensitivity import user_gram

ROUNDING = 1e-11


def moved(left: np.ndarray, longest: float) -> float:
    """How much the last row of (users, items), where 0 is no rating, moves the triangle."""
    users, items = (part.astype(np.int32) for part in np.nonzero(left))
    ratings = Ratings(users, items, np.full(len(users), 3, np.float32), len(left), left.shape[1], Scale(1, 5))
    values = left[users, items]
    others = users < len(left) - 1
    both = [
        clipped_gram(each, Raters.of(each), part, longest)
        for each, part in ((ratings, values), (ratings.select(others), values[others]))
    ]
    return float(np.linalg.norm(both[0] - both[1]))


@given(
    n_items=st.integers(1, 9),
    longest=st.sampled_from([1e-3, 1.0, 7.0]),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    few=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=200, deadline=None)
def test_no_user_moves_the_gram_matrix_by_more_than_its_bound(
    n_items: int, longest: float, size: float, few: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    left = rng.normal(0, size, (4, n_items)) * (rng.random((4, n_items)) < 0.6)
    if few:
        left[-1, 1:] = 0
    assert moved(left, longest) <= user_gram(longest).value * (1 + ROUNDING)


def test_the_bound_is_attained_by_a_single_rating_and_nearly_halved_by_many() -> None:
    single, many = np.zeros((2, 40)), np.full((2, 40), 3.0)
    single[-1, 5] = 100.0
    assert moved(single, 2.0) == pytest.approx(4.0)
    assert moved(many, 2.0) == pytest.approx(4.0 * np.sqrt((1 + 1 / 40) / 2))


def test_ratings_that_are_clipped_one_by_one_are_not_enough() -> None:
    """The search has something to find."""
    assert moved(np.full((1, 9), 2.0), 1e9) > 8 * user_gram(2.0).value / np.sqrt(2)
