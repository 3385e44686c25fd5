"""What all rules are made of: a verdict with its figures, and how they are written."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.claims import Word
from dpmf_cli.papers.evidence import Evidence


@dataclass(frozen=True)
class Computed:
    """A verdict, and the figures that it rests on."""

    verdict: Word
    measured: str


Rule = Callable[[Evidence], Computed]
"""Raises MissingEvidence where a result that it needs is not there."""


def of(held: int, comparisons: int) -> Word:
    """The verdict where all, some or none of so many comparisons hold."""
    return "confirmed" if held == comparisons else "in part" if held else "refuted"


def epsilon_text(value: float) -> str:
    return significant(value) if np.isfinite(value) else "not reached"
