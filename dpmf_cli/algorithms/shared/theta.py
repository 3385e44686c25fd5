"""Noise of a method whose steps get fixed fractions of one parameter: θ of McSherry and Mironov 2009, section 5.

Measurement i has noise of scale Δ_i/θ_i, θ_i = f_i·θ: Laplace noise with the L1 sensitivity, or Gaussian noise with
the L2 sensitivity. A measurement of n things (a sum and its count) gives each an equal part: θ_i/n of a pure ε,
θ_i/√n of a Gaussian μ.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon, noise_multipliers
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace, subsampled_gaussian
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity, clipped_contributions


class NoiseKind(StrEnum):
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"

    @property
    def norm(self) -> int:
        """The norm of the sensitivity to which the noise is scaled."""
        return 1 if self is NoiseKind.LAPLACE else 2


@dataclass(frozen=True)
class Accounting:
    """The conversion of θ to ε and back.

    Laplace noise: Σθ_i = θ is ε. Gaussian noise, published: theorem 3 gives ε_i = θ_i·√(2·ln(2/δ_i)) for measurement
    i, and theorem 1 adds up the ε_i, with δ_i = δ/n for n measurements. Gaussian noise, corrected: ε is exact; it
    follows from μ = θ·√Σf_i², as the ledger composes the steps.

    fractions  f_i by measurement, Σf_i = 1
    delta      the δ of Gaussian noise
    reserved   the fraction of the total ε that pure steps without a θ spend
    """

    noise: NoiseKind
    mode: Mode
    fractions: Mapping[str, float]
    delta: float
    reserved: float = 0.0

    @property
    def spends_delta(self) -> float:
        """The δ of a fit's (ε, δ); 0 for pure ε."""
        return self.delta if self.noise is NoiseKind.GAUSSIAN else 0.0

    @property
    def by_mu(self) -> bool:
        """Whether steps compose by μ."""
        return self.noise is NoiseKind.GAUSSIAN and self.mode is Mode.CORRECTED

    @property
    def factor(self) -> float:
        """What all steps with a part of θ spend together, divided by θ: in ε, or in μ where steps compose by μ."""
        if self.by_mu:
            return math.sqrt(math.fsum(fraction**2 for fraction in self.fractions.values()))
        if self.noise is NoiseKind.LAPLACE:
            return 1.0
        return math.sqrt(2 * math.log(2 * len(self.fractions) / self.delta))

    def epsilon_of(self, theta: float) -> float:
        spent = theta * self.factor
        return (epsilon_of_mu(spent, self.delta) if self.by_mu else spent) / (1 - self.reserved)

    def theta_of(self, epsilon: float) -> float:
        left = epsilon * (1 - self.reserved)
        return (mu_of_epsilon(left, self.delta) if self.by_mu else left) / self.factor


def where_theta_is_mu(delta: float) -> Accounting:
    """The accounting of a method that splits μ by itself: its θ is the μ of Gaussian noise."""
    return Accounting(NoiseKind.GAUSSIAN, Mode.CORRECTED, {"all": 1.0}, delta)


@dataclass(frozen=True)
class Measurer:
    """Draws the noise of each measured thing, and enters it in the ledger.

    pieces    the number of things in each measurement
    epsilons  (E,) the total ε of each model
    """

    accounting: Accounting
    pieces: Mapping[str, int]
    epsilons: Epsilons
    curator: Curator

    def noise(
        self,
        measurement: str,
        step: str,
        shape: tuple[int, ...],
        moves: Sensitivity,
        *,
        later: bool = False,
    ) -> Release:
        """Noise for one of the things in a measurement: an `averages.StepNoise`. `later` is as in `mechanisms`."""
        account, pieces = self.accounting, self.pieces[measurement]
        of_all = np.array([account.theta_of(float(epsilon)) for epsilon in self.epsilons])
        theta = account.fractions[measurement] * of_all
        if account.noise is NoiseKind.LAPLACE:
            mechanism: Callable[..., Release] = partial(laplace, epsilon=theta / pieces)
        else:
            claimed = None if account.by_mu else theta * account.factor / pieces
            mechanism = partial(gaussian, theta=theta / math.sqrt(pieces), claimed=claimed)
        return mechanism(step, shape, sensitivity=moves, curator=self.curator, later=later)


def rates_under(noise: Doubles, learning_rate: float, spread: float) -> Doubles:
    """(E,) η, or less if the noise of all steps would move a coordinate by more than `spread`.

    noise  (E,) the standard deviation of the noise of all steps at η = 1
    """
    return learning_rate * spread / np.maximum(spread, learning_rate * noise)


def certified_gradients(
    entry: Any,
    shape: tuple[int, ...],
    clip: float,
    steps: int,
    beside: float | Doubles,
    epsilons: Epsilons,
    curator: Curator,
) -> tuple[Iterator[Release], Epsilons]:
    """The Gaussian noise of so many sums of gradients clipped to `clip`, and (E,) its deviation in units of that.

    An accountant certifies all steps together, composed with measurements that take the part `beside` of θ, one
    number or (E,). `entry` has the rate of the samples, the neighbours, δ and θ.
    """
    multiplier = noise_multipliers(
        epsilons,
        entry.delta,
        rate=entry.sampling_rate,
        steps=steps,
        neighbours=entry.neighbours,
        beside=beside * np.array([entry.theta_of(float(epsilon)) for epsilon in epsilons]),
    )
    gradients = subsampled_gaussian(
        "gradients",
        shape,
        repetitions=steps,
        rate=entry.sampling_rate,
        sensitivity=clipped_contributions(clip, 2, entry.neighbours),
        contribution=clip,
        multiplier=multiplier,
        curator=curator,
    )
    return gradients, multiplier
