"""DPPS-PNBM: the laws of its Langevin noise and its drift, published and certified."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.algorithms.shared.neighbourhood import LearnedNeighbourhood
from dpmf_cli.algorithms.wang2017.dpps_pnbm import PosteriorPNBM
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_similarities
from tests.algorithms.similarity_models import (
    RATINGS,
    SINGLES,
    Run,
    assert_law,
    entry,
    multiplier,
    predictions,
    start_of,
    streams_of,
)

LANGEVIN = {"initial_rate": 0.5, "temperature": 0.04, "decay": 0.5, "iterations": 3, "regularization": 0}


def test_published_langevin_noise_is_normal_of_variance_temperature_times_rate(
    watched: Callable[..., Run],
) -> None:
    """At every ε, and on all similarities; without noise where ε = ∞."""
    run = watched(
        entry("dpps_pnbm", mode="published", sampling_rate=0.5, **LANGEVIN), SINGLES, [0.1, 1e4, np.inf]
    )
    for t in (1, 2, 3):
        assert_law(run.moves(t), stats.norm, np.sqrt(0.04 * 0.5 / np.sqrt(t)))
        cell = 2**-10 * np.sqrt(0.04 * 0.5 / np.sqrt(t))  # of the grid, which differs between ε as drifts do
        assert run.moves(t, 1) == pytest.approx(run.moves(t, 0), abs=cell)
        assert not run.moves(t, 2).any()
    assert abs(np.corrcoef(run.moves(1), run.moves(2))[0, 1]) < 0.06
    (averages, chain) = run.ledger.entries
    assert averages.claimed.tolist() == [0, 0, 0]
    assert chain.claimed.tolist() == run.ledger.claimed.tolist() == [0.1, 1e4, np.inf]
    assert chain.calibrated_to.value == 2 * 16 * 200
    assert np.isinf(chain.provable).all()


@pytest.mark.parametrize("sampling", [1.0, 0.4])
def test_published_langevin_drift_is_a_tempered_half_step_of_the_whole_gradient(
    sampling: float, watched: Callable[..., Run]
) -> None:
    """(η/2)·min(ε/4B, 1)·(Σ_sample/γ + λS), B = 16τ, over τ ratings of each user at most."""
    most, regularization = 4, 0.7
    algorithm = entry(
        "dpps_pnbm",
        mode="published",
        initial_rate=0.5,
        temperature=1e-14,
        iterations=1,
        most_ratings=most,
        regularization=regularization,
        sampling_rate=sampling,
    )
    assert isinstance(algorithm, PosteriorPNBM)
    run = watched(algorithm, RATINGS, [100.0, 1000.0])
    kept = algorithm.learned_from(RATINGS, streams_of(algorithm))
    assert kept.user_counts.max() == most
    model = start_of(algorithm, RATINGS)
    learned, step = LearnedRatings.unclipped(kept), SimilarityStep(run.samples[0], np.ones(1))
    descend_similarities(model, learned, step)
    slope = 1 - model.groups[0].rows()[:, :, 0].astype(np.float64)
    wanted = -0.25 * (slope / sampling + regularization)
    for lane, power in enumerate((100 / (4 * 16 * most), 1.0)):
        assert run.moves(1, lane) == pytest.approx(power * wanted.ravel(), abs=1e-5)


@pytest.mark.parametrize(("beta", "apart"), [(16.0, 0.0), (10.0, 1e-3)])
def test_the_chain_is_free_of_the_scale_of_the_similarities(beta: float, apart: float) -> None:
    """From (β·s₀, β²·η₁, λ/β²) S is β times that from (s₀, η₁, λ), noise and all: only η₁/s₀² and λ·η₁ matter."""
    one, other = (
        entry(
            "dpps_pnbm",
            initial_similarity=0.5 * by,
            initial_rate=0.2 * by**2,
            regularization=0.1 / by**2,
            iterations=4,
        )
        for by in (1.0, beta)
    )
    assert predictions(other, RATINGS) == pytest.approx(predictions(one, RATINGS), rel=0, abs=apart)


def test_who_has_few_ratings_is_judged_before_ratings_are_removed() -> None:
    algorithm = entry("dpps_pnbm", most_ratings=3, least_ratings=5)
    assert isinstance(algorithm, PosteriorPNBM)
    kept = algorithm.learned_from(RATINGS, streams_of(algorithm)).user_counts
    assert np.array_equal(kept, np.where(RATINGS.user_counts >= 5, 3, 0))


def test_corrected_langevin_noise_is_the_published_and_its_drift_what_that_certifies(
    watched: Callable[..., Run],
) -> None:
    """√(ρη_t); or (η_t/2)·c·multiplier if √(ρη_t) would exceed the noise that the gradient without privacy gets."""
    scale = 0.3 * multiplier(1.0, 3, False)
    run = watched(entry("dpps_pnbm", mode="corrected", **LANGEVIN), SINGLES, [1.0])
    for t in (1, 2, 3):
        rate = 0.5 / np.sqrt(t)
        assert np.sqrt(0.04 * rate) / scale < rate / 2
        assert_law(run.moves(t), stats.norm, np.sqrt(0.04 * rate))
    slow = {**LANGEVIN, "initial_rate": 1e-4}
    run = watched(entry("dpps_pnbm", mode="corrected", **slow), SINGLES, [1.0])
    for t in (1, 2, 3):
        rate = 1e-4 / np.sqrt(t)
        assert np.sqrt(0.04 * rate) / scale > rate / 2
        assert_law(run.moves(t), stats.norm, rate / 2 * scale)
    assert run.ledger.provable == pytest.approx([1.0])


def test_corrected_posterior_sampling_learns_from_so_many_ratings_of_a_user(
    watched: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    clipped = LearnedNeighbourhood.clipped

    def noting(self: LearnedNeighbourhood, train: Ratings) -> Any:
        seen.append(int(train.user_counts.max()))
        return clipped(self, train)

    monkeypatch.setattr(LearnedNeighbourhood, "clipped", noting)
    watched(
        entry("dpps_pnbm", mode="corrected", neighbours="user", most_ratings=3, iterations=1), RATINGS, [1.0]
    )
    assert seen == [3]
