"""Arrays from a file that would lead a kernel out of bounds are refused."""

from typing import Any

import numpy as np
import pytest

from dpmf_cli.releasing import models
from dpmf_cli.testing import fit
from tests.algorithms.test_contract import VARIANTS
from tests.conftest import make_ratings

RATINGS = make_ratings()


def checked(name: str, **changed: Any) -> None:
    kind, arrays = models.published(fit(VARIANTS[name], RATINGS, [1.0])[0])
    arrays = dict(arrays)
    for array, change in changed.items():
        arrays[array] = change(arrays[array])
    models.check(kind, arrays, RATINGS.n_items, RATINGS.n_users if "users" in arrays else 0)


@pytest.mark.parametrize("name", [name for name, entry in VARIANTS.items() if entry.mode == "corrected"])
def test_every_model_passes(name: str) -> None:
    checked(name)


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("isgd-bounded-corrected", {"items": lambda array: array[1:]}, "items has 39 rows, not 40"),
        ("isgd-bounded-corrected", {"users": lambda array: array[1:]}, "users has 59 rows, not 60"),
        ("isgd-bounded-corrected", {"users": lambda array: array[:, 1:]}, "different factors"),
        ("pge-bounded-corrected", {"items": lambda array: array.astype(str)}, "no numbers"),
        (
            "pknn-bounded-corrected",
            {"covariance": lambda array: array[1:]},
            "covariance has 819 rows, not 820",
        ),
        ("private_constant_nbm-user-corrected", {"neighbours": lambda array: array + 1}, "not an item"),
        (
            "private_constant_nbm-user-corrected",
            {"similarities": lambda array: array[:, 1:]},
            "different shapes",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name: str, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        checked(name, **changed)


def test_no_user_and_no_item_is_asked_for_in_vain() -> None:
    import dpmf_cli

    model = dpmf_cli.fit("pge", RATINGS.users, RATINGS.items, RATINGS.values, scale=(1, 5), epsilon=1)
    assert model.predict([], []).shape == (0,)
    assert np.isfinite(model.predict([10**9], [10**9])).all()
