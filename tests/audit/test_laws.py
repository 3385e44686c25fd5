"""Laws: planted mistakes in the mechanisms' own code, each found by what `make audit` runs, and sound tests of laws."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.audit.bounds import chance_of_count
from dpmf_cli.audit.job import Job, Settings, audit
from dpmf_cli.audit.laws import (
    BY_CHANCE,
    DEPENDENT,
    FAR,
    FAR_ROWS,
    OF_RATINGS,
    OTHER_LAW,
    _dependence,
    _products,
    tails_of,
)
from dpmf_cli.core.streams import Streams, named_bits
from dpmf_cli.privacy import noise
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import (
    LaneNoise,
    Law,
    unit_gumbel_downwards,
    unit_k_norm,
    unit_laplace,
    unit_normal,
)
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


LAPLACE, NORMAL = ("unit_laplace", unit_laplace, False), ("unit_normal", unit_normal, True)

MUTATIONS = (
    *(
        Mutation("a sound law", noise, name, changed(law, lambda units, _: units), None, gaussian)
        for name, law, gaussian in (LAPLACE, NORMAL)
    ),
    *(
        Mutation(change.__name__, noise, name, changed(law, change), DEPENDENT, gaussian)
        for name, law, gaussian, changes in (
            (*LAPLACE, (antithetic, antithetic_halves, mirrored, shifted, blocks, sizes_again)),
            (*NORMAL, (antithetic, shifted)),
        )
        for change in changes
    ),
    *(
        Mutation(f"cut at {at} σ", noise, "unit_normal", changed(unit_normal, cut(at)), OTHER_LAW, True)
        for at in (2.5, 3.5, 4.0)
    ),
    *(
        Mutation(name, noise, "unit_laplace", changed(unit_laplace, change), OTHER_LAW)
        for name, change in (
            ("98 % of the noise", lambda units, _: 0.98 * units),
            ("never below −9", lambda units, _: np.maximum(units, -9)),
        )
    ),
    Mutation("public stream", Streams, "noise", of_a_public_stream, DEPENDENT),
    Mutation("coarse rounding", LaneNoise, "added_to", of_sums_in_halves, OF_RATINGS),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_planted_mistake_of_noise_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation.where, mutation.attribute, mutation.code)
    toy = Toy(neighbours=Neighbours.UNBOUNDED, gaussian=mutation.gaussian)
    flaws = {found.flaw for found in audit(Job(toy, Settings(pairs=20))).refuted}
    assert flaws == set() if mutation.flaw is None else mutation.flaw in flaws


@pytest.mark.parametrize(
    ("kind", "law", "dimension"),
    [
        ("Laplace", unit_laplace, 1),
        ("Gaussian", unit_normal, 1),
        ("exponential", unit_gumbel_downwards, 1),
        *(("K-norm", unit_k_norm, dimension) for dimension in (1, 2, 7)),
    ],
)
def test_the_tails_are_those_of_the_declared_law(kind: str, law: Law, dimension: int) -> None:
    """Right draws pass. Draws that are too small or too large by 5 % do not, nor do draws from the other end."""
    tails = tails_of(kind, dimension)
    assert tails is not None
    shape = (FAR_ROWS, dimension) if kind == "K-norm" else (FAR,)
    units = law(shape, np.random.default_rng(dimension)).reshape(shape[0], -1)[:, 0]

    def least(draws: Floats) -> float:
        return min(tails.off(tails.counts(draws), len(draws)))[0]

    assert least(units) > 1e-4
    assert max(least(0.95 * units), least(1.05 * units)) < BY_CHANCE
    assert (least(-units) < BY_CHANCE) == (kind == "exponential")


def test_a_count_is_tested_exactly() -> None:
    assert chance_of_count(0, 10, 0.5, 0.5) == chance_of_count(10, 10, 0.5, 0.5) == pytest.approx(2.0**-10)
    assert chance_of_count(0, 10, 0.4, 0.6) == pytest.approx(0.6**10)
    assert chance_of_count(5, 10, 0.4, 0.6) > 0.5


def test_false_findings_are_as_rare_as_the_level_says() -> None:
    """At a level of 1 %, 1 % to 2 % of all counts are false findings, for pairs that share draws too."""
    rng, chances = np.random.default_rng(1), []
    for _ in range(40):
        coins = [2 * rng.integers(0, 2, 30) - 1 for _ in range(4)]
        chances += [chance for chance, _ in _dependence(np.array([_products(coins[0], coins[1:])] * 2))]
    assert np.mean(np.array(chances) < 0.01) < 0.025
