"""The best items of many users are those of each user alone; and a release can be served without dpmf."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Scale
from dpmf_cli.releasing import archive, recommender as module
from dpmf_cli.releasing.publishing import FittedRatings, FittedRecommender, fitted, load_model
from dpmf_cli.releasing.recommender import KINDS, OwnRatings, Recommender
from tests.algorithms.test_contract import VARIANTS
from tests.conftest import make_ratings
from tests.releasing.test_release import Shop, shop

__all__ = ["shop"]

WHOLE = make_ratings()
WIDE = replace(WHOLE, values=20 * WHOLE.values - 50, scale=Scale(-30, 50, 20))
USERS, ITEMS = (np.array([f"{what}{at}" for at in range(n)]) for what, n in (("c", 60), ("a", 40)))
OWN = OwnRatings(USERS[WIDE.users], ITEMS[WIDE.items], WIDE.values.astype("f8"))
SEEN = USERS[np.arange(180) % 60], ITEMS[np.arange(180) * 7 % 40]


def released(name: str) -> FittedRecommender:
    """A model of ratings on a scale from −30 to 50, which the model sees as stars."""
    made = fitted(
        VARIANTS[f"{name}-corrected"], FittedRatings("wide", WIDE, USERS, ITEMS, to_stars=True), 1.0
    )
    return replace(made, own=None)


def one_by_one(model: Recommender, users: Any, n: int, own: OwnRatings | None, pairs: Any) -> pd.DataFrame:
    """What `recommend` has to return: from `predict`, by a sort for each user."""
    found, ids = [], model.item_ids.tolist()
    for user in users:
        values = model.predict([user] * len(ids), ids, own, clip=False)
        ranked = sorted(range(len(ids)), key=lambda at: (-values[at], at))
        best = [at for at in ranked if (user, ids[at]) not in pairs][:n]
        found += [(user, ids[at], min(max(values[at], -30), 50), 1 + rank) for rank, at in enumerate(best)]
    return pd.DataFrame(found, columns=["user", "item", "prediction", "rank"])


def assert_equal(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False, check_exact=True)


OF_EACH_KIND = [
    *("pge-bounded", "isgd-bounded", "own_regression-user", "mm_knn-user", "pg_mf-user", "dpsgd_pnbm-user")
]


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_blocks_of_users_have_the_best_items_of_each_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 7 * 40)
    model = released(name)
    own = OWN if model.statement.privacy.joint else None
    asked = [*USERS[:22], "nobody", USERS[3], *USERS[30:36]]
    rated = set(zip(OWN.users.tolist(), OWN.items.tolist(), strict=True)) if own else set()
    distinct = dict.fromkeys(asked)
    for pairs, given in (({*zip(*SEEN, strict=True)} | rated, SEEN), (rated, True), (set(), False)):
        found = model.recommend(asked, 5, own, exclude_seen=given)
        assert_equal(found, one_by_one(model, distinct, 5, own, pairs))
    every = model.recommend(asked, 100, own)
    assert len(every) == len(distinct) * 40 - sum(user in distinct for user, _ in rated)
    assert list(model.recommend([], 5, own)) == ["user", "item", "prediction", "rank"]
    best, values = model.top("c3", 5, own)
    first = every[every["user"] == "c3"][:5]
    assert [*zip(first["item"], first["prediction"], strict=True)] == [*zip(best, values, strict=True)]


def test_what_is_no_number_is_not_recommended_and_pairs_are_whole() -> None:
    model = released("isgd-bounded")
    items = model.arrays["items"].copy()
    items[[3, 5]] = np.nan
    found = replace(model, arrays={**model.arrays, "items": items}).recommend(USERS, 39)
    assert set(found["item"]) == {*ITEMS} - {"a3", "a5"}
    with pytest.raises(DpmfError, match="different lengths"):
        model.recommend(USERS, 3, exclude_seen=(["c1"], []))


def test_the_command_writes_the_best_items_of_all_users(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 7 * 40)
    shop.release("PGE", "--to", "out")
    every = ("predict", "out", "--all", "--top", "3", "--seen", "ratings.csv", "--to")
    assert "best items: 9/9 tasks" in shop.run(*every, "best.csv").stderr
    shop.run(*every, "new/best.parquet")
    found, packed = pd.read_csv(shop.folder / "best.csv"), pd.read_parquet(shop.folder / "new/best.parquet")
    assert_equal(found, packed)
    assert list(found) == ["customer", "sku", "prediction", "rank"]
    ratings = pd.read_csv(shop.folder / "ratings.csv")
    model: Any = load_model(shop.folder / "out")
    seen = (ratings["customer"], ratings["sku"])
    assert_equal(found, model.recommend(model.user_ids, 3, exclude_seen=seen))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    missing = shop.run(*every, "more.parquet", expect=2).stderr
    assert "more.parquet: Parquet needs pyarrow; install it with: pip install 'dpmf[parquet]'" in missing


def test_all_users_of_a_joint_model_are_those_with_own_ratings(shop: Shop) -> None:
    shop.release("MM averages", "--ids-are-public", "--to", "out", epsilon="1000")
    every = ("predict", "out", "--all")
    assert "no users in its model" in shop.run(*every, expect=2).stderr
    shop.put(
        "own.csv",
        "customer,sku,stars\nc1,a1,5\nc0,a2,5\nc1,a2,5\n" + "".join(f"c1,a{at},5\n" for at in range(3, 30)),
    )
    asked = (*every, "--own", "own.csv", "--top", "40")
    clipped, raw = (pd.read_csv(io.StringIO(shop.run(*asked, *more).stdout)) for more in ((), ["--no-clip"]))
    assert clipped["customer"].value_counts().to_dict() == {"c0": 39, "c1": 11}
    assert raw["prediction"].max() > 5
    assert_equal(clipped["prediction"].to_frame(), raw["prediction"].clip(1, 5).to_frame())


SERVED = """
import json, sys
sys.modules["dpmf_cli"] = None
sys.path.insert(0, sys.argv[1])
from serve import Served
assert not {"pandas", "scipy", "numba"} & sys.modules.keys()
def answered(folder, users):
    try:
        served = Served(folder)
        return [(served.predict(user, own).tolist(), served.top(user, 5, own, ["a1"])) for user, own in users.items()]
    except SystemExit as refused:
        return str(refused)
