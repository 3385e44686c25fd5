"""Fits of the methods on a private covariance, and section 4 of the paper on dense matrices, with the same draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.mcsherry2009.covariance_methods import (
    CovarianceKNN,
    CovarianceSVD,
    PrivateCovariance,
)
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.noise import unit_laplace
from dpmf_cli.privacy.release import Recorder
from tests.released import released

STREAMS = Streams(1, "data", "mm", 0, 0)
KINDS: dict[str, type[PrivateCovariance]] = {"knn": CovarianceKNN, "svd": CovarianceSVD}


def entry(kind: str, **fields: Any) -> PrivateCovariance:
    return KINDS[kind].model_validate({"algorithm": f"mm_{kind}", **fields})


def fit(
    algorithm: PrivateAlgorithm, ratings: Ratings, *thetas: float, recorder: Recorder | None = None
) -> tuple[Any, Ledger]:
    """Fitted for the ε of each θ."""
    ledger = Ledger(map(algorithm.epsilon_of, thetas), algorithm.mode, algorithm.spends_delta)
    curator = Curator(ledger, STREAMS, recorder)
    return algorithm.fit(ratings, ledger.limit, streams=STREAMS, curator=curator), ledger


def every_pair(ratings: Ratings) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    users, items = np.divmod(np.arange(ratings.n_users * ratings.n_items), ratings.n_items)
    return users.astype(np.int32), items.astype(np.int32)


def drawn(algorithm: PrivateCovariance, step: str, shape: tuple[int, ...]) -> Any:
    """The unit noise of a step, as the mechanisms draw it."""
    rng = STREAMS.noise(step)
    return rng.standard_normal(shape) if algorithm.noise.norm == 2 else unit_laplace(shape, rng)


def predicted_densely(algorithm: PrivateCovariance, ratings: Ratings, theta: float) -> NDArray[np.float64]:
    """(n_users, n_items) section 4 line by line, on dense matrices, with the same draws."""
    n_users, n = ratings.n_users, ratings.n_items
    pairs = ratings.users, ratings.items
    known, r = np.zeros((n_users, n)), np.zeros((n_users, n))
    known[pairs], r[pairs] = 1, ratings.values
    laplace, by_user = algorithm.noise.norm == 1, algorithm.neighbours is Neighbours.USER
    corrected, scale = algorithm.mode is Mode.CORRECTED, ratings.scale
    origin = scale.middle if corrected else 0.0
    largest = scale.width / 2 if corrected else scale.maximum
    count = known.sum(axis=1)
    w = 1 / (count if laplace else np.sqrt(count))
    item_weight = w if by_user else np.ones(n_users)
    unit = (1 / 100 if laplace else 1 / 10) if by_user else 1.0
    overall_weight = 1 / count if by_user else np.ones(n_users)

    def noisy(clean: Any, step: str, share: float, parts: int, delta: float) -> Any:
        each = share * theta / (parts if laplace else np.sqrt(parts))
        return released(clean, drawn(algorithm, step, np.shape(clean)), delta / each)

    g_sum = noisy(overall_weight @ (known * (r - origin)).sum(axis=1), "global sum", 0.02, 4, largest)
    g_count = noisy(overall_weight @ count, "global count", 0.02, 4, 1)
    g = g_sum / max(g_count, 1)
    m_sum = noisy(item_weight @ (known * (r - origin)), "item sums", 0.19, 2, largest)
    m_count = np.maximum(noisy(item_weight @ known, "item counts", 0.19, 2, 1), 0)
    beta_m, beta_p, bound = 15.0 * unit, 20.0, 1.0
    m_avg = np.clip(origin + (m_sum + beta_m * g) / (m_count + beta_m), scale.minimum, scale.maximum)
    x = known * (r - m_avg)
    rest = noisy(overall_weight @ x.sum(axis=1), "global sum of residuals", 0.02, 4, scale.width)
    rest = rest / max(noisy(overall_weight @ count, "global count of residuals", 0.02, 4, 1), 1)
    mean = (x.sum(axis=1) + beta_p * np.clip(rest, -scale.width, scale.width)) / (count + beta_p)
    residuals = known * (x - mean[:, None])
    clamped = np.clip(residuals, -bound, bound)

    product_weight = w**2 if by_user else w
    upper = np.triu_indices(n)

    def symmetric(clean: NDArray[np.float64], step: str, delta: float) -> NDArray[np.float64]:
        matrix = np.zeros((n, n))
        matrix[upper] = noisy(clean[upper], step, 0.79, 2, delta)
        return matrix + np.triu(matrix, 1).T

    if by_user:
        deltas = (1.0, 1.0)
    elif corrected:
        deltas = (9.5, 1.5) if laplace else (1.6504261832821159, np.sqrt(2.5 - np.sqrt(2)))
    else:
        deltas = (11.0, 3.0) if laplace else (1 + 2 * np.sqrt(2), np.sqrt(2))
    cov = symmetric(clamped.T @ (product_weight[:, None] * clamped), "covariance", deltas[0])
    wgt = np.maximum(symmetric(known.T @ (product_weight[:, None] * known), "weights", deltas[1]), 0)
    typical = (1 / 100 if laplace else 1 / 10) ** (2 if by_user else 1)
    cov_scale = (1 + MARGIN) * deltas[0] / (0.79 * theta / (2 if laplace else np.sqrt(2)))
    on, off = np.eye(n, dtype=bool), np.triu(np.ones((n, n), bool), 1)
    variance = np.clip((cov[on] @ wgt[on]) / (wgt[on] @ wgt[on]), 0.25, 1.0)
    common = np.clip((cov[off] @ wgt[off]) / (wgt[off] @ wgt[off]), 0.02, 0.1)
    s = algorithm.shrinkage * typical
    s_on = s + algorithm.diagonal_noise_shrinkage * cov_scale
    s_off = s + algorithm.noise_shrinkage * cov_scale
    avg = np.where(on, (cov + s_on * variance) / (wgt + s_on), (cov + s_off * common) / (wgt + s_off))

    factor = np.sqrt(np.maximum(m_count / unit, 1))
    if algorithm.cleaning:
        avg = best_approximation(avg * np.outer(factor, factor), algorithm.k) / np.outer(factor, factor)
    rest_of = by_neighbours if isinstance(algorithm, CovarianceKNN) else by_subspace
    return np.asarray(m_avg + mean[:, None] + rest_of(algorithm, avg, wgt, known, residuals))


def best_approximation(matrix: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    kept = np.argsort(-np.abs(values))[:rank]
    return np.asarray((vectors[:, kept] * values[kept]) @ vectors[:, kept].T)


def by_neighbours(
    algorithm: Any, avg: Any, wgt: Any, known: NDArray[np.float64], residuals: Any
) -> NDArray[np.float64]:
    out = np.zeros_like(known)
    for user, item in np.ndindex(*known.shape):
        others = [j for j in np.flatnonzero(known[user]) if j != item]
        ranked = sorted(others, key=lambda j: -wgt[item, j])
        of, cut = ranked[: algorithm.k], wgt[item, ranked[algorithm.k - 1 : algorithm.k + 1]]
        if len(cut) == 2 and cut[0] > 0 and cut[0] - cut[1] < 1e-5:  # rounding decides which of two is nearer
            out[user, item] = np.nan
            continue
        system = avg[np.ix_(of, of)] + algorithm.ridge * np.eye(len(of))
        if np.linalg.eigvalsh(system)[0] < 0.15:  # else a neighbour is left out: test_neighbours covers that
            out[user, item] = np.nan
            continue
        out[user, item] = np.linalg.solve(system, avg[of, item]) @ residuals[user, of]
    return out


def by_subspace(
    algorithm: Any, avg: Any, wgt: Any, known: NDArray[np.float64], residuals: Any
) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(avg)
    kept = np.argsort(-values)[: algorithm.k]
    kept = kept[values[kept] > 1e-9]
    ridge = np.full(len(kept), algorithm.ridge) if algorithm.flat_ridge else algorithm.ridge / values[kept]
    out = np.zeros_like(known)
    for user in range(len(known)):
        of = np.flatnonzero(known[user])
        v = vectors[np.ix_(of, kept)]
        out[user] = vectors[:, kept] @ np.linalg.solve(v.T @ v + np.diag(ridge), v.T @ residuals[user, of])
    return out
