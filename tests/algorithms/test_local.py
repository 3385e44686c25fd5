"""The local model's methods against plain NumPy, and what their papers and this project say of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.algorithms.factorization import initial_factors
from dpmf_cli.algorithms.local_averages import LocalMeans, shrunk_means, spread
from dpmf_cli.algorithms.local_factorization import LocalMatrixFactorization, LocalSGD
from dpmf_cli.algorithms.mixture_factorization import MixtureFactorization
from dpmf_cli.algorithms.private_gradients import Devices, PrivateGradientMF
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.sgd_factorization import SGDFactorization
from dpmf_cli.kernels.factors import FactorLanes, factor_lanes
from dpmf_cli.kernels.mixture import Mixture
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import (
    PerturbedRatings,
    SignChannel,
    perturb_ratings,
    value_towards_the_aggregator,
)
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
from tests.algorithms.test_contract import fit, predict_all
from tests.conftest import make_ratings

RATINGS = make_ratings(3)
STREAMS = Streams(1, "data", "test", 0, 0)
ENTRIES = [
    {"algorithm": key, "mechanism": mechanism, **({"factors": 2} if key != "local_means" else {})}
    for key in ("local_mf", "local_means", "isgd_local")
    for mechanism in ("blp", "laplace", "grr", "oue", "piecewise", "duchi")
]


def entry(**keys: Any) -> Any:
    if keys["algorithm"] == "local_means" and keys.get("mechanism") in ("oue", "piecewise", "duchi"):
        keys["debias"] = False
    return PRIVATE[keys["algorithm"]].model_validate(keys)


def received(algorithm: Any, epsilons: list[float]) -> PerturbedRatings:
    rng = STREAMS.generator("messages")
    device = algorithm.device(RATINGS.scale)
    return perturb_ratings(RATINGS, device, debias=algorithm.debias, rng=rng, ledger=Ledger(epsilons))


@pytest.mark.parametrize("keys", ENTRIES, ids=lambda keys: f"{keys['algorithm']}-{keys['mechanism']}")
@pytest.mark.parametrize("scale", [Scale(1, 5, 1), Scale(-10, 10)], ids=str)
def test_every_mechanism_is_followed_by_the_same_method(keys: dict[str, Any], scale: Scale) -> None:
    train = make_ratings(5, scale=scale)
    algorithm = entry(**keys)
    model, ledger = fit(algorithm, train, [0.5, 5.0])
    predictions = predict_all(model, train)
    assert predictions.shape == (2400, 2)
    assert np.isfinite(predictions).all()
    assert ledger.provable.tolist() == [0.5, 5.0]
    assert np.array_equal(predict_all(fit(algorithm, train, [5.0])[0], train)[:, 0], predictions[:, 1])


def plain_als(values: np.ndarray, p: np.ndarray, q: np.ndarray, ridge: float, iterations: int) -> np.ndarray:
    """(n,) predictions of the training ratings."""
    p, q = p.copy(), q.copy()
    for _ in range(iterations):
        for own, other, mine, theirs in (
            (p, q, RATINGS.users, RATINGS.items),
            (q, p, RATINGS.items, RATINGS.users),
        ):
            for row in range(len(own)):
                at = mine == row
                x = other[theirs[at]]
                own[row] = np.linalg.solve(x.T @ x + ridge * at.sum() * np.eye(x.shape[1]), x.T @ values[at])
    return np.asarray((p[RATINGS.users] * q[RATINGS.items]).sum(axis=1))


def started(algorithm: Any) -> tuple[np.ndarray, np.ndarray]:
    law = algorithm.initial_factors
    users = law.draw(RATINGS.n_users, algorithm.factors, STREAMS.generator("initial user factors"))
    return users, law.draw(RATINGS.n_items, algorithm.factors, STREAMS.generator("initial item factors"))


def test_local_mf_is_plain_alternating_least_squares() -> None:
    algorithm = entry(algorithm="local_mf", factors=3, iterations=4)
    got = received(algorithm, [1.0, 4.0])
    model = algorithm.aggregate(got, STREAMS)
    found = model.predict(RATINGS.users, RATINGS.items)
    for e in range(2):
        expected = plain_als(got.column(e).astype(float), *started(algorithm), algorithm.regularization, 4)
        assert found[:, e] == pytest.approx(expected, abs=1e-4)


def plain_sgd(
    values: np.ndarray, p: np.ndarray, q: np.ndarray, rate: float, ridge: float, epochs: int
) -> np.ndarray:
    p, q = p.copy(), q.copy()
    for _ in range(epochs):
        for u, i, r in zip(RATINGS.users, RATINGS.items, values, strict=True):
            error = r - p[u] @ q[i]
            p[u], q[i] = (
                p[u] + rate * (error * q[i] - ridge * p[u]),
                q[i] + rate * (error * p[u] - ridge * q[i]),
            )
    return np.asarray((p[RATINGS.users] * q[RATINGS.items]).sum(axis=1))


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_sgd_is_plain_sgd(ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    in_order = "dpmf_cli.algorithms.{}.visiting_order"
    for module in ("local_factorization", "sgd_factorization"):
        monkeypatch.setattr(in_order.format(module), lambda pairs, kind, rng: np.arange(len(pairs)))
    keys = {"factors": 3, "epochs": 3, "regularization": ridge}
    algorithm = entry(algorithm="isgd_local", **keys)
    got = received(algorithm, [1.0, 4.0])
    found = algorithm.aggregate(got, STREAMS).predict(RATINGS.users, RATINGS.items)
    for e in range(2):
        expected = plain_sgd(got.column(e).astype(float), *started(algorithm), 0.05, ridge, 3)
        assert found[:, e] == pytest.approx(expected, abs=1e-4)
    clean = SGDFactorization(algorithm="mf_sgd", **keys)  # type: ignore[arg-type]
    model = clean.fit(RATINGS, streams=STREAMS, ledger=Ledger([np.inf]))
    expected = plain_sgd((RATINGS.values - 1) / 4, *started(clean), 0.05, ridge, 3)
    assert model.predict(RATINGS.users, RATINGS.items)[:, 0] == pytest.approx(1 + 4 * expected, abs=5e-4)


def penalised_likelihood(
    algorithm: MixtureFactorization, got: PerturbedRatings, factors: FactorLanes, mixture: Mixture, lane: int
) -> float:
    """ln p(R*|U, V, Π, Σ) less what λ stands for."""
    p = factors.users.reshape(got.n_users, factors.factors + 1, -1)[:, :-1, lane].astype(float)
    q = factors.items.reshape(got.n_items, factors.factors + 1, -1)[:, :-1, lane].astype(float)
    errors = got.column(lane) - (p[got.users] * q[got.items]).sum(axis=1)
    variances = mixture.variances[:, lane, None]
    densities = np.exp(-(errors**2) / (2 * variances)) / np.sqrt(2 * np.pi * variances)
    norms = (got.user_counts * (p**2).sum(axis=1)).sum() + (got.item_counts * (q**2).sum(axis=1)).sum()
    return float(np.log((mixture.proportions[:, lane, None] * densities).sum(axis=0)).sum()) - (
        6 * algorithm.regularization * float(norms)
    )


@pytest.mark.parametrize("ridge", [1e-3, 0.04])
@pytest.mark.parametrize("mechanism", ["blp", "laplace"])
def test_the_likelihood_never_decreases(mechanism: str, ridge: float) -> None:
    algorithm = entry(
        algorithm="blp_mog_mf",
        factors=2,
        iterations=25,
        tolerance=0,
        regularization=ridge,
        mechanism=mechanism,
    )
    got = received(algorithm, [0.3, 3.0, 30.0])
    factors = factor_lanes(*started(algorithm), np.zeros((got.n_users, 3)), np.zeros((got.n_items, 3)))
    path = []
    for mixture in algorithm.steps(factors, got, got.groups[0], STREAMS):
        path.append([penalised_likelihood(algorithm, got, factors, mixture, lane) for lane in range(3)])
        assert mixture.proportions.sum(axis=0) == pytest.approx(1)
    rises = np.diff(path, axis=0)
    assert rises.min() > -1e-3  # float32
    assert rises.sum(axis=0).min() > 0.5


def plain_em(
    values: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    proportions: np.ndarray,
    variances: np.ndarray,
    ridge: float,
) -> tuple[np.ndarray, np.ndarray]:
    """One iteration in float64, p and q in place: the new proportions and variances, (K,) each."""

    def posterior() -> tuple[np.ndarray, np.ndarray]:
        errors = values - (p[RATINGS.users] * q[RATINGS.items]).sum(axis=1)
        heights = proportions * np.exp(-(errors[:, None] ** 2) / (2 * variances)) / np.sqrt(variances)
        return errors, heights / heights.sum(axis=1, keepdims=True)

    for own, other, mine, theirs in (
        (p, q, RATINGS.users, RATINGS.items),
        (q, p, RATINGS.items, RATINGS.users),
    ):
        weights = (posterior()[1] / variances).sum(axis=1)
        for row in range(len(own)):
            at = mine == row
            x, w = other[theirs[at]], weights[at]
            gram = (x.T * w) @ x + 12 * ridge * at.sum() * np.eye(x.shape[1])
            own[row] = np.linalg.solve(gram, (x.T * w) @ values[at])
    errors, gamma = posterior()
    counts = gamma.sum(axis=0)
    return counts / counts.sum(), (gamma * errors[:, None] ** 2).sum(axis=0) / counts


def test_em_is_plain_em() -> None:
    algorithm = entry(algorithm="blp_mog_mf", factors=2, iterations=4, tolerance=0)
    got = received(algorithm, [1.0, 8.0])
    factors = factor_lanes(*started(algorithm), np.zeros((got.n_users, 2)), np.zeros((got.n_items, 2)))
    mixtures = list(algorithm.steps(factors, got, got.groups[0], STREAMS))
    for lane in range(2):
        values = got.column(lane).astype(float)
        start = algorithm.initial_mixture(np.array([values.var() + 1e-6]), STREAMS)
        proportions, variances = start.proportions[:, 0], start.variances[:, 0]
        p, q = started(algorithm)
        for mixture in mixtures:
            proportions, variances = plain_em(values, p, q, proportions, variances, algorithm.regularization)
            assert mixture.proportions[:, lane] == pytest.approx(proportions, abs=1e-4)
            assert mixture.variances[:, lane] == pytest.approx(variances, rel=2e-3)
        expected = (p[got.users] * q[got.items]).sum(axis=1)
        assert factors.predict(got.users, got.items)[:, lane] == pytest.approx(expected, abs=1e-3)


def test_mf_of_what_means_leave_adds_them_back() -> None:
    """With a ridge that leaves no factors it predicts the means; with less, it fits better than they do."""
    keys = {"mechanism": "laplace", "debias": True, "means": True}
    means = fit(entry(algorithm="local_means", mechanism="laplace"), RATINGS, [50.0])[0]
    stiff = fit(entry(algorithm="local_mf", regularization=1e6, **keys), RATINGS, [50.0])[0]
    loose = fit(entry(algorithm="local_mf", factors=2, regularization=1e-3, **keys), RATINGS, [50.0])[0]
    received_alike = [model.unit.predict(RATINGS.users, RATINGS.items) for model in (means, stiff, loose)]
    assert received_alike[1] == pytest.approx(received_alike[0], abs=0.08)  # other streams, other messages
    errors = [np.std(1 + 4 * unit[:, 0] - RATINGS.values) for unit in received_alike]
    assert errors[2] < 0.9 * errors[0]


def test_a_model_that_has_converged_stops_alone() -> None:
    """A coarse tolerance ends some models of a grid before others; each is what it is by itself."""
    algorithm = entry(algorithm="blp_mog_mf", factors=2, iterations=60, tolerance=0.02)
    grid = [0.1, 1.0, 3.0, 10.0]
    together = predict_all(fit(algorithm, RATINGS, grid)[0], RATINGS)
    for index, epsilon in enumerate(grid):
        assert np.array_equal(
            predict_all(fit(algorithm, RATINGS, [epsilon])[0], RATINGS)[:, 0], together[:, index]
        )
    steps = {}
    for epsilon in grid:
        got = received(algorithm, [epsilon])
        factors = factor_lanes(*started(algorithm), np.zeros((got.n_users, 1)), np.zeros((got.n_items, 1)))
        steps[epsilon] = len(list(algorithm.steps(factors, got, got.groups[0], STREAMS)))
    assert len(set(steps.values())) > 1
    assert max(steps.values()) < 60


def test_variances_between_and_within_groups_are_found() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 60, 400)
    groups = np.repeat(np.arange(400), counts).astype(np.int32)
    values = (rng.normal(0, 0.3, 400)[groups] + rng.normal(0, 0.9, len(groups))).astype(np.float32)
    sums = np.bincount(groups, values)
    found = spread(sums, counts, float((values.astype(float) ** 2).sum()))
    assert found.within == pytest.approx(0.81, rel=0.05)
    assert found.between == pytest.approx(0.09, rel=0.25)
    means = shrunk_means(values, groups, counts)
    assert means == pytest.approx(sums / (counts + found.within / found.between))


def test_means_of_noise_alone_are_not_believed() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(200), 30).astype(np.int32)
    shrunk = [
        not shrunk_means(rng.normal(0, 5, 6000).astype(np.float32), groups, np.full(200, 30)).any()
        for _ in range(40)
    ]
    assert np.mean(shrunk) > 0.9


def test_groups_of_one_message_are_not_believed() -> None:
    values = np.random.default_rng(2).normal(0, 1e6, 50).astype(np.float32)
    assert not shrunk_means(values, np.arange(50, dtype=np.int32), np.ones(50, np.int64)).any()


def test_an_unbiased_mechanism_needs_no_debiasing() -> None:
    with pytest.raises(ValidationError, match="unbiased as it is"):
        LocalMatrixFactorization(algorithm="local_mf", mechanism="duchi", debias=True)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="unbiased as it is"):
        LocalMeans(algorithm="local_means", mechanism="oue", debias=True)  # type: ignore[arg-type]


def test_levels_are_for_mechanisms_that_have_them() -> None:
    with pytest.raises(ValidationError, match="has no levels"):
        LocalSGD(algorithm="isgd_local", levels=5)


def test_private_gradients_send_the_item_factors_down_in_every_iteration() -> None:
    algorithm = PrivateGradientMF(algorithm="pg_mf", factors=3, iterations=4)
    model, ledger = fit(algorithm, RATINGS, [1.0])
    assert model.traffic.messages == 5 * len(RATINGS)
    assert model.traffic.up == 5 * 3 * len(RATINGS)
    assert model.traffic.down_per_user == 4 * 40 * 3 * 4
    assert [step.mechanism for step in ledger.entries] == ["Duchi et al.", "Duchi et al. × 4"]
    assert ledger.entries[0].claimed == pytest.approx([0.05])


def gradients_of(ratings: Ratings, method: PrivateGradientMF, user: int) -> np.ndarray:
    """(n_u,) the numbers that a user's devices would report in the first iteration, for one coordinate."""
    starts = initial_factors(ratings, method.initial_factors, method.factors, STREAMS)
    model = factor_lanes(*starts, np.full((ratings.n_users, 1), 0.5), np.zeros((ratings.n_items, 1)))
    devices = Devices(ratings, method)
    devices.fit_users([model])
    mine = slice(*ratings.user_starts[user : user + 2])
    errors = devices.values[mine] - model.predict(ratings.users[mine], ratings.items[mine])[:, 0]
    rows = model.users.reshape(ratings.n_users, method.factors + 1, -1)
    return np.asarray(errors * rows[user, 0, 0])


