"""The curator: what a fit's noise is paid from, and drawn from."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.privacy.ledger import Entry, Ledger
from dpmf_cli.privacy.noise import AnyNoise, DeviceNoise, LaneNoise
from dpmf_cli.privacy.release import SEAL, Numbers, Perturbed, Release, Witness
from dpmf_cli.streams import Streams


class Curator:
    """What an algorithm's noise comes from: the ledger that a step is entered in, then the streams that it is
    drawn from.

    An algorithm hands its curator to a mechanism (`mechanisms`, `posterior`, `local`) and gets a `Release`. It has no
    other way to noise: the generators of `Streams.generator` refuse to draw any.

    witness   sees every release of the fit: an audit, or a test
    """

    def __init__(self, ledger: Ledger, streams: Streams, witness: Witness | None = None) -> None:
        self.ledger = ledger
        self._streams, self._witness = streams, witness
        self._generators: dict[str, np.random.Generator] = {}
        self._later: set[str] = set()

    def noise(self, name: str) -> np.random.Generator:
        """The generator of that name, for mechanisms alone; asked for again it goes on where it was."""
        self._refuse_shared(name, self._later)
        if name not in self._generators:
            self._generators[name] = self._streams.noise(name)
        return self._generators[name]

    def noise_again(self, name: str) -> np.random.Generator:
        """The generator of that name from its beginning: one name is one draw, however often it is asked for."""
        return self._streams.noise(name)

    def noise_later(self, name: str) -> Callable[[], np.random.Generator]:
        """What gives the generator of that name from its beginning, for one draw that is made whenever it is used.

        Raises ValueError where the name has noise already: two measurements would have the same.
        """
        self._refuse_shared(name, self._later | self._generators.keys())
        self._later.add(name)
        return partial(self.noise_again, name)

    @staticmethod
    def _refuse_shared(name: str, taken: Iterable[str]) -> None:
        if name in taken:
            raise ValueError(
                f"{name}: two measurements would have the same noise; give each step its own name"
            )

    def apart(self, limit: Iterable[float], first: int = 0) -> "Curator":
        """A curator of the same fit with a ledger of its own, whose entries the caller enters in this one's.

        first  the place in this one's grid of the first ε of `limit`, where that is a part of it: for the witness
        """
        ledger = Ledger(limit, self.ledger.mode, self.ledger.delta)
        witness = self._witness and _LaterLanes(self._witness, first)
        return Curator(ledger, self._streams, witness)

    def release(self, entry: Entry, noise: AnyNoise, draw: int = 0) -> Release:
        """One draw of an entry that is in the ledger."""
        return Release(entry, draw, 0, noise, self._witness, SEAL)

    def releases(self, entry: Entry, noises: Iterable[LaneNoise | DeviceNoise]) -> Iterator[Release]:
        """The draws of an entry that pays for several, each drawn as it is asked for."""
        return (self.release(entry, noise, draw) for draw, noise in enumerate(noises))


class _LaterLanes(Witness):
    """Shows a witness the models of a part of the grid at their places in the whole."""

    def __init__(self, witness: Witness, first: int) -> None:
        self._witness, self._first, self.offset = witness, first, witness.offset

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return self._witness.published(release, self._place(lanes), first, clean, noisy)

    def solved(
        self, release: Release, lanes: slice, problems: Perturbed, drawn: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._witness.solved(release, self._place(lanes), problems, drawn)

    def _place(self, lanes: slice) -> slice:
        return slice(lanes.start + self._first, lanes.stop + self._first)
