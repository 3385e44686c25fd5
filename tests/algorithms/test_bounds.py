"""At the limits of parameters a fit fails for all ratings or for none. Otherwise a failure would reveal ratings."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.testing import fit, predict_all
from tests.algorithms.test_contract import small

BOUNDED, UNBOUNDED, USER, LOCAL = Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER, Neighbours.LOCAL
ENDS: dict[tuple[str, Neighbours], dict[str, tuple[float, float]]] = {
    ("dp_pmf", UNBOUNDED): {"residual_clamp": (1e-6, 1e6), "item_norm": (1e-6, 1e6)},
    ("dpps_mf", USER): {
        "user_ridge": (0.01, 1e6),
        "clip": (1e-6, 1e6),
        "spread": (1e-6, 1e6),
        "item_ridge": (0, 50),
    },
    ("dpps_pnbm", USER): {"clip": (1e-6, 1e6)},
    ("dpsgd_pnbm", UNBOUNDED): {"clip": (1e-6, 1e6), "regularization": (0, 2.5)},
    ("local_mf", LOCAL): {"regularization": (1e-6, 1e6)},
    ("pals", BOUNDED): {"user_norm": (1e-6, 100), "item_norm": (1e-6, 100)},
    ("pals", UNBOUNDED): {"user_norm": (1e-6, 100), "item_norm": (1e-6, 100)},
    ("pals_objective", BOUNDED): {"user_norm": (1e-6, 100), "item_norm": (1e-6, 100)},
    ("pbgd", UNBOUNDED): {"clip": (1e-6, 1e6), "regularization": (0, 1e6)},
    ("pg_mf", LOCAL): {
        "regularization": (1e-6, 1e6),
        "learning_rate": (1e-6, 1e6),
        "gradient_bound": (1e-6, 1e6),
        "item_norm": (1e-6, 1e6),
        "average": (1e-6, 0.999),
    },
    ("psgd", BOUNDED): {"error_bound": (1e-6, 1e6), "regularization": (0, 1e6)},
}
"""By algorithm and neighbours: each parameter at its limits, one parameter at a time."""

CASES = [
    pytest.param(key, neighbours, {name: value}, id=f"{key}-{neighbours}-{name}-{value:g}")
    for (key, neighbours), parameters in ENDS.items()
    for name, ends in parameters.items()
    for value in ends
]


def entry(key: str, neighbours: Neighbours, **parameters: Any) -> Any:
    given = {"algorithm": key, "neighbours": neighbours, "mode": "corrected", **small(key, "corrected")}
    return PRIVATE[key].model_validate({**given, **parameters})


def few_ratings() -> list[Ratings]:
    """A user with one rating, an item with six, a user with six, and a full table of ratings at the ends of the
    scale."""
    tables = [[(0, 0, 5)], [(u, 0, 5) for u in range(6)], [(0, i, 1) for i in range(6)]]
    tables.append([(u, i, 1 + 4 * ((u + i) % 2)) for u in range(6) for i in range(5)])
    columns = [np.array(table, np.int32).T for table in tables]
    return [Ratings(u, i, v.astype(np.float32), 6, 6, Scale(1, 5, 1)) for u, i, v in columns]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "neighbours", "parameters"), CASES)
def test_at_the_ends_of_its_range_a_parameter_gives_finite_predictions(
    key: str, neighbours: Neighbours, parameters: dict[str, float]
) -> None:
    algorithm = entry(key, neighbours, **parameters)
    for ratings in few_ratings():
        assert np.isfinite(predict_all(fit(algorithm, ratings, [0.1, 100.0])[0], ratings)).all()


@pytest.mark.parametrize(
    ("key", "neighbours", "parameters"),
    [
        ("pals", UNBOUNDED, {"user_norm": 1e5}),
        ("dpps_mf", USER, {"user_ridge": 1e-9}),
        ("pg_mf", LOCAL, {"regularization": 1e-9}),
        ("dp_pmf", UNBOUNDED, {"item_norm": 1e40}),
        ("pbgd", BOUNDED, {"clip": 1e40}),
    ],
)
def test_what_gave_nan_for_some_ratings_alone_is_refused(
    key: str, neighbours: Neighbours, parameters: dict[str, float]
) -> None:
    with pytest.raises(ValidationError, match=r"(greater|less) than or equal"):
        entry(key, neighbours, **parameters)


@pytest.mark.parametrize(
    ("key", "parameters", "most"),
    [
        ("dpps_mf", {"item_ridge": 51.0}, 50),
        ("dpps_pnbm", {"regularization": 0.3, "initial_rate": 8.0}, 0.25),
        ("dpsgd_pnbm", {"regularization": 1.1, "learning_rate": 1.0}, 1),
    ],
)
def test_steps_that_diverge_are_refused(key: str, parameters: dict[str, float], most: float) -> None:
    with pytest.raises(
        ValidationError, match=f"it must be at most {most:g} with steps of .*, or the descent diverges"
    ):
        entry(key, USER, **parameters)
