"""Replay: tests on two neighbours whether the code does what the ledger says.

A fit on D notes every release: the numbers that were measured, and the numbers that were published. A fit on D′
publishes the same numbers again. Then each measurement may have moved by its sensitivity at most. Everything else
must be the same: the list of releases, their shapes and scales, the entries of the ledger, and every prediction that
privacy covers, to the byte. The compiled kernels run on both sides, except kernels of keyed noise, whose twins run
instead (`privacy.release`).

A replay can refute a claim. It cannot prove one. It assumes that the noise has the law that its mechanism declares;
`laws`, `distinguish` and `bits` test that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.judge import Finding, Flaw, Judge, StepMoves
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.audit.sides import Place, Side, both_sides


@dataclass(frozen=True)
class Replayed:
    """The findings of the replay of one pair.

    steps  how far each step moved, by its name
    loss   the cost of all moves of this pair together, in units of the claimed ε; nan if it is no sum over steps
    """

    pair: Pair
    epsilon: float
    steps: Mapping[str, StepMoves]
    findings: tuple[Finding, ...]
    loss: float
    directions: Mapping[Place, NDArray[np.float64]]
    """For each release: (numbers,) how far each number has moved, for black-box statistics."""
    samples: Mapping[str, tuple[int, int, float]]
    """For each sampled step: how many of its draws moved, the number of draws, and the probability that one moves."""
    alike: Mapping[tuple[str, str], int]
    """For two steps whose draws begin with the same noise: the count of the same numbers."""
    sides: tuple[Side, Side]
    """What was measured and drawn on both sides."""


def replay(algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, run: int = 0) -> Replayed:
    """Finds what a fit for `epsilon` does differently on the neighbour."""
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
        (here.side, there.side),
    )
