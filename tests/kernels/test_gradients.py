"""Mini-batch descent: what its steps measure, against NumPy, and lanes on samples of their own against separate fits."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpmf_cli.algorithms.baselines.clean_factorizations import ProbabilisticMF
from dpmf_cli.algorithms.shared.factorization import KnownModel, make_schedule
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, SampledVisits, sample_bits, step_noisy, sum_gradients
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Recorder
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.algorithms.fitted import curator_for
from tests.conftest import make_ratings
from tests.recorders import Noting

RATINGS = make_ratings(3, n_users=12, n_items=9)
N, RIDGE = len(RATINGS), 0.1
STREAMS = Streams(0, "d", "pmf", 0, 0)


def samples(lanes: int, seed: int = 0) -> np.ndarray:
    kept = np.random.default_rng(seed).random((N, lanes)) < np.linspace(0.3, 1.0, lanes)
    kept[:, -1] = True
    return kept


@pytest.mark.parametrize("keys", [{}, {"regularized": "ratings", "unit_users": True, "centred": True}])
def test_a_lane_is_the_fit_of_its_sample_alone_to_the_bit(keys: dict[str, Any]) -> None:
    """Nineteen samples of sizes that have different numbers of batches, in two groups."""
    given = {"algorithm": "pmf", "factors": 2, "batch_size": N // 5, "learning_rate": 1, "epochs": 8}
    pmf = ProbabilisticMF.model_validate({**given, **keys})

    def fit(kept: np.ndarray) -> KnownModel:
        curator = curator_for(pmf, [], STREAMS)
        return pmf.fit_samples(RATINGS, kept, curator.ledger.limit, streams=STREAMS, curator=curator)

    kept, users, items = samples(19), RATINGS.users, RATINGS.items
    together = fit(kept).predict(users, items)
    assert len({round(n / (N // 5)) for n in kept.sum(axis=0)}) > 3
    for lane in (0, 7, 15, 16, 18):
        alone = fit(kept[:, [lane]])
        assert np.array_equal(alone.predict(users, items)[:, 0], together[:, lane])


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 1000))
def test_a_schedule_visits_every_rating_once_and_divides_by_what_it_summed(
    lanes: int, size: int, seed: int
) -> None:
    lanes = min(lanes, 16)
    kept = np.random.default_rng(seed).random((N, lanes)) < 0.6
    order = np.random.default_rng(seed + 1).permutation(N)
    schedule = make_schedule(RATINGS, kept, lambda n: max(1, round(n / size)), 1e-3, order)
    visits = schedule.visits
    cells = set(zip(visits.users.tolist(), visits.items.tolist(), strict=True))
    assert len(cells) == N == len(visits.values)
    assert [s.first for s in schedule.stretches] == [0] + [s.last for s in schedule.stretches[:-1]]
    assert schedule.stretches[-1].last == N
    for lane in range(lanes):
        gathered = 0
        for stretch in schedule.stretches:
            gathered += ((visits.bits[0][stretch.first : stretch.last] >> lane) & 1).sum()
            if stretch.rates[lane]:
                assert stretch.rates[lane] == pytest.approx(1e-3 / max(gathered, 0.01))
                gathered = 0
        assert gathered == 0
        steps = sum(stretch.rates[lane] > 0 for stretch in schedule.stretches)
        assert steps == min(N, 8 * max(1, round(N / size)), max(1, round(kept[:, lane].sum() / size)))


D, E, STEPS = 3, 19, 3
KEPT = np.random.default_rng(1).random((N, E)) < np.linspace(0.3, 1, E)
RATES = np.where(np.arange(E) % 3 == np.arange(STEPS)[:, None], 0, np.linspace(0.01, 0.03, E))
"""In each step another third of the models does not take part."""


def descended(momentum: float, epsilons: np.ndarray, recorder: Recorder | None) -> FactorModel:
    """Models after noisy steps of both sides."""
    rng, grid = np.random.default_rng(0), len(epsilons)
    effects = rng.normal(size=(12, E))[:, :grid], rng.normal(size=(9, E))[:, :grid]
    model = factor_model(rng.normal(0, 0.5, (12, D)), rng.normal(0, 0.5, (9, D)), *effects)
    visits = SampledVisits(RATINGS.users, RATINGS.items, RATINGS.values, sample_bits(KEPT[:, :grid]))
    curator = Curator(Ledger(epsilons), Streams(0, "d", "test", 0, 0), recorder)
    moves = Sensitivity(1.0, 2, Neighbours.UNBOUNDED, "a test")
    given: dict[str, Any] = {"sensitivity": moves, "epsilon": curator.ledger.limit, "curator": curator}
    releases = repeated_k_norm("gradients", (12 + 9, D), repetitions=STEPS, **given)
    descent = Descent(model, momentum)
    for rates, gradients in zip(RATES[:, :grid], releases, strict=True):
        of_users, of_items = gradients.split(12)
        sum_gradients(descent, visits, 0, N)
        of_users.inside(step_noisy, descent, "users", rates, RIDGE)
        of_items.inside(step_noisy, descent, "items", rates, RIDGE)
    return model


def test_all_sums_are_measured_and_those_of_a_model_that_does_not_take_part_are_0() -> None:
    recorder = Noting()
    descended(0.8, np.geomspace(1, 50, E), recorder)
    assert recorder.seen.keys() == set(product(["gradients"], range(STEPS), (0, 12), (0, 16)))
    for (_, draw, first, lane), clean in recorder.seen.items():
        assert clean.shape == (9 if first else 12, D, 3 if lane else 16)
        assert (np.abs(clean).max(axis=(0, 1)) > 0).tolist() == (RATES[draw][lane : lane + 16] > 0).tolist()


def test_what_is_measured_first_is_the_gradient_of_the_errors() -> None:
    recorder = Noting()
    descended(0.0, np.geomspace(1, 50, E), recorder)
    rng = np.random.default_rng(0)
    of_users, of_items = rng.normal(size=(12, E)), rng.normal(size=(9, E))
    u, v = rng.normal(0, 0.5, (12, D)), rng.normal(0, 0.5, (9, D))
    lane, users, items = 4, RATINGS.users, RATINGS.items
    error = RATINGS.values - of_users[users, lane] - of_items[items, lane] - (u[users] * v[items]).sum(axis=1)
    expected = np.zeros((12, D))
    np.add.at(expected, users, -(KEPT[:, lane] * error)[:, None] * v[items])
    assert recorder.seen["gradients", 0, 0, 0][..., lane] == pytest.approx(expected, abs=1e-4)
