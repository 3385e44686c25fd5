"""DPSGD-PNBM and DPPS-PNBM: the noise and the parameters of every step, as published and as certified.

What a step does with them, and the laws of noise, are tested with the kernels and the mechanisms.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.neighbourhood import all_others, most_co_rated
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.similarities import LearnedRatings, SimilarityStep, descend_noisy_similarities
from dpmf_cli.privacy.accounting import mu_of_epsilon
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Release
from tests.algorithms.fitted import entry
from tests.algorithms.test_pnbm import RATINGS, fit
from tests.conftest import make_ratings

EPSILONS = np.array([0.5, 4.0, 1000.0])
STEPS, S0, CLIP = 3, 4.0, 0.5


@dataclass(frozen=True)
class Taken:
    """A noisy step of a fit."""

    start: float
    scale: NDArray[np.float64]
    learned: LearnedRatings
    step: SimilarityStep


Watched = Callable[..., tuple[list[Taken], Ledger]]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Fits a neighbourhood method and records every noisy step."""
    taken: list[Taken] = []
    ordinary = Release.inside

    def inside(self: Any, kernel: Any, model: Any, learned: Any, step: Any) -> None:
        assert kernel is descend_noisy_similarities
        taken.append(Taken(float(model.groups[0].rows()[0, 0, 0]), self.scale, learned, step))
        ordinary(self, kernel, model, learned, step)

    def watch(algorithm: Any, train: Ratings, epsilons: list[float]) -> tuple[list[Taken], Ledger]:
        taken.clear()
        _, ledger = fit(algorithm, train, epsilons)
        return list(taken), ledger

    monkeypatch.setattr(Release, "inside", inside)
    return watch


@dataclass(frozen=True)
class Expected:
    """The noise (E,) and the parameters of a step."""

    scale: NDArray[np.float64]
    rates: NDArray[np.float64]
    regularization: float
    error_bound: float = np.inf
    floor: float = 0.0
    norm: int = 2
    limits: NDArray[np.float64] = field(default_factory=lambda: np.array(np.inf))
    everywhere: bool = True


def published_descent(t: int, rate: float) -> Expected:
    """Noise of Δ_t·Kγ/ε on what the sample touches, tᵃ times the gradient, errors within e_t, Σ|s| ≥ C."""
    bound = 0.5 + 3 / (t + 1)
    scale = 2 * bound * 4 / 10 * STEPS * rate / EPSILONS
    return Expected(scale, np.full(3, 0.1 * t**2), 0.7 / t**2, bound, 10.0, everywhere=False)


def published_langevin(t: int, rate: float) -> Expected:
    """(η_t/2)·min(ε/4B, 1)·(Σ_sample/γ + λS) with B = 16τ; noise of variance ρη_t at every ε."""
    eta = 0.5 / np.sqrt(t)
    rates = eta / 2 * np.minimum(EPSILONS / (4 * 16 * 2), 1) / rate
    return Expected(np.sqrt(0.04 * eta) / rates, rates, 0.7 * rate)


def certified(t: int, rate: float, key: str, noise: str, neighbours: str) -> Expected:
    """The steps' 0.4 of the budget, for users' gradients of norm c. Laplace: ε₀ = ln(1 + (e^ε_t − 1)/γ)."""
    exchanged, contribution, counts = neighbours != "user", CLIP / S0, np.maximum(RATINGS.user_counts, 1)
    times = 2 if exchanged else 1
    if noise == "laplace":
        scale = times * contribution / np.log(1 + (np.exp(0.4 * EPSILONS / STEPS) - 1) / rate)
        deviation, limits = np.sqrt(2) * scale, contribution / counts
    else:
        theta = np.array([mu_of_epsilon(each, 1e-6) for each in EPSILONS]) / np.hypot(
            np.hypot(0.02, 0.58), 0.4
        )
        scale = times * contribution * np.sqrt(STEPS) / (0.4 * theta)
        deviation, limits = scale, contribution / np.sqrt(counts)
    eta = 0.5 / np.sqrt(t)
    rates = {
        "dpsgd_pnbm": np.minimum(0.1, 0.2 * S0 / (deviation * np.sqrt(STEPS))),
        "dpps_pnbm": np.minimum(eta / 2, np.sqrt(0.04 * eta) / deviation),
    }[key]
    return Expected(scale, rates, 0.7, norm=1 if noise == "laplace" else 2, limits=limits)


KEYS: dict[str, dict[str, Any]] = {
    "dpsgd_pnbm": {"learning_rate": 0.1},
    "dpps_pnbm": {"initial_rate": 0.5, "decay": 0.5, "temperature": 0.04},
}
COMMON = {"iterations": STEPS, "initial_similarity": S0, "regularization": 0.7}
PUBLISHED: dict[str, dict[str, Any]] = {
    "dpsgd_pnbm": {"floor": 10, "upscaling": 2},
    "dpps_pnbm": {"most_ratings": 2},
}
CERTIFIED = [
    (key, noise, neighbours, rate)
    for key in KEYS
    for noise, rate in (("gaussian", 1.0), ("laplace", 1.0), ("laplace", 0.3))
    for neighbours in sorted({str(kind) for kind, mode in PRIVATE[key].variants if mode == "corrected"})
]


