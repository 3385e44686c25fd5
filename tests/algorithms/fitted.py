"""Fits with streams that a test chooses, for tests that draw the same noise themselves."""

from typing import Any

import numpy as np

from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Witness


def curator_for(
    algorithm: Algorithm, epsilons: list[float], streams: Streams, witness: Witness | None = None
) -> Curator:
    """The arguments of a fit of an algorithm for `epsilons`; of one without privacy, for a single model."""
    if isinstance(algorithm, PrivateAlgorithm):
        return Curator(Ledger(epsilons, algorithm.mode, algorithm.spends_delta), streams, witness)
    return Curator(Ledger([np.inf]), streams, witness)


def fitted(
    algorithm: Algorithm,
    train: Ratings,
    epsilons: list[float],
    streams: Streams,
    witness: Witness | None = None,
) -> tuple[Any, Ledger]:
    """The model, and the ledger of its fit."""
    curator = curator_for(algorithm, epsilons, streams, witness)
    return algorithm.fit(train, curator.ledger.limit, streams=streams, curator=curator), curator.ledger
