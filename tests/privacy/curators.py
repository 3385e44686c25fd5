"""Curators for tests of single mechanisms."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Release, Witness


def curator_of(ledger: Ledger, seed: int = 0, witness: Witness | None = None) -> Curator:
    """A curator with this ledger, whose noise follows from the seed."""
    return Curator(ledger, Streams(seed, "data", "test", 0, 0), witness)


class Recorder(Witness):
    """A witness that records each measured number's step, clean value and sensitivity. It publishes the number
    without noise, or the value that is `frozen` for it."""

    def __init__(self, frozen: list[NDArray[np.float64]] | None = None) -> None:
        self.measured: list[tuple[Release, NDArray[np.floating]]] = []
        self._frozen = frozen

    def published(
        self,
        release: Release,
        lanes: slice,
        first: int,
        clean: NDArray[np.floating],
        noisy: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        self.measured.append((release, clean))
        return np.asarray(clean, np.float64) if self._frozen is None else self._frozen[len(self.measured) - 1]
