"""Personalised privacy around another method: its ledger, its records, its sample and its clean twin."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.algorithms.baselines.clean_factorizations import ProbabilisticMF, Sampled
from dpmf_cli.algorithms.shared.sample_fits import sampling_probability
from dpmf_cli.algorithms.zhang2018.dp_pmf import PrivatePMF
from dpmf_cli.algorithms.zhang2018.personalized import Personalized
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.neighbours import Neighbours
from tests.algorithms.fitted import curator_for, fitted
from tests.conftest import make_ratings
from tests.witnesses import Noting

SMALL = {"factors": 2, "learning_rate": 10, "epochs": 5}
BUDGET = {"global_averages": 0.1, "item_averages": 0.4, "user_averages": 0.5}
STREAMS = Streams(1, "d", "personalized", 0, 0)


PRIVATE_BASES = ("dp_pmf", "isgd", "pals", "psgd", "pbgd", "pge")


@pytest.mark.parametrize("per", ["record", "user", "item"])
def test_whether_a_record_is_sampled_depends_on_its_epsilon_by_its_probability_alone(per: Any) -> None:
    """Theorem 6: the uniform draw is independent of the ε that records ask for. In bins of equal ε, the
    fraction π is kept."""
    ratings = make_ratings(n_users=600, n_items=500, density=0.2)
    assert len(ratings) > 59_000
    algorithm = personalised(per=per)
    asked = algorithm.stated_epsilons(ratings, STREAMS)
    draw = algorithm._draw(ratings, np.array([1.0]), STREAMS)
    kept, probability = draw.kept[:, 0], sampling_probability(asked[:, None], draw.thresholds)[:, 0]
    for rows in np.array_split(np.argsort(asked, kind="stable"), 24):
        variance = np.sum(probability[rows] * (1 - probability[rows]))
        assert abs(kept[rows].sum() - probability[rows].sum()) <= 4 * np.sqrt(variance)


def with_column(ratings: Ratings) -> Ratings:
    levels = np.random.default_rng(0).uniform(0.2, 2.0, len(ratings))
    return replace(ratings, columns={"epsilon": levels})


def personalised(**given: Any) -> Personalized:
    """Around `dp_pmf`, or the `algorithm` of `base`, with few factors and steps."""
    base = {"algorithm": "dp_pmf", **given.pop("base", {})}
    small: dict[str, Any] = {"budget": BUDGET} if base["algorithm"] == "pge" else {"factors": 2}
    if base["algorithm"] == "dp_pmf" and "corrected" not in (given.get("mode"), base.get("mode")):
        small = SMALL
    return Personalized.model_validate({"algorithm": "personalized", "base": {**small, **base}, **given})


@pytest.mark.parametrize("mode", ["published", "corrected"])
def test_the_ledger_has_the_threshold_and_the_records_have_their_own(mode: str) -> None:
    model, ledger = fitted(personalised(mode=mode), make_ratings(), [0.05, 0.3, 1.0], STREAMS)
    assert ledger.claimed == pytest.approx(model.thresholds)
    assert model.thresholds[0] == pytest.approx(0.05)
    assert model.kept[0] == 1 > model.kept[1] > model.kept[2]
    if mode == "published":
        assert np.isinf(ledger.provable).all()
        assert np.isinf(model.records.least).all()
        return
    assert ledger.provable == pytest.approx(model.thresholds)
    assert model.records.least[0] == pytest.approx(0.05)
    assert model.records.least[2] == pytest.approx(0.1, abs=0.01)
    assert model.records.median[2] == pytest.approx(np.median([0.1, 0.2]) + 0.04, abs=0.03)
    assert model.records.largest == pytest.approx(model.thresholds)


@pytest.mark.parametrize("mode", ["published", "corrected"])
def test_bounded_neighbours_run_the_same_and_cost_twice(mode: str) -> None:
    """Remark 7: the model of unbounded neighbours at half the ceiling, and 2ε in the ledger."""
    ratings = make_ratings()
    bounded, unbounded = (personalised(mode=mode, neighbours=each) for each in ("bounded", "unbounded"))
    assert bounded.joint is unbounded.joint is (mode == "published")
    assert bounded.base.neighbours is Neighbours.UNBOUNDED
    model, ledger = fitted(bounded, ratings, [0.1, 0.6, 2.0], STREAMS)
    same, half = fitted(unbounded, ratings, [0.05, 0.3, 1.0], STREAMS)
    pairs = ratings.users, ratings.items
    assert np.array_equal(model.predict(*pairs), same.predict(*pairs))
    assert ledger.claimed == pytest.approx(2 * half.claimed)
    assert ledger.claimed == pytest.approx(2 * model.thresholds)
    assert {each.sensitivity.neighbours for each in ledger.entries} == {Neighbours.BOUNDED}
    if mode == "published":
        assert np.isinf(ledger.provable).all()
        return
    assert ledger.provable == pytest.approx(ledger.claimed)
    assert model.records.largest == pytest.approx(2 * same.records.largest)  # asks for t or more: no sampling
    assert np.all(model.records.least[1:] < 2 * same.records.least[1:] * 0.99)
    assert np.all(model.records.least > same.records.least)


@pytest.mark.parametrize("base", PRIVATE_BASES)
def test_any_unbounded_algorithm_can_be_personalised_and_proved(base: str) -> None:
    """Each lane is a fit of the base on one sample, with t. The provable ε does not exceed t. (psgd proves
    nothing for unbounded neighbours, and has no mode that does.)"""
    mode = "published" if base == "psgd" else "corrected"
    algorithm = personalised(mode=mode, base={"algorithm": base})
    ratings = make_ratings()
    model, ledger = fitted(algorithm, ratings, [0.5, 1.0], STREAMS)
    assert model.predict(ratings.users, ratings.items).shape == (len(ratings), 2)
    assert ledger.claimed == pytest.approx(model.thresholds)
    proved = np.full(2, np.inf) if base == "psgd" else model.thresholds
    assert ledger.provable == pytest.approx(proved)
    assert {entry.mechanism.endswith("on a sample") for entry in ledger.entries} == {True}
    asked = algorithm.stated_epsilons(ratings, STREAMS)[:, None]
    drawn = STREAMS.generator("sampling").random(len(ratings))[:, None]
    kept = drawn < sampling_probability(asked, model.thresholds)
    assert model.kept == pytest.approx(kept.mean(axis=0))
    alone, _ = fitted(algorithm.base, ratings.select(kept[:, 1]), model.thresholds[1:].tolist(), STREAMS)
    expected = alone.predict(ratings.users, ratings.items)[:, 0]
    assert np.array_equal(model.predict(ratings.users, ratings.items)[:, 1], expected)


def test_a_witness_sees_the_measurements_of_the_base_in_every_model() -> None:
    """In one fit of all samples, each with its own batches, or in one fit after the other."""
    ratings, epsilons = make_ratings(), np.geomspace(0.1, 1, 18).tolist()
    together = personalised(base={"batch_size": 200})
    cells, one_by_one = (
        personalised(base={"algorithm": base}, mode="corrected") for base in ("isgd", "pals")
    )
    for algorithm, step, grid, lanes in (
        (together, "objective", epsilons, {0, 16}),
        (cells, "residuals of all cells", epsilons, {0, 16}),
        (cells, "user sums", epsilons[:2], {0, 1}),
        (one_by_one, "user sums", epsilons[:2], {0, 1}),
    ):
        witness = Noting()
        watched, _ = fitted(algorithm, ratings, grid, STREAMS, witness)
        plain, _ = fitted(algorithm, ratings, grid, STREAMS)
        one, other = (model.predict(ratings.users, ratings.items) for model in (watched, plain))
        assert one == pytest.approx(other, rel=1e-3, abs=1e-3)
        assert {lane for name, *_, lane in witness.seen if name == step} == lanes


def test_the_clean_twin_has_the_same_sample() -> None:
    """A base with negligible noise, on the sample of an ε of 1, predicts the same as the clean twin."""
    ratings = make_ratings()
    quiet = {"epsilon_liberal": 1e6, "epsilon_moderate": 1e5, "epsilon_conservative": 1e4, "threshold": 1e5}
    private = personalised(**quiet, base={"noisy_epochs": 1, "learning_rate": 1e-3})
    model, _ = fitted(private, ratings, [1e6], STREAMS)
    twin = Sampled.model_validate(
        {"algorithm": "sampled", "base": {"algorithm": "pmf", **SMALL, "learning_rate": 1e-3}, **quiet}
    )
    clean, _ = fitted(twin, ratings, [], replace(STREAMS, algorithm="sampled"))
    assert 0.3 < model.kept[0] < 0.6
    assert np.allclose(
        model.predict(ratings.users, ratings.items), clean.predict(ratings.users, ratings.items), atol=1e-4
    )


def test_an_empty_sample_predicts_the_middle_of_the_scale() -> None:
    """The same as every base without any rating."""
    strict = {"epsilon_conservative": 1e-6, "epsilon_moderate": 1e-6, "conservative": 1, "moderate": 0}
    for base in ("als", "pmf"):
        algorithm = Sampled.model_validate(
            {"algorithm": "sampled", "base": {"algorithm": base, "factors": 2}, **strict, "threshold": 20.0}
        )
        ratings = make_ratings()
        model, _ = fitted(algorithm, ratings, [], STREAMS)
        assert np.all(model.predict(ratings.users, ratings.items) == ratings.scale.middle), base


def test_who_is_not_in_the_sample_is_predicted_the_average_of_the_sample() -> None:
    ratings = make_ratings()
    kept = (ratings.users != 7) & (ratings.items != 5) & (ratings.values > 3)
    own = {"algorithm": "dp_pmf", "neighbours": "unbounded", **SMALL, "noisy_epochs": 1}
    for base in (
        ProbabilisticMF.model_validate({"algorithm": "pmf", **SMALL}),
        PrivatePMF.model_validate(own),
    ):
        columns = np.stack([kept, np.ones_like(kept)], axis=1)
        curator = curator_for(base, [1e9, 1e9], STREAMS)
        model = base.fit_samples(ratings, columns, curator.ledger.limit, streams=STREAMS, curator=curator)
        pairs = np.array([7, 0], np.int32), np.array([0, 5], np.int32)
        average = ratings.values[kept].mean()
        assert average > ratings.values.mean() + 0.5
        assert model.predict(*pairs)[:, 0] == pytest.approx(average, abs=1e-5)


def test_the_base_has_the_effects_of_what_personalises_it() -> None:
    effects = {"beta_m": 3.0, "beta_u": 17.0}
    base = personalised(base={"algorithm": "pge"}, effects=effects).base
    assert (base.effects.beta_m, base.effects.beta_u) == (3.0, 17.0)
    own = {"algorithm": "pge", "effects": {"beta_m": 1.0}}
    assert personalised(base=own, effects=effects).base.effects.beta_m == 1.0


def test_a_column_of_the_users_own_is_each_ratings_epsilon() -> None:
    ratings = with_column(make_ratings())
    model, _ = fitted(
        personalised(specification="column", threshold=1.0, mode="corrected"), ratings, [10.0], STREAMS
    )
    asked = np.minimum(np.asarray(ratings.columns["epsilon"], float), 1.0)
    assert model.records.least[0] == pytest.approx(asked.min())
    assert model.records.median[0] == pytest.approx(np.median(asked), abs=0.01)
    half = ratings.select(np.arange(len(ratings)) % 2 == 0)
    assert fitted(personalised(specification="column", threshold=1.0), half, [10.0], STREAMS)[
        0
    ].thresholds == [1.0]


def test_a_threshold_that_depends_on_the_ratings_proves_nothing() -> None:
    ratings = with_column(make_ratings())
    around: dict[str, Any] = {"specification": "column", "base": {"algorithm": "isgd"}}
    _, ledger = fitted(personalised(**around), ratings, [10.0], STREAMS)
    assert np.isinf(ledger.provable).all()
    with pytest.raises(ValidationError, match="give a number"):
        personalised(**around, mode="corrected")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"conservative": 0.7, "moderate": 0.4}, "sum to more than 1"),
        ({"epsilon_moderate": 0.05}, "ascend"),
        ({"threshold": 0.0}, "greater than 0"),
        ({"neighbours": "user"}, "does not support neighbours user"),
        ({"base": {"mode": "corrected"}}, "must hide presence"),
        ({"base": {"neighbours": "bounded"}}, "must hide presence"),
        ({"base": {"mode": ["published"]}}, "each once"),
        ({"base": {"clip_predictions": True}}, "not on its `base`"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        personalised(**keys)


def test_a_column_that_is_not_there_is_asked_for() -> None:
    with pytest.raises(DpmfError, match=r"columns\.epsilon"):
        fitted(personalised(specification="column", threshold=1.0), make_ratings(), [1.0], STREAMS)
