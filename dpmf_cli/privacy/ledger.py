"""The ledger: the noisy steps of a fit, each with its claimed and its provable ε."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.privacy.accounting import epsilons_of_mus
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import SampledSteps, composed_epsilons

Epsilons = NDArray[np.float64]
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
    theta     (E,) the same with the sensitivity that the noise was scaled to, if the claim too is composed from it;
              None if the publication adds up its `claimed`, and for pure steps
    sampled   Gaussian steps on samples of the users; `provable` follows from them if `mu` is None, and so does
              `claimed` if `composes`
    composes  whether the claim for sampled steps is composed too
    repetitions  the number of noise draws that the step pays for, in equal parts
    rate         the fraction of the records that a step of Laplace noise looks at; None if it does not sample
    temperature  of a chain: the variance of its noise over the variance at which its claim would hold
    """

    step: str
    mechanism: str
    sensitivity: Sensitivity
    claimed: Epsilons
    provable: Epsilons
    calibrated_to: Sensitivity
    mu: Epsilons | None = None
    theta: Epsilons | None = None
    sampled: SampledSteps | None = None
    composes: bool = False
    repetitions: int = 1
    rate: float | None = None
    temperature: float = 1.0

    @property
    def by_rows(self) -> bool:
        """Whether `sensitivity` bounds the sum of the L2 norms of the rows that move, not one norm of all numbers."""
        return self.mechanism.startswith("K-norm")

    def record(self) -> dict[str, Any]:
        """Returns the entry as plain data for a result file."""
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

    def plus(self, pure: Epsilons, mu: Epsilons | None, sampled: SampledSteps | None = None) -> "Account":
        """Returns the account with one step more.

        The step is Gaussian if `mu` is not None, otherwise sampled if `sampled` is not None, otherwise pure.
        """
        if mu is not None:
            return replace(self, squares=mu**2 if self.squares is None else self.squares + mu**2)
        if sampled is not None:
            return replace(self, sampled=(*self.sampled, sampled))
        return replace(self, pure=self.pure + pure)

    def total(self, delta: float, neighbours: Neighbours | None) -> Epsilons:
        """Returns (E,) the ε of all steps together."""
        if self.sampled and neighbours is not None:
            squares = np.zeros_like(self.pure) if self.squares is None else self.squares
            return self.pure + composed_epsilons(self.sampled, np.sqrt(squares), delta, neighbours)
        return (
            self.pure if self.squares is None else self.pure + epsilons_of_mus(np.sqrt(self.squares), delta)
        )


class Ledger:
    """The account of one fit, for every ε of the grid side by side.

    Pure steps compose by adding up their ε. Gaussian steps compose as in `accounting`, or as in `subsampling` if some
    of them look at samples only. The ε of the pure steps and that of the Gaussian steps add up (Dwork et al. 2006,
    basic composition).

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
        claimed: Epsilons,
        provable: Epsilons | None = None,
        calibrated_to: Sensitivity | None = None,
        *,
        repetitions: int = 1,
        rate: float | None = None,
        temperature: float = 1.0,
    ) -> Entry:
        """Enters a pure step before its noise is drawn.

        Raises OverspentError in three cases: the claims, or in corrected mode the provable ε, would exceed the budget
        of any ε of the grid; a claim is not positive; or steps with different kinds of neighbours would be added up.
        """
        claimed = self._checked(step, "ε", claimed)
        proved = claimed if provable is None else np.broadcast_to(provable, self.limit.shape)
        used = calibrated_to or sensitivity
        entry = Entry(step, mechanism, sensitivity, claimed, proved, used)
        return self._enter(replace(entry, repetitions=repetitions, rate=rate, temperature=temperature))

    def spend_gaussian(
        self,
        step: str,
        sensitivity: Sensitivity,
        theta: Epsilons,
        claimed: Epsilons | None = None,
        calibrated_to: Sensitivity | None = None,
    ) -> Entry:
        """Enters a step of Gaussian noise with σ = Δ/θ, where Δ is `calibrated_to`. Raises as `spend`.

        claimed  (E,) the ε that the publication charges for the step; by default it is composed like the provable ε
        """
        if not self.delta > 0:
            raise OverspentError(f"{step}: Gaussian noise needs a δ")
        theta = self._checked(step, "θ", theta)
        used = calibrated_to or sensitivity
        mu = theta * (sensitivity.value / used.value)
        alone = epsilons_of_mus(mu, self.delta)
        if claimed is None:
            by_itself = epsilons_of_mus(theta, self.delta)
            entry = Entry(step, "Gaussian", sensitivity, by_itself, alone, used, mu, theta)
        else:
            entry = Entry(step, "Gaussian", sensitivity, self._checked(step, "ε", claimed), alone, used, mu)
        return self._enter(entry)

    def spend_sampled(
        self,
        step: str,
        sensitivity: Sensitivity,
        sampled: SampledSteps,
        claimed: Epsilons | None = None,
        calibrated_to: Sensitivity | None = None,
    ) -> Entry:
        """Enters Gaussian steps on samples of the users. Raises as `spend`.

        calibrated_to  the sensitivity that the noise is scaled to, if no bound on the true one is known; by default
                       `sensitivity`
        claimed        (E,) the ε that the publication charges for all steps; by default it is composed like the
                       provable ε
        """
        if not self.delta > 0:
            raise OverspentError(f"{step}: Gaussian noise needs a δ")
        neighbours, composes = sensitivity.neighbours, claimed is None
        alone = sampled.epsilons(self.delta, neighbours)
        claimed = (
            alone if claimed is None else self._checked(step, "ε", claimed)
        )  # `alone` may be 0: δ covers it
        mu = sampled.mu(neighbours) if sampled.rate == 1 else None
        theta = mu if composes else None
        if math.isinf(sensitivity.value):
            mu = alone = np.full_like(self.limit, np.inf)
        entry = Entry(
            step,
            sampled.mechanism,
            sensitivity,
            claimed,
            alone,
            calibrated_to or sensitivity,
            mu,
            theta,
            sampled,
            composes,
        )
        return self._enter(entry)

    def charge_nothing(self, step: str, sensitivity: Sensitivity) -> Entry:
        """Enters a step that looks at the data without noise, and for which the publication charges nothing.

        Nothing can be proved for the fit any more. Raises OverspentError in corrected mode, which allows no such step
        at a finite ε.
        """
        nothing, unproved = np.zeros_like(self.limit), np.full_like(self.limit, np.inf)
        return self._enter(Entry(step, "none", sensitivity, nothing, unproved, sensitivity))

    def _checked(self, step: str, symbol: str, amounts: Epsilons) -> Epsilons:
        amounts = np.broadcast_to(np.asarray(amounts, dtype=np.float64), self.limit.shape)
        if not np.all(amounts > 0):
            raise OverspentError(f"{step}: {symbol} must be positive, not {amounts.min()}")
        return amounts

    def _enter(self, entry: Entry) -> Entry:
        """Enters a step and returns its entry, or raises and leaves the account as it was."""
        neighbours = entry.sensitivity.neighbours
        if self._neighbours not in (None, neighbours):
            raise OverspentError(f"{entry.step}: steps with different kinds of neighbours do not add up")
        claims = self._claims.plus(entry.claimed, entry.theta, entry.sampled if entry.composes else None)
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
