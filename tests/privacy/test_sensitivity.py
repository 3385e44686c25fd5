"""No pair of neighbours moves a measurement further than its sensitivity, and some pair comes near.

The measurements are those that the algorithms really make: a witness records every vector to which noise would be
added. A later step may use an earlier release. The step's sensitivity holds if both neighbours have the *same*
earlier release, so the second fit is given the releases of the first.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.algorithms.shared.averages import averages_of
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from tests.conftest import make_ratings
from tests.privacy.curators import Recorder, curator_of

SCALES = st.sampled_from([Scale(1, 5, 1), Scale(0.5, 5, 0.5), Scale(-10, 10), Scale(0, 1)])


def measure(ratings: Ratings, neighbours: Neighbours, mode: Mode, recorder: Recorder) -> Recorder:
    entry = PrivateGlobalEffects(algorithm="pge", neighbours=neighbours, mode=mode)
    curator = curator_of(Ledger([1.0]), witness=recorder)
    averages_of(entry, ratings, entry.budget.for_effects(curator.ledger.limit), curator)
    return recorder


def moves(
    one: Ratings, other: Ratings, neighbours: Neighbours = Neighbours.BOUNDED, mode: Mode = Mode.CORRECTED
) -> list[tuple[str, float, float]]:
    """(step, L1 distance of the measurements, sensitivity) between neighbours with equal releases."""
    first = measure(one, neighbours, mode, Recorder()).measured
    second = measure(
        other, neighbours, mode, Recorder([np.asarray(clean, np.float64) for _, clean in first])
    ).measured
    return [
        (release.entry.step, float(np.abs(a - b).sum()), release.entry.sensitivity.value)
        for (release, a), (_, b) in zip(first, second, strict=True)
    ]


def without(ratings: Ratings, at: int) -> Ratings:
    return ratings.select(np.arange(len(ratings)) != at)


@settings(max_examples=150, deadline=None)
@given(st.data(), SCALES, st.sampled_from([None, *Mode]), st.integers(0, 2**32 - 1))
def test_averages_move_by_no_more_than_their_sensitivity(
    data: Any, scale: Scale, mode: Mode | None, seed: int
) -> None:
    """With another value (no mode) or without a rating."""
    one = make_ratings(seed, n_users=6, n_items=5, scale=scale)
    at = data.draw(st.integers(0, len(one) - 1))
    if mode is None:
        values = one.values.copy()
        values[at] = data.draw(st.floats(scale.minimum, scale.maximum, width=32))
        steps = moves(one, replace(one, values=values))
    else:
        steps = moves(one, without(one, at), Neighbours.UNBOUNDED, mode)
    assert len(steps) == (4 if mode is None else 8)
    for step, distance, delta in steps:
        assert distance <= delta * (1 + 1e-6), step


def test_the_bound_on_averages_is_tight() -> None:
    one = make_ratings(1, n_users=6, n_items=5)
    low, high = one.values.copy(), one.values.copy()
    low[3], high[3] = 1, 5
    for step, distance, delta in moves(replace(one, values=low), replace(one, values=high)):
        assert np.isclose(distance, delta), step


def test_the_bounds_on_unbounded_averages_are_tight_and_the_published_one_is_exceeded() -> None:
    one = make_ratings(1, n_users=6, n_items=5)
    high = replace(one, values=np.where(np.arange(len(one)) == 3, 5, 1).astype(np.float32))
    for mode, raw in ((Mode.CORRECTED, 2.0), (Mode.PUBLISHED, 5.0)):
        found = {
            step: distance for step, distance, _ in moves(high, without(high, 3), Neighbours.UNBOUNDED, mode)
        }
        assert found["item sums"] == found["global sum"] == raw
        assert found["item counts"] == found["user counts"] == found["global count"] == 1
        assert 3 < found["user sums"] <= 4
    assert sensitivity.published_rating_sums_unbounded(one.scale).value == 4.0


CLAMP = st.floats(0.1, 20)


@settings(max_examples=300, deadline=None)
@given(st.data(), SCALES, CLAMP, st.floats(-12, 12))
def test_clamped_residuals_move_by_no_more_than_their_sensitivity(
    data: Any, scale: Scale, clamp: float, averages: float
) -> None:
    rating = st.floats(scale.minimum, scale.maximum)
    one, other = (np.clip(data.draw(rating) - averages, -clamp, clamp) for _ in range(2))
    assert abs(one - other) <= sensitivity.clamped_residuals(clamp, scale).value * (1 + 1e-9)


def test_the_bound_on_clamped_residuals_is_tight() -> None:
    scale = Scale(1, 5, 1)
    for clamp, expected in ((1.0, 2.0), (2.0, 4.0), (5.0, 4.0)):
        assert np.ptp(np.clip(np.array([1.0, 5.0]) - scale.middle, -clamp, clamp)) == expected
        assert sensitivity.clamped_residuals(clamp, scale).value == expected