print(json.dumps([answered(*each) for each in json.load(sys.stdin)]))
"""
SERVES = [
    *("pge-bounded", "local_mean-local", "isgd-bounded", "local_mf-local", "mm_averages-user", "dpals-user"),
    *("dpam-user", "dpps_mf-user", "hua_mf-bounded", "own_pattern-bounded", "own_regression-user"),
    *("pg_mf-user", "dpsgd_pnbm-user"),
]
REFUSES = ["mm_knn-user", "pknn-bounded", "public_knn-bounded", "mm_public-user"]


def test_a_release_is_served_with_numpy_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_STATE", str(tmp_path / "state"))
    own = pd.DataFrame({"user": OWN.users, "item": OWN.items, "rating": OWN.values})
    theirs = [dict(own[own["user"] == user].iloc[:, 1:].to_numpy().tolist()) for user in ("c3", "c41")]
    users: dict[str, Any] = {"c3": theirs[0], "c41": theirs[1], "new": theirs[0], "nobody": {}}
    kinds = set()
    for name in SERVES + REFUSES:
        model = released(name)
        model.save(tmp_path / name, unprovable=True, ids_are_public=True)
        kinds.add(model.statement.kind.removeprefix(archive.UNIT))
    assert kinds == KINDS.keys() == archive.FORMULAS.keys()
    asked = json.dumps([(str(tmp_path / name), users) for name in SERVES + REFUSES])
    command = [sys.executable, "-c", SERVED, str(Path(__file__).parents[2] / "docs/examples")]
    answers = json.loads(
        subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    )
    brought = [(user, *pair) for user in users for pair in users[user].items()]
    for name, answer in zip(SERVES, answers, strict=False):
        loaded = load_model(tmp_path / name)
        joint = OwnRatings.of(*zip(*brought, strict=True)) if loaded.statement.privacy.joint else None
        for (user, rated), (values, best) in zip(users.items(), answer, strict=True):
            assert values == pytest.approx(loaded.predict([user] * 40, ITEMS, joint, clip=False), abs=2e-3), (
                name,
                user,
            )
            found = loaded.recommend(
                [user], 5, joint, exclude_seen=([user] * (1 + len(rated)), ["a1", *rated])
            )
            assert [item for item, _ in best] == found["item"].tolist(), (name, user)
    assert all("needs dpmf" in answer for answer in answers[len(SERVES) :])
