"""Bounds: the least privacy loss that counts of events prove, and the most that so many trials can prove.

A mechanism M is (ε, δ)-DP if P[M(D) ∈ E] ≤ e^ε·P[M(D') ∈ E] + δ for all neighbours D, D' and all events E. An audit
takes one pair and one event, runs M on both data sets, and counts. If the first probability is at least p and the
second at most q, no ε below ln((p − δ)/q) can be true (Jagielski, Ullman, Oprea 2020, "Auditing differentially
private machine learning"; Ding et al. 2018). Nothing here is drawn.

*Confidence.* p and q come from counts by Clopper and Pearson (1934). Their bounds are exact: they hold for every
number of trials. A bound on ε needs both p and q, and is wrong only if one of them is, so each is taken at (1 + c)/2,
which gives the bound confidence c, whatever the dependence between the two samples. By this convention 400 of 400
against 0 of 400 show 4.32 at 99 %. At 95 %, 10⁴ trials on each side can show at most 7.91, and 10⁵ at most 10.21.

*Which event.* It is wrong to choose among events by their counts and then to bound the chosen event by the same
counts: the best of many looks better than it is. `best_threshold`, `best_threshold_for_mu` and `bit_event` choose the
threshold, the direction and the numerator on training values. Because the event is fixed before a test value is seen,
only one event is bounded on the test values, and no correction is needed.

A bound is about the pair and the event that were tried: a low bound proves nothing about M.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmf_cli.core.arrays import Doubles, Flags, Longs
from dpmf_cli.privacy.accounting import epsilon_of_mu

TRAINING_CONFIDENCE = 0.95
"""The confidence for scores of training values. It decides which event is chosen, not whether its bound holds."""

SURE = 0.9999
"""The confidence of a second test, on fresh draws, which repeats a first test that has found something."""

LOW_BITS = (4, 8, 12, 16)
"""The numbers of low bits of the mantissa that `bit_event` tries. Of equally good sets, that of fewest bits wins."""

MANTISSA = 52
"""The number of stored bits of a float64's mantissa."""

UNIT_OF_ZERO = 2000
"""Stands for the exponent of the largest power of two that divides 0: larger than that of any other float."""

Counted = Longs


def clopper_pearson(successes: ArrayLike, trials: int, confidence: float) -> tuple[Doubles, Doubles]:
    """(lows, highs), two one-sided bounds on the chance of a success, given `successes` (…) of `trials`.

    Each is wrong with a probability of at most 1 − `confidence`: for the two-sided interval of 95 % ask for 0.975.
    Low is the chance at which `successes` or more have probability 1 − `confidence`, high that at which so many or
    fewer have it. Both are quantiles of beta laws.
    """
    counts = np.asarray(successes)
    some, most = np.maximum(counts, 1), np.minimum(counts, trials - 1)
    lows = special.betaincinv(some, trials - some + 1, 1 - confidence)
    highs = special.betainccinv(most + 1, np.maximum(trials - most, 1), 1 - confidence)
    return np.where(counts > 0, lows, 0.0), np.where(counts < trials, highs, 1.0)


def chance_of_count(count: int, trials: int, least: float, largest: float) -> float:
    """The probability of a count as small, or as large, as `count`, whichever is smaller: the largest for any chance
    of a success between `least` and `largest`.

    A test of many counts at a level α finds a false one with a probability of at most 2α for each count.
    """
    few = special.bdtr(count, trials, least)
    many = special.bdtrc(count - 1, trials, largest) if count else 1.0
    return float(min(few, many, 1.0))


class EventCounts(NamedTuple):
    """How often one event happened: `hits` of `trials` on the data set of the numerator, and on the other one.

    The event, its direction and the data set of the numerator must have been fixed before the trials.
    """

    hits: int
    trials: int
    other_hits: int
    other_trials: int

    def ends(self, confidence: float) -> tuple[Doubles, Doubles]:
        """The least p and the largest q that the counts allow, each at (1 + `confidence`)/2 (Bonferroni)."""
        low, _ = clopper_pearson(self.hits, self.trials, (1 + confidence) / 2)
        _, high = clopper_pearson(self.other_hits, self.other_trials, (1 + confidence) / 2)
        return low, high


def always_against_never(trials: int, other_trials: int) -> EventCounts:
    """The counts whose bound is the ceiling: the largest that so many trials can show.

    A bound near the ceiling shows that there were too few trials, rather than how large ε is.
    """
    return EventCounts(trials, trials, 0, other_trials)


