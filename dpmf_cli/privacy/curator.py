"""The curator: the party that holds the ratings, and answers with noise that it has paid for."""

from collections.abc import Iterable, Iterator

import numpy as np

from dpmf_cli.privacy.ledger import Entry, Ledger
from dpmf_cli.privacy.noise import DeviceNoise, KeyedNoise, LaneNoise
from dpmf_cli.privacy.release import SEAL, Release, Witness
from dpmf_cli.streams import Streams


class Curator:
    """What an algorithm's noise comes from: the ledger that a step is entered in, then the streams that it is drawn from.

    An algorithm hands its curator to a mechanism (`mechanisms`, `posterior`, `local`) and gets a `Release`. It has no
    other way to noise: the generators of `Streams.generator` refuse to draw any.

    witness   sees every release of the fit: an audit, or a test
    """

    def __init__(self, ledger: Ledger, streams: Streams, witness: Witness | None = None) -> None:
        self.ledger = ledger
        self._streams, self._witness = streams, witness
        self._generators: dict[str, np.random.Generator] = {}

    def noise(self, name: str) -> np.random.Generator:
        """The generator of that name, for mechanisms alone; asked for again it goes on where it was."""
        if name not in self._generators:
            self._generators[name] = self._streams.noise(name)
        return self._generators[name]

    def noise_again(self, name: str) -> np.random.Generator:
        """The generator of that name from its beginning: one name is one draw, however often it is asked for."""
        return self._streams.noise(name)

    def apart(self, limit: Iterable[float]) -> "Curator":
        """A curator of the same fit with a ledger of its own, of which the caller enters the sum in this one's."""
        return Curator(Ledger(limit, self.ledger.mode, self.ledger.delta), self._streams, self._witness)

    def release(self, entry: Entry, noise: LaneNoise | KeyedNoise | DeviceNoise, draw: int = 0) -> Release:
        """One draw of an entry that is in the ledger."""
        return Release(entry, draw, 0, noise, self._witness, SEAL)

    def releases(self, entry: Entry, noises: Iterable[LaneNoise | DeviceNoise]) -> Iterator[Release]:
        """The draws of an entry that pays for several, each drawn as it is asked for."""
        return (self.release(entry, noise, draw) for draw, noise in enumerate(noises))
