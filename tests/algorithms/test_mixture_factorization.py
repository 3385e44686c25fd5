"""BLP-MoG-MF: its iterations are those of EM in plain NumPy, and its likelihood rises until it stops."""

from collections.abc import Sequence

import numpy as np
import pytest

from dpmf_cli.algorithms.neera2020.blp_mog_mf import MixtureFactorization
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.mixture import Mixture
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.testing import fit, predict_all
from tests.algorithms.local_entries import RATINGS, STREAMS, entry, received, started


def penalised_likelihood(
    algorithm: MixtureFactorization, got: PerturbedRatings, model: FactorModel, mixture: Mixture, lane: int
) -> float:
    """ln p(R*|U, V, Π, Σ) minus the penalty of λ."""
    (group,) = model.groups
    p, q = group.rows("users")[..., lane].astype(float), group.rows("items")[..., lane].astype(float)
    errors = got.values.column(lane) - (p[got.users] * q[got.items]).sum(axis=1)
    variances = mixture.variances[:, lane, None]
    densities = np.exp(-(errors**2) / (2 * variances)) / np.sqrt(2 * np.pi * variances)
    norms = (got.user_counts * (p**2).sum(axis=1)).sum() + (got.item_counts * (q**2).sum(axis=1)).sum()
    return float(np.log((mixture.proportions[:, lane, None] * densities).sum(axis=0)).sum()) - (
        6 * algorithm.regularization * float(norms)
    )


@pytest.mark.parametrize("ridge", [1e-3, 0.04])
@pytest.mark.parametrize("mechanism", ["blp", "laplace"])
@pytest.mark.parametrize("order", ["factors_first", "mixture_first"])
def test_the_likelihood_never_decreases(order: str, mechanism: str, ridge: float) -> None:
    algorithm = entry(
        algorithm="blp_mog_mf",
        factors=2,
        iterations=25,
        tolerance=0,
        regularization=ridge,
        mechanism=mechanism,
        order=order,
    )
    got = received(algorithm, [0.3, 3.0, 30.0])
    model = algorithm.start(got, STREAMS)
    path = []
    for mixture in algorithm.steps(model, got, STREAMS):
        path.append([penalised_likelihood(algorithm, got, model, mixture, lane) for lane in range(3)])
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


@pytest.mark.parametrize("order", ["factors_first", "mixture_first"])
def test_em_is_plain_em(order: str) -> None:
    algorithm = entry(algorithm="blp_mog_mf", factors=2, iterations=4, tolerance=0, order=order)
    got = received(algorithm, [1.0, 8.0])
    model = algorithm.start(got, STREAMS)
    mixtures = list(algorithm.steps(model, got, STREAMS))
    for lane in range(2):
        values = got.values.column(lane).astype(float)
        start = algorithm.initial_mixture(np.array([values.var() + 1e-6]), STREAMS)
        proportions, variances = start.proportions[:, 0], start.variances[:, 0]
        p, q = started(algorithm)
        for mixture in mixtures:
            ridge = algorithm.regularization
            proportions, variances = plain_em(values, p, q, proportions, variances, ridge, order)
            assert mixture.proportions[:, lane] == pytest.approx(proportions, abs=1e-4)
            assert mixture.variances[:, lane] == pytest.approx(variances, rel=2e-3)
        expected = (p[got.users] * q[got.items]).sum(axis=1)
        assert model.predict(got.users, got.items)[:, lane] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("iterations", "grid", "places"),
    [(30, np.geomspace(0.1, 10, 20).tolist(), (0, 15, 16, 19)), (60, [0.1, 1.0, 3.0, 10.0], range(4))],
    ids=["of several groups of lanes", "of one group"],
)
def test_models_that_have_converged_stop_alone(
    iterations: int, grid: list[float], places: Sequence[int]
) -> None:
    """A coarse tolerance ends some models of a grid before others. Each is the same as when it is fitted alone."""
    algorithm = entry(algorithm="blp_mog_mf", factors=2, iterations=iterations, tolerance=0.02)
    together = predict_all(fit(algorithm, RATINGS, grid)[0], RATINGS)
    steps = set()
    for place in places:
        alone = predict_all(fit(algorithm, RATINGS, [grid[place]])[0], RATINGS)
        assert np.array_equal(alone[:, 0], together[:, place])
        got = received(algorithm, [grid[place]])
        steps.add(len(list(algorithm.steps(algorithm.start(got, STREAMS), got, STREAMS))))
    assert len(steps) > 1
    assert max(steps) < iterations


def test_results_of_the_usual_order_keep_their_names() -> None:
    """Results of versions that had no other setting are still found."""
    usual, listed = (
        entry(algorithm="blp_mog_mf", order=order).parameters()
        for order in ("factors_first", "mixture_first")
    )
    assert listed == {**usual, "order": "mixture_first"}
