"""Judges the two sides of a replay: how far measurements have moved, and whether everything else is the same."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.accountant import OnSamples, Spent, on_a_sample
from dpmf_cli.audit.fits import FittedSide, Place, Seen, Side
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Entry, Ledger
from dpmf_cli.privacy.neighbours import RECORDS_APART, Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity

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


TOGETHER = "what the moves of this pair cost together"
"""Begins the remark on a pair whose moves together cost more than is claimed."""

AT_ITS_LIMIT = "at its limit, by the temperature of its noise"
"""The remark on a chain whose noise is smaller than its claim assumes."""

AMPLIFIED = "what a sample proves, of a part"
"""Begins the remark on a publication that credits a sample with more privacy than it gives."""


class Flaw(StrEnum):
    """The kinds of flaws that a replay can find."""

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

    @property
    def of_claims(self) -> bool:
        """Whether the flaw contradicts a publication's claim; all others contradict what dpmf calls provable."""
        return self is Flaw.CLAIM


@dataclass(frozen=True)
class Finding:
    """One flaw, on one pair.

    size  the size in units of what is allowed: 1 is just allowed; nan if the flaw has no size
    """

    flaw: Flaw
    step: str
    size: float
    pair: str
    epsilon: float
    said: str = ""


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
    """Compares the two sides of a replay, and notes what it finds."""

    algorithm: PrivateAlgorithm
    pair: Pair
    epsilon: float
    findings: list[Finding] = field(default_factory=list)
    steps: dict[str, StepMoves] = field(default_factory=dict)
    directions: dict[Place, NDArray[np.float64]] = field(default_factory=dict)
    samples: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    alike: dict[tuple[str, str], int] = field(default_factory=dict)
    _costs: dict[str, Spent] = field(default_factory=dict)

    def find(self, flaw: Flaw, step: str, size: float = math.nan, said: str = "") -> None:
        self.findings.append(Finding(flaw, step, size, self.pair.name, self.epsilon, said))

    def _limit(self, flaw: Flaw, step: str, amount: float, allowed: float, said: str = "") -> None:
        """Notes a flaw if an amount is larger than allowed."""
        if amount > allowed * (1 + SLACK):
            self.find(flaw, step, amount / allowed if allowed else math.inf, said)

    def compare(self, here: FittedSide, there: FittedSide) -> None:
        self._compare_ledgers(here.ledger, there.ledger)
        self._compare_steps(here.side, there.side)
        for name in sorted(here.side.restless | there.side.restless):
            self.find(Flaw.STEPS, name, said="one draw of noise covers several measurements")
        draws = _draws(here.side.seen)
        self.alike = _same_noise(here.side.seen, draws)
        for (step, other), numbers in self.alike.items():
            if numbers >= COMPARED:
                self.find(Flaw.STEPS, step, said=f"{NOISE_OF} {other}")
        for (step, draw), places in draws.items():
            self._compare_draw(step, draw, here.side, there.side, places)
        self._compare_grids(here.side)
        spent = [self._compare_cost(entry, here.side, here.ledger.delta) for entry in here.ledger.entries]
        self._compare_totals(here.ledger, Spent.of(spent))
        self._compare_predictions(here.predictions, there.predictions)
        for name in sorted(here.published.keys() | there.published.keys()):
            ours, theirs = (np.asarray(side.published.get(name, ())) for side in (here, there))
            if ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
                self.find(Flaw.AFTER, f"published {name}")

    def loss(self, ledger: Ledger) -> float:
        """Returns the cost of all moves together, in units of the claimed ε."""
        claimed = float(ledger.claimed[0])
        if not 0 < claimed < math.inf:
            return math.nan
        return Spent.of(self._costs.values()).epsilon(ledger.delta or GIVEN_DELTA) / claimed

    def _compare_ledgers(self, here: Ledger, there: Ledger) -> None:
        for entry in here.entries:
            if entry.sensitivity.neighbours is not self.algorithm.neighbours:
                self.find(Flaw.LEDGER, entry.step, said=f"is of neighbours {entry.sensitivity.neighbours}")
        if [each.record() for each in here.entries] != [each.record() for each in there.entries]:
            self.find(Flaw.LEDGER, "")

    def _compare_steps(self, here: Side, there: Side) -> None:
        for place in sorted(here.seen.keys() ^ there.seen.keys()):
            self.find(Flaw.STEPS, place[0], said="numbers that one side alone releases")
        for place in here.seen.keys() & there.seen.keys():
            one, other = here.seen[place], there.seen[place]
            if one.clean.shape != other.clean.shape:
                self.find(Flaw.STEPS, place[0], said=f"{one.clean.shape} and {other.clean.shape} numbers")
            elif not np.array_equal(_scale(one.release), _scale(other.release)):
                self.find(Flaw.SCALES, place[0])

    def _compare_draw(self, step: str, draw: int, here: Side, there: Side, places: Iterable[Place]) -> None:
        both = [place for place in places if place in there.seen]
        both = [place for place in both if here.seen[place].clean.shape == there.seen[place].clean.shape]
        if not both:
            return
        release = here.seen[both[0]].release
        entry = release.entry
        differences = []
        for place in both:
            one, other = here.seen[place].clean[..., 0], there.seen[place].clean[..., 0]
            if not np.array_equal(np.isfinite(one), np.isfinite(other)):
                self.find(Flaw.NAN, step)
            with np.errstate(invalid="ignore"):
                move = np.nan_to_num(other - one)
            self.directions[place] = move.ravel()
            differences.append(
                move.reshape(len(move), math.prod(move.shape[1:])) if move.ndim else move.reshape(1, 1)
            )
        unit = 1.0 if release.unit is None else float(release.unit[0])
        together = np.concatenate(differences) * unit
        moved, claimed = (_distance(together, entry, of) for of in (entry.sensitivity, entry.calibrated_to))
        times = self._changes(entry)
        allowed, used = times * entry.sensitivity.value, times * entry.calibrated_to.value
        of_sensitivity = moved / allowed if allowed < math.inf else math.nan
        of_noise = claimed / used if 0 < used < math.inf else math.nan
        measured = StepMoves(step, entry.mechanism, of_sensitivity, of_noise)
        self.steps[step] = measured.worst(self.steps.get(step, measured))
        self._limit(Flaw.MOVES, step, of_sensitivity, 1)
        self._limit(Flaw.CLAIM, step, of_noise, 1)
        self._add(entry, release, moved, unit)
        rate = entry.rate if entry.sampled is None else entry.sampled.rate
        if rate is not None and rate < 1:
            step = (
                entry.mechanism
            )  # one name for all steps of a sampled mechanism: each draw may have its own entry
            some, all_of_them, _ = self.samples.get(step, (0, 0, rate))
            self.samples[step] = some + (moved > 0), all_of_them + 1, rate
        if release.volume is not None:
            self._compare_volumes(release.volume, here.seen[both[0]], there.seen[both[0]])

    def _compare_volumes(self, paid: Entry, here: Seen, there: Seen) -> None:
        """Checks that the densities of solutions change by no more than the ledger pays for."""
        if here.volume is None or there.volume is None or here.volume.shape != there.volume.shape:
            return
        changed = float(np.abs(there.volume - here.volume).sum())
        allowed = self._changes(paid) * float(paid.provable[0]) / paid.repetitions
        measured = StepMoves(paid.step, paid.mechanism, changed / allowed, changed / allowed)
        self.steps[paid.step] = measured.worst(self.steps.get(paid.step, measured))
        self._costs.setdefault(paid.step, Spent()).pure += changed
        self._limit(Flaw.MOVES, paid.step, changed, allowed)

    def _changes(self, entry: Entry) -> int:
        """Returns how many of the changes that a step's entry is about lead from one side to the other.

        It is two if a base hides presence and the algorithm around it hides values.
        """
        hides_presence = entry.sensitivity.neighbours is Neighbours.UNBOUNDED
        return RECORDS_APART.get(self.algorithm.neighbours, 1) if hides_presence else 1

    def _add(self, entry: Entry, release: Release, moved: float, unit: float) -> None:
        """Adds the cost of one draw's move."""
        cost = self._costs.setdefault(entry.step, Spent())
        told = release.told
        if told is not None:
            cost.pure += moved * float(told[0])
            return
        scale = float(release.scale[0]) * unit
        if entry.sampled is not None or entry.rate is not None or math.isinf(entry.sensitivity.norm):
            cost.pure = math.nan
        elif scale == 0:
            cost.pure += math.inf if moved else 0.0
        elif entry.mechanism.startswith(("Laplace", "K-norm")):
            cost.pure += moved / scale
        else:
            cost.squares += (moved / scale) ** 2

    def _compare_grids(self, side: Side) -> None:
        """Checks that released numbers are multiples of a power of two that their noise's scale s alone decides, and
        that is above s/2048 (`privacy.grid`)."""
        for (step, _, _), seen in sorted(side.seen.items()):
            scale = 0.0 if seen.release.told is not None else float(seen.release.scale[0])
            if seen.noise is not None and seen.release.leaves and scale > 0:
                off = np.count_nonzero(
                    np.remainder(seen.out[..., 0], math.ldexp(1.0, math.frexp(scale)[1] - 11))
                )
                if off:
                    self.find(Flaw.GRID, step, said=f"{off} numbers of {seen.out[..., 0].size}")

    def _compare_cost(self, entry: Entry, side: Side, delta: float) -> Spent:
        """Checks that the noise of all draws is as large as the entry's provable ε requires. Returns their cost."""
        draws = {
            each.release.draw: each.release for each in side.seen.values() if each.release.entry is entry
        }
        provable, allowed, used = float(entry.provable[0]), entry.sensitivity.value, entry.calibrated_to.value
        if not draws:
            return Spent(0.0 if entry.mu is not None or entry.sampled is not None else provable)
        if entry.temperature < 1:
            self.find(Flaw.CLAIM, entry.step, 1 / entry.temperature, AT_ITS_LIMIT)
        if entry.rate is not None:
            scaled = _cost(entry, draws.values(), used).epsilon(delta)
            self._limit(
                Flaw.CLAIM, entry.step, scaled, float(entry.claimed[0]), f"{AMPLIFIED} {entry.rate:g}"
            )
        if math.isinf(provable) or math.isinf(allowed):
            return Spent(math.inf)
        paid = entry.repetitions if entry.sampled is None else entry.sampled.repetitions
        self._limit(Flaw.SPENDS, entry.step, len(draws), paid, f"{len(draws)} draws, paid for {paid}")
        spent = _cost(entry, draws.values(), allowed)
        self._limit(Flaw.SPENDS, entry.step, spent.epsilon(delta), provable)
        return spent

    def _compare_totals(self, ledger: Ledger, spent: Spent) -> None:
        """Adds up the steps once more, and checks the sum against the ledger's total and limit."""
        provable = float(ledger.provable[0])
        self._limit(Flaw.SPENDS, "all steps", spent.epsilon(ledger.delta), provable)
        if self.algorithm.mode is Mode.CORRECTED:
            self._limit(Flaw.SPENDS, "all steps", provable, float(ledger.limit[0]))
        for entry in ledger.entries:
            proved, claimed = float(entry.provable[0]), float(entry.claimed[0])
            if claimed > 0:
                if proved < math.inf:
                    self._limit(Flaw.CLAIM, entry.step, proved, claimed, "by the accountant")
                self._together(entry.step, self._costs.get(entry.step, Spent()), claimed, ledger.delta)
        if 0 < (claimed := float(ledger.claimed[0])) < math.inf:
            self._together("all steps", Spent.of(self._costs.values()), claimed, ledger.delta)

    def _together(self, step: str, moved: Spent, claimed: float, delta: float) -> None:
        """Checks that what was claimed pays for the moves of this pair."""
        given = f", even with δ = {GIVEN_DELTA:g}" if moved.squares and not delta else ""
        self._limit(Flaw.CLAIM, step, moved.epsilon(delta or GIVEN_DELTA), claimed, TOGETHER + given)

    def _compare_predictions(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> None:
        if not np.array_equal(np.isfinite(one), np.isfinite(other)):
            self.find(Flaw.NAN, "predictions")
        elif one.tobytes() != other.tobytes():
            differ = one != other
            with np.errstate(invalid="ignore"):
                largest = float(np.nanmax(np.abs(one.astype(np.float64) - other)[differ], initial=0.0))
            said = f"{int(differ.sum())} predictions of {len(one)}, by {largest:.3g} at most"
            self.find(Flaw.AFTER, "predictions", said=said)


def _draws(seen: Mapping[Place, Seen]) -> dict[tuple[str, int], list[Place]]:
    """Returns the places of each draw of noise."""
    draws: dict[tuple[str, int], list[Place]] = {}
    for place in sorted(seen):
        draws.setdefault(place[:2], []).append(place)
    return draws


def _same_noise(
    seen: Mapping[Place, Seen], draws: Mapping[tuple[str, int], list[Place]]
) -> dict[tuple[str, str], int]:
    """Returns the pairs of steps whose draws begin with the same unit noise, each with the count of the same numbers.

    Noise counts as the same if it differs only by rounding to the grids.
    """
    begins: list[tuple[str, NDArray[np.float64]]] = []
    times = Counter(step for step, _ in draws)
    for (step, _), places in draws.items():
        units = [np.zeros(0)]
        for place in places:
            each = seen[place]
            if each.noise is not None and each.release.told is None and each.release.scale[0] > 0:
                units.append(each.noise[..., 0].ravel() / each.release.scale[0])
            if sum(map(len, units)) >= COMPARED:
                break
        begin = np.concatenate(units)[:COMPARED]
        if (
            len(begin) == COMPARED or times[step] == 1
        ):  # of many draws with few numbers some are alike by chance
            begins.append((step, begin))
    first = np.full((len(begins), COMPARED), np.nan)
    for row, (_, begin) in zip(first, begins, strict=True):
        row[: len(begin)] = begin
    apart = np.abs(first[:, None] - first[None])
    both = np.isfinite(apart).sum(axis=2)
    same = (both > 0) & (np.nan_to_num(apart).max(axis=2, initial=0) < CLOSE)
    found: dict[tuple[str, str], int] = {}
    for one, other in zip(*np.nonzero(np.triu(same, 1)), strict=True):
        steps = begins[other][0], begins[one][0]
        found[steps] = max(found.get(steps, 0), int(both[one, other]))
    return found


def _scale(release: Release) -> NDArray[np.float64]:
    told = release.told
    return release.scale if told is None else told


def _cost(entry: Entry, draws: Collection[Release], move: float) -> Spent:
    """Returns the cost of draws of noise if the numbers of each move by `move`, in the norm of the entry."""
    told = [release.told for release in draws if release.told is not None]
    if told:
        return Spent(math.fsum(float(each[0]) for each in told) * move / entry.calibrated_to.value)
    units = (1.0 if release.unit is None else float(release.unit[0]) for release in draws)
    scales = [float(release.scale[0]) * unit for release, unit in zip(draws, units, strict=True)]
    if 0 in scales:
        return Spent(math.inf)
    ratios = [move / scale for scale in scales]
    if entry.sampled is not None and entry.sampled.rate < 1:
        exchanged = entry.sensitivity.neighbours is not Neighbours.USER
        counts = Counter(float(f"{ratio / (1 + exchanged):.12g}") for ratio in ratios)
        steps = (OnSamples(ratio, entry.sampled.rate, exchanged, count) for ratio, count in counts.items())
        return Spent(sampled=tuple(steps))
    if entry.mu is not None:
        return Spent(squares=math.fsum(ratio**2 for ratio in ratios))
    if entry.rate is not None:
        return Spent(math.fsum(on_a_sample(ratio, entry.rate) for ratio in ratios))
    return Spent(math.fsum(ratios) * (2 if math.isinf(entry.sensitivity.norm) else 1))


def _distance(moves: NDArray[np.float64], entry: Entry, of: Sensitivity) -> float:
    """Returns how far numbers have moved in the norm of a sensitivity; `moves` (numbers, …) has a row per number."""
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
