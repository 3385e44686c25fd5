"""The local model's averages and factorisations against plain NumPy, after every mechanism.

BLP-MoG-MF: its iterations are those of EM in plain NumPy, until it stops.
"""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.algorithms.beyond.comparisons import shrunk_means, spread
from dpmf_cli.algorithms.shared.factorization import start_model
from dpmf_cli.core.ratings import Scale
from dpmf_cli.testing import fit, predict_all
from tests.algorithms import fitted
from tests.algorithms.fitted import descended, solved
from tests.algorithms.local_entries import RATINGS, STREAMS, entry, received, started
from tests.conftest import make_ratings

ENTRIES = [
    {"algorithm": key, "mechanism": mechanism, **({"factors": 2} if key != "local_means" else {})}
    for key in ("local_mf", "local_means", "isgd_local")
    for mechanism in ("blp", "laplace", "grr", "oue", "piecewise", "duchi")
]


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
    for _ in range(iterations):
        p = solved(values, q, RATINGS.users, RATINGS.items, lambda n: ridge * n)
        q = solved(values, p, RATINGS.items, RATINGS.users, lambda n: ridge * n)
    return np.asarray((p[RATINGS.users] * q[RATINGS.items]).sum(axis=1))


def test_local_mf_is_plain_alternating_least_squares() -> None:
    algorithm = entry(algorithm="local_mf", factors=2, iterations=4)
    got = received(algorithm, [1.0, 4.0])
    model = algorithm.aggregate(got, STREAMS)
    found = model.predict(RATINGS.users, RATINGS.items)
    for e in range(2):
        expected = plain_als(
            got.values.column(e).astype(float), *started(algorithm), algorithm.regularization, 4
        )
        assert found[:, e] == pytest.approx(expected, abs=1e-4)


def plain_sgd(values: np.ndarray, p: np.ndarray, q: np.ndarray, ridge: float) -> np.ndarray:
    descended(p, q, zip(RATINGS.users, RATINGS.items, values, strict=True), 0.05, ridge, 3)
    return np.asarray((p[RATINGS.users] * q[RATINGS.items]).sum(axis=1))


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_sgd_is_plain_sgd(ridge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    in_order = "dpmf_cli.algorithms.shared.factorization.visiting_order"
    monkeypatch.setattr(in_order, lambda pairs, kind, rng: np.arange(len(pairs)))
    keys = {"factors": 2, "epochs": 3, "regularization": ridge}
    algorithm = entry(algorithm="isgd_local", **keys)
    got = received(algorithm, [1.0, 4.0])
    found = algorithm.aggregate(got, STREAMS).predict(RATINGS.users, RATINGS.items)
    for e in range(2):
        expected = plain_sgd(got.values.column(e).astype(float), *started(algorithm), ridge)
        assert found[:, e] == pytest.approx(expected, abs=1e-4)
    clean = fitted.entry("mf_sgd", **keys)
    model, _ = fitted.fitted(clean, RATINGS, [], STREAMS)
    expected = plain_sgd((RATINGS.values - 1) / 4, *started(clean), ridge)
    assert model.predict(RATINGS.users, RATINGS.items)[:, 0] == pytest.approx(1 + 4 * expected, abs=5e-4)


def test_mf_of_what_means_leave_adds_them_back() -> None:
    """With a ridge that leaves no factors it predicts the means. With a smaller ridge it fits better than the
    means."""
    keys = {"mechanism": "laplace", "debias": True, "means": True}
    means = fit(entry(algorithm="local_means", mechanism="laplace"), RATINGS, [50.0])[0]
    stiff = fit(entry(algorithm="local_mf", regularization=1e6, **keys), RATINGS, [50.0])[0]
    loose = fit(entry(algorithm="local_mf", factors=2, regularization=1e-3, **keys), RATINGS, [50.0])[0]
    received_alike = [model.unit.predict(RATINGS.users, RATINGS.items) for model in (means, stiff, loose)]
    assert received_alike[1] == pytest.approx(received_alike[0], abs=0.08)  # other streams, other messages
    errors = [np.std(1 + 4 * unit[:, 0] - RATINGS.values) for unit in received_alike]
    assert errors[2] < 0.9 * errors[0]


def test_variances_between_and_within_groups_are_found() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 60, 400)
    groups = np.repeat(np.arange(400), counts).astype(np.int32)
    values = (rng.normal(0, 0.3, 400)[groups] + rng.normal(0, 0.9, len(groups))).astype(np.float32)
    sums = np.bincount(groups, values).astype(np.float64)
    within, between = spread(sums, counts, float((values.astype(float) ** 2).sum()))
    assert within == pytest.approx(0.81, rel=0.05)
    assert between == pytest.approx(0.09, rel=0.25)
    means = shrunk_means(values, groups, counts)
    assert means == pytest.approx(sums / (counts + within / between))


