"""Personalised privacy: its sampling, proved by exact enumeration, and its ledger, records, sample and noise-free run."""

from collections.abc import Sized
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from dpmf_cli.algorithms.baselines.clean_factorizations import ProbabilisticMF, Sampled
from dpmf_cli.algorithms.shared.sample_fits import (
    PersonalSampling,
    replaced_epsilon,
    sampled_epsilon,
    sampling_probability,
)
from dpmf_cli.algorithms.zhang2018.private_pmf import Personalized, PrivatePMF
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.papers.printed import load
from dpmf_cli.privacy.neighbours import Neighbours
from tests.algorithms.fitted import curator_for, fitted
from tests.conftest import make_ratings

SMALL = {"factors": 2, "learning_rate": 10, "epochs": 5}
BUDGET = {"global_averages": 0.1, "item_averages": 0.4, "user_averages": 0.5}
STREAMS = Streams(1, "d", "personalized", 0, 0)
LEVELS = (0.1, 0.35, 0.8, 1.7)
RATINGS = make_ratings()


def law_of_the_noisy_sum(
    present: tuple[float, ...], threshold: float, values: tuple[int, ...] = (1, 1, 1, 1)
) -> np.ndarray:
    """(41,) the exact law of: sample the records, add up their values of ±1, add geometric noise of ε = t. Outputs
    −20…20."""
    outputs, decay = np.arange(-20, 21), np.exp(-threshold)
    law = np.zeros(len(outputs))
    kept = sampling_probability(np.array(present)[:, None], np.array([threshold]))[:, 0]
    for chosen in product((0, 1), repeat=len(present)):
        weight = np.prod([p if c else 1 - p for p, c in zip(kept, chosen, strict=True)])
        total = sum(value for value, c in zip(values, chosen, strict=False) if c)
        law += weight * (1 - decay) / (1 + decay) * decay ** np.abs(outputs - total)
    return law


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.8, 1.0, 3.0])
@pytest.mark.parametrize("record", range(len(LEVELS)))
def test_a_record_loses_what_it_asks_for_or_the_threshold_and_its_value_twice_that_at_most(
    record: int, threshold: float
) -> None:
    """With and without one record, and with another value of it (remark 7), over all outputs and in both directions.

    The larger bounds are attained. The loss of a value is less than 2ε below t."""
    whole = law_of_the_noisy_sum(LEVELS, threshold)
    without = law_of_the_noisy_sum(LEVELS[:record] + LEVELS[record + 1 :], threshold)
    turned = law_of_the_noisy_sum(LEVELS, threshold, (*(1,) * record, -1, *(1,) * (3 - record)))
    asked, spent = min(LEVELS[record], threshold), np.array([threshold])
    assert np.log(whole / without).max() == pytest.approx(asked, rel=1e-9)
    assert np.log(without / whole).max() <= asked * (1 + 1e-9)
    probability = sampling_probability(np.array([[LEVELS[record]]]), spent)
    assert sampled_epsilon(probability, spent)[0, 0] == pytest.approx(asked, rel=1e-9)
    exact = replaced_epsilon(probability, spent)[0, 0]
    assert np.abs(np.log(whole / turned)).max() == pytest.approx(exact, rel=1e-9)
    assert asked < exact <= 2 * asked * (1 + 1e-9)
    assert bool(exact < 2 * asked * (1 - 1e-3)) == (LEVELS[record] < threshold)
    assert replaced_epsilon(probability, np.array([np.inf]))[0, 0] == np.inf
    assert replaced_epsilon(np.zeros((1, 1)), np.array([np.inf]))[0, 0] == 0


@given(st.floats(1e-4, 1e5), st.floats(1e-4, 1e5))
def test_probabilities_and_their_epsilons_are_finite_for_all_levels(asked: float, threshold: float) -> None:
    probability = sampling_probability(np.array([[asked]]), np.array([threshold]))
    assert 0 <= probability[0, 0] <= 1
    if probability[0, 0] > 1e-280:
        spent = sampled_epsilon(probability, np.array([threshold]))[0, 0]
        assert spent == pytest.approx(min(asked, threshold), rel=1e-6, abs=1e-9)


def test_levels_are_the_papers_and_their_mean_is_that_under_a_ceiling() -> None:
    of = PersonalSampling()
    asked = of.stated_epsilons(make_ratings(n_users=300, n_items=200), STREAMS)
    assert np.mean(asked < 0.2) == pytest.approx(0.54, abs=0.02)
    assert np.mean(asked == 1.0) == pytest.approx(0.09, abs=0.01)
    assert asked.min() >= 0.1
    ceilings = np.array([0.05, 0.15, 0.2, 0.6, 1.0, 5.0, np.inf])
    capped = np.minimum(asked[:, None], ceilings)
    assert of.thresholds(asked, ceilings) == pytest.approx(capped.mean(axis=0), abs=0.01)
    for threshold, most in (("max", 1.0), (0.7, 0.7)):
        fixed = PersonalSampling.model_validate({"threshold": threshold})
        assert fixed.thresholds(asked, ceilings).tolist() == np.minimum(most, ceilings).tolist()
    table_4 = PersonalSampling(conservative=0.6, moderate=0.35, epsilon_moderate=0.4)
    printed = load("zhang2018")["figure5"]["mean_threshold"]
    assert table_4.thresholds(np.zeros(0), np.array([np.inf]))[0] == pytest.approx(printed)


