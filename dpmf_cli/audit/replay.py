"""Replay: whether what runs on two neighbours is what the ledger says of it.

A fit on D notes every release: what was measured, and what was published of it. A fit on D′ publishes the same
numbers again. Then each measurement may have moved by its sensitivity at most, and everything else must be the same:
which releases there are, their shapes and scales, what the ledger has entered, and every prediction that privacy
covers, to the byte. The compiled kernels run on both sides, but for those of keyed noise, whose twins do
(`privacy.release`).

A replay falsifies and does not prove. It takes the law of the noise as it is declared, which `distinguish` and `bits`
look at.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.judge import Finding, Flaw, Judge, StepMoves
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.audit.sides import Place, both_sides


@dataclass(frozen=True)
class Replayed:
    """What the replay of one pair has found.

    steps  by the name of the step
    loss   what the releases' moves cost on this pair, in units of the claimed ε; nan where no sum of steps says it
    """

    pair: Pair
    epsilon: float
    steps: Mapping[str, StepMoves]
    findings: tuple[Finding, ...]
    loss: float
    directions: Mapping[Place, NDArray[np.float64]]
    """By release: (numbers,) how far each number has moved, for black-box statistics."""
    samples: Mapping[str, tuple[int, int, float]]
    """By sampled step: how many of its draws have moved, how many there are, and the chance of each to move."""
    alike: Mapping[tuple[str, str], int]
    """By two steps with draws that begin alike: in how many numbers."""


def replay(algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, run: int = 0) -> Replayed:
    """What a fit for `epsilon` does otherwise on the neighbour."""
    here, there = both_sides(algorithm, pair, epsilon, run)
    judge = Judge(algorithm, pair, epsilon)
    if bool(here.error) != bool(there.error):
        judge.find(Flaw.CRASH, "", said=here.error or there.error)
    elif here.error:
        judge.find(Flaw.BROKEN, "", said=here.error)
    else:
        judge.compare(here, there)
    return Replayed(
        pair,
        epsilon,
        judge.steps,
        tuple(judge.findings),
        judge.loss(here.ledger),
        judge.directions,
        judge.samples,
        judge.alike,
    )
