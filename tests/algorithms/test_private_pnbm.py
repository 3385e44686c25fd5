"""DPSGD-PNBM and DPPS-PNBM: the laws of their noise, their published steps, and what certifies the corrected ones."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import stats

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.neighbourhood import all_others, most_co_rated
from dpmf_cli.algorithms.wang2017.dpps_pnbm import PosteriorPNBM
from dpmf_cli.algorithms.wang2017.dpsgd_pnbm import PrivatePNBM
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_similarities
from dpmf_cli.privacy.accounting import mu_of_epsilon
from tests.algorithms.similarity_models import (
    RATINGS,
    SINGLES,
    Array,
    Run,
    assert_law,
    entry,
    fit,
    multiplier,
    predictions,
    start_of,
    streams_of,
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
    averages, *steps = run.ledger.entries
    assert averages.claimed.tolist() == [0, 0]
    assert [step.claimed.tolist() for step in steps] == [pytest.approx([0.5 / 3, 4 / 3])] * 3
    assert np.isinf([each.provable for each in run.ledger.entries]).all()
    for t in (1, 2, 3):
        assert steps[t - 1].calibrated_to.value == pytest.approx(2 * (0.5 + 3 / (t + 1)) * 4 / floor)
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
@pytest.mark.parametrize(
    ("key", "rate", "more"),
    [("dpsgd_pnbm", "learning_rate", {"floor": 3, "upscaling": 0.5}), ("dpps_pnbm", "initial_rate", {})],
)
def test_rescaling_by_beta_is_another_start_and_changes_no_prediction(
    key: str, rate: str, more: dict[str, float], beta: float, apart: float
) -> None:
    """From (β·s₀, β·C, β²·η, λ/β²), S is β times that from (s₀, C, η, λ), including the noise: only η/s₀², λ·η and
    C/s₀ matter. The two are equal up to the grids of releases, which are powers of two apart."""

    def rescaled(by: float) -> PrivateAlgorithm:
        scaled = {"floor": more["floor"] * by} if "floor" in more else {}
        start = {"initial_similarity": 0.5 * by, rate: 0.2 * by**2, "regularization": 0.1 / by**2}
        return entry(key, iterations=4, **{**more, **scaled, **start})

    one, other = (predictions(rescaled(by), RATINGS) for by in (1.0, beta))
    assert other == pytest.approx(one, rel=0, abs=apart)


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


@pytest.mark.parametrize("neighbours", ["bounded", "unbounded", "user"])
@pytest.mark.parametrize(
    ("noise", "s0", "rate"), [("gaussian", 1.0, 1.0), ("gaussian", 4.0, 1.0), ("laplace", 4.0, 0.3)]
)
def test_corrected_noise_is_what_the_steps_part_of_the_budget_allows(
    noise: str, s0: float, rate: float, neighbours: str, watched: Callable[..., Run]
) -> None:
    """Laplace: ε₀ = ln(1 + (e^ε_t − 1)/γ) for contributions of c, or of 2c where they are exchanged."""
    keys = {"mode": "corrected", "neighbours": neighbours, "noise": noise, "sampling_rate": rate}
    step = {
        "iterations": 2,
        "learning_rate": 1e-3,
        "initial_similarity": s0,
        "clip": 0.5,
        "regularization": 0,
    }
    run = watched(entry("dpsgd_pnbm", **keys, **step), SINGLES, [1.0, 8.0])
    exchanged = neighbours != "user"
    for lane, epsilon in enumerate((1.0, 8.0)):
        law, scale = stats.norm, multiplier(epsilon, 2, exchanged)
        if noise == "laplace":
            before = np.log(1 + (np.exp(0.4 * epsilon / 2) - 1) / rate)
            law, scale = stats.laplace, (2 if exchanged else 1) / before
        for t in (1, 2):
            assert_law(run.moves(t, lane), law, 1e-3 * 0.5 / s0 * scale)
    assert run.ledger.provable == pytest.approx([1.0, 8.0])
    assert run.ledger.claimed == pytest.approx([1.0, 8.0])
    if noise == "laplace":
        claims = [each.claimed for each in run.ledger.entries[-2:]]
        assert claims == [pytest.approx([0.2, 1.6])] * 2


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


# DPPS-PNBM

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


# Both methods, certified


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm", "private_constant_nbm"])
def test_neighbours_are_chosen_by_what_is_public_alone(key: str) -> None:
    """In corrected mode neighbours are found from who rated what if that is public. In published mode they
    always are."""
    for neighbours, mode in sorted(PRIVATE[key].variants):
        public = mode == "published" or neighbours == "bounded"
        chosen = {"neighbourhood": 3} if public else {}
        algorithm = entry(key, neighbours=neighbours, mode=mode, **chosen)
        found = fit(algorithm, RATINGS)[0].groups[0].neighbours
        assert np.array_equal(found, most_co_rated(RATINGS, 3) if public else all_others(12))


def partly_in(train: Ratings, sampled: NDArray[np.bool_]) -> Array:
    """(n,) the users of whom a sample has some ratings, but not all."""
    shares = np.bincount(train.users, sampled, train.n_users) / np.maximum(train.user_counts, 1)
    return np.asarray((shares > 0) & (shares < 1))


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm"])
def test_samples_are_of_users_where_they_are_certified_and_of_ratings_as_published(
    key: str, watched: Callable[..., Run]
) -> None:
    train = make_ratings(7, n_users=800, n_items=10, density=0.5)
    more = {"sampling_rate": 0.3, "iterations": 3}
    corrected = watched(entry(key, mode="corrected", noise="laplace", **more), train, [1.0])
    for sampled in corrected.samples:
        assert not partly_in(train, sampled).any()
        assert len(np.unique(train.users[sampled])) == pytest.approx(240, abs=5 * np.sqrt(800 * 0.21))
    one, other = (np.bincount(train.users, sampled, 800) > 0 for sampled in corrected.samples[:2])
    assert np.mean(one & other) == pytest.approx(0.09, abs=0.05)
    for sampled in watched(entry(key, mode="published", **more), train, [1.0]).samples:
        assert partly_in(train, sampled).mean() > 0.4
        assert sampled.mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / len(train)))


@pytest.mark.parametrize(("key", "neighbours"), [("dpsgd_pnbm", "bounded"), ("dpps_pnbm", "user")])
def test_sampled_steps_and_averages_compose_to_the_budget(
    key: str, neighbours: str, watched: Callable[..., Run]
) -> None:
    """With dp_accounting only, from the multiplier and the μ of the averages in the ledger."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    algorithm = entry(key, mode="corrected", neighbours=neighbours, sampling_rate=0.2, iterations=5)
    ledger = watched(algorithm, RATINGS, [2.0]).ledger
    exchange = neighbours != "user"
    relation = NeighboringRelation.REPLACE_ONE if exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = PLDAccountant(relation, 1e-3)
    *averages, steps = ledger.entries
    square = sum(float(step.mu[0]) ** 2 for step in averages if step.mu is not None)
    theta = mu_of_epsilon(2.0, 1e-6) / np.sqrt(0.02**2 + 0.58**2 + 0.4**2)
    assert square == pytest.approx((0.02**2 + 0.58**2) * theta**2)
    accountant.compose(GaussianDpEvent((2 if exchange else 1) / np.sqrt(square)))
    assert steps.sampled is not None
    assert (steps.sampled.rate, steps.sampled.repetitions) == (0.2, 5)
    event = PoissonSampledDpEvent(0.2, GaussianDpEvent(float(steps.sampled.multiplier[0])))
    accountant.compose(event, 5)
    assert accountant.get_epsilon(1e-6) == pytest.approx(2.0, rel=5e-3)
    assert ledger.provable == pytest.approx([2.0], rel=1e-3)
    assert ledger.provable[0] <= 2.0


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_corrected_mode_clips_every_user_to_its_contribution(
    key: str, noise: str, watched: Callable[..., Run]
) -> None:
    """All of a step on the ratings of one user is that user's contribution."""
    norm = 1 if noise == "laplace" else 2
    more: dict[str, Any] = {"learning_rate": 1.0} if key == "dpsgd_pnbm" else {"initial_rate": 2.0}
    algorithm = entry(
        key,
        mode="corrected",
        neighbours="user",
        noise=noise,
        clip=0.02,
        iterations=1,
        regularization=0,
        **more,
    )
    only = RATINGS.select(RATINGS.users == int(np.argmax(RATINGS.user_counts)))
    moved = watched(algorithm, only, [np.inf]).moves(1)
    length = np.linalg.norm(moved, norm)
    assert 0.25 * 0.02 < length <= 0.02 * (1 + 1e-4)
