"""At the limits of parameters a fit fails for all ratings or for none. Otherwise a failure would reveal ratings."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.testing import fit, predict_all
from tests.algorithms.fitted import entry
from tests.algorithms.test_contract import small

BOUNDED, UNBOUNDED, USER, LOCAL = Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER, Neighbours.LOCAL
WIDE = (1e-6, 1e6)
ENDS: dict[tuple[str, Neighbours], dict[str, tuple[float, float]]] = {
    ("dp_pmf", UNBOUNDED): {"residual_clamp": WIDE, "item_norm": WIDE},
    ("dpps_mf", USER): {"user_ridge": (0.01, 1e6), "clip": WIDE, "spread": WIDE, "item_ridge": (0, 50)},
    ("dpps_pnbm", USER): {"clip": WIDE},
    ("dpsgd_pnbm", UNBOUNDED): {"clip": WIDE, "regularization": (0, 2.5)},
    ("local_mf", LOCAL): {"regularization": WIDE},
    ("pals", BOUNDED): {"user_norm": (1e-6, 100), "item_norm": (1e-6, 100)},
    ("pals", UNBOUNDED): {"user_norm": (1e-6, 100), "item_norm": (1e-6, 100)},
    ("pals_objective", BOUNDED): {"user_norm": (1e-6, 100), "item_norm": (1e-6, 100)},
    ("pbgd", UNBOUNDED): {"clip": WIDE, "regularization": (0, 1e6)},
    ("pg_mf", LOCAL): {"average": (1e-6, 0.999)}
    | dict.fromkeys(("regularization", "learning_rate", "gradient_bound", "item_norm"), WIDE),
    ("psgd", BOUNDED): {"error_bound": WIDE, "regularization": (0, 1e6)},
}
"""By algorithm and neighbours: each parameter at its limits, one parameter at a time."""

CASES = [
    pytest.param(key, neighbours, {name: value}, id=f"{key}-{neighbours}-{name}-{value:g}")
    for (key, neighbours), parameters in ENDS.items()
    for name, ends in parameters.items()
    for value in ends
]


def corrected(key: str, neighbours: Neighbours, **parameters: Any) -> Any:
    return entry(
        key, **{**small(key, "corrected"), "neighbours": neighbours, "mode": "corrected", **parameters}
    )


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
    algorithm = corrected(key, neighbours, **parameters)
    for ratings in few_ratings():
        assert np.isfinite(predict_all(fit(algorithm, ratings, [0.1, 100.0])[0], ratings)).all()


@pytest.mark.parametrize(
    ("key", "neighbours", "parameters", "message"),
    [
        ("pals", UNBOUNDED, {"user_norm": 1e5}, "less than or equal"),
        ("dpps_mf", USER, {"user_ridge": 1e-9}, "greater than or equal"),
        ("pg_mf", LOCAL, {"regularization": 1e-9}, "greater than or equal"),
        ("dp_pmf", UNBOUNDED, {"item_norm": 1e40}, "less than or equal"),
        ("pbgd", BOUNDED, {"clip": 1e40}, "less than or equal"),
        ("dpps_mf", USER, {"item_ridge": 51.0}, "at most 50 with"),
        ("dpps_pnbm", USER, {"regularization": 0.3, "initial_rate": 8.0}, "at most 0.25 with"),
        ("dpsgd_pnbm", USER, {"regularization": 1.1, "learning_rate": 1.0}, "at most 1 with steps of .*, or the descent diverges"),
        ("dpam", USER, {"learning_rate": 0.1, "item_ridge": 10.5}, "at most 10 with"),
        ("dpps_mf", USER, {"delta": 1e-13, "sampling_rate": 0.5}, "no δ below 1e-12 can be certified"),
    ],
)  # fmt: skip
def test_what_gave_nan_for_some_ratings_alone_is_refused(
    key: str, neighbours: Neighbours, parameters: dict[str, float], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        corrected(key, neighbours, **parameters)
