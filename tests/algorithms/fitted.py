"""Fits with streams that a test chooses, and steps of methods in plain NumPy, for tests that draw the same noise."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Recorder
from dpmf_cli.testing import predict_all


def entry(key: str, **parameters: Any) -> Any:
    return {**BASELINES, **PRIVATE}[key].model_validate({"algorithm": key, **parameters})


def of_small_rank(algorithm: Any) -> Any:
    """The algorithm with two factors, as in small.yaml: each rank takes machine code of its own."""
    given = algorithm.model_dump(exclude_unset=True)
    for fields, part in ((given, algorithm), (given.get("base", {}), getattr(algorithm, "base", None))):
        fields |= {name: 2 for name in ("factors", "own_features") if hasattr(part, name)}
    return type(algorithm).model_validate(given)


def curator_for(
    algorithm: Algorithm, epsilons: list[float], streams: Streams, recorder: Recorder | None = None
) -> Curator:
    """The arguments of a fit of an algorithm for `epsilons`; of one without privacy, for a single model."""
    if isinstance(algorithm, PrivateAlgorithm):
        return Curator(Ledger(epsilons, algorithm.mode, algorithm.spends_delta), streams, recorder)
    return Curator(Ledger([np.inf]), streams, recorder)


def fitted(
    algorithm: Algorithm,
    train: Ratings,
    epsilons: list[float],
    streams: Streams,
    recorder: Recorder | None = None,
) -> tuple[Any, Ledger]:
    """The model, and the ledger of its fit."""
    curator = curator_for(algorithm, epsilons, streams, recorder)
    return algorithm.fit(train, curator.ledger.limit, streams=streams, curator=curator), curator.ledger


def predicted(
    algorithm: Algorithm, train: Ratings, epsilons: list[float], streams: Streams
) -> tuple[np.ndarray, Ledger]:
    """(n_users, n_items, E) the predictions of all pairs, and the ledger of the fit."""
    model, ledger = fitted(algorithm, train, epsilons, streams)
    return predict_all(model, train).reshape(train.n_users, train.n_items, -1), ledger


def within(rows: np.ndarray, limit: float) -> np.ndarray:
    """Rows shortened to a norm of `limit`."""
    lengths = np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
    return np.asarray(rows * np.minimum(1, limit / lengths))


def solved(
    x: np.ndarray,
    q: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    ridge: Callable[[int], float],
    noisy: Callable[[int, np.ndarray], np.ndarray] = lambda row, right: right,
) -> np.ndarray:
    """The rows p = (Σ q·qᵀ + ridge)⁻¹·noisy(Σ x·q). The ridge may grow with a row's number of ratings."""
    out = []
    for row in range(rows.max() + 1):
        mine = rows == row
        own = q[others[mine]]
        gram = own.T @ own + ridge(mine.sum()) * np.eye(q.shape[1])
        out.append(np.linalg.solve(gram, noisy(row, own.T @ x[mine])))
    return np.array(out)


def descended(
    p: np.ndarray,
    q: np.ndarray,
    ratings: Iterable[tuple[int, int, float]],
    rate: float,
    ridge: float,
    epochs: int = 1,
) -> None:
    """SGD over (user, item, value), in place."""
    for u, i, r in [*ratings] * epochs:
        e = r - p[u] @ q[i]
        p[u], q[i] = p[u] + rate * (e * q[i] - ridge * p[u]), q[i] + rate * (e * p[u] - ridge * q[i])
