"""Replay: tests on two neighbours whether the code does what the ledger says.

A fit on D records every release: the numbers that were measured, and the numbers that were published. A fit on D′
publishes the same numbers again. Then each measurement may have moved by its sensitivity at most, and everything else
must be the same: the list of releases, their shapes and scales, the entries of the ledger, and every prediction that
privacy covers, to the byte. The compiled kernels run on both sides, except kernels of keyed noise, whose references
run instead (`privacy.release`).

A replay can refute a claim, not prove one. It assumes that the noise has the law that its mechanism declares; `laws`
and `distinguish` test that.

*The audit's own accountant* shares no code with the accountant that it judges. ε of pure steps add up. Of an ε-DP
step on a sample of a fraction γ, ln(1 + γ(e^ε − 1)) is added.

*Gaussian steps.* Let P and Q be the laws of the released numbers on two neighbours. δ(ε) = E_P[(1 − e^(ε − L))₊],
where L = ln dP/dQ is the privacy loss. Losses of independent steps add up. For N(μ, 1) and N(0, 1) the loss has the
law N(μ²/2, μ²), so K such steps are one with μ² = Σμ_k², and

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)        (Balle and Wang 2018, theorem 8)

*Gaussian steps on samples.* A step has the laws P = (1 − γ)·N(0, 1) + γ·N(a, 1) and Q, which has b in the place of a.
If a user is present on one side only, a is the user's contribution c/σ, and b is 0. If the contribution is exchanged,
a = c/σ and b = −a. Because the loss grows with x, since a > 0 ≥ b, an interval of x with the probability p under P
adds p to the least loss in the interval, rounded down to a multiple of h. What is beyond nine standard deviations is
left out. Both can only make losses smaller. As δ(ε) grows with the losses, the sum over steps, which is a
convolution, gives a *lower* bound on the true δ(ε), and on ε. So no accountant that is right is found at fault.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, Self

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.fits import Place, Seen, Side, both_sides
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Entry
from dpmf_cli.privacy.neighbours import RECORDS_APART, Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity

INTERVALS, CELLS = 1 << 15, 4000
"""Intervals of x in a step, and the least number of multiples of h up to the ε that is found."""

BEYOND = 9.0
"""The standard deviations beyond which a law is left out."""


class OnSamples(NamedTuple):
    """`times` steps on samples: the `move` c/σ of a contribution, and whether it is exchanged, or comes and goes."""

    move: float
    rate: float
    exchanged: bool
    times: int


@dataclass
class Spent:
    """The cost of steps: the ε of `pure` steps, Σμ² of Gaussian steps, and steps on samples."""

    pure: float = 0.0
    squares: float = 0.0
    sampled: tuple[OnSamples, ...] = ()

    @classmethod
    def of(cls, costs: Iterable[Self]) -> Self:
        every = tuple(costs)
        together = tuple(step for each in every for step in each.sampled)
        return cls(sum(each.pure for each in every), sum(each.squares for each in every), together)

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε at `delta`; the exact ε without steps on samples. nan if it is no sum."""
        if math.isnan(self.pure) or math.isinf(self.pure + self.squares):
            return self.pure + self.squares
        return self.pure + _epsilon(self.squares, self.sampled, delta)


def on_a_sample(epsilon: float, rate: float) -> float:
    """ln(1 + γ(e^ε − 1)), also where e^ε is no float."""
    return epsilon + math.log1p((1 - rate) * math.expm1(-epsilon))


@lru_cache(maxsize=4096)
def _epsilon(squares: float, sampled: tuple[OnSamples, ...], delta: float) -> float:
    full = squares + sum(step.times * (step.move * (1 + step.exchanged)) ** 2 for step in sampled)
    unsampled = _gaussian(math.sqrt(full), delta)
    if not sampled or unsampled == 0:
        return unsampled
    steps = [*sampled, OnSamples(math.sqrt(squares), 1.0, False, 1)]
    width = unsampled / CELLS
    while (found := max(_composed(steps, delta, width, way) for way in (1, -1))) < CELLS * width / 2:
        if width < 1e-6 * unsampled:
            break
        width = max(found / CELLS, width / 16)
    return found


