"""Arrays from a file that would lead a kernel out of bounds are refused."""

from collections.abc import Callable
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
    users = np.arange(RATINGS.n_users) if "users" in arrays else None
    models.check(kind, arrays, np.arange(RATINGS.n_items), users)


@pytest.mark.parametrize("name", [name for name, entry in VARIANTS.items() if entry.mode == "corrected"])
def test_every_model_passes(name: str) -> None:
    checked(name)


MISFITS: list[tuple[str, str, Callable[[Any], Any], str]] = [
    ("isgd-bounded-corrected", "items", lambda array: array[1:], r"\(39, 3, 1\), not float32 \(40"),
    ("isgd-bounded-corrected", "users", lambda array: array[1:], r"\(59, 3, 1\), not float32 \(60"),
    ("isgd-bounded-corrected", "users", lambda array: array[:, 1:], r"\(40, 3, 1\), not float32 \(40, 2, 1"),
    ("isgd-bounded-corrected", "users", lambda array: array.astype("f8"), "users is float64"),
    ("isgd-bounded-corrected", "items", lambda array: array.repeat(2, 2), r"items is float32 \(40, 3, 2\)"),
    ("pge-bounded-corrected", "items", lambda array: array.astype(str), "items is <U32"),
    ("pge-bounded-corrected", "items", lambda array: array.astype(">f8"), "items is >f8"),
    ("pge-bounded-corrected", "items", lambda array: array[0, 0], r"items is float64 \(\)"),
    ("pknn-bounded-corrected", "covariance", lambda array: array[1:], r"\(819,\), not float32 \(820,\)"),
    ("private_constant_nbm-user-corrected", "neighbours", lambda array: array + 1, "not an item"),
    ("private_constant_nbm-user-corrected", "similarities", lambda array: array[:, 1:], r"\(40, 38, 1\)"),
]


@pytest.mark.parametrize(("name", "array", "change", "said"), MISFITS)
def test_arrays_that_do_not_fit_are_refused(
    name: str, array: str, change: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        checked(name, **{array: change})


def test_no_user_and_no_item_is_asked_for_in_vain() -> None:
    import dpmf_cli

    model = dpmf_cli.fit("pge", RATINGS.users, RATINGS.items, RATINGS.values, scale=(1, 5), epsilon=1)
    assert model.predict([], []).shape == (0,)
    assert np.isfinite(model.predict([10**9], [10**9])).all()