@pytest.mark.parametrize("per", ["user", "item"])
def test_levels_can_be_those_of_users_or_items(per: Any) -> None:
    asked = PersonalSampling(per=per).stated_epsilons(RATINGS, STREAMS)
    owners = RATINGS.users if per == "user" else RATINGS.items
    assert all(len(set(asked[owners == owner])) == 1 for owner in range(5))
    assert len(set(asked)) > 10


class ByPair(Streams):
    """Streams that draw for each pair of a user and an item, so that data sets share the draws of the pairs
    that they share."""

    def of_ratings(self, purpose: str, pairs: Sized, *sets: int) -> np.ndarray:
        assert isinstance(pairs, Ratings)
        draws = self.generator(purpose).random((*sets, pairs.n_users * pairs.n_items))
        return draws[..., pairs.users * pairs.n_items + pairs.items]


def test_what_is_drawn_for_a_rating_can_be_drawn_for_its_pair() -> None:
    """Levels and samples of all other ratings are the same without one rating: neighbours, as in the theorem."""
    whole, streams = RATINGS, ByPair(1, "d", "personalized", 0, 0)
    others = np.arange(len(whole)) != 77
    sampling, ceilings = PersonalSampling(per="record", threshold="max"), np.array([0.3, 0.5])
    one, other = (sampling.draw(ratings, ceilings, streams) for ratings in (whole, whole.select(others)))
    assert np.array_equal(one.probability[others], other.probability)
    assert np.array_equal(one.kept[others], other.kept)


@pytest.mark.parametrize("per", ["record", "user", "item"])
def test_whether_a_record_is_sampled_depends_on_its_epsilon_by_its_probability_alone(per: Any) -> None:
    """Theorem 6: the uniform draw is independent of the ε that records ask for. In bins of equal ε, the
    fraction π is kept."""
    ratings = make_ratings(n_users=600, n_items=500, density=0.2)
    assert len(ratings) > 59_000
    algorithm = personalised(per=per)
    asked = algorithm.stated_epsilons(ratings, STREAMS)
    _, probability, kept = (each[..., 0] for each in algorithm.draw(ratings, np.array([1.0]), STREAMS))
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
    """For bounded neighbours (remark 7): the model of unbounded neighbours at half the ceiling, and 2ε in the
    ledger."""
    bounded, unbounded = (personalised(mode=mode, neighbours=each) for each in ("bounded", "unbounded"))
    assert bounded.joint is unbounded.joint is (mode == "published")
    assert bounded.base.neighbours is Neighbours.UNBOUNDED
    model, ledger = fitted(unbounded, RATINGS, [0.05, 0.3, 1.0], STREAMS)
    costs = model.record_costs
    assert ledger.claimed == pytest.approx(costs.threshold)
    assert costs.threshold[0] == pytest.approx(0.05)
    assert costs.kept[0] == 1 > costs.kept[1] > costs.kept[2]
    twice, of_values = fitted(bounded, RATINGS, [0.1, 0.6, 2.0], STREAMS)
    pairs = RATINGS.users, RATINGS.items
    assert np.array_equal(twice.predict(*pairs), model.predict(*pairs))
    assert twice.record_costs.threshold == costs.threshold
    assert of_values.claimed == pytest.approx(2 * ledger.claimed)
    assert {each.sensitivity.neighbours for each in of_values.entries} == {Neighbours.BOUNDED}
    if mode == "published":
        assert np.isinf([ledger.provable, of_values.provable, costs.least]).all()
        return
    assert ledger.provable == pytest.approx(costs.threshold)
    assert costs.largest == pytest.approx(costs.threshold)
    assert of_values.provable == pytest.approx(of_values.claimed)
    assert costs.least == pytest.approx([0.05, 0.1, 0.1], abs=0.01)
    assert costs.median[2] == pytest.approx(np.median([0.1, 0.2]) + 0.04, abs=0.03)
    # A record that asks for t or more is not sampled.
    assert twice.record_costs.largest == pytest.approx(2 * np.array(costs.largest))
    least, least_of_values = np.array(costs.least), np.array(twice.record_costs.least)
    assert np.all(least_of_values[1:] < 2 * least[1:] * 0.99)
    assert np.all(least_of_values > least)


