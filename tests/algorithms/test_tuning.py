"""Baselines that choose their parameters, and the public rule that shrinks private averages."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.baselines.clean_averages import BETAS, inner_folds
from dpmf_cli.algorithms.shared.budget import SPREAD, EffectsParameters
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.testing import make_ratings, predict_all
from tests.algorithms.fitted import entry, fitted

STREAMS = Streams(1, "shop", "tuning", 0, 0)
RATINGS = make_ratings(4, n_users=150, n_items=60, density=0.15)
TRAIN = RATINGS.select(np.random.default_rng(0).random(len(RATINGS)) >= 0.2)


def model_of(algorithm: Any, train: Ratings = TRAIN, epsilon: float = np.inf) -> Any:
    return fitted(algorithm, train, [epsilon], STREAMS)[0]


def squares(algorithm: Any, train: Ratings, test: Ratings) -> float:
    return float(
        np.sum((model_of(algorithm, train).predict(test.users, test.items)[:, 0] - test.values) ** 2)
    )


def test_the_inner_folds_part_the_training_ratings() -> None:
    folds = list(inner_folds(TRAIN))
    assert [len(fitted) + len(out) for fitted, out in folds] == [len(TRAIN)] * 5
    pairs = np.concatenate([out.users.astype(np.int64) * TRAIN.n_items + out.items for _, out in folds])
    assert len(np.unique(pairs)) == len(pairs) == len(TRAIN)


def test_where_everybody_rates_everything_no_item_is_new_to_an_inner_fold() -> None:
    for here, _ in inner_folds(make_ratings(4, n_users=20, n_items=10, density=1.0)):
        assert min(here.item_counts.min(), here.user_counts.min()) > 0


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("key", ["ia", "ua", "ge", "als"])
def test_a_few_ratings_are_enough(key: str, rows: int) -> None:
    few = TRAIN.select(np.arange(len(TRAIN)) < rows)
    assert np.isfinite(predict_all(model_of(entry(key, tuned=True), few), TRAIN)).all()


@pytest.mark.parametrize(
    ("key", "names"), [("ge", ("beta_m", "beta_u")), ("ia", ("beta_m",)), ("ua", ("beta_u",))]
)
def test_the_choice_is_the_best_on_inner_folds_of_the_training_ratings(
    key: str, names: tuple[str, ...]
) -> None:
    """The choice never gets the ratings that are predicted, and it depends on the ratings that it gets."""
    errors = {}
    for betas in product(BETAS.tolist(), repeat=len(names)):
        algorithm = entry(key, effects=dict(zip(names, betas, strict=True)))
        errors[betas] = sum(squares(algorithm, here, out) for here, out in inner_folds(TRAIN))
    chosen = entry(key, tuned=True).chosen(TRAIN)
    assert tuple(getattr(chosen, name) for name in names) == min(errors, key=errors.__getitem__)


def test_a_user_average_by_hand() -> None:
    own = TRAIN.values[TRAIN.users == 7].astype(float)
    expected = (own.sum() + 3 * TRAIN.values.mean(dtype=float)) / (len(own) + 3)
    model = model_of(entry("ua", effects={"beta_u": 3}))
    assert model.predict(np.array([7], np.int32), np.array([0], np.int32)) == pytest.approx(expected)


def test_tuned_factors_beat_tuned_averages_where_there_are_tastes() -> None:
    ratings = make_ratings(8, n_users=300, n_items=80, density=0.4)
    held_out = np.random.default_rng(0).random(len(ratings)) < 0.1
    train, test = ratings.select(~held_out), ratings.select(held_out)
    assert squares(entry("als", tuned=True), train, test) < squares(entry("ge", tuned=True), train, test)


def test_whoever_is_new_gets_averages_from_tuned_factors() -> None:
    model = model_of(entry("als", tuned=True), TRAIN.select((TRAIN.users != 5) & (TRAIN.items != 9)))
    pairs = np.array([5, 5, 0], np.int32), np.array([9, 1, 9], np.int32)
    assert model.predict(*pairs) == pytest.approx(model.averages.predict(*pairs))


@pytest.mark.parametrize("key", ["ia", "ge", "als"])
def test_a_result_that_is_not_tuned_is_named_as_before_there_was_a_choice(key: str) -> None:
    assert "tuned" not in entry(key).parameters()
    assert entry(key, tuned=True).parameters()["tuned"] is True
    assert "shrinkage" not in EffectsParameters().model_dump()


def test_shrinkage_grows_with_the_noise_and_ends_at_beta() -> None:
    """β + √2·b/τ for sums with noise of scale b, which the ledger records; β itself without noise."""

    def items(epsilon: float, **effects: Any) -> Any:
        return model_of(entry("pge", effects={"beta_m": 5, "beta_u": 5, **effects}), epsilon=epsilon).items

    assert np.array_equal(items(np.inf, shrinkage="noise"), items(np.inf))
    scale = 4 * (1 + MARGIN) / (entry("pge").budget.item_averages * 0.5)
    by_hand = items(0.5, beta_m=5 + np.sqrt(2) * scale / SPREAD)
    assert items(0.5, shrinkage="noise") == pytest.approx(by_hand)
