"""Recorderes of releases, for tests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.privacy.release import Numbers, Recorder, Release


class Noting(Recorder):
    """A recorder that publishes what would be published without it, and records the clean numbers.

    seen   the measured numbers, by step, number of the draw, place of the first number, and place of the first
    model
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int, int, int], Numbers] = {}

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        place = release.entry.step, release.draw, first, lanes.start
        assert place not in self.seen, "measured twice"
        assert lanes.stop - lanes.start == clean.shape[-1]
        self.seen[place] = clean
        return noisy


@dataclass(frozen=True)
class Passing(Recorder):
    """Publishes everything unchanged, except that a compiled kernel's sums end `offset` off the grid."""

    offset: float | None = None
