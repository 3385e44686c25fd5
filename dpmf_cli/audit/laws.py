"""Laws: whether noise has the law that its mechanism declares, and is independent of other noise and of the ratings.

A replay takes all of this for granted. The tests here use the noise of the fits that replays make anyway (`Watch`),
and fresh draws of each kind of noise (`far_draws`):

- *Law.* Counts of draws beyond fixed quantiles, on both sides, out to 5 standard deviations of a normal.
- *Independence.* How often two draws have the same sign, and how often both are large or both small. The two have a
  fixed distance in one release, or the same place in this release and in the release, the draw or the fit before.
  Because pairs of one distance form chains without a cycle, agreements of independent draws are independent fair
  coins.
- *Ratings.* Both sides of a replay draw the same noise, so what is published less what was measured may differ by the
  rounding to the grid and by no more. If clean numbers are rounded before noise is added, it differs by more.

Every count is tested by a binomial law, at the level `BY_CHANCE`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
from scipy import integrate, optimize, special, stats

from dpmf_cli.audit.bounds import chance_of_count
from dpmf_cli.audit.fits import Place, Seen
from dpmf_cli.core.arrays import Doubles, Longs
from dpmf_cli.core.streams import named_generator
from dpmf_cli.privacy.grid import FINENESS
from dpmf_cli.privacy.release import Release

BY_CHANCE = 1e-9
"""The accepted probability of a false finding, for each test that can find something by chance."""

TAILS = (0.5, 0.1, 0.01, 1e-3, 2.3e-4, 3.2e-5, 3.4e-6, 2.9e-7)
"""The probabilities of the tails in which draws are counted. The last four begin at 3.5 to 5 deviations."""

FAR, FAR_ROWS = 1_000_000, 200_000
"""The number of fresh draws of each kind of noise, and of noise in rows: a normal cut at 4 deviations shows."""

LAGS, FIRST = 64, 512
"""The largest distance of two numbers of a release that are tested for dependence, and how many numbers are."""

PAIRS = (
    *(f"{lag} places apart" for lag in range(1, LAGS + 1)),
    "at mirrored places",
    "half a release apart",
    "half a release and a place apart",
    "at one place of a step's draw and its next draw",
    "at one place of two releases",
    "at one place of a fit and the next fit",
)
"""The pairs of draws that are tested for dependence."""

MOST = 100
"""The number of draws of a step in one fit that are tested."""

CELL = 2.0**-FINENESS
"""The largest width of a cell of the grid, in units of the noise's scale."""

OTHER_LAW = "noise of another law"
DEPENDENT = "noise that depends on other noise"
OF_RATINGS = "noise that depends on the ratings"

Coins = Longs


@dataclass(frozen=True)
class RowNumber:
    """The law of one number of a row of d numbers, whose density is proportional to exp(−‖b‖₂): K-norm noise.

    The characteristic function of such a row is (1 + ‖t‖²)^(−a), a = (d + 1)/2, so that one number is N(0, 2V), where
    V is Gamma(a). Methods are those of scipy's laws.
    """

    dimension: int

    def sf(self, x: float) -> float:
        a = (self.dimension + 1) / 2

        def density(v: float) -> float:
            gamma = math.exp((a - 1) * math.log(v) - v - math.lgamma(a))
            return gamma * float(special.ndtr(-x / math.sqrt(2 * v)))

        return float(integrate.quad(density, 0, np.inf, epsabs=0, epsrel=1e-8, limit=200)[0])

    def isf(self, chance: float) -> float:
        return float(optimize.brentq(lambda x: self.sf(x) - chance, -1, 100 * self.dimension))

    def cdf(self, x: float) -> float:
        return self.sf(-x)

    def ppf(self, chance: float) -> float:
        return -self.isf(chance)