def _gaussian(mu: float, delta: float) -> float:
    """The ε of one Gaussian step: the root of the closed form."""
    if delta == 0 or math.erf(mu / math.sqrt(8)) <= delta:  # the latter is δ(0)
        return math.inf if delta == 0 < mu else 0.0

    def excess(epsilon: float) -> float:
        below = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(min(below, 0.0)) - delta)

    return float(brentq(excess, 0, mu * (mu / 2 - float(ndtri(delta)) + 1), rtol=1e-12))


def _composed(steps: list[OnSamples], delta: float, width: float, way: int) -> float:
    """A lower bound on the ε of the laws P against Q, or of Q against P if `way` is −1; `width` is h."""
    rows = [(_losses(step, width, way), step.times) for step in steps if step.move > 0]
    length = sum(count * (len(mass) - 1) for (mass, _), count in rows) + 1
    size = next_fast_len(length, real=True)
    product = np.ones(size // 2 + 1, np.complex128)
    for (mass, _), count in rows:
        product *= rfft(mass, size) ** count
    first = sum(count * least for (_, least), count in rows)
    losses, mass = width * (first + np.arange(length)), irfft(product, size)[:length]
    losses, mass = losses[losses > 0], mass[losses > 0]

    def excess(epsilon: float) -> float:
        return float(mass @ -np.expm1(np.minimum(epsilon - losses, 0.0))) - delta

    if not len(losses) or excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0, losses[-1], rtol=1e-9))


def _losses(step: OnSamples, width: float, way: int) -> tuple[Doubles, int]:
    """The probabilities of a step's losses on the multiples of `width`, and the least multiple."""
    a, b = step.move, -step.move if step.exchanged else 0.0
    x = np.linspace(b - BEYOND, a + BEYOND, INTERVALS + 1)
    with np.errstate(divide="ignore"):
        without = np.log1p(-step.rate)
    with_a, with_b = (np.logaddexp(without, math.log(step.rate) + at * x - at * at / 2) for at in (a, b))
    loss = way * (with_a - with_b if step.exchanged or step.rate < 1 else a * x - a * a / 2)
    at = a if way > 0 else b
    mass = np.diff((1 - step.rate) * ndtr(x) + step.rate * ndtr(x - at))
    cells = np.floor(np.minimum(loss[:-1], loss[1:]) / width).astype(np.int64)
    return np.bincount(cells - cells.min(), mass).astype(np.float64), int(cells.min())


COMPARED = 4
"""How many numbers of two noise draws are compared. All are the same by chance once in 2³⁰ times."""

CLOSE = 2.0**-9
"""The distance within which two unit draws count as the same apart from rounding. By chance two draws are that near
once in 500 times or less."""

NOISE_OF = "has the noise of"
"""Begins the remark on a step that has the noise of another step."""

SLACK = MARGIN
"""The fraction by which a measurement may move further than its sensitivity: rounding, which the margin pays for."""

GIVEN_DELTA = 1e-6
"""The δ that a replay grants to Gaussian noise which is claimed to be pure ε-DP: without a δ no ε is large enough."""


class Flaw(StrEnum):
    """The kinds of flaws that a replay can find. `CLAIM` contradicts a publication, all others what is provable."""

    MOVES = "moves more than its sensitivity"
    STEPS = "other releases on the neighbour"
    SCALES = "other noise on the neighbour"
    LEDGER = "another ledger on the neighbour"
    SPENDS = "spends more than is provable"
    AFTER = "what follows the releases is not the same"
    GRID = "numbers off the grid of their noise"
    NAN = "not a number on one side"
    CRASH = "a crash on one side"
    BROKEN = "cannot be fitted on either side"
    CLAIM = "costs more than is claimed"


@dataclass(frozen=True)
class Finding:
    """A flaw of one step, on one pair, or in its worst case.

    flaw     a `Flaw`, or what else an audit has found
    size     in units of what is allowed: 1 is just allowed; nan if the flaw has no size
    pairs    the number of pairs on which it was found
    against  "provable": dpmf's own statement is false; "claimed": only the publication's statement is false
    """

    flaw: str
    step: str
    size: float = math.nan
    pair: str = ""
    epsilon: float = math.nan
    said: str = ""
    pairs: int = 1
    against: str = ""