def epsilon_of_event(counts: EventCounts, delta: float, confidence: float) -> float:
    """The ε below which no claim (ε, `delta`) is true, with `confidence`: ln((p − δ)/q), at least 0."""
    if not 0 <= delta < 1:
        raise ValueError(f"δ must be in [0, 1), not {delta}")
    return max(float(_epsilons(*counts.ends(confidence), delta)), 0.0)


def _epsilons(lows: Doubles, highs: Doubles, delta: float) -> Doubles:
    """ln((low − δ)/high) of each pair of bounds, −∞ where low ≤ δ."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(lows - delta, 0.0)) - np.log(highs))


def mu_of_event(counts: EventCounts, confidence: float) -> float:
    """The μ ≥ 0 below which the mechanism is not μ-GDP, given one event's counts, with `confidence`.

    A test that says "D" when the event happens has the true positive rate TPR = P[E | D] and the false positive rate
    FPR = P[E | D']. If the mechanism is μ-GDP, then μ ≥ Φ⁻¹(TPR) − Φ⁻¹(FPR), which is Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) (Dong,
    Roth, Su 2022, section 2; Nasr et al. 2023, "Tight auditing of differentially private machine learning"). TPR is
    taken at its lower end and FPR at its upper end.
    """
    return max(float(_mus(*counts.ends(confidence))), 0.0)


def gaussian_epsilon_of_event(counts: EventCounts, delta: float, confidence: float) -> float:
    """The ε at `delta` of the Gaussian mechanism whose μ is `mu_of_event`.

    This bounds the audited mechanism's ε only if its losses are those of a Gaussian mechanism, that is, if it costs
    exactly what μ says. If its noise is wrong in form but not in size, the bound is wrong, whereas `epsilon_of_event`
    assumes nothing. The assumption gains much: every threshold near the middle tells about μ, while ε at a small δ
    shows only in events that almost never happen.
    """
    return epsilon_of_mu(mu_of_event(counts, confidence), delta)


def _mus(lows: Doubles, highs: Doubles) -> Doubles:
    """Φ⁻¹(low) − Φ⁻¹(high) of each pair of bounds, −∞ where low is 0 or high is 1."""
    return np.asarray(special.ndtri(lows) - special.ndtri(highs))


@dataclass(frozen=True)
class Event:
    """The event that a scalar statistic is at least `threshold` (if `above`), or below it (if not).

    numerator_here  whether it is more likely on D ("here") than on D' ("there"): D's chance is then the numerator
    """

    threshold: float
    above: bool
    numerator_here: bool

    def holds(self, values: ArrayLike) -> Flags:
        """For each of `values`, whether the event happened."""
        reached = np.asarray(values) >= self.threshold
        return np.asarray(reached if self.above else ~reached)

    def counts(self, here: ArrayLike, there: ArrayLike) -> EventCounts:
        """How often the event happens for values on D and on D'."""
        held, other_held = map(self.holds, (here, there) if self.numerator_here else (there, here))
        return EventCounts(int(held.sum()), held.size, int(other_held.sum()), other_held.size)

    def training_score(self, here: ArrayLike, there: ArrayLike, delta: float) -> float:
        """How well the event tells training values on D from those on D', as a bound on ε."""
        return epsilon_of_event(self.counts(here, there), delta, TRAINING_CONFIDENCE)

    def __str__(self) -> str:
        return f"{'at least' if self.above else 'below'} {self.threshold:.6g}"


def best_threshold(here: ArrayLike, there: ArrayLike, delta: float) -> Event:
    """The threshold, direction and numerator with the largest lower bound on ε on training values.

    Candidates are "at least" and "less than" each value that occurs, with either data set as the numerator. Each is
    scored as by `epsilon_of_event`, so that a tail with a handful of values does not win by luck alone.
    """
    return _best(here, there, partial(_epsilons, delta=delta))[1]


def best_threshold_for_mu(here: ArrayLike, there: ArrayLike) -> Event:
    """The same as `best_threshold`, but with the largest lower bound on μ."""
    return _best(here, there, _mus)[1]


def _best(
    here: ArrayLike, there: ArrayLike, score: Callable[[Doubles, Doubles], Doubles]
) -> tuple[float, Event]:
    """The best score of all events "at least" or "less than" a value that occurs, and the best event.

    Raises ValueError if a side has no values, or one that is not finite.
    """
    values = [np.sort(np.asarray(side, dtype=np.float64), axis=None) for side in (here, there)]
    if not all(len(side) and np.isfinite(side).all() for side in values):
        raise ValueError("both sides need values, all of them finite")
    thresholds = np.unique(np.concatenate(values))
    ends = []
    for side in values:  # each different count is computed once
        counts, position = np.unique(len(side) - np.searchsorted(side, thresholds), return_inverse=True)
        lows, highs = clopper_pearson(counts, len(side), (1 + TRAINING_CONFIDENCE) / 2)
        ends.append((lows[position], highs[position]))
    (low, high), (other_low, other_high) = ends
    events = [(True, True), (True, False), (False, True), (False, False)]  # above, numerator here
    tops = np.stack([low, other_low, 1 - high, 1 - other_high])  # a complement's ends are mirrored
    bottoms = np.stack([other_high, high, 1 - other_low, 1 - low])
    scores = score(tops, bottoms)
    which, where = np.unravel_index(int(np.argmax(scores)), scores.shape)
    return float(scores[which, where]), Event(float(thresholds[where]), *events[which])


