"""The ledger: the noisy steps of a fit, each with its claimed and its provable ε."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.privacy.accounting import SampledSteps, composed_epsilons, epsilons_of_mus
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

Epsilons = Doubles
"""Arrays (E,) with one number for each ε of the grid."""

TOLERANCE, LEAST = 1e-9, 1e-12
"""Slack for rounding, relative and absolute, where parts of ε are added up or composed."""


class OverspentError(Exception):
    """An algorithm asked for more ε than its budget. This is a bug in the algorithm, never a user's mistake."""


@dataclass(frozen=True)
class Entry:
    """One noisy step of one fit.

    claimed   (E,) the ε that the method's publication charges for the step
    provable  (E,) the ε that can be proved for the step; equal to `claimed` for a sound step, inf if none can be
    mu        (E,) Δ/σ of Gaussian noise; at the ledger's δ, `provable` follows from it for the step alone. None for
              a step that is pure ε-DP
    sampled   Gaussian steps on samples of the users; `provable` follows from them if `mu` is None
    repetitions  the number of noise draws that the step pays for, in equal parts
    rate         the fraction of the records that a step of Laplace noise looks at; None if it does not sample
    temperature  of a chain: the variance of its noise over the variance at which its claim would hold
    """

    step: str
    mechanism: str
    sensitivity: Sensitivity
    claimed: Epsilons
    provable: Epsilons
    mu: Epsilons | None = None
    sampled: SampledSteps | None = None
    repetitions: int = 1
    rate: float | None = None
    temperature: float = 1.0

    @property
    def calibrated_to(self) -> Sensitivity:
        """The sensitivity that the noise is scaled to, which is the publication's claim."""
        return self.sensitivity.of_noise

    @property
    def by_rows(self) -> bool:
        """Whether `sensitivity` bounds the sum of the L2 norms of the rows that move, not one norm of all numbers."""
        return self.mechanism.startswith("K-norm")

    def record(self) -> dict[str, Any]:
        """The entry as plain data for a result file."""
        record = {
            "step": self.step,
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity.value,
            "calibrated_to": self.calibrated_to.value,
            "norm": "L∞" if math.isinf(self.sensitivity.norm) else f"L{self.sensitivity.norm:g}",
            "neighbours": self.sensitivity.neighbours.value,
            "source": self.sensitivity.source,
            "claimed": self.claimed.tolist(),
            "provable": self.provable.tolist(),
        }
        if self.mu is not None:
            record["mu"] = self.mu.tolist()
        return record if self.sampled is None else {**record, **self.sampled.record()}


@dataclass(frozen=True)
class Account:
    """The running totals of steps.

    pure     (E,) Σε of pure steps
    squares  (E,) Σμ² of Gaussian steps; None if there are none
    sampled  Gaussian steps on samples; their composition with the other Gaussian steps has no shorter form
    """

    pure: Epsilons
    squares: Epsilons | None = None
    sampled: tuple[SampledSteps, ...] = ()

    def plus(self, pure: Epsilons, mu: Epsilons | None, sampled: SampledSteps | None) -> "Account":
        """The account with one step more: Gaussian if it has `mu`, else sampled if it is, else pure."""
        if mu is not None:
            return replace(self, squares=mu**2 if self.squares is None else self.squares + mu**2)
        if sampled is not None:
            return replace(self, sampled=(*self.sampled, sampled))
        return replace(self, pure=self.pure + pure)

    def total(self, delta: float, neighbours: Neighbours | None) -> Epsilons:
        """(E,) the ε of all steps together."""
        if self.sampled and neighbours is not None:
            squares = np.zeros_like(self.pure) if self.squares is None else self.squares
            return self.pure + composed_epsilons(self.sampled, np.sqrt(squares), delta, neighbours)
        if self.squares is None:
            return self.pure
        return self.pure + epsilons_of_mus(np.sqrt(self.squares), delta)


