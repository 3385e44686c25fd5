"""Every private method of the registry: its model is restored to the bit; its files tell only what was released."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, for_new_users
from dpmf_cli.audit import fits
from dpmf_cli.audit.pairs import neighbour_of
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import HIDE_IDS
from dpmf_cli.privacy.release import Numbers, Perturbed, Recorder, Release
from dpmf_cli.releasing import archive
from dpmf_cli.releasing.archive import DataStatement, statement_of
from dpmf_cli.releasing.publishing import COLUMNS, MODEL, FittedRatings, fitted, stored
from dpmf_cli.releasing.recommender import OwnRatings, Recommender, check_arrays, published
from dpmf_cli.testing import fit, predict_all
from tests.algorithms.test_contract import REFITTED, SAMPLED, VARIANTS
from tests.conftest import make_ratings

EVERY = dict(reversed((VARIANTS | REFITTED | SAMPLED).items()))  # the contract's tests compile the first
PROVABLE = {name: entry for name, entry in EVERY.items() if entry.mode == "corrected"}
HOLDS_CLEAN_FACTORS = ("dp_pmf", "hua_mf", "personalized")
"""Personalised privacy around published DP-PMF."""


def recommender(entry: PrivateAlgorithm, model: Any, ledger: Ledger, ratings: Ratings) -> Recommender:
    kind, arrays = published(model)
    scale = ratings.scale
    data = DataStatement(
        name="made up",
        minimum=scale.minimum,
        maximum=scale.maximum,
        step=scale.step,
        to_stars=False,
        columns=COLUMNS,
        users="a list that was given",
        items="a list that was given",
    )
    user_ids, item_ids = np.arange(ratings.n_users) + 100, np.arange(ratings.n_items) + 7000
    has_users = any(name.startswith("users") for name in arrays)
    return Recommender(
        statement_of(entry, kind, ledger, data), arrays, item_ids, user_ids if has_users else None
    )


def own(ratings: Ratings) -> OwnRatings:
    return OwnRatings.of(ratings.users + 100, ratings.items + 7000, ratings.values)


def written(made: Recommender) -> tuple[str, bytes]:
    """The two files of a release."""
    return json.dumps(made.statement.model_dump(mode="json"), allow_nan=False), archive.packed(stored(made))


def read_back(made: Recommender) -> Recommender:
    text, data = written(made)
    arrays = dict(np.load(io.BytesIO(data), allow_pickle=False))
    model = {name.removeprefix(MODEL): array for name, array in arrays.items() if name.startswith(MODEL)}
    statement = type(made.statement).model_validate_json(text)
    check_arrays(statement.kind, model, arrays["item_ids"], arrays.get("user_ids"))
    return Recommender(statement, model, arrays["item_ids"], arrays.get("user_ids"))


@pytest.mark.parametrize("name", EVERY)
def test_a_model_comes_back_to_the_bit(name: str) -> None:
    entry, ratings = EVERY[name], make_ratings()
    model, ledger = fit(entry, ratings, [1.0])
    if entry.algorithm in HOLDS_CLEAN_FACTORS and entry.mode == "published":
        with pytest.raises(DpmfError, match="clean ratings"):
            published(model)
        return
    wanted = predict_all(model, ratings)[:, 0].astype(np.float64)
    loaded = read_back(recommender(entry, model, ledger, ratings))
    users, items = np.divmod(np.arange(ratings.n_users * ratings.n_items), ratings.n_items)
    found = loaded.predict(users + 100, items + 7000, own(ratings), clip=False)
    assert found.tobytes() == wanted.tobytes()
    some = np.array([3, 700, 701, 2000])  # no prediction depends on the other users who are asked for
    alone = loaded.predict(users[some] + 100, items[some] + 7000, own(ratings), clip=False)
    assert alone.tobytes() == wanted[some].tobytes()


@pytest.mark.parametrize("name", [name for name, entry in EVERY.items() if entry.joint])
def test_new_users_get_what_a_release_predicts_for_them(name: str) -> None:
    entry, ratings = EVERY[name], make_ratings()
    new = ratings.users % 4 == 0
    theirs = ratings.select(new)
    model, ledger = fit(entry, ratings.select(~new), [1.0])
    if not entry.new_users:
        with pytest.raises(DpmfError, match="cannot predict for users to whom it was not fitted"):
            for_new_users(model, entry, theirs)
        return
    users, items = theirs.users, theirs.items[::-1]  # rated by them, and not
    found = for_new_users(model, entry, theirs).predict(users, items)[:, 0].astype(np.float64)
    released = recommender(entry, model, ledger, ratings)
    assert found.tobytes() == released.predict(users + 100, items + 7000, own(theirs), clip=False).tobytes()


@pytest.mark.parametrize("name", [name for name, entry in PROVABLE.items() if entry.joint])
def test_a_joint_model_holds_no_users_part_but_released_averages(name: str) -> None:
    _, arrays = published(fit(PROVABLE[name], make_ratings(), [1.0])[0])
    of_users = [each for each in arrays if each.startswith("users")]
    assert of_users == (["users"] if PROVABLE[name].algorithm in ("pknn", "public_knn") else [])


@pytest.mark.parametrize("name", PROVABLE)
def test_no_ratings_are_released_like_some(name: str) -> None:
    """An exception for no ratings would tell that there are none, which an ε may hide. The lists of ids are public."""
    entry, some = PROVABLE[name], make_ratings(4, n_users=6, n_items=5)
    lists = np.arange(some.n_users) + 100, np.arange(some.n_items) + 7000
    none = replace(some.select(np.zeros(len(some), np.bool_)), n_users=0, n_items=0)
    if getattr(entry, "item_features", None):
        with pytest.raises(DpmfError, match="they show which of the list have some; leave out the list"):
            fitted(entry, FittedRatings("made up", some, *lists, *lists), 1.0)
        entry = entry.model_copy(update={"item_features": None})
    with_some = fitted(entry, FittedRatings("made up", some, *lists, *lists), 1.0)
    made = fitted(entry, FittedRatings("made up", none, lists[0][:0], lists[1][:0], *lists), 1.0)
    if entry.neighbours in HIDE_IDS:  # otherwise it is public who rated what, and the ledger may use it
        assert (
            made.statement.model_copy(update={"release": with_some.statement.release}) == with_some.statement
        )
    assert np.isfinite(made.predict(lists[0][[0, -1]], lists[1][[0, -1]], own(none))).all()
    with pytest.raises(DpmfError, match="no ratings, and no list of items"):
        fitted(entry, FittedRatings("made up", none, lists[0][:0], lists[1][:0], lists[0]), 1.0)


SAMPLES = 150.0
"""An ε at which personalised privacy leaves out ratings."""


class Blind(Recorder):
    """A recorder that publishes numbers in which nothing was measured. If the result still depends on the
    ratings, something bypasses the recorder."""

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return drawn(release, first, noisy.shape)

    def solved(
        self, release: Release, lanes: slice, problems: Perturbed, drawn_noise: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return drawn(release, 0, drawn_noise.shape), drawn_noise


def drawn(release: Release, first: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return named_generator(release.entry.step, release.draw, first).normal(0.1, 0.1, shape)


@pytest.mark.parametrize("name", PROVABLE)
def test_where_nothing_measured_is_released_neighbours_give_the_same_files(name: str) -> None:
    """So the files are a function of the releases, and of data that are public for these neighbours."""
    entry = PROVABLE[name]
    base = make_ratings(4, n_users=12, n_items=8)
    for seed in range(3):
        pair = neighbour_of("", base, entry.neighbours, np.random.default_rng(seed))
        files = [
            written(recommender(entry, *fits.fitted(entry, ratings, SAMPLES, recorder=Blind()), ratings))
            for ratings in (pair.here, pair.there)
        ]
        assert files[0] == files[1]


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
def test_arrays_that_would_lead_a_kernel_out_of_bounds_are_refused(
    name: str, array: str, change: Callable[[Any], Any], said: str
) -> None:
    ratings = make_ratings()
    kind, arrays = published(fit(VARIANTS[name], ratings, [1.0])[0])
    users = np.arange(ratings.n_users) if "users" in arrays else None
    with pytest.raises(ValueError, match=said):
        check_arrays(kind, {**arrays, array: change(arrays[array])}, np.arange(ratings.n_items), users)
