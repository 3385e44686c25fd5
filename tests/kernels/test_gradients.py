"""Mini-batch descent over lanes against NumPy, and lanes on samples of their own against separate fits.

Noisy steps of a descent and their plain twins: the same noise gives the same factors; witnesses see all of it.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.algorithms.baselines.clean_factorizations import ProbabilisticMF
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.shared.probabilistic import make_schedule
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, SampledVisits, sample_bits, step_noisy, sum_gradients
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import grid_of, on_grid
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.algorithms.fitted import curator_for
from tests.conftest import make_ratings
from tests.witnesses import Noting

RATINGS = make_ratings(3, n_users=12, n_items=9)
N, RIDGE, RATE = len(RATINGS), 0.1, 0.02
STREAMS = Streams(0, "d", "pmf", 0, 0)


def samples(lanes: int, seed: int = 0) -> np.ndarray:
    kept = np.random.default_rng(seed).random((N, lanes)) < np.linspace(0.3, 1.0, lanes)
    kept[:, -1] = True
    return kept


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("factors", [1, 4])
def test_every_lane_descends_its_own_batches(factors: int, momentum: float) -> None:
    """Three lanes: two step after each half of their own ratings, one after all of its ratings."""
    rng = np.random.default_rng(factors)
    start_u, start_v = rng.normal(0, 0.5, (12, factors)), rng.normal(0, 0.5, (9, factors))
    kept = samples(3)
    effects_u, effects_v = rng.normal(size=(12, 3)), rng.normal(size=(9, 3))
    model = factor_model(start_u, start_v, effects_u, effects_v)
    visits = SampledVisits(RATINGS.users, RATINGS.items, RATINGS.values, sample_bits(kept))
    assert visits.bits[0].tolist() == (kept * [1, 2, 4]).sum(axis=1).tolist()
    descent = Descent(model, momentum)
    half, rates = N // 2, np.zeros((2, 3))
    rates[:, :2], rates[1, 2] = RATE, RATE / 2
    unit, scale = rng.normal(size=(9, factors)), np.linspace(0, 2, 3)
    user_unit = rng.normal(size=(12, factors))
    for _ in range(3):
        for at, (first, last) in enumerate(((0, half), (half, N))):
            sum_gradients(descent, visits, first, last)
            for group in descent.groups:
                step_noisy.run(group, LaneNoise(user_unit, scale), "users", rates[at], RIDGE)
                step_noisy.run(group, LaneNoise(unit, scale), "items", rates[at], RIDGE)
    found_u, found_v = (model.groups[0].rows(side) for side in ("users", "items"))
    for lane in range(3):
        u, v = start_u.copy(), start_v.copy()
        speed_u, speed_v = np.zeros_like(u), np.zeros_like(v)
        halves = [np.arange(N) < half, np.arange(N) >= half] if lane < 2 else [np.ones(N, bool)]
        rate = RATE if lane < 2 else RATE / 2
        for _ in range(3):
            for part in halves:
                to_u, to_v = np.zeros_like(u), np.zeros_like(v)
                for x in np.flatnonzero(part & kept[:, lane]):
                    i, j = RATINGS.users[x], RATINGS.items[x]
                    error = RATINGS.values[x] - effects_u[i, lane] - effects_v[j, lane] - u[i] @ v[j]
                    to_u[i] += error * v[j]
                    to_v[j] += error * u[i]
                grid = grid_of(scale[lane])
                to_u = -on_grid(user_unit * scale[lane] - to_u, grid) - RIDGE * u
                to_v = -on_grid(unit * scale[lane] - to_v, grid) - RIDGE * v
                speed_u, speed_v = momentum * speed_u + rate * to_u, momentum * speed_v + rate * to_v
                u, v = u + speed_u, v + speed_v
        assert found_u[..., lane] == pytest.approx(u, abs=2e-5)
        assert found_v[..., lane] == pytest.approx(v, abs=2e-5)


def test_a_lane_is_the_fit_of_its_sample_alone_to_the_bit() -> None:
    """Nineteen samples of sizes that have different numbers of batches, in two groups."""
    given = {"algorithm": "pmf", "factors": 3, "batch_size": N // 5, "learning_rate": 1, "epochs": 8}
    pmf = ProbabilisticMF.model_validate(given)

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


def descended(momentum: float, witness: Noting | None) -> FactorModel:
    """Models of two groups of lanes after noisy steps of both sides."""
    rng = np.random.default_rng(0)
    effects = rng.normal(size=(12, E)), rng.normal(size=(9, E))
    model = factor_model(rng.normal(0, 0.5, (12, D)), rng.normal(0, 0.5, (9, D)), *effects)
    visits = SampledVisits(RATINGS.users, RATINGS.items, RATINGS.values, sample_bits(KEPT))
    curator = Curator(Ledger(np.geomspace(1, 50, E)), Streams(0, "d", "test", 0, 0), witness)
    releases = repeated_k_norm(
        "gradients",
        (12 + 9, D),
        repetitions=STEPS,
        sensitivity=Sensitivity(1.0, 2, Neighbours.UNBOUNDED, "a test"),
        epsilon=curator.ledger.limit,
        curator=curator,
    )
    descent = Descent(model, momentum)
    for rates, gradients in zip(RATES, releases, strict=True):
        of_users, of_items = gradients.split(12)
        sum_gradients(descent, visits, 0, N)
        of_users.inside(step_noisy, descent, "users", rates, RIDGE)
        of_items.inside(step_noisy, descent, "items", rates, RIDGE)
    return model


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_a_witness_that_changes_nothing_changes_nothing(momentum: float) -> None:
    witness = Noting()
    compiled, plain = descended(momentum, None), descended(momentum, witness)
    for one, other in zip(compiled.groups, plain.groups, strict=True):
        for side in ("users", "items"):
            assert one.rows(side) == pytest.approx(other.rows(side), rel=1e-4, abs=1e-5)
    places = {
        ("gradients", draw, first, lane) for draw in range(STEPS) for first in (0, 12) for lane in (0, 16)
    }
    assert witness.seen.keys() == places
    for (_, draw, first, lane), clean in witness.seen.items():
        assert clean.shape == (9 if first else 12, D, 3 if lane else 16)
        # Sums of a model that does not take part are not measured.
        assert (np.abs(clean).max(axis=(0, 1)) > 0).tolist() == (RATES[draw][lane : lane + 16] > 0).tolist()


def test_what_is_measured_first_is_the_gradient_of_the_errors() -> None:
    witness = Noting()
    descended(0.0, witness)
    rng = np.random.default_rng(0)
    of_users, of_items = rng.normal(size=(12, E)), rng.normal(size=(9, E))
    u, v = rng.normal(0, 0.5, (12, D)), rng.normal(0, 0.5, (9, D))
    lane, users, items = 4, RATINGS.users, RATINGS.items
    error = RATINGS.values - of_users[users, lane] - of_items[items, lane] - (u[users] * v[items]).sum(axis=1)
    expected = np.zeros((12, D))
    np.add.at(expected, users, -(KEPT[:, lane] * error)[:, None] * v[items])
    assert witness.seen["gradients", 0, 0, 0][..., lane] == pytest.approx(expected, abs=1e-4)


def test_a_group_none_of_whose_models_steps_measures_nothing() -> None:
    witness, model = (
        Noting(),
        factor_model(np.ones((12, D)), np.ones((9, D)), np.ones((12, E)), np.ones((9, E))),
    )
    curator = Curator(Ledger([1.0] * E), Streams(0, "d", "test", 0, 0), witness)
    (gradients,) = repeated_k_norm(
        "gradients",
        (9, D),
        repetitions=1,
        sensitivity=Sensitivity(1.0, 2, Neighbours.UNBOUNDED, "a test"),
        epsilon=curator.ledger.limit,
        curator=curator,
    )
    gradients.inside(step_noisy, Descent(model, 0.0), "items", np.where(np.arange(E) < 16, 0, 0.1), RIDGE)
    assert [lane for *_, lane in witness.seen] == [16]
