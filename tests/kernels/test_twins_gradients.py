"""Noisy steps of a descent and their plain twins: the same noise gives the same factors; witnesses see all of it."""

import numpy as np
import pytest

from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import (
    Descent,
    SampledVisits,
    sample_bits,
    step_noisy_items,
    step_noisy_users,
    sum_gradients,
)
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.streams import Streams
from tests.conftest import make_ratings
from tests.witnesses import Noting

RATINGS = make_ratings(3, n_users=12, n_items=9)
N, D, E, RIDGE, STEPS = len(RATINGS), 3, 19, 0.1, 3
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
        of_users.inside(step_noisy_users, descent, rates, RIDGE)
        of_items.inside(step_noisy_items, descent, rates, RIDGE)
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
    gradients.inside(step_noisy_items, Descent(model, 0.0), np.where(np.arange(E) < 16, 0, 0.1), RIDGE)
    assert [lane for *_, lane in witness.seen] == [16]