class Ledger:
    """The account of one fit, for every ε of the grid side by side.

    The ε of pure steps add up, and Gaussian steps compose as in `accounting`. The ε of the two kinds add up (Dwork et
    al. 2006, basic composition).

    limit     (E,) the total ε that the fit may spend; inf for a non-private fit
    mode      in corrected mode the provable ε may not exceed the total either
    delta     the δ of the (ε, δ) that Gaussian steps spend; 0 if only pure steps are allowed
    """

    def __init__(self, limit: Iterable[float], mode: Mode = Mode.PUBLISHED, delta: float = 0.0) -> None:
        self.limit = np.asarray(tuple(limit), dtype=np.float64)
        self.mode = mode
        self.delta = delta
        self._entries: list[Entry] = []
        self._claims = self._proofs = Account(np.zeros_like(self.limit))

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def claimed(self) -> Epsilons:
        """(E,) the ε that the method's publication charges in total."""
        return self._claims.total(self.delta, self._neighbours)

    @property
    def provable(self) -> Epsilons:
        """(E,) the ε that can be proved for all steps together."""
        return self._proofs.total(self.delta, self._neighbours)

    @property
    def _neighbours(self) -> Neighbours | None:
        return self._entries[0].sensitivity.neighbours if self._entries else None

    def spend(
        self,
        step: str,
        mechanism: str,
        sensitivity: Sensitivity,
        claimed: Epsilons | None = None,
        provable: Epsilons | None = None,
        *,
        theta: Epsilons | None = None,
        sampled: SampledSteps | None = None,
        repetitions: int = 1,
        rate: float | None = None,
        temperature: float = 1.0,
    ) -> Entry:
        """Enters a step before its noise is drawn: Gaussian if it has `theta` or is `sampled`, otherwise pure.

        claimed        (E,) the ε that the publication charges; by default a Gaussian step is composed from `theta`,
                       that is, for the sensitivity that its noise is scaled to
        provable       (E,) the ε of a pure step that can be proved; by default `claimed`
        theta          (E,) Δ/σ of Gaussian noise, for the Δ that the noise is scaled to
        sampled        Gaussian steps on samples of the users

        Raises OverspentError if the claims, or in corrected mode the provable ε, would exceed the budget of any ε; if
        a claim is not positive; if Gaussian noise has no δ; or if neighbours of different kinds would be added up.
        Raises ValueError for a pure step without `claimed`, and for `theta` beside `sampled`.
        """
        gaussian = [each for each in (theta, sampled) if each is not None]
        if len(gaussian) > 1 or (claimed is None and not gaussian):
            raise ValueError(f"{step}: give `claimed`, `theta` or `sampled`")
        composes, mu = claimed is None, None
        if claimed is not None:
            claimed = self._checked(step, "ε", claimed)
        if theta is None and sampled is None:
            alone = claimed if provable is None else np.broadcast_to(provable, self.limit.shape)
        elif not self.delta > 0:
            raise OverspentError(f"{step}: Gaussian noise needs a δ")
        elif sampled is None:
            theta = self._checked(step, "θ", theta)
            mu = theta * (sensitivity.value / sensitivity.of_noise.value)
            alone = epsilons_of_mus(mu, self.delta)
            claimed = epsilons_of_mus(theta, self.delta) if composes else claimed
        else:
            alone = sampled.epsilons(self.delta, sensitivity.neighbours)
            claimed = alone if composes else claimed  # it may be 0: δ covers it
            theta = mu = sampled.mu(sensitivity.neighbours) if sampled.rate == 1 else None
            if math.isinf(sensitivity.value):
                mu = alone = np.full_like(self.limit, np.inf)
        assert claimed is not None
        assert alone is not None
        of_draws = mu, sampled, repetitions, rate, temperature
        entry = Entry(step, mechanism, sensitivity, claimed, alone, *of_draws)
        return self._enter(entry, theta if composes else None, sampled if composes else None)

    def charge_nothing(self, step: str, sensitivity: Sensitivity) -> Entry:
        """Enters a step without noise that looks at the data, for which the publication charges nothing, so that
        nothing can be proved for the fit.

        Raises OverspentError in corrected mode, which allows no such step at a finite ε.
        """
        nothing, unproved = np.zeros_like(self.limit), np.full_like(self.limit, np.inf)
        return self._enter(Entry(step, "none", sensitivity, nothing, unproved))

    def _checked(self, step: str, symbol: str, amounts: Epsilons | None) -> Epsilons:
        amounts = np.broadcast_to(np.asarray(amounts, dtype=np.float64), self.limit.shape)
        if not np.all(amounts > 0):
            raise OverspentError(f"{step}: {symbol} must be positive, not {amounts.min()}")
        return amounts

    def _enter(
        self, entry: Entry, theta: Epsilons | None = None, composed: SampledSteps | None = None
    ) -> Entry:
        """Enters a step or changes nothing. Claims are composed of `theta` or `composed`, or add up."""
        neighbours = entry.sensitivity.neighbours
        if self._neighbours not in (None, neighbours):
            raise OverspentError(f"{entry.step}: steps with different kinds of neighbours do not add up")
        claims = self._claims.plus(entry.claimed, theta, composed)
        proofs = self._proofs.plus(entry.provable, entry.mu, entry.sampled)
        self._refuse_overspending(entry.step, claims.total(self.delta, neighbours))
        if self.mode is Mode.CORRECTED:
            self._refuse_overspending(f"{entry.step}, provably", proofs.total(self.delta, neighbours))
        self._entries.append(entry)
        self._claims, self._proofs = claims, proofs
        return entry

    def _refuse_overspending(self, step: str, after: Epsilons) -> None:
        over = after > self.limit * (1 + TOLERANCE) + LEAST
        if np.any(over):
            worst = int(np.argmax(over))
            raise OverspentError(f"{step}: would spend ε = {after[worst]:g} of {self.limit[worst]:g}")
