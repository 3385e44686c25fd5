"""McSherry and Mironov 2009, theorems 4 to 6: searches over neighbouring users, through the code that measures.

One user is enough, because a neighbour moves one user's part of every sum. Item averages are released earlier, so a
search may set them to any values. Item-centred ratings then lie anywhere within ±(r_max − r_min).
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray

from dpmf_cli.algorithms.mcsherry2009.covariance_methods import CovarianceKNN
from dpmf_cli.algorithms.shared.averages import Effects
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.covariance import Products, release_products, weighted_products
from dpmf_cli.privacy import covariance_sensitivity as sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from tests.privacy.curators import curator_of

SCALE = Scale(1, 5)
BETA_P, CLAMP, ALPHA = 20.0, 1.0, 8.0
ROUNDING = 1e-6
"""Ratings are float32; all sums are float64."""
NOISES = {"laplace": 1, "gaussian": 2}

Triangles = tuple[NDArray[np.float64], NDArray[np.float64]]


def algorithm(noise: str, **more: object) -> CovarianceKNN:
    return CovarianceKNN.model_validate({"algorithm": "mm_knn", "noise": noise, "mode": "corrected", **more})


def measured(settings_: CovarianceKNN, centred: NDArray[np.float64], kept: slice, centre: float) -> Triangles:
    """Cov and Wgt, without noise, of one user who rated only the items in `centred[kept]`, with these
    item-centred ratings."""
    items = np.where(centred >= 0, SCALE.minimum, SCALE.maximum)  # MAvg_i: MAvg_i + x_i is on the scale
    n = len(centred)
    chosen = np.arange(n, dtype=np.int32)[kept]
    values = (items + centred).astype(np.float32)[kept]
    train = Ratings(np.zeros(len(chosen), np.int32), chosen, values, 1, n, SCALE)
    nothing = np.zeros((n, 1))
    averages = Effects(items[:, None], nothing[:0], np.zeros(1), np.array([centre]))
    ledger = Ledger([np.inf], settings_.mode, settings_.spends_delta)
    measurer = settings_.measurer(ledger.limit, curator_of(ledger), covariance=2)
    products = settings_.release(train, settings_.own_means(train, averages), measurer)
    cov, wgt = (clean(products.products(slice(0, 1), of_ones=ones)) for ones in (False, True))
    return cov, wgt


def clean(products: Products) -> NDArray[np.float64]:
    """The triangle of one model, as it is handed over for publication."""
    seen: list[NDArray[np.float64]] = []

    def publish(numbers: NDArray[np.float64], first: int = 0) -> NDArray[np.float64]:
        seen.append(numbers)
        return numbers

    release_products.reference(products, publish)
    (triangle,) = seen
    return triangle[:, 0]


def moves(settings_: CovarianceKNN, centred: NDArray[np.float64], centre: float) -> Triangles:
    """How Cov and Wgt move when the last of the user's ratings is added."""
    after = measured(settings_, centred, slice(None), centre)
    before = measured(settings_, centred, slice(None, -1), centre)
    return after[0] - before[0], after[1] - before[1]


