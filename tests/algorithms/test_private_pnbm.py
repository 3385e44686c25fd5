"""DPSGD-PNBM: the laws of its noise, its published steps against the kernel, and what its ledger says."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from dpmf_cli.algorithms.shared.neighbourhood import most_co_rated
from dpmf_cli.algorithms.wang2017.dpsgd_pnbm import PrivatePNBM
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
)
from tests.conftest import make_ratings

VARIED = make_ratings(6, 120, 100, 0.5)
CONSTANT = replace(VARIED, values=np.full_like(VARIED.values, 3.0))
"""Every prediction is right, so a step is noise only; and every pair of items has common raters."""


@pytest.mark.parametrize("sampling", [1.0, 0.02])
def test_published_noise_is_laplace_of_the_published_scale(
    sampling: float, watched: Callable[..., Run]
) -> None:
    """The noise is Δ_t·Kγ/ε with Δ_t = 2(0.5 + 3/(t + 1))·4/C, on what the sample touches and nothing else."""
    floor, rate, epsilons = 10.0, 0.1, [0.5, 4.0]
    algorithm = entry(
        "dpsgd_pnbm", iterations=3, floor=floor, learning_rate=rate, sampling_rate=sampling, regularization=0
    )
    run = watched(algorithm, CONSTANT, epsilons)
    for t in (1, 2, 3):
        for lane, epsilon in enumerate(epsilons):
            moved = run.moves(t, lane)
            assert (np.mean(moved != 0) > 0.998) == (sampling == 1)  # some noise is rounded to 0
            sample = moved[moved != 0]
            assert len(sample) > 3000
            delta = 2 * (0.5 + 3 / (t + 1)) * 4 / floor
            assert_law(sample / rate, stats.laplace, delta * 3 * sampling / epsilon)
    assert abs(np.corrcoef(run.moves(1), run.moves(2))[0, 1]) < 0.06
    neighbours = most_co_rated(CONSTANT, 500)
    touched = np.zeros(neighbours.shape, bool)
    for x in np.flatnonzero(run.samples[0]):
        rated = CONSTANT.items[CONSTANT.users == CONSTANT.users[x]]
        touched[CONSTANT.items[x]] |= np.isin(neighbours[CONSTANT.items[x]], rated)
    assert np.all(touched.ravel() >= (run.moves(1) != 0))
    assert np.mean(run.moves(1)[touched.ravel()] != 0) > 0.998


def test_published_steps_are_of_bounded_errors_over_at_least_c(watched: Callable[..., Run]) -> None:
    """|e| ≤ 0.5 + 3/(t + 1) and Σ|s| ≥ C, without noise: ε = ∞."""
    algorithm = entry("dpsgd_pnbm", iterations=4, floor=6, learning_rate=0.7, regularization=0.1)
    run = watched(algorithm, RATINGS, [np.inf])
    assert isinstance(algorithm, PrivatePNBM)
    model, learned = start_of(algorithm, RATINGS), LearnedRatings.unclipped(RATINGS)
    everybody, rates = np.ones(len(RATINGS), np.bool_), np.array([0.7])
    for t in (1, 2, 3, 4):
        step = SimilarityStep(everybody, rates, 0.1, error_bound=0.5 + 3 / (t + 1), floor=6.0)
        descend_similarities(model, learned, step)
        assert run.states[t] == pytest.approx(model.groups[0].rows(), abs=1e-6)


@pytest.mark.parametrize(("beta", "apart"), [(16.0, 0.0), (10.0, 1e-3)])
def test_rescaling_by_beta_is_another_start_and_changes_no_prediction(beta: float, apart: float) -> None:
    """From (β·s₀, β·C, β²·η, λ/β²), S is β times that from (s₀, C, η, λ), including the noise: only η/s₀² and
    C/s₀ matter. The two are equal up to the grids of releases, which are powers of two apart."""
    one, other = (
        entry(
            "dpsgd_pnbm",
            iterations=4,
            initial_similarity=0.5 * by,
            floor=3 * by,
            learning_rate=0.2 * by**2,
            regularization=0.1 / by**2,
            upscaling=0.5,
        )
        for by in (1.0, beta)
    )
    assert predictions(other, RATINGS) == pytest.approx(predictions(one, RATINGS), rel=0, abs=apart)


def test_upscaled_gradients_grow_with_the_steps_and_the_regularization_does_not(
    watched: Callable[..., Run],
) -> None:
    """On ratings without errors a step without noise is S ← S − ηλS. A step with noise adds tᵃ times the noise."""
    made = {"iterations": 3, "learning_rate": 0.1}
    calm = watched(entry("dpsgd_pnbm", upscaling=2, regularization=0.5, **made), CONSTANT, [np.inf])
    assert calm.states[1:] == pytest.approx(0.95 * calm.states[:-1], rel=1e-6)
    once, grown = (
        watched(entry("dpsgd_pnbm", upscaling=of, regularization=0, **made), CONSTANT, [1.0]) for of in (0, 2)
    )
    for t in (1, 2, 3):
        assert np.median(np.abs(grown.moves(t))) == pytest.approx(
            t**2 * np.median(np.abs(once.moves(t))), rel=1e-3
        )


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm"])
@pytest.mark.parametrize("mode", ["published", "corrected"])
def test_of_users_with_few_ratings_nothing_is_learned(
    key: str, mode: str, watched: Callable[..., Run]
) -> None:
    least = int(np.median(RATINGS.user_counts)) + 1
    run = watched(entry(key, mode=mode, least_ratings=least, iterations=1), RATINGS, [1.0])
    assert len(run.samples[0]) == RATINGS.user_counts[RATINGS.user_counts >= least].sum()
    assert len(watched(entry(key, mode=mode, iterations=1), RATINGS, [1.0]).samples[0]) == len(RATINGS)


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm"])
def test_results_without_the_newer_keys_keep_their_names(key: str) -> None:
    assert not {"least_ratings", "upscaling"} & entry(key).parameters().keys()


def test_published_dpsgd_claims_a_part_of_epsilon_for_every_step_and_proves_nothing(
    watched: Callable[..., Run],
) -> None:
    ledger = watched(entry("dpsgd_pnbm", iterations=4, sampling_rate=0.5), RATINGS, [0.5, 4.0]).ledger
    averages, *steps = ledger.entries
    assert averages.claimed.tolist() == [0, 0]
    assert np.isinf(averages.provable).all()
    assert len(steps) == 4
    for t, step in enumerate(steps, start=1):
        assert step.claimed == pytest.approx([0.125, 1.0])
        assert np.isinf(step.provable).all()
        assert step.calibrated_to.value == pytest.approx(2 * (0.5 + 3 / (t + 1)) * 4 / 15)
    assert ledger.claimed == pytest.approx([0.5, 4.0])
    assert np.isinf(ledger.provable).all()


@pytest.mark.parametrize("neighbours", ["bounded", "unbounded", "user"])
@pytest.mark.parametrize("s0", [1.0, 4.0])
def test_corrected_gaussian_noise_is_what_the_steps_part_of_the_budget_allows(
    neighbours: str, s0: float, watched: Callable[..., Run]
) -> None:
    rate = 1e-3
    algorithm = entry(
        "dpsgd_pnbm",
        mode="corrected",
        neighbours=neighbours,
        iterations=2,
        learning_rate=rate,
        initial_similarity=s0,
        clip=0.5,
        regularization=0,
    )
    run = watched(algorithm, SINGLES, [1.0, 8.0])
    for t in (1, 2):
        for lane, epsilon in enumerate((1.0, 8.0)):
            expected = rate * 0.5 / s0 * multiplier(epsilon, 2, neighbours != "user")
            assert_law(run.moves(t, lane), stats.norm, expected)
    assert run.ledger.provable == pytest.approx([1.0, 8.0])
    assert run.ledger.claimed == pytest.approx([1.0, 8.0])


def test_corrected_laplace_noise_is_what_the_steps_part_of_the_budget_allows(
    watched: Callable[..., Run],
) -> None:
    """ε₀ = ln(1 + (e^ε_t − 1)/γ), for contributions that are exchanged: 2c."""
    algorithm = entry(
        "dpsgd_pnbm",
        mode="corrected",
        noise="laplace",
        iterations=2,
        learning_rate=1e-3,
        clip=0.5,
        sampling_rate=0.3,
        regularization=0,
    )
    run = watched(algorithm, SINGLES, [1.0])
    before = np.log(1 + (np.exp(0.4 / 2) - 1) / 0.3)
    for t in (1, 2):
        assert_law(run.moves(t), stats.laplace, 1e-3 * 2 * 0.5 / before)
    assert [step.claimed[0] for step in run.ledger.entries[-2:]] == pytest.approx([0.2, 0.2])
    assert run.ledger.provable == pytest.approx([1.0])


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_corrected_steps_are_short_where_noise_is_large(noise: str, watched: Callable[..., Run]) -> None:
    """The sum of all noise moves a similarity by `step_noise`·s₀."""
    algorithm = entry(
        "dpsgd_pnbm", mode="corrected", noise=noise, iterations=4, step_noise=0.2, initial_similarity=3
    )
    run = watched(algorithm, SINGLES, [0.1])
    assert (run.states[-1] - run.states[0]).std() == pytest.approx(0.6, rel=0.05)


def test_who_has_no_choice_of_neighbours_is_told() -> None:
    with pytest.raises(ValidationError, match=r"every item is a neighbour if .*; remove `neighbourhood`"):
        entry("dpsgd_pnbm", mode="corrected", neighbours="user", neighbourhood=50)
