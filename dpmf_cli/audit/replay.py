"""Replay: tests on two neighbours whether the code does what the ledger says.

A fit on D notes every release: the numbers that were measured, and the numbers that were published. A fit on D′
publishes the same numbers again. Then each measurement may have moved by its sensitivity at most. Everything else
must be the same: the list of releases, their shapes and scales, the entries of the ledger, and every prediction
that privacy covers, to the byte. The compiled kernels run on both sides, except kernels of keyed noise, whose
twins run instead (`privacy.release`).

A replay can refute a claim, not prove one. It assumes that the noise has the law that its mechanism declares; `laws`,
`distinguish` and the test of low bits test that.

*Low bits.* Do the low bits of released floats tell which numbers were added? For every step, the number that moves
most between two neighbours is released many times on either side, each time with fresh noise, by the code that
releases it in a fit. One half of the draws chooses an event, and the other half counts it. The event is a set of
low-bit patterns (`bounds.bit_event`), or that a number is large or small (`bounds.best_threshold`): this tests the
law of messages of the local model. A replay checks that the compiled kernels round as this code does.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit import bounds
from dpmf_cli.audit.fits import Side, both_sides
from dpmf_cli.audit.judge import Flaw, Judge
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.core.streams import named_generator
from dpmf_cli.privacy.accounting import epsilon_of_mu
from dpmf_cli.privacy.release import Release


def replay(algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, run: int = 0) -> Judge:
    """Finds what a fit for `epsilon` does differently on the neighbour."""
    here, there = both_sides(algorithm, pair, epsilon, run)
    judge = Judge(algorithm, pair, epsilon, here, there)
    if bool(here.error) != bool(there.error):
        judge.find(Flaw.CRASH, "", said=here.error or there.error)
    elif here.error:
        judge.find(Flaw.BROKEN, "", said=here.error)
    else:
        judge.compare()
    return judge


SIZES = 2000
"""The number of draws that choose a threshold."""


@dataclass(frozen=True)
class BitTest:
    """The lower bound on ε that the low bits of one step's releases give, at a `confidence`.

    allowed  the ε that the move of the tested number costs, according to the step's claim
    ceiling  the largest bound that this many draws can show
    """

    step: str
    epsilon: float
    allowed: float
    ceiling: float
    draws: int
    confidence: float
    event: str


def low_bits(
    algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, draws: int, confidence: float = 0.95
) -> Iterator[BitTest]:
    """Yields a test for each step of a fit whose noisy numbers are published and move between neighbours."""
    delta = algorithm.spends_delta
    for release, clean in _widest_moves(*both_sides(algorithm, pair, epsilon)):
        allowed = _allowed(release, abs(clean[1] - clean[0]), delta)
        found = _tested(release, clean, allowed, delta, draws, confidence)
        if found.epsilon > allowed:  # this is one of many tests, so a finding must show again, more surely
            found = _tested(release, clean, allowed, delta, 2 * draws, bounds.SURE, "again")
        yield found


def _tested(
    release: Release,
    clean: tuple[float, float],
    allowed: float,
    delta: float,
    draws: int,
    confidence: float,
    time: str = "",
) -> BitTest:
    step, half = release.entry.step, draws // 2
    rng = named_generator("audit", "bits", step, time)
    ours, theirs = (release.again(number, draws, rng) for number in clean)
    events: tuple[bounds.Event, ...] = (
        bounds.bit_event(ours[:half:2], theirs[:half:2], delta),
        bounds.best_threshold(ours[: 2 * SIZES : 2], theirs[: 2 * SIZES : 2], delta),
    )
    event = max(events, key=lambda each: each.training_score(ours[1:half:2], theirs[1:half:2], delta))
    counts = event.counts(ours[half:], theirs[half:])
    most = bounds.always_against_never(draws - half, draws - half)
    epsilon, ceiling = (bounds.epsilon_of_event(each, delta, confidence) for each in (counts, most))
    return BitTest(step, epsilon, allowed, ceiling, draws, confidence, str(event))


def _widest_moves(here: Side, there: Side) -> Iterator[tuple[Release, tuple[float, float]]]:
    """Yields, for each step, the number that moves most, as it is on both sides."""
    widest: dict[str, tuple[float, Release, tuple[float, float]]] = {}
    for place in sorted(here.seen.keys() & there.seen.keys()):
        one, other = here.seen[place], there.seen[place]
        if one.clean.shape != other.clean.shape or not one.clean.size:
            continue
        ours, theirs = one.clean.ravel(), other.clean.ravel()
        moved = np.nan_to_num(np.abs(theirs - ours))
        at = int(moved.argmax())
        if moved[at] > widest.get(place[0], (0.0,))[0]:
            widest[place[0]] = float(moved[at]), one.release, (float(ours[at]), float(theirs[at]))
    for step in sorted(widest):
        _, release, clean = widest[step]
        if release.leaves:
            yield release, clean


def _allowed(release: Release, moved: float, delta: float) -> float:
    """Returns the ε that one number's move costs, given the noise that its step declares."""
    if release.told is not None:
        return float(release.told[0])
    entry, scale = release.entry, float(release.scale[0])
    if scale == 0:
        return math.inf
    if entry.mu is not None or entry.sampled is not None:
        return epsilon_of_mu(moved / scale, delta)
    if not entry.by_rows and not entry.mechanism.startswith("Laplace"):
        return math.inf  # the law of this noise bounds no ε by itself: Langevin dynamics
    return moved / scale