def as_matrix(triangle: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, n), for counting ordered pairs as the paper does."""
    n = math.isqrt(2 * len(triangle))
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = triangle
    return np.triu(matrix) + np.triu(matrix, 1).T


def norm(values: NDArray[np.float64], order: float) -> float:
    return float(np.linalg.norm(values.ravel(), order))


groups = st.lists(st.tuples(st.floats(-4, 4), st.integers(0, 200)), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("noise", "alpha"),
    [("laplace", ALPHA), ("gaussian", ALPHA), ("laplace", 2), ("gaussian", 2), ("laplace", 4)],
)
@given(groups=groups, added=st.floats(-4, 4), centre=st.floats(-4, 4))
@example(groups=[(0.0, 200)] * 3, added=0.0, centre=0.0)
@settings(max_examples=120, deadline=None)
def test_no_added_rating_moves_a_triangle_by_more_than_its_bound(
    noise: str, alpha: float, groups: list[tuple[float, int]], added: float, centre: float
) -> None:
    """With a smaller α than 8, because centred ratings are clamped to half of it."""
    order = NOISES[noise]
    centred = np.array([value for value, count in groups for _ in range(count)] + [added])
    covariance, weight = moves(algorithm(noise, alpha=alpha), centred, centre)
    bound = sensitivity.own_centred_triangle(CLAMP, alpha, BETA_P, order).value
    assert norm(covariance, order) <= bound * (1 + ROUNDING)
    assert norm(weight, order) <= sensitivity.weight_triangle(order).value * (1 + ROUNDING)


def adversary() -> tuple[NDArray[np.float64], float]:
    """A user with nearly all ratings at one end of the range and a new rating at the other end; and G. Found by
    differential evolution over three groups of ratings, the new rating and G."""
    values, counts = (-3.451, 4.0, -2.641, -3.99), (23, 343, 11, 1)
    return np.repeat(values, counts), -3.264


def test_the_published_l1_bounds_are_exceeded_and_the_true_ones_are_not() -> None:
    centred, centre = adversary()
    paper = sensitivity.published_own_centred_matrix(CLAMP, SCALE, 1).value
    assert paper == 11.0  # 2Bα + 3B² with α = 4
    covariance, _ = moves(algorithm("laplace"), centred, centre)
    true = sensitivity.own_centred_triangle(CLAMP, ALPHA, BETA_P, 1).value
    assert 12.9 < norm(as_matrix(covariance), 1) < 2 * true
    # Each unordered pair is released once. That moves less than the 11 of the noise, so the provable ε is smaller.
    assert norm(covariance, 1) < true == 9.5 < paper


def test_many_other_users_do_not_round_a_bound_away() -> None:
    """Sums over 4,000 users in float32 moved Wgt by more than its bound."""
    n_users, n = 4000, 120
    rng = np.random.default_rng(0)
    known = rng.random((n_users, n)) < 0.5
    known[-1] = True
    users, items = (part.astype(np.int32) for part in np.nonzero(known))

    def weight_of(kept: NDArray[np.bool_]) -> NDArray[np.float64]:
        values = np.full(kept.sum(), 3.0, np.float32)
        train = Ratings(users[kept], items[kept], values, n_users, n, SCALE)
        weights = algorithm("laplace").product_weights(train.user_counts)
        return weighted_products(train, np.ones(len(train)), weights)

    everything = np.ones(len(users), bool)
    without = everything.copy()
    without[-1] = False
    moved = norm(weight_of(everything) - weight_of(without), 1)
    assert moved == pytest.approx(sensitivity.weight_triangle(1).value, rel=1e-9)


def residual_moves(centred: NDArray[np.float64], centre: float) -> NDArray[np.float64]:
    """How the clamped residuals move when the last rating is added: theorem 4."""

    def clamped(values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = (values.sum() + BETA_P * centre) / (len(values) + BETA_P)
        return np.asarray(np.clip(values - mean, -CLAMP, CLAMP))

    return np.asarray(clamped(centred) - np.append(clamped(centred[:-1]), 0.0))


def test_theorem_4_is_exceeded_in_both_norms() -> None:
    wide = residual_moves(np.append(np.full(485, -3.97), 3.99), -3.96)
    assert norm(wide, 1) > 8.5 > ALPHA / 2 + CLAMP  # the paper: α + B with α = 4
    narrow = residual_moves(np.append(np.full(21, 3.98), -3.98), 3.98)
    assert norm(narrow, 2) > 1.26 > math.sqrt(CLAMP**2 + 4**2 / (4 * BETA_P))  # the paper: √(B² + α²/4β_p)


def test_the_papers_bounds_count_every_pair_twice() -> None:
    """Released user averages amount to α = 0: Friedman et al. 2016, section 5.4."""
    released = sensitivity.covariance_triangle(CLAMP, SCALE, Neighbours.UNBOUNDED).value
    assert sensitivity.own_centred_triangle(CLAMP, 0.0, BETA_P, 1).value == released
    assert 2 * released == sensitivity.published_covariance_matrix(CLAMP, Neighbours.UNBOUNDED).value
    for noise, order, nearly in (("laplace", 1, 2.99), ("gaussian", 2, 1.41)):
        _, weight = moves(algorithm(noise), np.zeros(400), 0.0)
        assert nearly < norm(as_matrix(weight), order) <= sensitivity.published_weight_matrix(order).value


@pytest.mark.parametrize("beta_p", [0.0, 3.0, 20.0])
@pytest.mark.parametrize("alpha", [4.0, 8.0, 40.0])
def test_the_l2_bound_is_the_largest_over_every_number_of_ratings(alpha: float, beta_p: float) -> None:
    bound = sensitivity.own_centred_triangle(CLAMP, alpha, beta_p, 2).value
    assert bound == max(sensitivity._triangle_l2(CLAMP, alpha, beta_p, c) for c in range(3000))


def test_the_l2_bound_holds_for_more_ratings_than_are_tried_one_by_one() -> None:
    counts = np.unique(np.geomspace(1, 1e10, 400).astype(int)).tolist()
    for beta_p in (5_000.0, 1e9):
        bound = sensitivity.own_centred_triangle(CLAMP, ALPHA, beta_p, 2).value
        assert max(sensitivity._triangle_l2(CLAMP, ALPHA, beta_p, c) for c in counts) <= bound < 1.1
