"""The building blocks of all rules: the parts of a claim with their figures, and printed cells."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.evidence import Evidence, MissingEvidence


@dataclass(frozen=True)
class Computed:
    """What results say about a claim on one data set: whether each part holds, and the figures behind this."""

    held: tuple[bool, ...]
    measured: str


@dataclass(frozen=True)
class Cell:
    """A printed figure beside what was measured.

    tolerance   how far off the measured figure may be: by this factor if `ratio`, else by this difference
    """

    name: str
    printed: float
    measured: float
    tolerance: float
    ratio: bool = False


Rule = Callable[[Evidence], Computed]
"""Judges a claim. Raises MissingEvidence if a result that it needs is missing."""

Cells = Callable[[Evidence], Iterator[Cell]]
"""Yields the cells that a paper prints for the evidence's data set. Raises MissingEvidence like a rule."""


_ROUNDING = 1e-9


@dataclass(frozen=True)
class Theorem:
    """The rule of a theorem: what an audit found about the theorem's algorithm, `entry` of `audit.entries`.

    step   the only step that the theorem is about: how far it may move. If "", the theorem is about all that is
           claimed of the algorithm
    """

    entry: str
    step: str = ""

    def __call__(self, evidence: Evidence) -> Computed:
        proof = evidence.proof(self.entry)
        if self.step:
            if self.step not in proof.moves:
                raise MissingEvidence(f"{self.entry}: {self.step}")
            moved = proof.moves[self.step]
            said = f"{self.entry}: of the pairs replayed, one moves the {self.step} by {moved:.3g} of what is claimed"
            return Computed((moved <= 1 + _ROUNDING,), said)
        said = "at ε = 1 what is claimed is proved" if self.is_proved(evidence) else _multiple(proof.provable)
        found = f"; a replay shows: {'; '.join(proof.found)}" if proof.found else ""
        return Computed((not proof.found,), f"{self.entry}: {said}{found}")

    def is_proved(self, evidence: Evidence) -> bool:
        """Whether the ledger proves all that is claimed of the algorithm; False for a theorem about one step."""
        return not self.step and evidence.proof(self.entry).provable <= 1 + _ROUNDING


def _multiple(provable: float) -> str:
    return (
        f"at ε = 1 {provable:.3g} times the claimed ε is proved"
        if math.isfinite(provable)
        else "no ε is proved"
    )


def epsilon_text(value: float) -> str:
    """Returns a crossing of `Evidence.crossing` in words."""
    if not value:
        return "below the grid"
    return significant(value) if np.isfinite(value) else "not reached"
