"""Random streams: every use of randomness has a generator of its own, named by its purpose.

A printed seed gives all noise away, since with the seed and the config one can draw the same noise, and recover the
clean sums of a released model by one subtraction. A config may therefore say `seed: secret`: every fit then draws a
seed of its own (`drawn_seed`) in the process that fits, which keeps the seed only in memory, and forgets it.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.ratings import UserMajor

SECRET: Literal["secret"] = "secret"
"""Stands in a config and in results in place of a seed, if each fit draws its own."""

OWN = "own"
"""Stands in the names of streams in place of a user's own data set: what it is called changes no result."""

Seed = int | Literal["secret"]
"""The seed of a config. Randomness that is no secret, such as the folds, follows from the word `secret`, too."""

SECRET_BITS = 256
"""Bits of a secret seed: as many as the digest that names a stream has."""


def drawn_seed(seed: Seed) -> int:
    """The seed of a fit: the config's, or a new one from the operating system if the config's is secret."""
    return secrets.randbits(SECRET_BITS) if seed == SECRET else seed


@dataclass(frozen=True)
class Streams:
    """The generators of one task, from (seed, dataset, algorithm, fold, run, purpose).

    Two folds, runs or purposes never share a stream, and a stream does not depend on what else runs, in which order,
    or in how many processes. An algorithm that a config lists twice with other parameters, or runs on growing
    portions of the ratings, gets the same noise every time: common random numbers, which make a comparison
    sharper. Two such models give their noise away by one subtraction, so at most one of them may be released. Under a
    secret seed, each fit has noise of its own.
    """

    seed: int = field(repr=False)
    dataset: str
    algorithm: str
    fold: int
    run: int

    def generator(self, purpose: str) -> "QuietGenerator":
        """A generator for randomness that hides nothing, such as an order of visits or a sample; it refuses to draw
        noise."""
        return QuietGenerator(self._bits(purpose))

    def of_ratings(self, purpose: str, pairs: UserMajor, *sets: int) -> Doubles:
        """(*sets, n_ratings) uniform draws, one for each rating: secret choices of records, such as a sample.

        They are drawn apart from other randomness, so that an audit can give the same draws to the ratings that two
        data sets share.
        """
        return self.generator(purpose).random((*sets, len(pairs)))

    def start(self, purpose: str) -> "StartGenerator":
        """A generator for start values only, which are independent of the ratings, and never for noise."""
        return StartGenerator(self._bits(purpose))

    def noise(self, step: str) -> np.random.Generator:
        """The generator from which noise is drawn. Only the `Curator` uses it."""
        return np.random.Generator(self._bits(step))

    def _bits(self, purpose: str) -> np.random.PCG64:
        return named_bits(self.seed, self.dataset, self.algorithm, self.fold, self.run, purpose)


def named_bits(*name: str | int) -> np.random.PCG64:
    """The bits of a stream that depends only on `name`: SHA-256 of `name` seeds NumPy's PCG64."""
    digest = hashlib.sha256("\x1f".join(map(str, name)).encode()).digest()
    return np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "little")))


def named_generator(*name: str | int) -> np.random.Generator:
    return np.random.Generator(named_bits(*name))


class UnaccountedNoiseError(Exception):
    """An algorithm asked for noise that no ledger knows of: a bug of the algorithm, never a user's mistake."""


class QuietGenerator(np.random.Generator):
    """A generator that draws uniform numbers, integers and permutations, and refuses the laws of noise."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bit_generator,)


class StartGenerator(QuietGenerator):
    """A generator for start values, which also draws normal and Dirichlet numbers, and refuses other noise."""


def _refusing(law: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        fix = "take it from a mechanism of dpmf_cli.privacy, with the fit's curator"
        raise UnaccountedNoiseError(f"`{law}` draws noise that no ledger knows of; {fix}")

    return refuse


_OF_ORDER = ("permutation", "permuted", "shuffle", "choice")
UNIFORM_LAWS = ("random", "uniform", "integers", "bytes", "spawn", *_OF_ORDER)
"""The laws that a `QuietGenerator` draws from."""

START_LAWS = ("normal", "standard_normal", "dirichlet")
"""The further laws that a `StartGenerator` draws from."""

for _law in dir(np.random.Generator):
    if not _law.startswith("_") and _law not in (*UNIFORM_LAWS, "bit_generator"):
        setattr(QuietGenerator, _law, _refusing(_law))
        if _law in START_LAWS:
            setattr(StartGenerator, _law, getattr(np.random.Generator, _law))