def test_means_of_noise_alone_or_of_one_message_are_not_believed() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(200), 30).astype(np.int32)
    shrunk = [
        not shrunk_means(rng.normal(0, 5, 6000).astype(np.float32), groups, np.full(200, 30)).any()
        for _ in range(40)
    ]
    assert np.mean(shrunk) > 0.9
    values = rng.normal(0, 1e6, 50).astype(np.float32)
    assert not shrunk_means(values, np.arange(50, dtype=np.int32), np.ones(50, np.int64)).any()


@pytest.mark.parametrize(
    ("key", "keys", "message"),
    [
        ("local_mf", {"mechanism": "duchi", "debias": True}, "unbiased already"),
        ("local_means", {"mechanism": "oue", "debias": True}, "unbiased already"),
        ("isgd_local", {"levels": 5}, "has no levels"),
    ],
)
def test_a_key_that_the_mechanism_has_no_use_for_is_refused(
    key: str, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        fitted.entry(key, **keys)


def plain_em(
    values: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    proportions: np.ndarray,
    variances: np.ndarray,
    ridge: float,
    order: str,
) -> tuple[np.ndarray, np.ndarray]:
    """One iteration in float64, p and q in place: the new proportions and variances, (K,) each."""

    def posterior() -> tuple[np.ndarray, np.ndarray]:
        errors = values - (p[RATINGS.users] * q[RATINGS.items]).sum(axis=1)
        heights = proportions * np.exp(-(errors[:, None] ** 2) / (2 * variances)) / np.sqrt(variances)
        return errors, heights / heights.sum(axis=1, keepdims=True)

    def maximised() -> tuple[np.ndarray, np.ndarray]:
        errors, gamma = posterior()
        counts = gamma.sum(axis=0)
        return counts / counts.sum(), (gamma * errors[:, None] ** 2).sum(axis=0) / counts

    if order == "mixture_first":
        proportions, variances = maximised()
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
    return (proportions, variances) if order == "mixture_first" else maximised()


@pytest.mark.parametrize(("mechanism", "ridge"), [("blp", 0.04), ("laplace", 1e-3)])
@pytest.mark.parametrize("order", ["factors_first", "mixture_first"])
def test_em_is_plain_em(order: str, mechanism: str, ridge: float) -> None:
    given = {"mechanism": mechanism, "regularization": ridge, "order": order}
    algorithm = entry(algorithm="blp_mog_mf", factors=2, iterations=4, tolerance=0, **given)
    got = received(algorithm, [1.0, 8.0])
    model = start_model(got, algorithm, STREAMS, grid=2)
    mixtures = list(algorithm.steps(model, got, STREAMS))
    for lane in range(2):
        values = got.values.column(lane).astype(float)
        start = algorithm.initial_mixture(np.array([values.var() + 1e-6]), STREAMS)
        proportions, variances = start.proportions[:, 0], start.variances[:, 0]
        p, q = started(algorithm)
        for mixture in mixtures:
            proportions, variances = plain_em(values, p, q, proportions, variances, ridge, order)
            assert mixture.proportions[:, lane] == pytest.approx(proportions, abs=1e-4)
            assert mixture.variances[:, lane] == pytest.approx(variances, rel=2e-3)
        expected = (p[got.users] * q[got.items]).sum(axis=1)
        assert model.predict(got.users, got.items)[:, lane] == pytest.approx(expected, abs=1e-3)


def test_models_that_have_converged_stop_alone() -> None:
    """A coarse tolerance ends some models of a grid before others. Each is the same as when it is fitted alone."""
    algorithm, grid = (
        entry(algorithm="blp_mog_mf", factors=2, iterations=60, tolerance=0.02),
        [0.1, 1.0, 3.0, 10.0],
    )
    together, steps = predict_all(fit(algorithm, RATINGS, grid)[0], RATINGS), set()
    for place, epsilon in enumerate(grid):
        alone = predict_all(fit(algorithm, RATINGS, [epsilon])[0], RATINGS)
        assert np.array_equal(alone[:, 0], together[:, place])
        got = received(algorithm, [epsilon])
        steps.add(len(list(algorithm.steps(start_model(got, algorithm, STREAMS), got, STREAMS))))
    assert 1 < len(steps) <= max(steps) < 60


def test_results_of_the_usual_order_keep_their_names() -> None:
    """Results of versions that had no other setting are still found."""
    usual, listed = (
        entry(algorithm="blp_mog_mf", order=order).parameters()
        for order in ("factors_first", "mixture_first")
    )
    assert listed == {**usual, "order": "mixture_first"}
