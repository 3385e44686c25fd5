"""Algorithms 1 and 2 against figures computed by hand, and their budget."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.averages import Effects, averages_of
from dpmf_cli.algorithms.shared.base import for_new_users
from dpmf_cli.algorithms.shared.budget import EffectsParameters, Part
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.testing import fit, make_ratings, predict_all
from tests.algorithms.test_contract import VARIANTS

# Users 0 and 1 rate items 0 and 1; user 2 and item 2 have no rating.
USERS, ITEMS = np.array([[0, 0, 1], [0, 1, 0]], np.int32)
TINY = Ratings(USERS, ITEMS, np.array([5, 2, 4], np.float32), 3, 3, Scale(1, 5, 1))


def measured(
    epsilon: float, neighbours: str = "bounded", mode: str = "corrected", **effects: Any
) -> tuple[Effects, Ledger]:
    """The averages of TINY; those of all ratings get 0.1·ε twice, those of items 0.5·ε, those of users 0.3·ε."""
    entry = PrivateGlobalEffects.model_validate(
        {"algorithm": "pge", "neighbours": neighbours, "mode": mode, "effects": effects}
    )
    curator = Curator(Ledger([epsilon]), Streams(0, "tiny", "effects", 0, 0))
    shares = {part: share * curator.ledger.limit for part, share in zip(Part, (0.1, 0.5, 0.3), strict=True)}
    return averages_of(entry, TINY, shares, curator), curator.ledger


def test_known_answer() -> None:
    effects, _ = measured(np.inf, beta_m=1, beta_u=2)
    overall = 11 / 3
    items = [(9 + overall) / 3, (2 + overall) / 2, overall]
    assert effects.overall == pytest.approx([overall])
    assert effects.items[:, 0] == pytest.approx(items)
    residuals = [5 - items[0], 2 - items[1], 4 - items[0]]
    mean = sum(residuals) / 3
    users = [(residuals[0] + residuals[1] + 2 * mean) / 4, (residuals[2] + 2 * mean) / 3, mean]
    assert effects.users[:, 0] == pytest.approx(users)


def test_averages_are_clamped_and_what_has_no_ratings_has_nothing_to_hide() -> None:
    effects, _ = measured(0.001, beta_m=0, beta_u=0, user_clamp=1.5)
    assert set(effects.items[:2, 0]) <= {1, 5}
    assert effects.items[2, 0] == np.clip(effects.overall[0], 1, 5)
    assert np.abs(effects.users).max() == 1.5


def test_items_and_users_without_ratings_get_noise_where_the_listing_is_followed() -> None:
    plain, _ = measured(400.0)
    listed, ledger = measured(400.0, noise_on_unrated=True)
    for side in ("items", "users"):
        rated, unrated = getattr(listed, side)[:2], getattr(listed, side)[2, 0]
        assert rated == pytest.approx(getattr(plain, side)[:2]), side
        assert unrated != getattr(plain, side)[2, 0], side
    assert ledger.provable[0] == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("neighbours", "mode", "share", "steps"),
    [
        (
            "bounded",
            "corrected",
            None,
            "global average|item averages|global average of residuals|user averages",
        ),
        *(
            ("unbounded", mode, share, "global {}|item {}|global {} of residuals|user {}")
            for mode, share in (("published", 0.5), ("corrected", 0.5), ("corrected", 0.8))
        ),
    ],
)
def test_each_step_has_its_part_of_the_budget(
    neighbours: str, mode: str, share: float | None, steps: str
) -> None:
    """Ratings of 1 to 5. Published, sums are raw, and their noise is scaled to Δr. Corrected, 3 is subtracted."""
    _, ledger = measured(2.0, neighbours, mode, **({} if share is None else {"sum_share": share}))
    parts = dict(zip(steps.split("|"), (0.2, 1.0, 0.2, 0.6), strict=True))
    if share is not None:
        kinds = {"sum": share, "count": 1 - share}
        parts = {
            step.format(kind if step.startswith("global") else f"{kind}s"): part * fraction
            for step, part in parts.items()
            for kind, fraction in kinds.items()
        }
    assert {step.step: float(step.claimed[0]) for step in ledger.entries} == pytest.approx(parts)
    moves = {
        step.step: (step.sensitivity.value, getattr(step.calibrated_to, "value", None))
        for step in ledger.entries
    }
    if share is None:
        assert {moved for moved, _ in moves.values()} == {4.0}
        return
    of_ratings = {"published": (5.0, 4.0), "corrected": (2.0, 2.0)}[mode]
    assert moves["global sum"] == moves["item sums"] == of_ratings
    assert {moves[step][0] for step in ("global sum of residuals", "user sums")} == {4.0}


UNUSED = [key for key, family in PRIVATE.items() if not family.averaged]


def test_some_methods_use_no_effects() -> None:
    assert {"own_regression", "public_pattern", "local_means", "dp_pmf"} <= set(UNUSED)
    assert not {"isgd", "pge", "mm_knn", "dpals", "hua_mf"} & set(UNUSED)


@pytest.mark.parametrize("name", [name for name, entry in VARIANTS.items() if entry.algorithm in UNUSED])
def test_a_method_that_uses_no_effects_is_the_same_with_any(name: str) -> None:
    entry = VARIANTS[name]
    other = entry.model_copy(update={"effects": EffectsParameters(beta_m=1, beta_u=2, user_clamp=0.3)})
    ratings = make_ratings()
    one, two = (predict_all(fit(each, ratings, [1.0])[0], ratings) for each in (entry, other))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("key", ["ge", "ua"])
def test_clean_averages_of_new_users_are_those_of_users_who_were_trained_on(key: str) -> None:
    """With the items and the centre of a fit on everybody, ratings that come later count like those of the fit."""
    ratings = make_ratings()
    cold = ratings.select(ratings.users > 0)  # user 0 has the centre of the averages
    model, _ = fit(BASELINES[key].model_validate({"algorithm": key}), cold, [np.inf])
    new = replace(model, users=np.full_like(model.users, model.users[0, 0]))
    served = for_new_users(new, BASELINES[key].model_validate({"algorithm": key}), cold)
    np.testing.assert_allclose(served.users, model.users, rtol=0, atol=1e-6)
