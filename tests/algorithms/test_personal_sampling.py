"""Personal sampling: its proof by exact enumeration, and the levels that it draws."""

from collections.abc import Sized
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf_cli.algorithms.shared.sample_fits import (
    PersonalSampling,
    replaced_epsilon,
    sample,
    sampled_epsilon,
    sampling_probability,
)
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.papers.printed import load
from tests.conftest import make_ratings

LEVELS = (0.1, 0.35, 0.8, 1.7)
STREAMS = Streams(1, "d", "personalized", 0, 0)


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
def test_a_record_loses_exactly_what_it_asks_for_or_the_threshold(record: int, threshold: float) -> None:
    """With and without one record, over all outputs and in both directions. The larger bound is attained, the
    other is not."""
    whole = law_of_the_noisy_sum(LEVELS, threshold)
    without = law_of_the_noisy_sum(LEVELS[:record] + LEVELS[record + 1 :], threshold)
    asked = min(LEVELS[record], threshold)
    assert np.log(whole / without).max() == pytest.approx(asked, rel=1e-9)
    assert np.log(without / whole).max() <= asked * (1 + 1e-9)
    probability = sampling_probability(np.array([[LEVELS[record]]]), np.array([threshold]))
    assert sampled_epsilon(probability, np.array([threshold]))[0, 0] == pytest.approx(asked, rel=1e-9)


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.8, 1.0, 3.0])
@pytest.mark.parametrize("record", range(len(LEVELS)))
def test_a_value_loses_twice_what_its_record_asks_for_at_most(record: int, threshold: float) -> None:
    """Remark 7: another value of one record, over all outputs. The exact loss is attained, and is less than 2ε
    below t."""
    one, other = (
        law_of_the_noisy_sum(LEVELS, threshold, (*(1,) * record, value, *(1,) * (3 - record)))
        for value in (1, -1)
    )
    probability = sampling_probability(np.array([[LEVELS[record]]]), np.array([threshold]))
    exact = replaced_epsilon(probability, np.array([threshold]))[0, 0]
    assert np.abs(np.log(one / other)).max() == pytest.approx(exact, rel=1e-9)
    asked = min(LEVELS[record], threshold)
    assert asked < exact <= 2 * asked * (1 + 1e-9)
    assert bool(exact < 2 * asked * (1 - 1e-3)) == (LEVELS[record] < threshold)
    assert replaced_epsilon(probability, np.array([np.inf]))[0, 0] == np.inf
    assert replaced_epsilon(np.zeros((1, 1)), np.array([np.inf]))[0, 0] == 0


def test_more_sampling_than_that_would_break_the_promise() -> None:
    """The test above has enough power: with the linear ε/t in place of (e^ε − 1)/(e^t − 1), the loss is more
    than asked."""
    asked, threshold = 0.35, 1.7
    assert sampled_epsilon(np.array(asked / threshold), np.array(threshold)) > 1.4 * asked


@given(st.floats(1e-4, 1e5), st.floats(1e-4, 1e5))
def test_probabilities_and_their_epsilons_are_finite_for_all_levels(asked: float, threshold: float) -> None:
    probability = sampling_probability(np.array([[asked]]), np.array([threshold]))
    assert 0 <= probability[0, 0] <= 1
    if probability[0, 0] > 1e-280:
        spent = sampled_epsilon(probability, np.array([threshold]))[0, 0]
        assert spent == pytest.approx(min(asked, threshold), rel=1e-6, abs=1e-9)


def test_fractions_are_the_papers() -> None:
    ratings = make_ratings(n_users=300, n_items=200)
    asked = PersonalSampling().stated_epsilons(ratings, STREAMS)
    assert np.mean(asked < 0.2) == pytest.approx(0.54, abs=0.02)
    assert np.mean(asked == 1.0) == pytest.approx(0.09, abs=0.01)
    assert asked.min() >= 0.1
    assert np.mean(asked) == pytest.approx(
        PersonalSampling().thresholds(asked, np.array([np.inf]))[0], abs=0.01
    )


@pytest.mark.parametrize("ceiling", [0.05, 0.15, 0.2, 0.6, 1.0, 5.0])
def test_the_mean_under_a_ceiling_is_that_of_the_capped_levels(ceiling: float) -> None:
    asked = PersonalSampling().stated_epsilons(make_ratings(n_users=300, n_items=200), STREAMS)
    mean = PersonalSampling().thresholds(asked, np.array([ceiling]))[0]
    assert mean == pytest.approx(np.minimum(asked, ceiling).mean(), abs=0.01)
    assert PersonalSampling(threshold="max").thresholds(asked, np.array([ceiling]))[0] == min(1.0, ceiling)
    assert PersonalSampling(threshold=0.7).thresholds(asked, np.array([ceiling]))[0] == min(0.7, ceiling)


def test_the_mean_of_table_4_is_the_printed_one() -> None:
    table_4 = PersonalSampling(conservative=0.6, moderate=0.35, epsilon_moderate=0.4)
    printed = load("zhang2018")["figure5"]["mean_threshold"]
    assert table_4.thresholds(np.zeros(0), np.array([np.inf]))[0] == pytest.approx(printed)


@pytest.mark.parametrize("per", ["user", "item"])
def test_levels_can_be_those_of_users_or_items(per: Any) -> None:
    ratings = make_ratings()
    asked = PersonalSampling(per=per).stated_epsilons(ratings, STREAMS)
    owners = ratings.users if per == "user" else ratings.items
    for owner in range(5):
        assert len(set(asked[owners == owner])) == 1
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
    whole, streams = make_ratings(), ByPair(1, "d", "personalized", 0, 0)
    others = np.arange(len(whole)) != 77
    asked, kept = [], []
    for ratings in (whole, whole.select(others)):
        asked.append(PersonalSampling(per="record").stated_epsilons(ratings, streams))
        kept.append(sample(ratings, sampling_probability(asked[-1][:, None], np.array([0.3, 0.5])), streams))
    assert np.array_equal(asked[0][others], asked[1])
    assert np.array_equal(kept[0][others], kept[1])
