"""Baselines that choose their parameters, and the public rule that shrinks private averages."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.baselines.clean_averages import (
    BETAS,
    GlobalEffects,
    ItemAverage,
    UserAverage,
    inner_folds,
)
from dpmf_cli.algorithms.baselines.clean_factorizations import AlternatingLeastSquares
from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.algorithms.shared.effects import SPREAD, EffectsParameters
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.testing import make_ratings, predict_all
from tests.algorithms.fitted import fitted

STREAMS = Streams(1, "shop", "tuning", 0, 0)


def error(algorithm: Any, train: Ratings, test: Ratings) -> float:
    model, _ = fitted(algorithm, train, [np.inf], STREAMS)
    predictions = model.predict(test.users, test.items)[:, 0]
    return float(np.sqrt(np.mean((predictions - test.values) ** 2)))


@pytest.fixture(scope="module")
def split() -> tuple[Ratings, Ratings]:
    ratings = make_ratings(4, n_users=150, n_items=60, density=0.15)
    held_out = np.random.default_rng(0).random(len(ratings)) < 0.2
    return ratings.select(~held_out), ratings.select(held_out)


def test_the_inner_folds_part_the_training_ratings(split: tuple[Ratings, Ratings]) -> None:
    train, _ = split
    held_out = [out for _, out in inner_folds(train)]
    assert len(held_out) == 5
    assert sum(map(len, held_out)) == len(train)
    assert all(len(fitted) + len(out) == len(train) for fitted, out in inner_folds(train))
    pairs = np.concatenate([out.users.astype(np.int64) * train.n_items + out.items for out in held_out])
    assert len(np.unique(pairs)) == len(train)


def test_where_everybody_rates_everything_no_item_is_new_to_an_inner_fold() -> None:
    ratings = make_ratings(4, n_users=20, n_items=10, density=1.0)
    assert len(ratings) == 200
    for here, _ in inner_folds(ratings):
        assert here.item_counts.min() > 0
        assert here.user_counts.min() > 0


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("baseline", [ItemAverage, UserAverage, GlobalEffects, AlternatingLeastSquares])
def test_a_few_ratings_are_enough(split: tuple[Ratings, Ratings], baseline: Any, rows: int) -> None:
    train, _ = split
    few = train.select(np.arange(len(train)) < rows)
    model, _ = fitted(baseline(algorithm=_key(baseline), tuned=True), few, [np.inf], STREAMS)
    assert np.isfinite(predict_all(model, train)).all()


@pytest.mark.parametrize("name", ["ml-100k", "netflix-sample"])
def test_tuned_averages_are_within_2_thousandths_of_the_best_of_the_grid(
    name: str, real_data: Path, session_cache: Path
) -> None:
    """Measured on ratings that the choice has not seen."""
    folders = Folders(real_data, session_cache)
    ratings = load(CatalogSpec(name=name), folders).ratings
    held_out = np.random.default_rng(2).random(len(ratings)) < 0.2
    train, test = ratings.select(~held_out), ratings.select(held_out)
    best = min(
        error(GlobalEffects(algorithm="ge", effects=EffectsParameters(beta_m=m, beta_u=u)), train, test)
        for m, u in product(BETAS, BETAS)
    )
    assert error(GlobalEffects(algorithm="ge", tuned=True), train, test) <= best + 0.002


def test_the_choice_is_made_on_the_training_ratings_alone(split: tuple[Ratings, Ratings]) -> None:
    """The choice never gets the ratings that are predicted, and it depends on the ratings that it gets."""
    train, _ = split
    chosen = GlobalEffects(algorithm="ge", tuned=True).chosen(train)
    errors = {}
    for m in BETAS:
        for u in BETAS:
            entry = GlobalEffects(algorithm="ge", effects=EffectsParameters(beta_m=m, beta_u=u))
            errors[m, u] = sum(error(entry, here, out) ** 2 * len(out) for here, out in inner_folds(train))
    assert (chosen.beta_m, chosen.beta_u) == min(errors, key=errors.__getitem__)


def test_tuned_item_and_user_averages_choose_their_own_beta(split: tuple[Ratings, Ratings]) -> None:
    train, _ = split
    for baseline, name in ((ItemAverage, "beta_m"), (UserAverage, "beta_u")):
        chosen = getattr(baseline(algorithm=_key(baseline), tuned=True).chosen(train), name)
        errors = {}
        for beta in BETAS:
            entry = baseline(algorithm=_key(baseline), effects=EffectsParameters(**{name: beta}))
            errors[beta] = sum(error(entry, here, out) ** 2 * len(out) for here, out in inner_folds(train))
        assert chosen == min(errors, key=errors.__getitem__)


def test_a_user_average_by_hand(split: tuple[Ratings, Ratings]) -> None:
    train, _ = split
    model, _ = fitted(
        UserAverage(algorithm="ua", effects=EffectsParameters(beta_u=3)), train, [np.inf], STREAMS
    )
    own = train.values[train.users == 7].astype(float)
    expected = (own.sum() + 3 * train.values.mean(dtype=float)) / (len(own) + 3)
    assert model.predict(np.array([7], np.int32), np.array([0], np.int32)) == pytest.approx(expected)


def test_tuned_factors_beat_tuned_averages_where_there_are_tastes() -> None:
    ratings = make_ratings(8, n_users=300, n_items=80, density=0.4)
    held_out = np.random.default_rng(0).random(len(ratings)) < 0.1
    train, test = ratings.select(~held_out), ratings.select(held_out)
    tuned = error(AlternatingLeastSquares(algorithm="als", tuned=True), train, test)
    assert tuned < error(GlobalEffects(algorithm="ge", tuned=True), train, test)


def test_whoever_is_new_gets_averages_from_tuned_factors(split: tuple[Ratings, Ratings]) -> None:
    train, _ = split
    without = train.select((train.users != 5) & (train.items != 9))
    model, _ = fitted(AlternatingLeastSquares(algorithm="als", tuned=True), without, [np.inf], STREAMS)
    pairs = np.array([5, 5, 0], np.int32), np.array([9, 1, 9], np.int32)
    assert model.predict(*pairs) == pytest.approx(model.averages.predict(*pairs))


def test_a_result_that_is_not_tuned_is_named_as_before_there_was_a_choice() -> None:
    for baseline in (ItemAverage, GlobalEffects, AlternatingLeastSquares):
        assert "tuned" not in baseline(algorithm=_key(baseline)).parameters()
        assert baseline(algorithm=_key(baseline), tuned=True).parameters()["tuned"] is True
    assert "shrinkage" not in EffectsParameters().model_dump()


def test_shrinkage_grows_with_the_noise_and_ends_at_beta(split: tuple[Ratings, Ratings]) -> None:
    """β + √2·b/τ for sums with noise of scale b, which the ledger records; β itself without noise."""
    train, _ = split
    rule = EffectsParameters(shrinkage="noise", beta_m=5, beta_u=5)
    ruled = PrivateGlobalEffects(algorithm="pge", effects=rule)
    fixed = PrivateGlobalEffects(algorithm="pge", effects=EffectsParameters(beta_m=5, beta_u=5))
    (clean, _), (same, _) = (fitted(each, train, [np.inf], STREAMS) for each in (ruled, fixed))
    assert np.array_equal(clean.items, same.items)
    model, _ = fitted(ruled, train, [0.5], STREAMS)
    scale = 4 * (1 + MARGIN) / (ruled.budget.item_averages * 0.5)
    by_hand = EffectsParameters(beta_m=5 + np.sqrt(2) * scale / SPREAD, beta_u=5)
    given, _ = fitted(PrivateGlobalEffects(algorithm="pge", effects=by_hand), train, [0.5], STREAMS)
    assert model.items == pytest.approx(given.items)


def test_shrinkage_by_the_rule_is_nearer_where_noise_is_large() -> None:
    ratings = make_ratings(8, n_users=300, n_items=80, density=0.3)
    rule = PrivateGlobalEffects(
        algorithm="pge", effects=EffectsParameters(shrinkage="noise", beta_m=5, beta_u=5)
    )
    fixed = PrivateGlobalEffects(algorithm="pge", effects=EffectsParameters(beta_m=5, beta_u=5))
    errors = [
        np.sqrt(
            np.mean(
                (
                    fitted(each, ratings, [0.3], STREAMS)[0].predict(ratings.users, ratings.items)[:, 0]
                    - ratings.values
                )
                ** 2
            )
        )
        for each in (rule, fixed)
    ]
    assert errors[0] < 0.9 * errors[1]


def _key(baseline: Any) -> str:
    return str(baseline.model_fields["algorithm"].annotation.__args__[0])
