"""Random streams: every use of randomness has a generator of its own, named by what it is for."""

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Streams:
    """The generators of one task, from (seed, dataset, algorithm, fold, run, purpose).

    Two folds, runs or purposes never share a stream, and a stream does not depend on what else runs, in which order,
    or in how many processes. An algorithm that a config lists twice with other parameters, or runs on growing
    portions of the ratings, meets the same noise every time: common random numbers, which make a comparison
    sharper.
    """

    seed: int
    dataset: str
    algorithm: str
    fold: int
    run: int

    def generator(self, purpose: str) -> np.random.Generator:
        return named_generator(self.seed, self.dataset, self.algorithm, self.fold, self.run, purpose)


def named_generator(*name: str | int) -> np.random.Generator:
    """A generator whose stream is a function of `name` alone (SHA-256 of it seeds NumPy's PCG64)."""
    digest = hashlib.sha256("\x1f".join(map(str, name)).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "little"))))
