"""Products of several models, released row by row, against clean triangles of each."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import (
    AT_ONCE,
    Products,
    Raters,
    measured_together,
    release_products,
    triangle_size,
    weighted_products,
)
from dpmf_cli.privacy.grid import grid_of, on_grid
from dpmf_cli.privacy.noise import LaneNoise
from tests.conftest import make_ratings

EVERYONE = make_ratings(2, n_users=30, n_items=11)
RATINGS = EVERYONE.select((EVERYONE.users != 4) & (EVERYONE.items != 2))
SIZE = triangle_size(11)


def products(models: int, columns: int) -> Products:
    """Of `models` models with `columns` averages of their own."""
    rng = np.random.default_rng(models)
    return Products(
        RATINGS,
        Raters.of(RATINGS),
        RATINGS.values,
        rng.random(30),
        rng.normal(3.5, 0.5, (11, columns)),
        rng.normal(0, 0.5, (30, columns)),
        0.8,
        slice(0, models),
        np.full((models, SIZE), np.nan, np.float32),
    )


def clean(of: Products, lane: int) -> NDArray[np.float64]:
    left = of.values - of.items[RATINGS.items, lane] - of.users[RATINGS.users, lane]
    return weighted_products(RATINGS, of.raters, np.clip(left, -0.8, 0.8), of.weights)


@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("models", range(1, AT_ONCE + 1))
def test_each_model_has_the_bytes_that_it_would_have_alone(models: int, scale: float) -> None:
    unit, scales = np.random.default_rng(0).normal(size=SIZE), scale * np.geomspace(1, 9, models)
    of = products(models, models)
    release_products.run(of, LaneNoise(unit, scales))
    for lane, own in enumerate(scales):
        expected = on_grid((clean(of, lane) + own * unit)[:, None], grid_of(scales[[lane]]))[:, 0]
        assert of.released[lane].tobytes() == expected.astype(np.float32).tobytes()


def test_what_is_common_to_all_models_is_summed_once_and_has_the_noise_of_each() -> None:
    unit, scales = np.random.default_rng(0).normal(size=SIZE), np.array([0.2, 0.0, 1.5])
    of = products(3, 1)
    release_products.run(of, LaneNoise(unit, scales))
    assert of.width == 1
    for lane, own in enumerate(scales):
        assert of.released[lane] == pytest.approx(clean(of, 0) + own * unit, abs=2e-3 * own + 1e-6)


@pytest.mark.parametrize(
    ("n_items", "models"), [(1_000, 8), (3_706, 8), (10_681, 4), (17_770, 1), (60_000, 1)]
)
def test_as_many_models_are_measured_together_as_have_room(n_items: int, models: int) -> None:
    assert measured_together(n_items) == models