@dataclass(frozen=True)
class StepMoves:
    """The largest move of the numbers of one step.

    of_sensitivity  in units of the provable sensitivity; nan if none is known
    of_noise        in units of the sensitivity that the noise is scaled to, which is the publication's claim
    """

    step: str
    mechanism: str
    of_sensitivity: float
    of_noise: float

    def worst(self, other: "StepMoves") -> "StepMoves":
        return replace(
            self,
            of_sensitivity=float(np.fmax(self.of_sensitivity, other.of_sensitivity)),
            of_noise=float(np.fmax(self.of_noise, other.of_noise)),
        )


@dataclass
class Judge:
    """The comparison of the two sides of the replay of one pair, and what it finds.

    steps       how far each step moved, by its name
    directions  for each release: (numbers,) how far each number has moved, for black-box statistics
    samples     for each sampled step: how many of its draws moved, the number of draws, and the probability that one
                moves
    alike       for two steps whose draws begin with the same noise: the count of the same numbers
    """

    algorithm: PrivateAlgorithm
    pair: Pair
    epsilon: float
    here: Side
    there: Side
    findings: list[Finding] = field(default_factory=list)
    steps: dict[str, StepMoves] = field(default_factory=dict)
    directions: dict[Place, Doubles] = field(default_factory=dict)
    samples: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    alike: dict[tuple[str, str], int] = field(default_factory=dict)
    _costs: dict[str, Spent] = field(default_factory=dict)

    def find(self, flaw: Flaw, step: str, size: float = math.nan, said: str = "") -> None:
        self.findings.append(Finding(flaw, step, size, self.pair.name, self.epsilon, said))

    def _limit(self, flaw: Flaw, step: str, amount: float, allowed: float, said: str = "") -> None:
        """Notes a flaw if an amount is larger than allowed."""
        if amount > allowed * (1 + SLACK):
            self.find(flaw, step, amount / allowed if allowed else math.inf, said)

    def _moves(self, entry: Entry, of_sensitivity: float, of_noise: float) -> None:
        measured = StepMoves(entry.step, entry.mechanism, of_sensitivity, of_noise)
        self.steps[entry.step] = measured.worst(self.steps.get(entry.step, measured))

    def compare(self) -> None:
        here, there = self.here, self.there
        for entry in here.ledger.entries:
            if entry.sensitivity.neighbours is not self.algorithm.neighbours:
                self.find(Flaw.LEDGER, entry.step, said=f"is of neighbours {entry.sensitivity.neighbours}")
        ours, theirs = ([each.record() for each in side.ledger.entries] for side in (here, there))
        if ours != theirs:
            self.find(Flaw.LEDGER, "")
        for place in sorted(here.seen.keys() ^ there.seen.keys()):
            self.find(Flaw.STEPS, place[0], said="numbers that one side alone releases")
        for place in sorted(here.seen.keys() & there.seen.keys()):
            one, other = here.seen[place], there.seen[place]
            if one.clean.shape != other.clean.shape:
                self.find(Flaw.STEPS, place[0], said=f"{one.clean.shape} and {other.clean.shape} numbers")
            elif not np.array_equal(_scale(one.release), _scale(other.release)):
                self.find(Flaw.SCALES, place[0])
        for name in sorted(here.restless | there.restless):
            self.find(Flaw.STEPS, name, said="one draw of noise covers several measurements")
        by_draw = groupby(sorted(here.seen), key=lambda place: place[:2])
        draws = {draw: list(places) for draw, places in by_draw}
        self.alike = _same_noise(here.seen, draws)
        for (step, like), numbers in self.alike.items():
            if numbers >= COMPARED:
                self.find(Flaw.STEPS, step, said=f"{NOISE_OF} {like}")
        for (step, _), places in draws.items():
            self._compare_draw(step, places)
        self._compare_grids()
        self._compare_totals(Spent.of([self._compare_cost(entry) for entry in here.ledger.entries]))
        of_one, of_other = here.predictions, there.predictions
        if not np.array_equal(np.isfinite(of_one), np.isfinite(of_other)):
            self.find(Flaw.NAN, "predictions")
        elif of_one.tobytes() != of_other.tobytes():
            differ = of_one != of_other
            with np.errstate(invalid="ignore"):
                largest = float(np.nanmax(np.abs(of_one.astype(np.float64) - of_other)[differ], initial=0.0))
            said = f"{int(differ.sum())} predictions of {len(of_one)}, by {largest:.3g} at most"
            self.find(Flaw.AFTER, "predictions", said=said)
        for name in sorted(here.arrays.keys() | there.arrays.keys()):
            arrays = [np.asarray(side.arrays.get(name, ())) for side in (here, there)]
            if arrays[0].shape != arrays[1].shape or arrays[0].tobytes() != arrays[1].tobytes():
                self.find(Flaw.AFTER, f"published {name}")

    @property
    def loss(self) -> float:
        """The cost of all moves together, in units of the claimed ε; nan if it is no sum over steps."""
        claimed = float(self.here.ledger.claimed[0])
        if self.here.error or not 0 < claimed < math.inf:
            return math.nan
        return Spent.of(self._costs.values()).epsilon(self.here.ledger.delta or GIVEN_DELTA) / claimed

    def _compare_draw(self, step: str, places: Iterable[Place]) -> None:
        both = [(self.here.seen[place], self.there.seen.get(place), place) for place in places]
        alike = [
            (one, other, at) for one, other, at in both if other and one.clean.shape == other.clean.shape
        ]
        if not alike:
            return
        release = alike[0][0].release
        entry = release.entry
        differences = []
        for ours, theirs, place in alike:
            one, other = ours.clean[..., 0], theirs.clean[..., 0]
            if not np.array_equal(np.isfinite(one), np.isfinite(other)):
                self.find(Flaw.NAN, step)
            with np.errstate(invalid="ignore"):
                move = np.nan_to_num(other - one)
            self.directions[place] = move.ravel()
            move = np.atleast_1d(move)
            differences.append(move.reshape(len(move), math.prod(move.shape[1:])))
        together = np.concatenate(differences) * _unit(release)
        moved, claimed = (_distance(together, entry, of) for of in (entry.sensitivity, entry.calibrated_to))
        times = self._changes(entry)
        allowed, used = times * entry.sensitivity.value, times * entry.calibrated_to.value
        of_sensitivity = moved / allowed if allowed < math.inf else math.nan
        of_noise = claimed / used if 0 < used < math.inf else math.nan
        self._moves(entry, of_sensitivity, of_noise)
        self._limit(Flaw.MOVES, step, of_sensitivity, 1)
        self._limit(Flaw.CLAIM, step, of_noise, 1)
        cost = self._costs.setdefault(step, Spent())
        rate = entry.rate if entry.sampled is None else entry.sampled.rate
        if release.told is None and (rate is not None or math.isinf(entry.sensitivity.norm)):
            cost.pure = math.nan
        elif moved:
            spent = _cost(entry, [release], moved)
            cost.pure, cost.squares = cost.pure + spent.pure, cost.squares + spent.squares
        if rate is not None and rate < 1:
            # One name for all steps of a sampled mechanism: each draw may have its own entry.
            some, all_of_them, _ = self.samples.get(entry.mechanism, (0, 0, rate))
            self.samples[entry.mechanism] = some + (moved > 0), all_of_them + 1, rate
        paid, ours_volume, theirs_volume = release.volume, alike[0][0].volume, alike[0][1].volume
        if paid is None or ours_volume is None or theirs_volume is None:
            return
        if ours_volume.shape == theirs_volume.shape:
            # The densities of solutions change by what the ledger pays for.
            changed = float(np.abs(theirs_volume - ours_volume).sum())
            allowed = self._changes(paid) * float(paid.provable[0]) / paid.repetitions
            self._moves(paid, changed / allowed, changed / allowed)
            self._costs.setdefault(paid.step, Spent()).pure += changed
            self._limit(Flaw.MOVES, paid.step, changed, allowed)

    def _changes(self, entry: Entry) -> int:
        """How many changes of an entry's kind lead to the other side: two if presence hides a value."""
        hides_presence = entry.sensitivity.neighbours is Neighbours.UNBOUNDED
        return RECORDS_APART.get(self.algorithm.neighbours, 1) if hides_presence else 1

    def _compare_grids(self) -> None:
        """Checks that released numbers are multiples of a power of two that their noise's scale s alone decides, and
        that is above s/2048 (`privacy.grid`)."""
        for (step, _, _), seen in sorted(self.here.seen.items()):
            scale = 0.0 if seen.release.told is not None else float(seen.release.scale[0])
            if seen.noise is not None and seen.release.leaves and scale > 0:
                numbers = seen.out[..., 0]
                off = np.count_nonzero(np.remainder(numbers, math.ldexp(1.0, math.frexp(scale)[1] - 11)))
                if off:
                    self.find(Flaw.GRID, step, said=f"{off} numbers of {numbers.size}")

    def _compare_cost(self, entry: Entry) -> Spent:
        """The cost of all draws, whose noise must be as large as the entry's provable ε requires."""
        seen, delta = self.here.seen.values(), self.here.ledger.delta
        draws = {each.release.draw: each.release for each in seen if each.release.entry is entry}
        provable, allowed, used = float(entry.provable[0]), entry.sensitivity.value, entry.calibrated_to.value
        if not draws:
            return Spent(0.0 if entry.mu is not None or entry.sampled is not None else provable)
        if entry.temperature < 1:
            said = "at its limit, by the temperature of its noise"
            self.find(Flaw.CLAIM, entry.step, 1 / entry.temperature, said)
        if entry.rate is not None:
            scaled = _cost(entry, draws.values(), used).epsilon(delta)
            said = f"what a sample proves, of a part {entry.rate:g}"
            self._limit(Flaw.CLAIM, entry.step, scaled, float(entry.claimed[0]), said)
        if math.isinf(provable) or math.isinf(allowed):
            return Spent(math.inf)
        paid = entry.repetitions if entry.sampled is None else entry.sampled.repetitions
        self._limit(Flaw.SPENDS, entry.step, len(draws), paid, f"{len(draws)} draws, paid for {paid}")
        spent = _cost(entry, draws.values(), allowed)
        self._limit(Flaw.SPENDS, entry.step, spent.epsilon(delta), provable)
        return spent

    def _compare_totals(self, spent: Spent) -> None:
        """Adds up the steps once more, and checks the sum against the ledger's total and limit."""
        ledger = self.here.ledger
        provable = float(ledger.provable[0])
        self._limit(Flaw.SPENDS, "all steps", spent.epsilon(ledger.delta), provable)
        if self.algorithm.mode is Mode.CORRECTED:
            self._limit(Flaw.SPENDS, "all steps", provable, float(ledger.limit[0]))
        for entry in ledger.entries:
            proved, claimed = float(entry.provable[0]), float(entry.claimed[0])
            if claimed > 0:
                if proved < math.inf:
                    self._limit(Flaw.CLAIM, entry.step, proved, claimed, "by the accountant")
                self._together(entry.step, self._costs.get(entry.step, Spent()), claimed)
        if 0 < (claimed := float(ledger.claimed[0])) < math.inf:
            self._together("all steps", Spent.of(self._costs.values()), claimed)

    def _together(self, step: str, moved: Spent, claimed: float) -> None:
        """Checks that what was claimed pays for the moves of this pair."""
        delta = self.here.ledger.delta
        given = f", even with δ = {GIVEN_DELTA:g}" if moved.squares and not delta else ""
        said = f"what the moves of this pair cost together{given}"
        self._limit(Flaw.CLAIM, step, moved.epsilon(delta or GIVEN_DELTA), claimed, said)