@dataclass(frozen=True)
class Tails:
    """The tails of a law of unit noise, for each of `TAILS`.

    low, high          (T,) a draw is in a tail if it is below `low`, or above `high`
    chances            (2, T, 2) the least and the largest chance of each tail, given that draws are rounded
    middle             the median; a draw has a sign by its side of it
    half               (2,) half of all draws lie between
    """

    low: Doubles
    high: Doubles
    chances: Doubles
    middle: float
    half: tuple[float, float]

    def counts(self, units: Doubles) -> Coins:
        """(2, T) how many of the draws are in each tail."""
        ordered = np.sort(units)
        below = np.searchsorted(ordered, self.low)
        return np.stack([below, len(ordered) - np.searchsorted(ordered, self.high, "right")])

    def coins(self, units: Doubles) -> tuple[Coins, Coins]:
        """±1 for every draw, for its sign and for its size: above the median or not, among the larger half or
        not."""
        alone, (low, high) = units[:FIRST, 0], self.half
        signs = np.where(units.ravel()[:FIRST] > self.middle, 1, -1)
        return signs, np.where((alone < low) | (alone > high), 1, -1)

    def off(self, counts: Coins, draws: int) -> Iterator[tuple[float, str]]:
        """Yields, for each tail, the probability of a count as far off, and a remark."""
        ends = self.low, self.high
        for side, of_side, chances, end in zip(("below", "above"), counts, self.chances, ends, strict=True):
            for count, (least, largest), x in zip(of_side, chances, end, strict=True):
                expected = f"{draws * (least + largest) / 2:.3g} are expected"
                said = f"{count} of {draws} draws are {side} {x:.3g} scales, where {expected}"
                yield chance_of_count(int(count), draws, float(least), float(largest)), said


@cache
def tails_of(kind: str, dimension: int) -> Tails | None:
    """The tails of the unit noise that mechanisms of a `kind` declare, in rows of `dimension` numbers.

    None if the ledger's name of the mechanism declares no law of added noise.
    """
    laws: dict[str, Any] = {
        "Laplace": stats.laplace(),
        "Gaussian": stats.norm(),
        "SGLD": stats.norm(),
        "exponential": stats.gumbel_l(),
        "K-norm": RowNumber(dimension),
    }
    if (law := laws.get(kind)) is None:
        return None
    low, high = (np.array([float(of(chance)) for chance in TAILS]) for of in (law.ppf, law.isf))
    step = CELL / 2
    chances = [
        [(law.cdf(x - step), law.cdf(x + step)) for x in low],
        [(law.sf(x + step), law.sf(x - step)) for x in high],
    ]
    half = float(law.ppf(0.25)), float(law.isf(0.25))
    return Tails(low, high, np.array(chances), float(law.ppf(0.5)), half)


