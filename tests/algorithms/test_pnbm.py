"""Item neighbourhoods: what predicts against direct formulas, what learns, and the laws of the noise that it meets."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import stats

from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.certified_descent import CertifiedDescent
from dpmf_cli.algorithms.correlation_knn import PearsonKNN
from dpmf_cli.algorithms.neighbourhood import all_others, largest, most_co_rated, start_models
from dpmf_cli.algorithms.posterior_pnbm import PosteriorPNBM
from dpmf_cli.algorithms.ratings_per_user import at_most
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.datasets import load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.folds import assign_folds, split
from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.similarities import Visits, descend_similarities
from dpmf_cli.privacy.accounting import mu_of_epsilon
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
from tests.conftest import make_ratings

Array = NDArray[Any]

RATINGS = make_ratings(5, n_users=25, n_items=12, density=0.5)
SCALE = Scale(1, 5, 1)


def fit(algorithm: Algorithm, train: Ratings, epsilons: list[float] | None = None) -> tuple[Any, Ledger]:
    if isinstance(algorithm, PrivateAlgorithm):
        ledger = Ledger(epsilons or [1.0], algorithm.mode, algorithm.spends_delta)
    else:
        ledger = Ledger([np.inf])
    streams = Streams(3, "data", algorithm.algorithm, 0, 0)
    return algorithm.fit(train, streams=streams, ledger=ledger), ledger


def predictions(algorithm: Algorithm, train: Ratings) -> Array:
    """(n_users, n_items)"""
    users, items = (
        part.astype(np.int32) for part in np.divmod(np.arange(train.n_users * train.n_items), train.n_items)
    )
    found = fit(algorithm, train)[0].predict(users, items)[:, 0]
    return np.asarray(found.reshape(train.n_users, train.n_items))


def dense(train: Ratings) -> Array:
    """(n_users, n_items), NaN where there is no rating."""
    rows = np.full((train.n_users, train.n_items), np.nan)
    rows[train.users, train.items] = train.values
    return rows


def predicted(rows: Array, s: Array, k: int) -> Array:
    """Equation 2 with the k largest similarities s (n_items, n_items) of each item."""
    means, found = np.nanmean(rows, axis=0), np.empty_like(rows)
    for user, item in np.ndindex(*rows.shape):
        others = sorted((j for j in range(len(s)) if j != item), key=lambda j: -s[item, j])[:k]
        of = [j for j in others if np.isfinite(rows[user, j])]
        norm = np.abs(s[item, of]).sum()
        own = rows[user, of] - means[of]
        found[user, item] = means[item] + (s[item, of] @ own / norm if norm > 0 else 0.0)
    return found


def test_neighbours_are_those_with_the_most_common_raters() -> None:
    known = np.isfinite(dense(RATINGS)).astype(int)
    counts = known.T @ known
    found = most_co_rated(RATINGS, 4)
    assert found.shape == (12, 4)
    for item, row in enumerate(found):
        ranked = sorted((j for j in range(12) if j != item), key=lambda j: (-counts[item, j], j))
        assert row.tolist() == sorted(ranked[:4])
    assert np.array_equal(most_co_rated(RATINGS, 500), all_others(12))


def test_every_other_item_is_every_other_item() -> None:
    assert all_others(3).tolist() == [[1, 2], [0, 2], [0, 1]]
    assert all_others(3).dtype == np.int32
    assert all_others(1).shape == (1, 0)


def test_among_equals_the_lower_item_is_nearer() -> None:
    scores = np.array([[9.0, 1, 1, 3, 1], [2.0, 9, -1, -1, -1]])
    assert largest(scores, slice(0, 2), 3).tolist() == [[1, 2, 3], [0, 2, 3]]


def test_ratings_are_removed_at_random_from_users_with_too_many() -> None:
    """Of 12 ratings 4 stay: each in a third of 4,000 draws, and each pair in 1/11 of them."""
    train = Ratings(
        np.repeat(np.arange(3, dtype=np.int32), [12, 3, 5]),
        np.concatenate([np.arange(12), np.arange(3), np.arange(5)]).astype(np.int32),
        np.arange(20, dtype=np.float32) % 5 + 1,
        3,
        12,
        SCALE,
    )
    rng, draws = np.random.default_rng(0), 4000
    kept = np.zeros((draws, 17))
    for draw in range(draws):
        some = at_most(train, 4, rng)
        assert some.user_counts.tolist() == [4, 3, 4]
        kept[draw, some.items[some.users == 0]] = 1
        kept[draw, 12 + some.items[some.users == 2]] = 1
    together = kept.T @ kept / draws
    shares = np.where(np.arange(17) < 12, 1 / 3, 4 / 5)
    expected = np.outer(shares, shares)  # users are independent of each other
    expected[:12, :12], expected[12:, 12:] = 1 / 11, 3 / 5
    np.fill_diagonal(expected, shares)
    error = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(together - expected) < 5 * error).all()
    assert (5 * error[:12, :12] < 0.3 * expected[:12, :12]).all()
    assert np.array_equal(at_most(train, 12, rng).values, train.values)


@pytest.mark.parametrize("k", [3, 100])
def test_pcc_is_its_formula(k: int) -> None:
    rows = dense(RATINGS)
    centred = rows - np.nanmean(rows, axis=0)
    assert predictions(BASELINES["pcc"](algorithm="pcc", k=k), RATINGS) == pytest.approx(
        predicted(rows, over_common_raters(centred), k), abs=1e-4
    )


@pytest.mark.parametrize("k", [3, 100])
@pytest.mark.parametrize("over", ["raters", "co_raters"])
def test_cos_is_its_formula(over: str, k: int) -> None:
    rows = dense(RATINGS)
    filled = np.nan_to_num(rows)
    norms = np.sqrt((filled**2).sum(axis=0))
    s = over_common_raters(rows) if over == "co_raters" else filled.T @ filled / np.outer(norms, norms)
    cos = BASELINES["cos"].model_validate({"algorithm": "cos", "over": over, "k": k})
    assert predictions(cos, RATINGS) == pytest.approx(predicted(rows, s, k), abs=1e-4)


def over_common_raters(values: Array) -> Array:
    s = np.zeros((values.shape[1],) * 2)
    for i, j in np.ndindex(*s.shape):
        x, y = values[np.isfinite(values[:, i]) & np.isfinite(values[:, j])][:, [i, j]].T
        norm = np.sqrt((x**2).sum() * (y**2).sum())
        s[i, j] = (x * y).sum() / norm if norm > 0 else 0.0
    return s


@pytest.mark.parametrize("k", [3, 100])
def test_constant_similarity_is_a_mean_over_the_neighbours(k: int) -> None:
    rows = dense(RATINGS)
    counts = np.isfinite(rows).astype(float).T @ np.isfinite(rows).astype(float)
    means, found = np.nanmean(rows, axis=0), np.empty_like(rows)
    for user, item in np.ndindex(*rows.shape):
        near = sorted((j for j in range(12) if j != item), key=lambda j: (-counts[item, j], j))[:k]
        own = [rows[user, j] - means[j] for j in near if np.isfinite(rows[user, j])]
        found[user, item] = means[item] + (np.mean(own) if own else 0.0)
    constant = BASELINES["constant_nbm"](algorithm="constant_nbm", k=k)
    assert predictions(constant, RATINGS) == pytest.approx(found, abs=1e-5)


def error_on(algorithm: Algorithm, train: Ratings, test: Ratings) -> float:
    found = fit(algorithm, train)[0].predict(test.users, test.items)[:, 0]
    return float(np.sqrt(np.mean((found - test.values) ** 2)))


def test_pnbm_learns_more_with_every_step() -> None:
    pnbm = BASELINES["pnbm"]
    errors = [error_on(BASELINES["constant_nbm"](algorithm="constant_nbm"), RATINGS, RATINGS)]
    for steps in (1, 3, 10):
        algorithm = pnbm(algorithm="pnbm", learning_rate=1, iterations=steps)
        errors.append(error_on(algorithm, RATINGS, RATINGS))
    assert all(after < 0.97 * before for before, after in pairwise(errors))


def test_pnbm_depends_on_the_step_in_units_of_its_start_alone() -> None:
    """r̂ is free of the scale of S: η/s₀² and λ·η decide."""
    one, other = (
        BASELINES["pnbm"](
            algorithm="pnbm",
            initial_similarity=s0,
            learning_rate=0.2 * s0**2,
            regularization=0.1 / s0**2,
            iterations=4,
        )
        for s0 in (1.0, 4.0)
    )
    assert predictions(one, RATINGS) == pytest.approx(predictions(other, RATINGS), abs=1e-5)


def test_pnbm_is_regularized() -> None:
    free, shrunk = (
        BASELINES["pnbm"](algorithm="pnbm", learning_rate=0.5, iterations=1, regularization=of)
        for of in (0.0, 0.3)
    )
    difference = fit(free, RATINGS)[0].groups[0].values - fit(shrunk, RATINGS)[0].groups[0].values
    assert difference.reshape(12, 11, -1)[:, :, 0] == pytest.approx(0.5 * 0.3, abs=1e-6)


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm", "private_constant_nbm"])
def test_neighbours_are_chosen_by_what_is_public_alone(key: str) -> None:
    """In corrected mode, by who rated what where that is public; published ones by that always."""
    for neighbours, mode in sorted(PRIVATE[key].variants):
        public = mode == "published" or neighbours == "bounded"
        chosen = {"neighbourhood": 3} if public else {}
        algorithm = entry(key, neighbours=neighbours, mode=mode, **chosen)
        found = fit(algorithm, RATINGS)[0].groups[0].neighbours
        assert np.array_equal(found, most_co_rated(RATINGS, 3) if public else all_others(12))


def test_on_ml_100k_constant_similarities_beat_item_averages_and_pnbm_beats_them(
    real_data: Path, session_cache: Path
) -> None:
    spec = CatalogSpec(name="ml-100k")
    ratings = load(spec, data=real_data, cache=session_cache, base=real_data).ratings
    train, test = split(ratings, assign_folds(len(ratings), 5, np.random.default_rng(1)), 0)
    averages, constant, pnbm = (
        error_on(BASELINES[key].model_validate({"algorithm": key}), train, test)
        for key in ("ia", "constant_nbm", "pnbm")
    )
    assert constant < averages - 0.06
    assert pnbm < constant - 0.008


@dataclass(frozen=True)
class Run:
    """A fit: (K + 1, n_items, k, E) similarities from before the first step on, the ratings of each sample; ledger."""

    states: Array
    samples: list[NDArray[np.bool_]]
    ledger: Ledger

    def moves(self, step: int, lane: int = 0) -> Array:
        """(n_items·k,) of step t = 1, 2, …"""
        return np.asarray(self.states[step] - self.states[step - 1])[..., lane].ravel()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    states: list[Array] = []
    samples: list[NDArray[np.bool_]] = []
    ordinary = CertifiedDescent.step

    def state(models: Any) -> Array:
        return np.concatenate(
            [m.values.reshape(*m.neighbours.shape, -1)[..., : m.lanes].astype(np.float64) for m in models], -1
        )

    def step(self: Any, models: Any, visits: Any, sampled: Any, *rest: Any, **more: Any) -> None:
        if not states:
            states.append(state(models))
        ordinary(self, models, visits, sampled, *rest, **more)
        states.append(state(models))
        samples.append(sampled)

    def watch(algorithm: PrivateAlgorithm, train: Ratings, epsilons: list[float]) -> Run:
        states.clear()
        samples.clear()
        _, ledger = fit(algorithm, train, epsilons)
        return Run(np.array(states), list(samples), ledger)

    monkeypatch.setattr(CertifiedDescent, "step", step)
    return watch


def entry(key: str, **parameters: Any) -> PrivateAlgorithm:
    return PRIVATE[key].model_validate({"algorithm": key, **parameters})


def has_law(sample: Array, law: Any) -> bool:
    """Kolmogorov and Smirnov's test; with 9,900 numbers it sees scales that are a fifth too small or too large."""
    return float(stats.kstest(sample, law.cdf).pvalue) > 1e-4