@dataclass(frozen=True, eq=False)
class BitEvent(Event):
    """The event that a float's low bits are among those that one data set gives more often.

    If `bits` is 0, the statistic is the exponent of the largest power of two that divides the float. Otherwise it is
    the entry of `odds` (2^bits,) for the float's pattern: its `bits` mantissa bits from the bit `shift` up. An entry
    of `odds` is the logarithm of how much more often the pattern came here than there.
    """

    bits: int
    shift: int
    odds: Doubles

    def holds(self, values: ArrayLike) -> Flags:
        if self.bits == 0:
            return super().holds(_unit_exponent(values))
        return super().holds(self.odds[_pattern(values, self.bits, self.shift)])

    def __str__(self) -> str:
        if self.bits == 0:
            return f"{'' if self.above else 'not '}a multiple of 2^{self.threshold:.0f}"
        many = int(super().holds(self.odds).sum())
        return f"{many} of {2**self.bits} patterns of {self.bits} mantissa bits from bit {self.shift} up"


def bit_event(here: ArrayLike, there: ArrayLike, delta: float) -> BitEvent:
    """The set of low-bit patterns that tells D from D' best, on training releases of each.

    A float sum of a clean value and noise can only be one of certain floats. The clean value decides which floats
    these are (Mironov 2012, "On significance of the least significant bits for differential privacy"). The candidates
    are the multiples of g and their complement, for every power of two g, and sets of patterns of the low 4, 8, 12
    and 16 bits of the mantissa. Low means from the lowest bit that any training value uses, so that the low bits of
    float32 numbers show too.

    Because there are more patterns than a count can tell apart, every other value is used to find how much more often
    each pattern comes here than there, and the rest choose the threshold on that, and score it. The best wins.
    """
    ours, theirs = (np.asarray(values, dtype=np.float64).ravel() for values in (here, there))
    # The mantissa bits that are 1 in any float, and the highest one.
    used = [int(np.bitwise_or.reduce(_bits_of(each)[0])) | 2 ** (MANTISSA - 1) for each in (ours, theirs)]
    shift = min((bits & -bits).bit_length() - 1 for bits in used)
    score = partial(_epsilons, delta=delta)
    best_score, event = _best(_unit_exponent(ours[1::2]), _unit_exponent(theirs[1::2]), score)
    best = BitEvent(**vars(event), bits=0, shift=0, odds=np.empty(0))
    for bits in LOW_BITS:
        patterns = [_pattern(values, bits, shift) for values in (ours, theirs)]
        counts = [np.bincount(values[::2], minlength=2**bits) for values in patterns]
        odds = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)
        value, event = _best(odds[patterns[0][1::2]], odds[patterns[1][1::2]], score)
        if value > best_score:
            best_score, best = value, BitEvent(**vars(event), bits=bits, shift=shift, odds=odds)
    return best


def _bits_of(values: ArrayLike) -> tuple[Counted, Counted]:
    """Each float's stored mantissa and its stored exponent."""
    stored = np.asarray(values, dtype=np.float64).view(np.int64)
    return np.asarray(stored & (2**MANTISSA - 1)), np.asarray((stored >> MANTISSA) & 0x7FF)


def _pattern(values: ArrayLike, bits: int, shift: int) -> Counted:
    """The mantissa's `bits` bits from the bit `shift` up, as a number."""
    mantissa, _ = _bits_of(values)
    return np.asarray((mantissa >> shift) & (2**bits - 1))


def _unit_exponent(values: ArrayLike) -> Counted:
    """For each float, the exponent k of the largest power of two, 2^k, that divides it."""
    mantissa, exponent = _bits_of(values)
    significand = np.where(exponent > 0, mantissa | 2**MANTISSA, mantissa)
    _, zeros = np.frexp((significand & -significand).astype(np.float64))  # one more than its trailing zeros
    return np.where(significand == 0, UNIT_OF_ZERO, np.maximum(exponent, 1) - 1024 - MANTISSA + zeros)
