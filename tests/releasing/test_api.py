"""`dpmf_cli.fit` and `dpmf_cli.load_model`: arrays and data frames in, predictions for the caller's ids out."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmf_cli
from dpmf_cli.core.errors import DpmfError
from tests.conftest import make_ratings

RATINGS = make_ratings()
USERS, ITEMS = RATINGS.users + 1000, np.array([f"film {item}" for item in RATINGS.items])


def fit(algorithm: str = "pge", **more: Any) -> Any:
    keys = {"scale": (1, 5), "epsilon": 1e6, **more}
    return dpmf_cli.fit(algorithm, USERS, ITEMS, RATINGS.values, **keys)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_STATE", str(tmp_path / "state"))


def test_with_hardly_any_noise_it_predicts_what_it_was_fitted_to_in_arrays_or_a_data_frame() -> None:
    found = fit().predict(USERS, ITEMS)
    assert found.shape == RATINGS.values.shape
    assert np.corrcoef(found, RATINGS.values)[0, 1] > 0.5
    frame = pd.DataFrame({"item": ITEMS, "user": USERS, "rating": RATINGS.values})
    other = dpmf_cli.fit("pge", frame, scale=(1, 5, 1), epsilon=1e6)
    assert other.predict(USERS, ITEMS) == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize(("algorithm", "noise"), [("pge", 0.1), ("pknn", 0.1), ("mm_knn", 4)])
def test_a_model_of_another_scale_predicts_the_same_on_that_scale(
    algorithm: str, noise: float, tmp_path: Path
) -> None:
    """Whole stars from 1 to 5, and the same ratings from −30 to 50. A user's own ratings and the predictions
    are on the latter scale."""
    stars = fit(algorithm, epsilon=1e6)
    wide = dpmf_cli.fit(algorithm, USERS, ITEMS, 20 * RATINGS.values - 50, scale=(-30, 50, 20), epsilon=1e6)
    expected = 20 * stars.predict(USERS, ITEMS) - 50
    assert wide.predict(USERS, ITEMS) == pytest.approx(expected, abs=noise)
    wide.save(tmp_path / "wide", ids_are_public=True)
    own = dpmf_cli.own_ratings(USERS, ITEMS, 20 * RATINGS.values - 50)
    loaded = dpmf_cli.load_model(tmp_path / "wide")
    assert loaded.predict(USERS, ITEMS, own).tobytes() == wide.predict(USERS, ITEMS).tobytes()


def test_averages_are_shrunk_by_the_public_rule_unless_effects_are_given() -> None:
    assert fit().entry.effects.shrinkage == "noise"
    assert fit(effects={"beta_u": 30}).entry.effects.shrinkage == "fixed"


def test_a_new_user_of_a_joint_model_has_the_average_users_offset_and_own_ratings() -> None:
    """Private kNN also releases averages of users. A user without one gets their mean."""
    model = fit("pknn", epsilon=5)
    offsets = model.arrays["users"][:, 0]
    cold, item = model.predict(["nobody"], ["film 3"]), int(np.flatnonzero(model.item_ids == "film 3")[0])
    assert cold == pytest.approx(model.arrays["items"][item, 0] + offsets.mean())
    own = dpmf_cli.own_ratings(["nobody"] * 3, ["film 1", "film 2", "film 4"], [1, 1, 1])
    assert model.predict(["nobody"], ["film 3"], own) != pytest.approx(cold)


def test_public_lists_have_their_place_in_the_model(tmp_path: Path) -> None:
    users, items = np.arange(900, 1100), [f"film {item}" for item in range(50)]
    model = fit(neighbours="unbounded", public_users=users, public_items=items)
    model.save(tmp_path / "out")
    assert len(dpmf_cli.load_model(tmp_path / "out").item_ids) == 50
    assert model.predict([], []).shape == (0,)
    assert np.isfinite(model.predict([10**9], ["nothing"])).all()


@pytest.mark.parametrize(
    ("algorithm", "keys", "said"),
    [
        ("pgx", {}, 'did you mean "pge"'),
        ("ge", {}, "spends no ε"),
        ("pge", {"factor": 3}, "factor: unknown key"),
        ("pge", {"seed": 1}, "seed: unknown key; a config has one `seed`, at its top"),
        ("pge", {"neighbours": "user"}, "does not support neighbours user"),
        ("pge", {"scale": (2, 5)}, "is off the scale"),
        ("pge", {"epsilon": -1}, "epsilon is -1; give one from 1e-06 to 1e[+]06"),
        ("isgd", {"epsilon": 1e-300}, "epsilon is 1e-300; give one"),
        ("isgd", {"epsilon": 1e300}, r"epsilon is 1e\+300; give one"),
        ("isgd", {"epsilon": float("nan")}, "epsilon is nan; give one"),
        ("mm_averages", {"delta": 1e-300}, "delta: must be at least 1e-15"),
        ("pge", {"effects": {"sum_share": 1e-300}}, "sum_share: must be at least 1e-06"),
    ],
)
def test_a_mistake_is_one_message(algorithm: str, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(DpmfError, match=said):
        fit(algorithm, **keys)


def test_arrays_must_go_together() -> None:
    with pytest.raises(DpmfError, match="different lengths"):
        dpmf_cli.fit("pge", USERS[1:], ITEMS, RATINGS.values, scale=(1, 5), epsilon=1)
    with pytest.raises(DpmfError, match='no column "user"'):
        dpmf_cli.fit("pge", {"item": [1]}, scale=(1, 5), epsilon=1)
    with pytest.raises(DpmfError, match="has rated item"):
        dpmf_cli.fit("pge", [1, 1], [2, 2], [3, 4], scale=(1, 5), epsilon=1)


def test_the_package_alone_imports_nothing_heavy() -> None:
    heavy = {"numpy", "pydantic", "pandas", "dpmf_cli.releasing", "dpmf_cli.studies"}
    code = f"import sys, dpmf_cli; print(sorted({heavy} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
    stub = Path(str(dpmf_cli.__file__)).with_suffix(".pyi").read_text()
    assert {
        name for name in dpmf_cli.__all__ if f"{name} as {name}" in stub and getattr(dpmf_cli, name)
    } == set(dpmf_cli.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        dpmf_cli.fitt  # type: ignore[attr-defined]  # noqa: B018
