"""Laws: planted mistakes in the mechanisms' own code, each found by what `make audit` runs, and sound tests of laws."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.audit import laws
from dpmf_cli.audit.entries import registered
from dpmf_cli.audit.job import Job, Settings, audit
from dpmf_cli.audit.laws import DEPENDENT, OF_RATINGS, OTHER_LAW, Watch, tails_of
from dpmf_cli.privacy import mechanisms
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise, Law, unit_k_norm, unit_laplace, unit_normal
from dpmf_cli.streams import Streams, named_bits
from tests.audit.planted import Toy

Floats = NDArray[np.float64]


def changed(law: Law, change: Callable[[Floats, np.random.Generator], Floats]) -> Law:
    """A law whose draws, as one row of numbers, are changed."""
    return lambda shape, rng: change(law(shape, rng).ravel(), rng).reshape(shape)


def cut(at: float) -> Callable[[Floats, np.random.Generator], Floats]:
    """Draws beyond `at` are drawn again."""

    def change(units: Floats, rng: np.random.Generator) -> Floats:
        while (far := np.abs(units) > at).any():
            units = np.where(far, rng.standard_normal(len(units)), units)
        return units

    return change


def antithetic(units: Floats, _: np.random.Generator) -> Floats:
    """Every second draw is the negative of the one before, so that the sum of two released numbers is clean."""
    units[1::2] = -units[: len(units) // 2 * 2 : 2]
    return units


def antithetic_halves(units: Floats, _: np.random.Generator) -> Floats:
    half = len(units) // 2
    units[half : 2 * half] = -units[:half]
    return units


def mirrored(units: Floats, _: np.random.Generator) -> Floats:
    half = len(units) // 2
    units[len(units) - half :] = units[:half][::-1]
    return units


def shifted(units: Floats, rng: np.random.Generator) -> Floats:
    """Half of the variance is common to all numbers of a release, so differences have half of the noise."""
    return (units + rng.laplace()) / 2**0.5


def blocks(units: Floats, _: np.random.Generator) -> Floats:
    """The first three draws serve again and again."""
    return np.resize(units[:3], len(units))


def sizes_again(units: Floats, _: np.random.Generator) -> Floats:
    """Two draws in a row have one size, with signs of their own."""
    units[1::2] = np.sign(units[1::2]) * np.abs(units[: len(units) // 2 * 2 : 2])
    return units


def of_a_public_stream(streams: Streams, step: str) -> np.random.Generator:
    """Noise does not depend on the seed."""
    return np.random.Generator(named_bits("public", step))


def of_sums_in_halves(noise: LaneNoise, values: Floats) -> Floats:
    """Clean numbers are rounded to halves of a star before noise is added."""
    return ADDED_TO(noise, np.rint(2 * np.asarray(values)) / 2)


ADDED_TO = LaneNoise.added_to


@dataclass(frozen=True)
class Mutation:
    """A mistake in the product's code, and what is to be found; None if it is none."""

    name: str
    where: object
    attribute: str
    code: object
    flaw: str | None
    gaussian: bool = False


MUTATIONS = (
    Mutation("none", mechanisms, "unit_laplace", unit_laplace, None),
    Mutation("none, Gaussian", mechanisms, "unit_normal", unit_normal, None, True),
    *(
        Mutation(
            f"{law} {change.__name__}",
            mechanisms,
            f"unit_{law}",
            changed(unit, change),
            DEPENDENT,
            law == "normal",
        )
        for law, unit in (("laplace", unit_laplace), ("normal", unit_normal))
        for change in (antithetic, antithetic_halves, mirrored, shifted, blocks, sizes_again)
    ),
    *(
        Mutation(f"cut at {at} σ", mechanisms, "unit_normal", changed(unit_normal, cut(at)), OTHER_LAW, True)
        for at in (2.5, 3.5, 4.0)
    ),
    Mutation(
        "95 % of the noise",
        mechanisms,
        "unit_normal",
        changed(unit_normal, lambda units, _: 0.95 * units),
        OTHER_LAW,
        True,
    ),
    Mutation("public stream", Streams, "noise", of_a_public_stream, DEPENDENT),
    Mutation("public stream, Gaussian", Streams, "noise", of_a_public_stream, DEPENDENT, True),
    Mutation("coarse rounding", LaneNoise, "added_to", of_sums_in_halves, OF_RATINGS),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_planted_mistake_of_noise_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation.where, mutation.attribute, mutation.code)
    toy = Toy(neighbours=Neighbours.UNBOUNDED, gaussian=mutation.gaussian)
    flaws = {found.flaw for found in audit(Job(toy, Settings(pairs=40))).refuted}
    assert flaws == set() if mutation.flaw is None else mutation.flaw in flaws
