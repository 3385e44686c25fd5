"""Mechanisms of the local model: how a device perturbs one rating, on [0, 1], before it sends it.

Each mechanism maps (value, uniforms, ε) to a message, without any other randomness. Although all ε of a grid share
the uniforms, the message for an ε does not depend on the other ε, and has exactly its own law.

The aggregator decodes a message by `decoded`, to a number whose mean is a function of the value. All mechanisms here
treat v and 1 − v alike.

Messages are on public grids (`privacy.grid`), because otherwise their low bits would tell from which value they were
made.

*Lemma.* A mechanism with a density inverts a CDF at a uniform U, a multiple of 2⁻⁵³, and rounds the message to a grid
that follows from ε alone. Rounding the real message is post-processing. The program differs from that only in which U
lead to a cell of the grid. Every cell has a probability of 2⁻¹³·e^−ε·min(1, ε) at least (each class says why):

    1. U, its differences with masses up to 1, and those masses are rounded. So an end of a cell moves by 2⁻⁵¹ of U.
    2. Logarithms and the message are rounded: by 2⁻⁵⁰ of a message of size 1. A cell is 2⁻¹¹·min(1, 1/ε) wide, and
       the density in it is constant to 2⁻¹⁰. So this is a fraction 2⁻³⁸·max(1, ε) of the cell's probability. In the
       piecewise mechanism the rounding is by 2⁻⁵⁰ of C, and a cell is 2⁻¹¹·(C − 1) wide: 2⁻³⁹·(e^(ε/2) + 1).

The probability of a cell is the real one times 1 ± 2⁻³⁶·e^ε/min(1, ε). So the loss between two values is at most ε
plus twice 2⁻³⁶·e^ε/min(1, ε). The mechanisms spend less than ε, by `MARGIN`·ε, which pays for that from ε = 2⁻¹⁰ to
17. For a larger ε some cells are so rare that few U lead to them. Their probabilities are right to 2⁻⁵⁰ each, not in
proportion.

Discrete messages have probabilities of about 1/(e^ε + k − 1) at least. These are right to 2⁻⁵², which is a factor
1 ± 2⁻²⁰ for ε ≤ 22.

Rounding moves the mean of a message by at most half a step of its grid: 2⁻¹¹ of the range or of the noise's scale.
`expected` and `slope` are those of the real message.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from dpmf_cli.core.arrays import Doubles, Longs
from dpmf_cli.core.ratings import Scale
from dpmf_cli.privacy.grid import grid_of, on_grid


class Mechanism(StrEnum):
    BLP = "blp"
    LAPLACE = "laplace"
    GRR = "grr"
    OUE = "oue"
    PIECEWISE = "piecewise"
    DUCHI = "duchi"


class LocalMechanism(ABC):
    """Perturbs a number on a device, as a rule one rating, before it is sent, and decodes the message.

    title     its name in ledgers and tables
    source    the publication that it is from
    uniforms  the number of draws from U(0, 1) that one message takes
    unbiased  whether the mean of a decoded message is the value itself
    payload   the NumPy type of the data that are sent beside the item's id
    """

    title: ClassVar[str]
    source: ClassVar[str]
    unbiased: ClassVar[bool] = True

    @property
    def uniforms(self) -> int:
        return 1

    @property
    def payload(self) -> str:
        return "<f4"

    @abstractmethod
    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        """(n, E) decoded messages for values (n, …) in [0, 1], uniforms (n, `uniforms`) and each ε (E,)."""

    def expected(self, values: Doubles, epsilons: Doubles) -> Doubles:
        """(n, E) means of the decoded messages."""
        return np.broadcast_to(values[:, None], (len(values), len(epsilons)))

    def slope(self, epsilons: Doubles) -> Doubles:
        """(E,) s = E[r*|1] − E[r*|0]: the remaining difference between the two ends of the scale."""
        low, high = self.expected(np.array([0.0, 1.0]), epsilons)
        return np.asarray(high - low)


@dataclass(frozen=True)
class BoundedLaplace(LocalMechanism):
    """r* ~ Laplace(r, b = 1/ε), given that r* lies in [0, 1]. Section 3.2, definition 1; Holohan et al. 2018.

    Algorithm 1 draws until a draw lies inside. The code inverts the CDF, which gives the same law without a loop.
    With a = e^(−r/b), c = e^(−(1−r)/b) and t = u·C_r(b), r* = r + b·ln(a + 2t) where 2t ≤ 1 − a, and
    r* = r − b·ln(c + 2(C_r − t)) elsewhere. b = Δ/ε is enough only because Δ is the full width, whose ends have one
    C_r. A smaller Δ would need a larger b (Holohan et al. 2018, theorem 3.5).

    The grid is that of min(b, 1). The density is at least e^−ε·max(1, ε/2), and cells at the ends are half as wide.
    """

    title: ClassVar[str] = "bounded Laplace"
    source: ClassVar[str] = "Neera et al. 2020, definition 1: Δ = the width of [0, 1]"
    unbiased: ClassVar[bool] = False

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        r, b = values[:, None], 1 / epsilons
        with np.errstate(divide="ignore", invalid="ignore"):  # b = 0 where ε = ∞
            left, right = -np.expm1(-r / b), -np.expm1(-(1 - r) / b)  # twice the mass on each side of r
            beyond = uniforms * (left + right) - left
            out = r - np.sign(beyond) * b * np.log1p(-np.abs(beyond))
        return on_grid(np.where(b > 0, np.clip(out, 0, 1), r), grid_of(np.minimum(b, 1)))

    def expected(self, values: Doubles, epsilons: Doubles) -> Doubles:
        """r + (∫ (r* − r) e^(−|r*−r|/b))/(2bC) = r + [(1−r+b)·(−c)/2 + (r+b)·a/2]/C, a and c as above."""
        r, b = values[:, None], 1 / epsilons
        with np.errstate(divide="ignore", invalid="ignore"):
            a, c = np.exp(-r / b), np.exp(-(1 - r) / b)
            mass = -(np.expm1(-r / b) + np.expm1(-(1 - r) / b))  # 2·C_r(b), the mass in [0, 1]: equation 3
            mean = r + ((r + b) * a - (1 - r + b) * c) / mass
        return np.where(b > 0, mean, r)


@dataclass(frozen=True)
class ClampedLaplace(LocalMechanism):
    """r* = clamp(r + Laplace(1/ε), [0, 1]). Berlioz et al. 2015 and Friedman et al. 2016, on the device.

    The grid is that of min(1/ε, 1). The density is at least e^−ε·ε/2, and the ends have all the mass beyond them.
    """

    title: ClassVar[str] = "Laplace, clamped"
    source: ClassVar[str] = "Laplace(Δ/ε) on [0, 1], Δ = 1"
    unbiased: ClassVar[bool] = False

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        centred = uniforms - 0.5
        unit = -np.sign(centred) * np.log1p(-2 * np.abs(centred))
        scales = 1 / epsilons
        return on_grid(np.clip(values[:, None] + unit * scales, 0, 1), grid_of(np.minimum(scales, 1)))

    def expected(self, values: Doubles, epsilons: Doubles) -> Doubles:
        """r + (b/2)(e^(−r/b) − e^(−(1−r)/b)); the terms are what clamping cuts off each tail."""
        r, b = values[:, None], 1 / epsilons
        with np.errstate(divide="ignore"):
            return np.asarray(r + b / 2 * (np.exp(-r / b) - np.exp(-(1 - r) / b)))


def _level(values: Doubles, uniforms: Doubles, levels: int) -> Longs:
    """(n, 1) levels; a value between two levels is rounded up or down at random, so that its mean is the value."""
    place = values * (levels - 1)
    rounded = np.floor(place + uniforms)
    exact = np.abs(place - np.rint(place)) < 1e-4  # a level, apart from rounding to float32
    return np.where(exact, np.rint(place), rounded).astype(np.int64)[:, None]


@dataclass(frozen=True)
class RandomisedResponse(LocalMechanism):
    """The value's level with probability e^ε/(e^ε + k − 1), else any other. Warner 1965; Kairouz et al. 2016.

    levels  k, the number of levels, equally spaced on [0, 1]
    """

    title: ClassVar[str] = "randomised response"
    source: ClassVar[str] = "Kairouz, Bonawitz, Ramage 2016: k-ary randomised response"
    unbiased: ClassVar[bool] = False
    payload = "u1"
    uniforms = 3

    levels: int = 5

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        level = _level(values, uniforms[:, 2], self.levels)
        other = np.floor(uniforms[:, 1:2] * (self.levels - 1)).astype(np.int64)
        other += other >= level
        keep = uniforms[:, :1] < 1 / (1 + (self.levels - 1) * np.exp(-epsilons))
        return np.where(keep, level, other) / (self.levels - 1)

    def expected(self, values: Doubles, epsilons: Doubles) -> Doubles:
        """½ + (r − ½)(p − q)."""
        decay = np.exp(-epsilons)
        slope = -np.expm1(-epsilons) / (1 + (self.levels - 1) * decay)
        return np.asarray(0.5 + (values[:, None] - 0.5) * slope)


@dataclass(frozen=True)
class UnaryEncoding(LocalMechanism):
    """One bit for each level: 1 with probability ½ for the value's own, and with q = 1/(e^ε + 1) for others.

    Optimised unary encoding: Wang, Blocki, Li, Jha 2017, section 4.3. The decoded message is
    ½ + Σ_j (v_j − ½)(bit_j − q)/(½ − q), whose mean is the value. Even at ε = ∞ its own bit is lost half of the time.
    """

    title: ClassVar[str] = "unary encoding"
    source: ClassVar[str] = "Wang et al. 2017 (USENIX Security): optimised unary encoding"

    levels: int = 5

    @property
    def uniforms(self) -> int:
        return self.levels + 1

    @property
    def payload(self) -> str:
        return f"V{-(-self.levels // 8)}"

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        level = _level(values, uniforms[:, -1], self.levels)
        decay = np.exp(-epsilons)
        q, gap = decay / (1 + decay), np.tanh(epsilons / 2) / 2
        out = np.full((len(values), len(epsilons)), 0.5)
        for j in range(self.levels):
            bits = uniforms[:, j : j + 1] < np.where(level == j, 0.5, q)
            out += (j / (self.levels - 1) - 0.5) * (bits - q) / gap
        return out


@dataclass(frozen=True)
class Piecewise(LocalMechanism):
    """The piecewise mechanism on t = 2r − 1 in [−1, 1]: density p near t, and density p/e^ε elsewhere in [−C, C].

    C = (e^(ε/2) + 1)/(e^(ε/2) − 1). Near t means in [l, l + C − 1] with l = (C + 1)t/2 − (C − 1)/2. Wang, Xiao et al.
    2019, algorithm 2, here by inverse CDF. The mean is the value.

    The grid on [−C, C] is that of C − 1, the width of the interval near t. With q = e^(−ε/2), a cell is at least
    2⁻¹¹·2q/(1 − q) wide, and the density is at least q(1 − q)/(2 + 2q). Messages beyond the last multiple within ±C
    are moved to that multiple.
    """

    title: ClassVar[str] = "piecewise mechanism"
    source: ClassVar[str] = "Wang et al. 2019 (ICDE), algorithm 2"

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        t, q = 2 * values[:, None] - 1, np.exp(-epsilons / 2)
        largest = (1 + q) / -np.expm1(-epsilons / 2)
        low = (largest + 1) / 2 * t - (largest - 1) / 2
        far = q / ((1 + q) * (largest + 1))  # the density away from t
        before, near = (low + largest) * far, 1 / (1 + q)
        with np.errstate(divide="ignore", invalid="ignore"):  # `far` = 0 where ε = ∞
            below, above = uniforms / far - largest, low + largest - 1 + (uniforms - before - near) / far
            within = low + (uniforms - before) * (largest - 1) / near
        out = np.where(uniforms < before, below, np.where(uniforms < before + near, within, above))
        grid = grid_of(2 * q / -np.expm1(-epsilons / 2))
        last = np.floor(largest / grid) * grid
        return on_grid(np.where(far > 0, np.clip(out, -last, last), t), grid) / 2 + 0.5


@dataclass(frozen=True)
class Sign(LocalMechanism):
    """One sign for a number v in [0, 1]: + with probability ½ + ½·t·tanh(ε/2), where t = 2v − 1.

    It is decoded as t* = ± 1/tanh(ε/2), whose mean is t. As for all mechanisms here, the number moves by 1 at most
    between neighbours, so the ratio of the two laws is at most e^ε.
    """

    title: ClassVar[str] = "Duchi et al."
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013 (FOCS): one sign"
    unbiased: ClassVar[bool] = False
    payload = "u1"

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        """(n, E) decoded messages for numbers (n,) or (n, E), uniforms (n, 1) and each ε (E,)."""
        certainty = np.tanh(epsilons / 2)
        values = values if values.ndim == 2 else values[:, None]
        return np.where(uniforms < 0.5 + (values - 0.5) * certainty, 1.0, -1.0) / certainty

    def expected(self, values: Doubles, epsilons: Doubles) -> Doubles:
        return 2 * super().expected(values, epsilons) - 1


@dataclass(frozen=True)
class Duchi(LocalMechanism):
    """One `Sign` of the value, decoded on [0, 1]. Duchi, Jordan, Wainwright 2013.

    Even at ε = ∞ the value is rounded at random to an end of the scale.
    """

    title: ClassVar[str] = Sign.title
    source: ClassVar[str] = Sign.source
    payload = Sign.payload

    def decoded(self, values: Doubles, uniforms: Doubles, epsilons: Doubles) -> Doubles:
        return 0.5 + Sign().decoded(values, uniforms, epsilons) / 2


COARSEST_STEP, CONTINUOUS_LEVELS = 1 / 20, 5
"""The least step of a rating scale, over its width, that is used for levels as it is. A scale with a finer step, or
without one, is rounded to so many levels: randomised response needs few answers."""


def mechanism_on(scale: Scale, kind: Mechanism, levels: int | None = None) -> LocalMechanism:
    """The mechanism on `levels` levels: by default the steps of the scale if they are coarse enough, and otherwise
    `CONTINUOUS_LEVELS`."""
    if levels is None:
        step = scale.step / scale.width
        levels = round(1 / step) + 1 if step >= COARSEST_STEP else CONTINUOUS_LEVELS
    made: dict[Mechanism, LocalMechanism] = {
        Mechanism.BLP: BoundedLaplace(),
        Mechanism.LAPLACE: ClampedLaplace(),
        Mechanism.GRR: RandomisedResponse(levels),
        Mechanism.OUE: UnaryEncoding(levels),
        Mechanism.PIECEWISE: Piecewise(),
        Mechanism.DUCHI: Duchi(),
    }
    return made[kind]