def _same_noise(
    seen: Mapping[Place, Seen], draws: Mapping[tuple[str, int], list[Place]]
) -> dict[tuple[str, str], int]:
    """Pairs of steps whose draws begin with the same unit noise, but for rounding, and how many numbers."""
    steps, begins = [], []
    times = Counter(step for step, _ in draws)
    for (step, _), places in draws.items():
        noisy = [seen[place] for place in places[:COMPARED]]
        units = [
            each.noise[..., 0].ravel() / each.release.scale[0]
            for each in noisy
            if each.noise is not None and each.release.told is None and each.release.scale[0] > 0
        ]
        begin = np.concatenate([np.zeros(0), *units])[:COMPARED]
        if (
            len(begin) == COMPARED or times[step] == 1
        ):  # some of many draws of few numbers are alike by chance
            steps.append(step)
            begins.append(np.pad(begin, (0, COMPARED - len(begin)), constant_values=np.nan))
    first = np.reshape(begins, (-1, COMPARED))
    apart = np.abs(first[:, None] - first[None])
    both = np.isfinite(apart).sum(axis=2)
    same = (both > 0) & (np.nan_to_num(apart).max(axis=2, initial=0) < CLOSE)
    found: dict[tuple[str, str], int] = {}
    for one, other in zip(*np.nonzero(np.triu(same, 1)), strict=True):
        names = steps[other], steps[one]
        found[names] = max(found.get(names, 0), int(both[one, other]))
    return found