@pytest.mark.parametrize("base", ["dp_pmf", "isgd", "pals", "psgd", "pbgd", "pge"])
def test_any_unbounded_algorithm_can_be_personalised_and_proved(base: str) -> None:
    """Each lane is a fit of the base on one sample, with t. The provable ε does not exceed t. (psgd proves
    nothing for unbounded neighbours, and has no mode that does.)"""
    mode = "published" if base == "psgd" else "corrected"
    algorithm = personalised(mode=mode, base={"algorithm": base})
    model, ledger = fitted(algorithm, RATINGS, [0.5, 1.0], STREAMS)
    thresholds = np.array(model.record_costs.threshold)
    assert ledger.claimed == pytest.approx(thresholds)
    proved = np.full(2, np.inf) if base == "psgd" else thresholds
    assert ledger.provable == pytest.approx(proved)
    assert {entry.mechanism.endswith("on a sample") for entry in ledger.entries} == {True}
    asked = algorithm.stated_epsilons(RATINGS, STREAMS)[:, None]
    drawn = STREAMS.generator("sampling").random(len(RATINGS))[:, None]
    kept = drawn < sampling_probability(asked, thresholds)
    assert model.record_costs.kept == pytest.approx(kept.mean(axis=0))
    alone, _ = fitted(algorithm.base, RATINGS.select(kept[:, 1]), thresholds[1:].tolist(), STREAMS)
    expected = alone.predict(RATINGS.users, RATINGS.items)[:, 0]
    assert np.array_equal(model.predict(RATINGS.users, RATINGS.items)[:, 1], expected)


def test_the_noise_free_run_has_the_same_sample() -> None:
    """A base with negligible noise, on the sample of an ε of 1, predicts the same as the noise-free run."""
    quiet = {"epsilon_liberal": 1e6, "epsilon_moderate": 1e5, "epsilon_conservative": 1e4, "threshold": 1e5}
    private = personalised(**quiet, base={"noisy_epochs": 1, "learning_rate": 1e-3})
    model, _ = fitted(private, RATINGS, [1e6], STREAMS)
    noise_free = Sampled.model_validate(
        {"algorithm": "sampled", "base": {"algorithm": "pmf", **SMALL, "learning_rate": 1e-3}, **quiet}
    )
    clean, _ = fitted(noise_free, RATINGS, [], replace(STREAMS, algorithm="sampled"))
    assert 0.3 < model.record_costs.kept[0] < 0.6
    assert np.allclose(
        model.predict(RATINGS.users, RATINGS.items), clean.predict(RATINGS.users, RATINGS.items), atol=1e-4
    )


def test_who_is_not_in_the_sample_is_predicted_the_average_of_the_sample() -> None:
    kept = (RATINGS.users != 7) & (RATINGS.items != 5) & (RATINGS.values > 3)
    own = {"algorithm": "dp_pmf", "neighbours": "unbounded", **SMALL, "noisy_epochs": 1}
    for base in (
        ProbabilisticMF.model_validate({"algorithm": "pmf", **SMALL}),
        PrivatePMF.model_validate(own),
    ):
        columns = np.stack([kept, np.ones_like(kept)], axis=1)
        curator = curator_for(base, [1e9, 1e9], STREAMS)
        model = base.fit_samples(RATINGS, columns, curator.ledger.limit, streams=STREAMS, curator=curator)
        pairs = np.array([7, 0], np.int32), np.array([0, 5], np.int32)
        average = RATINGS.values[kept].mean()
        assert average > RATINGS.values.mean() + 0.5
        assert model.predict(*pairs)[:, 0] == pytest.approx(average, abs=1e-5)


def test_the_base_has_the_effects_of_what_personalises_it() -> None:
    effects = {"beta_m": 3.0, "beta_u": 17.0}
    base = personalised(base={"algorithm": "pge"}, effects=effects).base
    assert (base.effects.beta_m, base.effects.beta_u) == (3.0, 17.0)
    own = {"algorithm": "pge", "effects": {"beta_m": 1.0}}
    assert personalised(base=own, effects=effects).base.effects.beta_m == 1.0


def test_a_column_of_the_users_own_is_each_ratings_epsilon() -> None:
    ratings = with_column(RATINGS)
    model, _ = fitted(
        personalised(specification="column", threshold=1.0, mode="corrected"), ratings, [10.0], STREAMS
    )
    asked = np.minimum(np.asarray(ratings.columns["epsilon"], float), 1.0)
    assert model.record_costs.least[0] == pytest.approx(asked.min())
    assert model.record_costs.median[0] == pytest.approx(np.median(asked), abs=0.01)
    half = ratings.select(np.arange(len(ratings)) % 2 == 0)
    assert fitted(personalised(specification="column", threshold=1.0), half, [10.0], STREAMS)[
        0
    ].record_costs.threshold == (1.0,)


def test_a_threshold_that_depends_on_the_ratings_proves_nothing() -> None:
    ratings = with_column(RATINGS)
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
        fitted(personalised(specification="column", threshold=1.0), RATINGS, [1.0], STREAMS)
