"""The ledger: what each mechanism spent, what the method claims, and what can be proved."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.sensitivity import Sensitivity

TOLERANCE = 1e-9
"""Relative rounding slack when fractions of ε are added up."""


class OverspentError(Exception):
    """An algorithm asked for more ε than its budget. A bug in the algorithm, never a user's mistake."""


@dataclass(frozen=True)
class Entry:
    """One noisy step of one fit.

    claimed   (E,) ε that the method's publication charges for the step
    provable  (E,) ε that can be proved for it; equal to `claimed` for a sound step, inf where none can be
    """

    step: str
    mechanism: str
    sensitivity: Sensitivity
    claimed: NDArray[np.float64]
    provable: NDArray[np.float64]
    calibrated_to: Sensitivity

    def record(self) -> dict[str, Any]:
        """The entry as plain data for a result file."""
        return {
            "step": self.step,
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity.value,
            "calibrated_to": self.calibrated_to.value,
            "norm": f"L{self.sensitivity.norm}",
            "neighbours": self.sensitivity.neighbours.value,
            "source": self.sensitivity.source,
            "claimed": self.claimed.tolist(),
            "provable": self.provable.tolist(),
        }


class Ledger:
    """The account of one fit, for every ε of the grid side by side. Steps compose by adding their ε.

    epsilons  (E,) the total ε that the fit may spend, inf for a non-private fit
    mode      in corrected mode the provable ε may not exceed the total either
    """

    def __init__(self, epsilons: Iterable[float], mode: Mode = Mode.PUBLISHED, delta: float = 0.0) -> None:
        self.epsilons = np.asarray(tuple(epsilons), dtype=np.float64)
        self.mode = mode
        self.delta = delta
        self._entries: list[Entry] = []

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def claimed(self) -> NDArray[np.float64]:
        """(E,) Σ of the claimed ε: sequential composition."""
        return sum((entry.claimed for entry in self._entries), np.zeros_like(self.epsilons))

    @property
    def provable(self) -> NDArray[np.float64]:
        """(E,) Σ of the provable ε: sequential composition."""
        return sum((entry.provable for entry in self._entries), np.zeros_like(self.epsilons))

    def _refuse_overspending(self, step: str, after: NDArray[np.float64]) -> None:
        over = after > self.epsilons * (1 + TOLERANCE)
        if np.any(over):
            worst = int(np.argmax(over))
            raise OverspentError(f"{step}: would spend ε = {after[worst]:g} of {self.epsilons[worst]:g}")

    def spend(
        self,
        step: str,
        mechanism: str,
        sensitivity: Sensitivity,
        claimed: NDArray[np.float64],
        provable: NDArray[np.float64] | None = None,
        calibrated_to: Sensitivity | None = None,
    ) -> None:
        """Enters a step before its noise is drawn.

        Raises OverspentError where the claims, or in corrected mode what can be proved, would exceed the budget
        of any ε of the grid, where they are not positive, or where neighbours of different kinds would be added up.
        """
        claimed = np.broadcast_to(np.asarray(claimed, dtype=np.float64), self.epsilons.shape)
        if not np.all(claimed > 0):
            raise OverspentError(f"{step}: ε must be positive, not {claimed.min()}")
        if any(entry.sensitivity.neighbours != sensitivity.neighbours for entry in self._entries):
            raise OverspentError(f"{step}: steps with different kinds of neighbours do not add up")
        proved = claimed if provable is None else np.broadcast_to(provable, self.epsilons.shape)
        self._refuse_overspending(step, self.claimed + claimed)
        if self.mode is Mode.CORRECTED:
            self._refuse_overspending(f"{step}, provably", self.provable + proved)
        self._entries.append(
            Entry(step, mechanism, sensitivity, claimed, proved, calibrated_to or sensitivity)
        )
