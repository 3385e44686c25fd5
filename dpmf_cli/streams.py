"""Random streams: every use of randomness has a generator of its own, named by what it is for.

A seed that is printed gives all noise away: whoever knows it and the config draws the same noise, and has the clean
sums of a released model back by one subtraction. So a config may say `seed: secret`. Every fit then draws a seed of
its own (`drawn_seed`) in the process that fits, which keeps it in memory alone and forgets it.
"""

import hashlib
import secrets
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

SECRET: Literal["secret"] = "secret"
"""What a config says in place of a seed, and results record, where fits draw their own."""

Seed = int | Literal["secret"]
"""The seed of a config. What is no secret, as the folds, follows from the word `secret` as from a number."""

SECRET_BITS = 256
"""As many as the digest that a stream is named by has."""


def drawn_seed(seed: Seed) -> int:
    """The seed of a fit: that of the config, or a new one by the operating system where it is secret."""
    return secrets.randbits(SECRET_BITS) if seed == SECRET else seed


@dataclass(frozen=True)
class Streams:
    """The generators of one task, from (seed, dataset, algorithm, fold, run, purpose).

    Two folds, runs or purposes never share a stream, and a stream does not depend on what else runs, in which order,
    or in how many processes. An algorithm that a config lists twice with other parameters, or runs on growing
    portions of the ratings, meets the same noise every time: common random numbers, which make a comparison
    sharper. Two such models give their noise away by one subtraction: no more than one may be released. Under a
    secret seed each fit has noise of its own.
    """

    seed: int = field(repr=False)
    dataset: str
    algorithm: str
    fold: int
    run: int

    def generator(self, purpose: str) -> "QuietGenerator":
        """Randomness that hides nothing: an order of visits, a sample. It refuses to draw noise."""
        return QuietGenerator(self._bits(purpose))

    def of_ratings(self, purpose: str, pairs: Sized, *sets: int) -> NDArray[np.float64]:
        """(*sets, n_ratings) uniform draws, one for each rating: secret choices of single records, as a sample's.

        They are drawn apart from other randomness, so that an audit can give the ratings that two data sets share the
        same draws.
        """
        return self.generator(purpose).random((*sets, len(pairs)))

    def start(self, purpose: str) -> "StartGenerator":
        """What a fit starts from, drawn independently of the ratings: for start values alone, never for noise."""
        return StartGenerator(self._bits(purpose))

    def noise(self, step: str) -> np.random.Generator:
        """What noise is drawn from: for the `Curator` alone."""
        return np.random.Generator(self._bits(step))

    def _bits(self, purpose: str) -> np.random.PCG64:
        return named_bits(self.seed, self.dataset, self.algorithm, self.fold, self.run, purpose)


def named_bits(*name: str | int) -> np.random.PCG64:
    """The bits of a stream that is a function of `name` alone: SHA-256 of it seeds NumPy's PCG64."""
    digest = hashlib.sha256("\x1f".join(map(str, name)).encode()).digest()
    return np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "little")))


def named_generator(*name: str | int) -> np.random.Generator:
    """A generator whose stream is a function of `name` alone."""
    return np.random.Generator(named_bits(*name))


class UnaccountedNoiseError(Exception):
    """An algorithm asked for noise that no ledger knows of. A bug in the algorithm, never a user's mistake."""


class QuietGenerator(np.random.Generator):
    """A generator that draws uniform numbers, integers and permutations, and refuses the laws that noise has."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.bit_generator,)


class StartGenerator(QuietGenerator):
    """A generator for start values: normal and Dirichlet draws too, and none of the laws that only noise has."""


def _refusing(law: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UnaccountedNoiseError(
            f"`{law}` draws noise that no ledger knows of; take it from a mechanism of dpmf_cli.privacy, with the "
            "fit's curator"
        )

    return refuse


UNIFORM_LAWS = (
    "random",
    "uniform",
    "integers",
    "bytes",
    "permutation",
    "permuted",
    "shuffle",
    "choice",
    "spawn",
)
"""What a `QuietGenerator` draws."""

START_LAWS = ("normal", "standard_normal", "dirichlet")
"""What a `StartGenerator` draws too."""

for _law in dir(np.random.Generator):
    if not _law.startswith("_") and _law not in (*UNIFORM_LAWS, "bit_generator"):
        setattr(QuietGenerator, _law, _refusing(_law))
        if _law in START_LAWS:
            setattr(StartGenerator, _law, getattr(np.random.Generator, _law))