def _scale(release: Release) -> Doubles:
    return release.scale if release.told is None else release.told


def _unit(release: Release) -> float:
    return 1.0 if release.unit is None else float(release.unit[0])


def _cost(entry: Entry, draws: Iterable[Release], move: float) -> Spent:
    """The cost of draws of noise if the numbers of each move by `move`, in the norm of the entry."""
    draws = list(draws)
    if draws[0].told is not None:
        return Spent(math.fsum(float(_scale(each)[0]) for each in draws) * move / entry.calibrated_to.value)
    scales = [float(release.scale[0]) * _unit(release) for release in draws]
    if 0 in scales:
        return Spent(math.inf)
    ratios = [move / scale for scale in scales]
    if entry.sampled is not None and entry.sampled.rate < 1:
        exchanged = entry.sensitivity.neighbours is not Neighbours.USER
        counts = Counter(float(f"{ratio / (1 + exchanged):.12g}") for ratio in ratios)
        steps = (OnSamples(ratio, entry.sampled.rate, exchanged, count) for ratio, count in counts.items())
        return Spent(sampled=tuple(steps))
    if entry.mechanism.startswith(("Gaussian", "SGLD")):
        return Spent(squares=math.fsum(ratio**2 for ratio in ratios))
    if entry.rate is not None:
        return Spent(math.fsum(on_a_sample(ratio, entry.rate) for ratio in ratios))
    return Spent(math.fsum(ratios) * (2 if math.isinf(entry.sensitivity.norm) else 1))