def assert_steps(found: list[Taken], expected: Callable[[int], Expected]) -> None:
    assert len(found) == STEPS
    assert found[0].start == S0
    for t, taken in enumerate(found, start=1):
        wanted = expected(t)
        assert taken.scale == pytest.approx(wanted.scale, rel=1e-3)
        assert taken.step.rates == pytest.approx(wanted.rates, rel=1e-3)
        assert taken.learned.limits == pytest.approx(np.broadcast_to(wanted.limits, RATINGS.n_users))
        assert (taken.learned.norm, taken.step.everywhere) == (wanted.norm, wanted.everywhere)
        for name in ("regularization", "error_bound", "floor"):
            assert asdict(wanted)[name] == pytest.approx(getattr(taken.step, name))


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize(
    ("key", "expected"), [("dpsgd_pnbm", published_descent), ("dpps_pnbm", published_langevin)]
)
def test_published_steps_are_their_docstrings_and_prove_nothing(
    key: str, expected: Callable[[int, float], Expected], rate: float, watched: Watched
) -> None:
    algorithm = entry(key, **COMMON, **KEYS[key], **PUBLISHED[key], sampling_rate=rate)
    found, ledger = watched(algorithm, RATINGS, [*EPSILONS])
    assert_steps(found, lambda t: expected(t, rate))
    assert found[0].learned.train.user_counts.max() == (
        2 if key == "dpps_pnbm" else RATINGS.user_counts.max()
    )
    averages, *steps = ledger.entries
    assert not averages.claimed.any()
    assert sum(step.claimed for step in steps) == pytest.approx(EPSILONS)
    assert np.isinf([each.provable for each in ledger.entries]).all()


@pytest.mark.parametrize(("key", "noise", "neighbours", "rate"), CERTIFIED)
def test_corrected_steps_are_what_their_part_of_the_budget_allows(
    key: str, noise: str, neighbours: str, rate: float, watched: Watched
) -> None:
    given = {"mode": "corrected", "neighbours": neighbours, "noise": noise, "clip": CLIP}
    if key == "dpsgd_pnbm":
        given["step_noise"] = 0.2
    algorithm = entry(key, **COMMON, **KEYS[key], **given, sampling_rate=rate)
    found, ledger = watched(algorithm, RATINGS, [*EPSILONS])
    assert_steps(found, lambda t: certified(t, rate, key, noise, neighbours))
    assert {entry.mechanism.split()[0].rstrip(",").lower() for entry in ledger.entries[-1:]} == {noise}


@pytest.mark.parametrize("mode", ["published", "corrected"])
@pytest.mark.parametrize("key", KEYS)
def test_of_users_with_few_ratings_nothing_is_learned(key: str, mode: str, watched: Watched) -> None:
    """They are those with few ratings before any are removed."""
    least = int(np.median(RATINGS.user_counts)) + 1
    most = {"most_ratings": 3} if key == "dpps_pnbm" else {}
    (taken,), _ = watched(entry(key, mode=mode, least_ratings=least, iterations=1, **most), RATINGS, [1.0])
    kept = np.where(RATINGS.user_counts >= least, RATINGS.user_counts, 0)
    assert np.array_equal(taken.learned.train.user_counts, np.minimum(kept, most.get("most_ratings", 99)))
    assert not {"least_ratings", "upscaling"} & entry(key).parameters().keys()  # results keep their names


def test_who_has_no_choice_of_neighbours_is_told() -> None:
    with pytest.raises(ValidationError, match=r"every item is a neighbour if .*; remove `neighbourhood`"):
        entry("dpsgd_pnbm", mode="corrected", neighbours="user", neighbourhood=50)


@pytest.mark.parametrize("key", [*KEYS, "private_constant_nbm"])
def test_neighbours_are_chosen_by_what_is_public_alone(key: str) -> None:
    """In corrected mode neighbours are found from who rated what if that is public. In published mode they
    always are."""
    for neighbours, mode in sorted(PRIVATE[key].variants):
        public = mode == "published" or neighbours == "bounded"
        chosen = {"neighbourhood": 3} if public else {}
        algorithm = entry(key, neighbours=neighbours, mode=mode, **chosen)
        found = fit(algorithm, RATINGS)[0].groups[0].neighbours
        assert np.array_equal(found, most_co_rated(RATINGS, 3) if public else all_others(12))


@pytest.mark.parametrize("key", KEYS)
def test_samples_are_of_users_where_they_are_certified_and_of_ratings_as_published(
    key: str, watched: Watched
) -> None:
    train = make_ratings(7, n_users=800, n_items=10, density=0.5)
    for mode, most_split in (("corrected", 0), ("published", 800)):
        given = {"mode": mode, "sampling_rate": 0.3, "iterations": 3}
        samples = [taken.step.sampled for taken in watched(entry(key, **given), train, [1.0])[0]]
        for sampled in samples:
            shares = np.bincount(train.users, sampled, 800) / np.maximum(train.user_counts, 1)
            split = ((shares > 0) & (shares < 1)).sum()
            assert 0.4 * most_split <= split <= most_split
            assert shares.mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 800))
        assert np.mean(samples[0] & samples[1]) == pytest.approx(0.09, abs=0.05)
