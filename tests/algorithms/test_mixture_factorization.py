"""BLP-MoG-MF: its iterations are those of EM in plain NumPy, until it stops."""

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.factorization import start_model
from dpmf_cli.testing import fit, predict_all
from tests.algorithms.local_entries import RATINGS, STREAMS, entry, received, started


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