def assert_law(sample: Array, family: Any, scale: float) -> None:
    assert has_law(sample, family(scale=scale))
    for factor in (0.8, 1.25):
        assert not has_law(sample, family(scale=factor * scale))


VARIED = make_ratings(6, 120, 100, 0.5)
CONSTANT = replace(VARIED, values=np.full_like(VARIED.values, 3.0))
"""Every prediction is right, so that a step is noise; and every pair of items has common raters."""

SINGLES = Ratings(
    np.arange(200, dtype=np.int32),
    (np.arange(200) % 100).astype(np.int32),
    (np.arange(200) % 5 + 1).astype(np.float32),
    200,
    100,
    SCALE,
)
"""One rating a user: nobody has a neighbour of anything, so that a step is noise whatever the averages are."""


@pytest.mark.parametrize("sampling", [1.0, 0.02])
def test_published_noise_is_laplace_of_the_published_scale(
    sampling: float, watched: Callable[..., Run]
) -> None:
    """Δ_t·Kγ/ε with Δ_t = 2(0.5 + 3/(t + 1))·4/C, on what the sample touches and on nothing else."""
    floor, rate, epsilons = 10.0, 0.1, [0.5, 4.0]
    algorithm = entry(
        "dpsgd_pnbm", iterations=3, floor=floor, learning_rate=rate, sampling_rate=sampling, regularization=0
    )
    run = watched(algorithm, CONSTANT, epsilons)
    for t in (1, 2, 3):
        for lane, epsilon in enumerate(epsilons):
            moved = run.moves(t, lane)
            assert (np.count_nonzero(moved) == len(moved)) == (sampling == 1)
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
    assert np.array_equal(touched.ravel(), run.moves(1) != 0)