def _distance(moves: Doubles, entry: Entry, of: Sensitivity) -> float:
    """How far numbers have moved in the norm of a sensitivity; `moves` (numbers, …) has a row per number."""
    if entry.by_rows:
        return float(np.linalg.norm(moves, axis=1).sum())
    flat = np.abs(moves.ravel())
    if of.ordered_pairs:
        size = round((math.sqrt(8 * len(flat) + 1) - 1) / 2)
        diagonal = np.cumsum(np.append(0, np.arange(size, 1, -1)))
        weights = np.full(len(flat), 2.0)
        weights[diagonal] = 1.0
        flat = flat * (weights if of.norm == 1 else np.sqrt(weights))
    if math.isinf(of.norm):
        return float(flat.max(initial=0.0))
    return float(flat.sum() if of.norm == 1 else math.sqrt(np.square(flat).sum()))


def replay(algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, run: int = 0) -> Judge:
    """What a fit for `epsilon` does differently on the neighbour."""
    here, there = both_sides(algorithm, pair, epsilon, run)
    judge = Judge(algorithm, pair, epsilon, here, there)
    if bool(here.error) != bool(there.error):
        judge.find(Flaw.CRASH, "", said=here.error or there.error)
    elif here.error:
        judge.find(Flaw.BROKEN, "", said=here.error)
    else:
        judge.compare()
    return judge