@dataclass
class Watch:
    """Gathers the noise of the replays of one algorithm, for each step, and for all steps with one kind of noise."""

    _tails: dict[str, tuple[Tails, int, Coins]] = field(default_factory=dict)
    """The law, the number of draws, and (2, T) how many of them are in each tail."""
    _coins: dict[str, Coins] = field(default_factory=dict)
    """(2, P, 2) the sum of the products of two coins, and how many, for signs and sizes and for each of `PAIRS`."""
    _before: dict[tuple[str, int], tuple[Coins, Coins]] = field(default_factory=dict)
    _of_ratings: dict[str, float] = field(default_factory=dict)
    _releases: dict[tuple[str, int], Release] = field(default_factory=dict)

    def add(self, here: Mapping[Place, Seen], there: Mapping[Place, Seen]) -> None:
        latest: dict[str, tuple[Coins, Coins]] = {}
        release_before = None
        for (step, number), places in groupby(sorted(here), key=lambda place: place[:2]):
            seen = [here[place] for place in places]
            kind = seen[0].release.entry.mechanism.split()[0].rstrip(",")
            units = _units(seen, in_rows=kind == "K-norm")
            if number >= MOST or units is None or (tails := tails_of(kind, units.shape[1])) is None:
                continue
            self._releases[kind, units.shape[1]] = seen[0].release
            coins = tails.coins(units)
            earlier = latest.get(step), release_before, self._before.get((step, number))
            before = ([each and each[score] for each in earlier] for score in range(2))
            products = np.array([_products(*each) for each in zip(coins, before, strict=True)])
            self._before[step, number] = latest[step] = release_before = coins
            alone = units[:, 0]
            counts = tails.counts(alone)
            for group in (step, _all_of(kind)):
                _, draws, so_far = self._tails.get(group, (None, 0, 0))
                self._tails[group] = tails, draws + len(alone), so_far + counts
                self._coins[group] = self._coins.get(group, 0) + products
        for place in here.keys() & there.keys():
            self._compare(here[place], there[place])

    def _compare(self, here: Seen, there: Seen) -> None:
        """Notes by how much more than the rounding the noise of both sides differs, in units of its scale."""
        if here.noise is None or there.noise is None or here.noise.shape != there.noise.shape:
            return
        scale = 0.0 if here.release.told is not None else float(here.release.scale[0])
        if not 0 < scale == there.release.scale[0]:
            return
        rounding = 2.0**-50 * (np.abs(here.clean) + np.abs(there.clean))
        apart = float(np.nan_to_num((np.abs(here.noise - there.noise) - rounding) / scale).max(initial=0))
        step = here.release.entry.step
        if apart > CELL * (1 + 2.0**-20):
            self._of_ratings[step] = max(apart, self._of_ratings.get(step, 0.0))

    def found(self) -> Iterator[tuple[str, str, str]]:
        """Yields flaws, each with its step and a remark. A finding about all steps together is left out after one."""
        for step, apart in self._of_ratings.items():
            yield OF_RATINGS, step, f"the noise on both sides differs by up to {apart:.3g} scales"
        laws = {group: min(tails.off(counts, draws)) for group, (tails, draws, counts) in self._tails.items()}
        coins = {group: min(_dependence(products)) for group, products in self._coins.items()}
        for flaw, worst in ((OTHER_LAW, laws), (DEPENDENT, coins)):
            bad = {group: said for group, (chance, said) in worst.items() if chance < BY_CHANCE}
            single = {group: said for group, said in bad.items() if not group.startswith(_all_of(""))}
            yield from ((flaw, group, said) for group, said in (single or bad).items())

    def far_draws(self) -> Iterator[tuple[str, str, str]]:
        """Yields the kinds of noise whose fresh draws have another law, with a remark."""
        for (kind, dimension), release in self._releases.items():
            tails, rng = tails_of(kind, dimension), named_generator("audit", "far", kind, dimension)
            assert tails is not None
            units = release.again(0.0, FAR if dimension == 1 else FAR_ROWS, rng) / release.scale[0]
            chance, said = min(tails.off(tails.counts(units), len(units)))
            if chance < BY_CHANCE:
                yield OTHER_LAW, _all_of(kind), said


def _products(own: Coins, earlier: Sequence[Coins | None]) -> list[tuple[int, int]]:
    """For each of `PAIRS`, the sum of the products of two coins, and the number of pairs."""
    n = len(own)
    sums = np.correlate(own, own, "full")[n : n + LAGS].tolist()
    found = [(total, n - lag) for lag, total in enumerate(sums, 1)] + [(0, 0)] * (LAGS - len(sums))
    pairs = [(own[: n // 2], own[::-1])]
    pairs += [(own[:-half], own[half:]) if 0 < half < n else (own[:0], own) for half in (n // 2, n // 2 + 1)]
    pairs += [(own[:0] if other is None else own, own if other is None else other) for other in earlier]
    for one, other in pairs:
        m = min(len(one), len(other))
        found.append((int(one[:m] @ other[:m]), m))
    return found


def _dependence(products: Coins) -> Iterator[tuple[float, str]]:
    """Yields, for each kind of pair, the probability of as many agreements or disagreements, and a remark."""
    for score, of_score in zip(("signs", "sizes"), products, strict=True):
        for pairing, (total, pairs) in zip(PAIRS, of_score.tolist(), strict=True):
            agreed = (total + pairs) // 2
            chance = chance_of_count(agreed, pairs, 0.5 - CELL, 0.5 + CELL)
            yield chance, f"the {score} of two draws {pairing} agree {agreed} times of {pairs}"


def _all_of(kind: str) -> str:
    return f"all steps: {kind}"


def _units(seen: Iterable[Seen], *, in_rows: bool) -> Doubles | None:
    """The unit noise (numbers, d) of one draw, d = 1 unless `in_rows`; None if devices draw, or for NaN."""
    units = []
    for each in seen:
        release = each.release
        noise = each.clean - each.excess if each.noise is None and each.excess is not None else each.noise
        if noise is None or release.told is not None or not release.scale[0] > 0:
            return None
        rows = noise[..., 0] / release.scale[0]
        units.append(rows if in_rows else rows.reshape(-1, 1))
    together = np.concatenate(units)
    return together if together.size and np.isfinite(together).all() else None