def test_published_steps_are_of_bounded_errors_over_at_least_c(watched: Callable[..., Run]) -> None:
    """|e| ≤ 0.5 + 3/(t + 1) and Σ|s| ≥ C, without noise: ε = ∞."""
    algorithm = entry("dpsgd_pnbm", iterations=4, floor=6, learning_rate=0.7, regularization=0.1)
    run = watched(algorithm, RATINGS, [np.inf])
    assert isinstance(algorithm, CertifiedDescent)
    averages = algorithm.item_averages(RATINGS, Streams(3, "", "", 0, 0), Ledger([1.0]))
    (model,) = start_models(all_others(12), 1.0, averages)
    visits = Visits(RATINGS, Raters.of(RATINGS), np.full(25, np.inf, np.float32))
    silence, everybody = np.zeros((12, 11), np.float32), np.ones(len(RATINGS), np.bool_)
    for t in (1, 2, 3, 4):
        descend_similarities(
            model,
            visits,
            everybody,
            silence,
            np.zeros(1),
            np.array([0.7]),
            regularization=0.1,
            error_bound=0.5 + 3 / (t + 1),
            floor=6.0,
        )
        wanted = model.values.reshape(12, 11, -1)[:, :, 0]
        assert run.states[t][..., 0] == pytest.approx(wanted, abs=1e-6)


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