def test_one_rating_moves_all_reports_of_its_user_and_the_ledger_says_so() -> None:
    """Published: n·ε is proved for a rating. A report of each rating at ε would be ε-DP only if p_u did not depend
    on the others."""
    method = PrivateGradientMF(algorithm="pg_mf", factors=3, iterations=4)
    user = int(RATINGS.user_counts.argmax())
    values = RATINGS.values.copy()
    first = RATINGS.user_starts[user]
    values[first] = 1 if values[first] > 3 else 5
    neighbour = replace(RATINGS, values=values)
    moved = gradients_of(RATINGS, method, user) != gradients_of(neighbour, method, user)
    assert moved.sum() == RATINGS.user_counts[user]
    _, ledger = fit(method, RATINGS, [1.0])
    assert ledger.claimed == pytest.approx([1.0])
    assert ledger.provable == pytest.approx([0.05 + 0.95 * RATINGS.user_counts.max()])


def test_corrected_private_gradients_send_one_report_a_user_and_iteration() -> None:
    method = PrivateGradientMF(algorithm="pg_mf", factors=3, iterations=4, mode=Mode.CORRECTED)
    model, ledger = fit(method, RATINGS, [1.0])
    assert ledger.provable == pytest.approx([1.0])
    assert model.traffic.messages == len(RATINGS) + 4 * (RATINGS.user_counts > 0).sum()


