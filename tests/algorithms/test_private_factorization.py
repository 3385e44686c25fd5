"""The factorisations of Friedman et al. 2016 against their listings, and what their ledgers say."""

from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateALS
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.testing import fit as fit_algorithm
from tests.conftest import make_ratings

RATINGS = make_ratings(5, n_users=30, n_items=20)


def fit(key: str, ratings: Ratings = RATINGS, epsilon: float = 2.0, **parameters: Any) -> tuple[Any, Ledger]:
    algorithm = PRIVATE[key].model_validate({"algorithm": key, "factors": 2, **parameters})
    return fit_algorithm(algorithm, ratings, [epsilon])


@pytest.mark.parametrize("key", ["isgd", "psgd", "pals", "pals_objective", "pbgd"])
def test_rows_without_public_ratings_are_zero_before_any_noise_and_after(key: str) -> None:
    some = RATINGS.select((RATINGS.users != 4) & (RATINGS.items != 3))
    model, _ = fit(key, some, epsilon=np.inf)
    (group,) = model.groups
    assert not np.any(group.rows("users")[4])
    assert not np.any(group.rows("items")[3])


def steps(ledger: Ledger) -> dict[str, tuple[float, float]]:
    """Claimed and provable ε of each step that does not measure averages."""
    return {
        entry.step: (float(entry.claimed[0]), float(entry.provable[0]))
        for entry in ledger.entries
        if "factors" in entry.step or entry.step in ("errors", "gradients") or "residuals of" in entry.step
    }


def test_bounded_published_als_has_its_norms_swapped_and_loses_what_that_costs() -> None:
    _, ledger = fit("pals")
    found = steps(ledger)
    assert found["user factors"] == pytest.approx((0.7, 0.7 * 0.5 / 0.4))
    assert found["item factors"] == pytest.approx((0.7, 0.7 * 0.4 / 0.5))
    assert len(found) == 2
    assert ledger.provable[0] == pytest.approx(2 * (0.3 + 0.7 * 1.025))
    _, corrected = fit("pals", mode="corrected")
    assert steps(corrected) == {"user factors": (0.7, 0.7), "item factors": (0.7, 0.7)}


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("pals", {"mode": "corrected"}),
        ("pals_objective", {}),
        ("psgd", {"neighbours": "unbounded"}),
        ("pals", {"neighbours": "unbounded", "mode": "corrected"}),
    ],
)
def test_users_and_items_split_what_the_factorisation_spends(key: str, more: dict[str, Any]) -> None:
    _, halved = fit(key, **more)
    _, ledger = fit(key, user_share=0.8, **more)
    claimed = {step: found[0] for step, found in steps(ledger).items()}
    assert claimed == pytest.approx({"user factors": 0.8 * 1.4, "item factors": 0.2 * 1.4})
    assert ledger.claimed[0] == pytest.approx(2.0)
    assert ledger.provable[0] == pytest.approx(halved.provable[0])


def test_a_split_into_halves_does_not_rename_results() -> None:
    def named(**more: float) -> dict[str, Any]:
        entry = PRIVATE["pals"].model_validate({"algorithm": "pals", **more})
        return entry.parameters()

    assert named(user_share=0.5) == named()
    assert named(user_share=0.4)["user_share"] == 0.4


@pytest.mark.parametrize("key", ["psgd", "pals"])
def test_unbounded_published_factorisations_prove_nothing(key: str) -> None:
    _, ledger = fit(key, neighbours="unbounded")
    assert ledger.claimed[0] == pytest.approx(2.0)
    assert ledger.provable[0] == np.inf


def test_unbounded_published_averages_lose_a_quarter_on_raw_sums() -> None:
    _, ledger = fit("isgd", neighbours="unbounded")
    raw = [entry for entry in ledger.entries if entry.step in ("global sum", "item sums")]
    assert [float(entry.provable[0] / entry.claimed[0]) for entry in raw] == pytest.approx([1.25, 1.25])
    assert ledger.provable[0] == pytest.approx(2 * (1 + 0.25 * (0.005 + 0.07)))


def test_unbounded_noise_hides_who_has_ratings() -> None:
    """In corrected mode every row has the same scale of noise and the same start."""
    empty = RATINGS.select(RATINGS.users != 4)
    for key in ("pals", "pbgd"):
        model, _ = fit(key, empty, epsilon=0.5, neighbours="unbounded", mode="corrected")
        row = model.groups[0].rows("users")[4, :, 0]
        assert np.linalg.norm(row) > 0.01


def test_noise_of_a_row_depends_on_its_number_of_ratings_where_the_ridge_does_alone() -> None:
    some = RATINGS.select(RATINGS.users > 0)
    by_count = 10 / np.maximum(some.user_counts, 1)
    for neighbours, mode, of_each in (
        ("unbounded", "corrected", np.ones(some.n_users)),
        ("unbounded", "published", by_count),
        ("bounded", "corrected", by_count),
    ):
        given = {"algorithm": "pals", "neighbours": neighbours, "mode": mode, "regularization": 0.1}
        assert PrivateALS.model_validate(given).row_step("user", some)[3] == pytest.approx(of_each)
