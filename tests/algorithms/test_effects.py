"""Algorithms 1 and 2 against figures computed by hand, and their budget."""

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.averages import (
    private_effects,
)
from dpmf_cli.algorithms.shared.effects import Effects, EffectsBudget, EffectsParameters
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.testing import fit, make_ratings, predict_all
from tests.algorithms.test_contract import VARIANTS

# Users 0 and 1 rate items 0 and 1; user 2 and item 2 have no rating.
TINY = Ratings(
    np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32), np.array([5, 2, 4], np.float32), 3, 3, Scale(1, 5, 1)
)  # fmt: skip


def effects_of(
    ratings: Ratings,
    epsilon: float,
    neighbours: str = "bounded",
    mode: str = "corrected",
    **parameters: float,
) -> tuple[Effects, Ledger]:
    curator = Curator(Ledger([epsilon]), Streams(0, "tiny", "effects", 0, 0))
    budget = EffectsBudget(*(share * curator.ledger.limit for share in (0.2, 0.5, 0.3)))
    kind, given = Neighbours(neighbours), EffectsParameters(**parameters)
    found = private_effects(ratings, given, budget, neighbours=kind, mode=Mode(mode), curator=curator)
    return found, curator.ledger


def test_known_answer() -> None:
    effects, _ = effects_of(TINY, np.inf, beta_m=1, beta_u=2)
    overall = 11 / 3
    items = [(9 + overall) / 3, (2 + overall) / 2, overall]
    assert effects.overall == pytest.approx([overall])
    assert effects.items[:, 0] == pytest.approx(items)
    residuals = [5 - items[0], 2 - items[1], 4 - items[0]]
    mean = sum(residuals) / 3
    users = [(residuals[0] + residuals[1] + 2 * mean) / 4, (residuals[2] + 2 * mean) / 3, mean]
    assert effects.users[:, 0] == pytest.approx(users)


def test_averages_are_clamped() -> None:
    effects, _ = effects_of(TINY, 0.001, beta_m=0, beta_u=0, user_clamp=1.5)
    assert effects.items.min() >= 1
    assert effects.items.max() <= 5
    assert np.abs(effects.users).max() <= 1.5


def test_each_step_has_its_part_of_the_budget() -> None:
    _, ledger = effects_of(TINY, 2.0)
    assert {entry.step: float(entry.claimed[0]) for entry in ledger.entries} == pytest.approx(
        {
            "global average": 0.2,
            "item averages": 1.0,
            "global average of residuals": 0.2,
            "user averages": 0.6,
        }
    )
    assert {entry.sensitivity.value for entry in ledger.entries} == {4.0}


def test_item_averages_carry_laplace_noise_of_the_scale_that_the_ledger_says() -> None:
    n_items, count = 4000, 50
    items = np.repeat(np.arange(n_items, dtype=np.int32), count)
    users = np.tile(np.arange(count, dtype=np.int32), n_items)
    order = np.lexsort((items, users))
    flat = Ratings(
        users[order], items[order], np.full(len(items), 3, np.float32), count, n_items, Scale(1, 5, 1)
    )
    noise = effects_of(flat, 2.0, beta_m=0)[0].items[:, 0] - 3
    scale = 4 / (0.5 * 2.0) / count
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 1e-4
    for factor in (0.8, 1.25):
        assert stats.kstest(noise, stats.laplace(scale=factor * scale).cdf).pvalue < 1e-4


def test_items_without_ratings_have_nothing_to_hide() -> None:
    effects, _ = effects_of(TINY, 0.5)
    assert effects.items[2, 0] == np.clip(effects.overall[0], 1, 5)


def test_items_and_users_without_ratings_get_noise_where_the_listing_is_followed() -> None:
    plain, _ = effects_of(TINY, 400.0)
    listed, ledger = effects_of(TINY, 400.0, noise_on_unrated=True)
    for side in ("items", "users"):
        rated, unrated = getattr(listed, side)[:2], getattr(listed, side)[2, 0]
        assert rated == pytest.approx(getattr(plain, side)[:2]), side
        assert unrated != getattr(plain, side)[2, 0], side
    assert ledger.provable[0] == pytest.approx(400.0)


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_a_sum_and_its_count_split_the_epsilon_of_their_average(share: float) -> None:
    _, ledger = effects_of(TINY, 2.0, "unbounded", sum_share=share)
    spent = {entry.step: float(entry.claimed[0]) for entry in ledger.entries}
    assert spent == pytest.approx(
        {
            "global sum": 0.2 * share,
            "global count": 0.2 * (1 - share),
            "item sums": 1.0 * share,
            "item counts": 1.0 * (1 - share),
            "global sum of residuals": 0.2 * share,
            "global count of residuals": 0.2 * (1 - share),
            "user sums": 0.6 * share,
            "user counts": 0.6 * (1 - share),
        }
    )
    assert ledger.provable[0] == pytest.approx(2.0)


@pytest.mark.parametrize(("mode", "moves", "scaled_to"), [("published", 5.0, 4.0), ("corrected", 2.0, 2.0)])
def test_sums_of_ratings_move_by_a_rating_and_have_the_noise_of_their_mode(
    mode: str, moves: float, scaled_to: float
) -> None:
    """Ratings of 1 to 5. Published, sums are raw, and their noise is scaled to Δr. Corrected, 3 is subtracted."""
    _, ledger = effects_of(TINY, 2.0, "unbounded", mode)
    sums = [entry for entry in ledger.entries if entry.step in ("global sum", "item sums")]
    assert [entry.sensitivity.value for entry in sums] == [moves] * 2
    assert [entry.calibrated_to and entry.calibrated_to.value for entry in sums] == [scaled_to] * 2


UNUSED = [key for key, family in PRIVATE.items() if not family.averaged]


def test_some_methods_use_no_effects() -> None:
    assert {"own_regression", "public_pattern", "local_means", "dp_pmf"} <= set(UNUSED)
    assert not {"isgd", "pge", "mm_knn", "dpals", "hua_mf", "frank_wolfe"} & set(UNUSED)


@pytest.mark.parametrize("name", [name for name, entry in VARIANTS.items() if entry.algorithm in UNUSED])
def test_a_method_that_uses_no_effects_is_the_same_with_any(name: str) -> None:
    entry = VARIANTS[name]
    other = entry.model_copy(update={"effects": EffectsParameters(beta_m=1, beta_u=2, user_clamp=0.3)})
    ratings = make_ratings()
    one, two = (predict_all(fit(each, ratings, [1.0])[0], ratings) for each in (entry, other))
    np.testing.assert_array_equal(one, two)
