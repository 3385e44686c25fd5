"""What Friedman et al. 2016 assume of least squares and of a pass of SGD is exceeded, in the kernels themselves."""

import numpy as np
import pytest

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.als import RowProblem, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorLanes, factor_model
from dpmf_cli.kernels.releasing import project_side
from dpmf_cli.kernels.sgd import Sgd, Visits, descend_clamped_errors
from dpmf_cli.privacy import sensitivity
from tests.conftest import make_ratings

SCALE = Scale(1, 5, 1)
P_MAX, Q_MAX, BOUND, RIDGE = 0.4, 0.5, 1.0, 0.06


def factors_of(ratings: Ratings, seed: int, spread: float = 1.0) -> FactorLanes:
    """Three factors within the norm bounds, and averages of 3 for all items."""
    rng = np.random.default_rng(seed)
    users = rng.normal(0, spread, (ratings.n_users, 3))
    items = rng.normal(0, spread, (ratings.n_items, 3))
    effects = np.zeros((ratings.n_users, 1)), np.full((ratings.n_items, 1), 3.0)
    (lanes,) = factor_model(users, items, *effects).groups
    project_side(lanes, "users", P_MAX)
    project_side(lanes, "items", Q_MAX)
    return lanes


def rows(lanes: FactorLanes) -> tuple[np.ndarray, np.ndarray]:
    """(n_users, 3), (n_items, 3) the factors of the first lane."""
    return lanes.rows("users")[..., 0].astype(float), lanes.rows("items")[..., 0].astype(float)


def test_theorem_6_is_nearly_tight_and_the_published_listing_is_exceeded() -> None:
    """A user with one item of a short vector: the ridge dominates, and the row moves by ‖q‖Δr/(nλ + ‖q‖²)."""
    nobody, heavy, found = np.zeros(1, np.int32), 20.0, []
    for value in (1, 5):
        one = Ratings(nobody, nobody, np.array([value], np.float32), 1, 1, SCALE)
        lanes = factors_of(one, 0)
        solve_rows(lanes, by_user(one), RowProblem(heavy, BOUND))
        found.append(rows(lanes)[0])
    true = sensitivity.least_squares_row(Q_MAX, BOUND, SCALE).value
    published = sensitivity.least_squares_row(P_MAX, BOUND, SCALE).value
    assert published < 0.95 * true < np.linalg.norm(found[1] - found[0]) * heavy <= true * (1 + 1e-5)


def pass_of_sgd(ratings: Ratings, learning_rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The factors after one pass of algorithm 5, before its noise."""
    lanes = factors_of(ratings, 0)
    descend_clamped_errors(
        lanes,
        Visits(ratings.users, ratings.items, ratings.values),
        Sgd(learning_rate, RIDGE, BOUND, BOUND + P_MAX * Q_MAX),
    )
    return rows(lanes)


@pytest.mark.parametrize(("learning_rate", "at_least"), [(0.01, 1.2), (0.05, 2.5), (0.1, 4.0)])
def test_a_pass_of_unbounded_sgd_loses_more_than_published(learning_rate: float, at_least: float) -> None:
    """Without one rating, every later update of the pass changes. The privacy loss over all vectors (the pass
    claims 1) is found to be above 1 at the paper's learning rate. The larger the step, the larger the loss."""
    ratings = make_ratings(0, n_users=200, n_items=300, density=0.2)
    whole = pass_of_sgd(ratings, learning_rate)
    losses = []
    for at in range(0, 60, 6):
        other = pass_of_sgd(ratings.select(np.arange(len(ratings)) != at), learning_rate)
        loss = 0.0
        for side, (own, opposite) in enumerate(((P_MAX, Q_MAX), (Q_MAX, P_MAX))):
            error = BOUND + P_MAX * Q_MAX
            claim = sensitivity.sgd_pass_unbounded(learning_rate, RIDGE, error, own, opposite).value
            loss += np.linalg.norm(whole[side] - other[side], axis=1).sum() / (2 * claim)
        losses.append(loss)
    assert max(losses) > at_least, losses
