"""Noise for a method whose steps are fixed parts of one parameter: θ of McSherry and Mironov 2009, section 5.

Measurement i has noise of scale Δ_i/θ_i, Laplace with the L1 or Gaussian with the L2 sensitivity, and θ_i = f_i·θ. A
measurement of several things (a sum and its count) gives each an equal part: θ_i/n of a pure ε, θ_i/√n of a
Gaussian μ.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.noise import Precision
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity


class NoiseKind(StrEnum):
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"

    @property
    def norm(self) -> int:
        """Of the sensitivity that it is scaled to."""
        return 1 if self is NoiseKind.LAPLACE else 2


@dataclass(frozen=True)
class Accounting:
    """What ε is for a θ. `fractions` f_i by measurement, Σf_i = 1.

    Laplace: Σθ_i = θ, pure. Gaussian, corrected: exact, from μ = θ·√Σf_i². Gaussian, published: theorem 3 gives
    measurement i ε_i = θ_i·√(2·ln(2/δ_i)); theorem 1 adds them up, with δ_i = δ/n for n measurements. `reserved` is
    the part of the total ε that pure steps without a θ spend.
    """

    kind: NoiseKind
    mode: Mode
    fractions: Mapping[str, float]
    delta: float
    reserved: float = 0.0

    @property
    def published_factor(self) -> float:
        """ε over θ, by theorems 1 and 3."""
        return math.sqrt(2 * math.log(2 * len(self.fractions) / self.delta))

    @property
    def mu_factor(self) -> float:
        """μ over θ."""
        return math.sqrt(math.fsum(fraction**2 for fraction in self.fractions.values()))

    def epsilon_of(self, theta: float) -> float:
        """The total ε of a fit with θ."""
        return self._epsilon_of_noise(theta) / (1 - self.reserved)

    def theta_of(self, epsilon: float) -> float:
        """The θ of a fit with that total ε."""
        left = epsilon * (1 - self.reserved)
        if self.kind is NoiseKind.LAPLACE:
            return left
        if self.mode is Mode.PUBLISHED:
            return left / self.published_factor
        return mu_of_epsilon(left, self.delta) / self.mu_factor

    def _epsilon_of_noise(self, theta: float) -> float:
        if self.kind is NoiseKind.LAPLACE:
            return theta
        if self.mode is Mode.PUBLISHED:
            return theta * self.published_factor
        return epsilon_of_mu(theta * self.mu_factor, self.delta)


@dataclass(frozen=True)
class Measurer:
    """Draws the noise of each thing measured, and enters it in the ledger.

    pieces    how many things each measurement is of
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
        calibrated_to: Sensitivity | None = None,
        dtype: Precision = np.float64,
    ) -> Release:
        """Noise for one of the things of a measurement: an `item_averages.StepNoise`. `calibrated_to` as in
        `mechanisms`."""
        accounting, pieces = self.accounting, self.pieces[measurement]
        fraction = accounting.fractions[measurement]
        theta = fraction * np.array([accounting.theta_of(float(e)) for e in self.epsilons])
        if accounting.kind is NoiseKind.LAPLACE:
            return laplace(
                step,
                shape,
                sensitivity=moves,
                calibrated_to=calibrated_to,
                epsilon=theta / pieces,
                curator=self.curator,
                dtype=dtype,
            )
        published = accounting.mode is Mode.PUBLISHED
        return gaussian(
            step,
            shape,
            sensitivity=moves,
            calibrated_to=calibrated_to,
            theta=theta / math.sqrt(pieces),
            claimed=theta * accounting.published_factor / pieces if published else None,
            curator=self.curator,
            dtype=dtype,
        )
