"""Fits of the methods on a private covariance, for their tests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.mcsherry2009.mm_knn import CovarianceKNN
from dpmf_cli.algorithms.mcsherry2009.mm_svd import CovarianceSVD
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.private_covariance import PrivateCovariance
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Witness

STREAMS = Streams(1, "data", "mm", 0, 0)
KINDS: dict[str, type[PrivateCovariance]] = {"knn": CovarianceKNN, "svd": CovarianceSVD}
USER = Neighbours.USER


def entry(kind: str, **fields: Any) -> PrivateCovariance:
    return KINDS[kind].model_validate({"algorithm": f"mm_{kind}", **fields})


def fit(
    algorithm: PrivateAlgorithm, ratings: Ratings, *thetas: float, witness: Witness | None = None
) -> tuple[Any, Ledger]:
    """Fitted for the ε of each θ."""
    ledger = Ledger(map(algorithm.epsilon_of, thetas), algorithm.mode, algorithm.spends_delta)
    curator = Curator(ledger, STREAMS, witness)
    return algorithm.fit(ratings, ledger.limit, streams=STREAMS, curator=curator), ledger


def every_pair(ratings: Ratings) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    users, items = np.divmod(np.arange(ratings.n_users * ratings.n_items), ratings.n_items)
    return users.astype(np.int32), items.astype(np.int32)