def test_one_report_that_counts_for_all_has_the_mean_of_a_report_of_each() -> None:
    method = PrivateGradientMF(algorithm="pg_mf", factors=2)
    devices, rng = Devices(RATINGS, method), np.random.default_rng(3)
    counted = np.zeros(len(RATINGS))
    draws = 4000
    for _ in range(draws):
        rows = devices.reported_rows(rng)
        assert np.array_equal(RATINGS.users[rows], np.flatnonzero(RATINGS.user_counts))
        counted[rows] += RATINGS.user_counts[RATINGS.users[rows]]
    largest = float(RATINGS.user_counts.max())
    assert counted / draws == pytest.approx(np.ones(len(RATINGS)), abs=5 * np.sqrt(largest / draws))


@pytest.mark.parametrize("mode", Mode)
def test_private_gradients_without_noise_fit_better_than_their_start(mode: Mode) -> None:
    """At ε = ∞ a report is still a random sign; over many small steps they descend all the same."""
    keys: dict[str, Any] = {"factors": 2, "iterations": 60, "mode": mode, "learning_rate": 0.05}
    errors = []
    for method in (
        PrivateGradientMF(algorithm="pg_mf", **keys),
        PrivateGradientMF(algorithm="pg_mf", **{**keys, "learning_rate": 1e-9}),
    ):
        model, _ = fit(method, RATINGS, [1e6])
        found = model.predict(RATINGS.users, RATINGS.items)[:, 0]
        errors.append(float(np.std(found - RATINGS.values)))
    assert errors[0] < 0.995 * errors[1]


