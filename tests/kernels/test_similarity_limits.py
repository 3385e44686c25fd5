"""No rating contributes more to a step on similarities than its limit, and equal parts of a gradient attain it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.releasing import GUARD
from dpmf_cli.kernels.similarity_descent import (
    LearnedRatings,
    SimilarityStep,
    descend_similarities,
)
from dpmf_cli.ratings import Ratings, Scale
from tests.kernels.test_similarities import Array, one_group, similarities

GREAT = 2.0**60
"""A rate that is so large that s − rate·g equals −rate·g in all digits."""


def gradient_of_one_rating(
    own: Array, error: float, s: Array, limit: float, norm: int, averages: float
) -> Array:
    """(m,) what the kernel adds for a rating whose user rated m neighbours by `own` above their averages."""
    m = len(own)
    values = np.append(np.float32(averages) + own, 0).astype(np.float32)
    train = Ratings(
        np.zeros(m + 1, np.int32), np.arange(m + 1, dtype=np.int32), values, 1, m + 1, Scale(-20, 20)
    )
    neighbours = np.full((m + 1, m), -1, np.int32)
    neighbours[m] = np.arange(m)
    models = one_group(neighbours, np.tile(s, (m + 1, 1)), np.full((m + 1, 1), averages))
    # Whatever is predicted, the rating differs from it by this much.
    values[m] = models.predict(train, np.zeros(1, np.int32), np.array([m], np.int32))[0, 0] - error
    learned = LearnedRatings(train, Raters.of(train), np.array([limit], np.float32), norm)
    before = similarities(models, 0)
    descend_similarities(models, learned, SimilarityStep(np.ones(m + 1, np.bool_), np.array([GREAT])))
    return np.asarray((before - similarities(models, 0))[m] / GREAT)


@pytest.mark.parametrize("norm", [1, 2])
@given(
    base=st.floats(-4, 4),
    spread=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 1.0]),
    m=st.integers(1, 400),
    error=st.floats(-8, 8),
    strength=st.sampled_from([1e-3, 1.0, 1e3]),
    limit=st.floats(-6, 1).map(lambda power: 10**power),
    signed=st.booleans(),
    averages=st.sampled_from([0.0, 3.3]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_no_rating_contributes_more_than_its_limit(
    norm: int,
    base: float,
    spread: float,
    m: int,
    error: float,
    strength: float,
    limit: float,
    signed: bool,
    averages: float,
    seed: int,
) -> None:
    """Also where the neighbours' ratings are nearly equal, and ‖g‖² is the small difference of large sums."""
    rng = np.random.default_rng(seed)
    own = np.clip(base + spread * rng.normal(size=m), -4, 4)
    s = strength * np.where(signed & (rng.random(m) < 0.5), -1.0, 1.0)
    g = gradient_of_one_rating(own, error, s.astype(np.float32), limit, norm, averages)
    assert np.linalg.norm(g, norm) <= np.float64(np.float32(limit)) * (1 + 2e-7)


@pytest.mark.parametrize("norm", [1, 2])
def test_equal_parts_of_a_gradient_attain_the_limit(norm: int) -> None:
    own = np.array([2.0, -2.0, 2.0, -2.0])
    free = gradient_of_one_rating(own, 1.0, np.ones(4, np.float32), np.inf, norm, 0.0)
    assert free == pytest.approx(own / 4)
    clipped = gradient_of_one_rating(own, 1.0, np.ones(4, np.float32), 0.1, norm, 0.0)
    assert np.linalg.norm(clipped, norm) == pytest.approx(GUARD * 0.1, rel=1e-5)
    assert np.sign(clipped).tolist() == [1, -1, 1, -1]
