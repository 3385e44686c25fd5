"""The curator: the ledger that pays for a fit's noise, and the streams that the noise is drawn from."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.ledger import Entry, Ledger
from dpmf_cli.privacy.noise import AnyNoise, DeviceNoise, LaneNoise
from dpmf_cli.privacy.release import SEAL, Recorder, Release


class Curator:
    """The source of an algorithm's noise. A step enters the ledger first, and then its noise comes from the streams.

    An algorithm hands its curator to a mechanism (`mechanisms`, `posterior`, `local`) and gets a `Release`. It has no
    other way to noise: the generators of `Streams.generator` refuse to draw noise.

    recorder  sees every release of the fit: in an audit, or in a test
    first     for the recorder, if the ledger has a part of a grid: the index in that grid of its first ε
    """

    def __init__(
        self, ledger: Ledger, streams: Streams, recorder: Recorder | None = None, first: int = 0
    ) -> None:
        self.ledger = ledger
        self._streams, self._recorder, self._first = streams, recorder, first
        self._generators: dict[str, np.random.Generator] = {}
        self._later: set[str] = set()

    def noise(self, name: str) -> np.random.Generator:
        """The generator of that name, for mechanisms only, which goes on where an earlier call stopped."""
        self._refuse_shared(name, self._later)
        if name not in self._generators:
            self._generators[name] = self._streams.noise(name)
        return self._generators[name]

    def noise_again(self, name: str) -> np.random.Generator:
        """The generator of that name at its beginning: one name is one draw, however often it is used."""
        return self._streams.noise(name)

    def noise_later(self, name: str) -> Callable[[], np.random.Generator]:
        """A function that gives the generator of that name at its beginning, for one draw that is redone whenever it
        is used. Raises ValueError if the name already has noise."""
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
        """A curator of the same fit with a ledger of its own, whose entries the caller copies to this ledger.

        first  if `limit` is a part of this curator's grid: the index in that grid of its first ε
        """
        ledger = Ledger(limit, self.ledger.mode, self.ledger.delta)
        return Curator(ledger, self._streams, self._recorder, self._first + first)

    def release(self, entry: Entry, noise: AnyNoise, draw: int = 0) -> Release:
        """One draw of an entry that is in the ledger."""
        return Release(entry, draw, 0, noise, self._recorder, SEAL, self._first)

    def releases(self, entry: Entry, noises: Iterable[LaneNoise | DeviceNoise]) -> Iterator[Release]:
        """Yields the draws of an entry that pays for several; each is drawn when it is asked for."""
        return (self.release(entry, noise, draw) for draw, noise in enumerate(noises))