def test_the_step_on_items_sees_no_users_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = PrivateGradientMF.descend

    def watched(self: PrivateGradientMF, model: FactorLanes, *rest: Any) -> None:
        seen.append(model.users.size)
        real(self, model, *rest)

    monkeypatch.setattr(PrivateGradientMF, "descend", watched)
    fit(PrivateGradientMF(algorithm="pg_mf", factors=3, iterations=2), RATINGS, [1.0])
    assert seen == [0, 0]


def test_items_move_by_the_reports_mean() -> None:
    """γ·d·G times the sum of an item's reports of a coordinate, over its raters."""
    method = PrivateGradientMF(algorithm="pg_mf", factors=2, learning_rate=0.1, gradient_bound=0.5)
    starts = np.full((3, 2), 0.2), np.full((2, 2), 0.2)
    model = factor_lanes(*starts, np.zeros((3, 1)), np.zeros((2, 1)))
    channel = SignChannel(
        "test",
        repetitions=1,
        epsilon=np.array([np.inf]),
        sensitivity=value_towards_the_aggregator("test", np.array([3])),
        rng=np.random.default_rng(0),
        ledger=Ledger([np.inf]),
    )
    items, coordinates = np.array([0, 0, 1], np.int32), np.array([1, 1, 0], np.uint8)
    reports = channel.send(np.array([[1.0], [1.0], [-1.0]]), items, coordinates, 2)
    assert reports.numbers[:, 0].tolist() == [1, 1, -1]
    method.descend(model, reports, np.array([4, 2]), slice(0, 1), np.array([1, 2, 1]))
    moved = model.items.reshape(2, 3, -1)[:, :2, 0] - 0.2
    assert moved == pytest.approx(np.array([[0, 0.1 * 3 / 4], [-0.1 / 2, 0]]), abs=1e-6)