def multiplier(epsilon: float, steps: int, exchange: bool) -> float:
    """σ/c of steps on everybody, whose μ is 0.4 of a θ that 0.02, 0.58 and 0.4 of together are μ(ε)."""
    theta = mu_of_epsilon(epsilon, 1e-6) / np.sqrt(0.02**2 + 0.58**2 + 0.4**2)
    return float((2 if exchange else 1) * np.sqrt(steps) / (0.4 * theta))


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
    """All noise together moves a similarity by `step_noise`·s₀."""
    algorithm = entry(
        "dpsgd_pnbm", mode="corrected", noise=noise, iterations=4, step_noise=0.2, initial_similarity=3
    )
    run = watched(algorithm, SINGLES, [0.1])
    assert (run.states[-1] - run.states[0]).std() == pytest.approx(0.6, rel=0.05)


def partly_in(train: Ratings, sampled: NDArray[np.bool_]) -> Array:
    """(n,) which users a sample has some ratings of, but not all."""
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
    """By dp_accounting alone, from the multiplier and the μ of the averages that the ledger records."""
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
        assert run.moves(t, 1) == pytest.approx(run.moves(t, 0), abs=1e-6)
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
    learned = at_most(RATINGS, most, Streams(3, "data", "dpps_pnbm", 0, 0).generator("ratings kept"))
    averages = algorithm.item_averages(RATINGS, Streams(3, "", "", 0, 0), Ledger([1.0]))
    neighbours = all_others(12)
    (model,) = start_models(neighbours, 1.0, averages)
    limits, silence = np.full(25, np.inf, np.float32), np.zeros(neighbours.shape, np.float32)
    visits = Visits(learned, Raters.of(learned), limits)
    descend_similarities(model, visits, run.samples[0], silence, np.zeros(1), np.ones(1))
    slope = 1 - model.values.reshape(12, 11, -1)[:, :, 0].astype(np.float64)
    wanted = -0.25 * (slope / sampling + regularization)
    for lane, power in enumerate((100 / (4 * 16 * most), 1.0)):
        assert run.moves(1, lane) == pytest.approx(power * wanted.ravel(), abs=1e-5)


def test_corrected_langevin_noise_is_the_published_and_its_drift_what_that_certifies(
    watched: Callable[..., Run],
) -> None:
    """√(ρη_t), or, where that would be more than the gradient without privacy gets, (η_t/2)·c·multiplier."""
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


def test_corrected_posterior_sampling_learns_from_so_many_ratings_of_a_user(
    watched: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    clipped = PosteriorPNBM._clipped

    def noting(self: PosteriorPNBM, train: Ratings) -> Any:
        seen.append(int(train.user_counts.max()))
        return clipped(self, train)

    monkeypatch.setattr(PosteriorPNBM, "_clipped", noting)
    watched(
        entry("dpps_pnbm", mode="corrected", neighbours="user", most_ratings=3, iterations=1), RATINGS, [1.0]
    )
    assert seen == [3]


def test_who_has_no_choice_of_neighbours_is_told() -> None:
    with pytest.raises(ValidationError, match="every item is a neighbour; remove `neighbourhood`"):
        entry("dpsgd_pnbm", mode="corrected", neighbours="user", neighbourhood=50)


def test_neighbours_of_correlations_are_the_most_similar_or_those_with_common_raters() -> None:
    common = most_co_rated(RATINGS, 5)
    streams = Streams(0, "d", "pcc", 0, 0)
    for kind, same in (("common_raters", True), ("similarity", False)):
        model = PearsonKNN(algorithm="pcc", k=5, nearest=kind).fit(
            RATINGS, streams=streams, ledger=Ledger([np.inf])
        )
        assert np.array_equal(model.groups[0].neighbours, common) == same
