"""Crossings: the ε at which a private recommender becomes as good as a baseline.

docs/statistics.md says what a crossing, its status and its interval are, and when a grid is refined.

The bootstrap (`statistics`) resamples the paired differences, each fold against its own baseline. A replicate without
a crossing on the grid counts as −∞ or +∞, so an end of the interval can lie outside the grid too. The interval
contains the crossing, with one exception: if a curve wanders around the baseline, the *first* crossing of a shifted
curve can jump far away. A printed error (`Reference`) is one number, so it adds nothing to the interval.

Between two grid points the difference d is taken as linear in x = log ε. If d is quadratic there, Newton's form gives
the quadratic: with x₀ < x₁ the ends of the gap and x₂ another grid point,

    d(x) = chord(x) + d[x₀, x₁, x₂]·(x − x₀)·(x − x₁).

The next grid point on each side of the gap gives one such quadratic, taken with `SAFETY` times its bend. Because it
agrees with the chord at the ends of the gap, each has one root in the gap. The curve may cross anywhere from the
smallest to the largest of the three roots.

A printed crossing is a point of a plot: at that ε the curve meets the baseline. A measured curve agrees with the
point if it passes within `FACTOR` in ε and `DISTANCE` in RMSE of it, and is near if it passes within twice both.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Flags
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.streams import named_generator
from dpmf_cli.evaluation import statistics as bootstrap
from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from dpmf_cli.evaluation.metrics import BESIDE, RMSE, Metric
from dpmf_cli.evaluation.statistics import REPLICATES, Over, Replicates

#: The RMSE of a model that diverged is infinite. At such an ε the curve counts as this far above any baseline, in
#: every replicate, which keeps the arithmetic defined.
_DIVERGED = 1e6


class Status(StrEnum):
    """What is known about a crossing. Also stands for an end of an interval that lies outside the grid."""

    CROSSED = "crossed"
    NOT_REACHED = "not reached in the grid"
    BELOW_GRID = "below the grid"
    NO_EPSILON = "needs no ε"
    INCOMPLETE = "incomplete"
    NOT_RUN = "not run"
    NO_DATA = "data not present"


class Agreement(StrEnum):
    """How near a measured figure is to a printed one. The values are class names of the report's style sheet."""

    AGREES = "agrees"
    NEAR = "near"
    DIFFERS = "differs"
    MISSING = "missing"
    UNPRINTED = "unprinted"


FACTOR, DISTANCE = 1.1, 0.005
"""How far from a printed crossing a curve may pass: a factor in ε, and a distance in RMSE, in rating units."""


def agreement(off: float) -> Agreement:
    """Judges a measured figure that is `off` times its tolerance from the printed one, with room for rounding."""
    return Agreement.AGREES if off <= 1.0001 else Agreement.NEAR if off <= 2.0001 else Agreement.DIFFERS


#: An end of an interval: its ε, or the side of the grid on which it lies; None where there is no interval.
End = float | Status | None


@dataclass(frozen=True)
class Crossing:
    """The crossing of one curve with one baseline.

    baseline    as printed: "IA", "GE", "Cinematch probe"
    printed     total ε that a paper prints for it; None where none is known
    reproduced  total ε of the crossing; None unless `status` is "crossed"
    gap         the curve's RMSE at the printed ε, less the baseline's; None where that ε is not on the grid
    off         how far from the printed crossing the curve passes, where `FACTOR` and `DISTANCE` are 1
    low, high   ends of the crossing's 95 % interval
    grid_low    the smallest ε of the grid that is not ε → 0
    recrosses   whether the curve is worse than the baseline again at a larger ε of the grid
    claimed     ε that the method's publication states for a run at the crossing
    provable    ε that can be proved for that run, inf where none can
    theta       θ of the crossing; None where the experiment is not over θ
    delta       δ of the (ε, δ) of `claimed` and `provable`; 0 for pure ε
    joint       whether the ε holds against the other users only (`Measured.joint`)
    reference   whether the baseline is a printed error, not measured here
    partial     the finished folds of an interrupted run, "3 of 10 folds", if the crossing rests on these only
    comparable  False where the reference was printed for another test set than the one predicted here
    over        what the interval is resampled over: "folds", or "runs" where there is one fold
    coarse      whether interpolation may move the crossing by more than its interval; only where the experiment
                refines its crossings
    experiment  name of the experiment; empty where none was run
    """

    dataset: str
    neighbours: str
    mode: str
    algorithm: str
    label: str
    baseline: str
    status: Status
    printed: float | None = None
    reproduced: float | None = None
    gap: float | None = None
    off: float | None = None
    low: End = None
    high: End = None
    recrosses: bool = False
    claimed: float | None = None
    provable: float | None = None
    theta: float | None = None
    delta: float = 0.0
    joint: bool = False
    reference: bool = False
    comparable: bool = True
    over: Over = "none"
    coarse: bool = False
    folds: int = 0
    runs: int = 0
    grid_low: float | None = None
    grid_high: float | None = None
    experiment: str = ""
    partial: str = ""
    metric: Metric = RMSE

    @property
    def ratio(self) -> float | None:
        """The reproduced ε divided by the printed one; None unless both are known."""
        if self.reproduced is None or self.printed is None:
            return None
        return self.reproduced / self.printed

    @property
    def agreement(self) -> Agreement:
        """Whether the measured curve passes the printed crossing."""
        if self.printed is None:
            return Agreement.UNPRINTED
        return Agreement.MISSING if self.off is None else agreement(self.off)


Printed = Callable[[str, str, str, str], float | None]
"""The ε that a paper prints, by data set, neighbours, algorithm and baseline ("ml-100k", "bounded", "pge", "IA")."""


def find_crossings(
    experiment: Experiment, printed: Printed | None = None, *, replicates: int = REPLICATES
) -> list[Crossing]:
    """The crossing of every curve with every target of the experiment, in the experiment's order.

    A crossing depends only on its own curve and baseline, the dataset and the experiment's seed.
    """
    pairs = product(experiment.curves, crossing_targets(experiment))
    return [measure_crossing(experiment, *each, printed, replicates=replicates) for each in pairs]


def crossing_targets(experiment: Experiment) -> list[Measured | Reference]:
    """What crossings are measured against: the baselines that are targets, and all references."""
    baselines = [each for each in experiment.baselines if each.swept is None]
    found = [each for key in experiment.targets for each in baselines if each.algorithm == key]
    return [*found, *experiment.references]


def target_name(target: Measured | Reference) -> str:
    """The name of a target in crossings: "IA" and "GE" as in the papers, the label for other baselines."""
    if isinstance(target, Reference):
        return target.name
    as_printed = target.algorithm in ("ga", "ia", "ge") and not target.tuned
    return target.algorithm.upper() if as_printed else target.label


def measure_crossing(
    experiment: Experiment,
    curve: Measured,
    target: Measured | Reference,
    printed: Printed | None = None,
    *,
    replicates: int = REPLICATES,
) -> Crossing:
    """The crossing of `curve` with `target`, both of `experiment`."""
    epsilons, (folds, runs, _) = curve.epsilons, curve.values.shape
    of_curve = ("neighbours", "mode", "algorithm", "label", "delta", "joint", "metric")
    crossing = Crossing(
        **{key: getattr(curve, key) for key in of_curve},
        dataset=experiment.dataset,
        experiment=experiment.name,
        partial=experiment.partial,
        baseline=target_name(target),
        reference=isinstance(target, Reference),
        comparable=not isinstance(target, Reference) or target.comparable,
        status=Status.INCOMPLETE,
        folds=folds,
        runs=runs,
        grid_low=float(epsilons[curve.first]),
        grid_high=float(epsilons[-1]),
    )
    if printed:
        of = printed(crossing.dataset, crossing.neighbours, crossing.algorithm, crossing.baseline)
        crossing = replace(crossing, printed=of)
    drawn = differences_between(experiment, curve, target, replicates=replicates)
    if drawn is None:
        return crossing
    if crossing.printed is not None:
        gap, off = beside(epsilons, drawn.mean, crossing.printed)
        crossing = replace(crossing, gap=gap, off=off)
    # Near ε → 0 there is only noise: unless the mean is met there, no resampled curve counts as met there either.
    start = curve.first if drawn.mean[0] > 0 else 0
    lowest = float(epsilons[curve.first])
    grid, mean, curves = epsilons[start:], drawn.mean[start:], drawn.curves[..., start:]
    low = high = None
    if drawn.over != "none":
        # Where crossings are refined, the interval covers the range in which each replicate may cross.
        least = most = first_crossing(grid, curves)
        if experiment.refines:
            least, most = crossing_range(grid, curves)
        low, high = (
            float(bootstrap.percentile_interval(least)[0]),
            float(bootstrap.percentile_interval(most)[1]),
        )
    found = float(first_crossing(grid, mean))
    worse = mean[(mean <= 0).argmax() :] > 0
    crossing = replace(
        crossing,
        status=_outside(found, lowest, grid) or Status.CROSSED,
        low=low if low is None else _outside(low, lowest, grid) or low,
        high=high if high is None else _outside(high, lowest, grid) or high,
        over=drawn.over,
        recrosses=found < np.inf and bool(worse.any()),
        coarse=experiment.refines and bool(open_gaps(epsilons, drawn.mean, drawn.curves, curve.first)),
    )
    if crossing.status is not Status.CROSSED:
        return crossing
    theta = None
    if experiment.axis == "theta" and curve.thetas is not None:  # log θ is taken as linear in log ε
        theta = float(np.exp(np.interp(np.log(found), np.log(epsilons), np.log(curve.thetas))))
    claimed, provable = (spent_at(found, epsilons, spent) for spent in (curve.claimed, curve.provable))
    return replace(crossing, reproduced=found, claimed=claimed, provable=provable, theta=theta)


def beside(
    epsilons: NDArray[np.float64], difference: NDArray[np.float64], printed: float
) -> tuple[float | None, float]:
    """The curve's distance from its baseline at a printed ε, and how far from the printed crossing it passes.

    `difference` (E,) is RMSE − baseline RMSE, linear in log ε between the grid's points. The first is None for an ε
    outside the grid.
    """
    x, at = np.log(epsilons), math.log(printed)
    turn = np.flatnonzero(difference[:-1] * difference[1:] < 0)
    crossings = x[turn] + difference[turn] / (difference[turn] - difference[turn + 1]) * np.diff(x)[turn]
    there = np.concatenate([np.linspace(x[0], x[-1], STEPS), x, crossings])
    off = np.maximum(
        np.abs(there - at) / math.log(FACTOR), np.abs(np.interp(there, x, difference)) / DISTANCE
    )
    inside = x[0] <= at <= x[-1]
    return float(np.interp(at, x, difference)) if inside else None, float(off.min())


STEPS = 10_001
"""Points at which a curve is held against a printed crossing, beside its own points and crossings."""


def differences_between(
    experiment: Experiment, curve: Measured, target: Measured | Reference, *, replicates: int = REPLICATES
) -> Replicates | None:
    """How much worse `curve` is than `target`, by fold; None where a task of either has no result.

    A baseline's runs are averaged within a fold.
    """
    if isinstance(target, Reference):
        level, known = np.full((len(curve.values), 1, 1), target.rmse), True
    else:
        level, known = target.values[:, :, :1], is_complete(target)
    if not (is_complete(curve) and known):
        return None
    difference = curve.metric.sign * (curve.values - level.mean(axis=1, keepdims=True))
    difference[:, :, np.isinf(curve.values).any(axis=(0, 1))] = _DIVERGED
    rng = curve_stream(experiment, curve)
    return bootstrap.replicate_means(
        difference, rng=rng, partition=experiment.partition, replicates=replicates
    )


def is_complete(measured: Measured) -> bool:
    """Whether every task has a result, so that figures may be derived from the curve."""
    return measured.missing == 0 and not np.isnan(measured.values).any()


def curve_stream(experiment: Experiment, curve: Measured) -> np.random.Generator:
    """The random stream of one curve's bootstrap, from which both its crossings and its band come."""
    of = experiment.stream, curve.neighbours, curve.mode, curve.label
    return named_generator(experiment.seed, "bootstrap", *of)


def _outside(crossing: float, lowest: float, grid: Doubles) -> Status | None:
    """The side on which a crossing lies, found on a `grid` whose `lowest` ε may follow ε → 0; None if on the grid."""
    if crossing < 0 and grid[0] < lowest:
        return Status.NO_EPSILON
    if np.isposinf(crossing):
        return Status.NOT_REACHED
    return Status.BELOW_GRID if crossing < lowest else None


def spent_at(crossing: float, epsilons: Doubles, spent: Doubles) -> float:
    """The ε that a run at `crossing` spends, given the ε that the runs at the grid points spend.

    The spent ε is taken as the same multiple of the nominal ε as at the neighbouring grid points. Where their
    multiples differ, the larger one counts.
    """
    upper = int(np.searchsorted(epsilons, crossing))
    lower = upper if epsilons[upper] == crossing else upper - 1
    return crossing * float((spent / epsilons)[lower : upper + 1].max())


PARTS = 4
"""Number of parts into which a gap is cut. With 4, what a quadratic leaves open falls to a sixteenth, and two
crossings add six ε, which take as long to fit as one (`lane_groups`)."""

MOST_ROUNDS = 4
"""Number of rounds after which a crossing is no longer refined, and is marked as coarse if it still is. By then a gap
has been cut into 256 parts."""


def epsilons_to_add(experiment: Experiment) -> dict[str, tuple[float, ...]]:
    """The ε, ascending, that the next round adds to the grid of each curve of the experiment, by its label.

    A curve whose crossings are uncertain only statistically gets none. The ε depend on the results only.
    """
    found = {}
    for curve in experiment.curves:
        new = set[float]()
        for target in crossing_targets(experiment):
            drawn = differences_between(experiment, curve, target)
            for low, high in (
                open_gaps(curve.epsilons, drawn.mean, drawn.curves, curve.first) if drawn else ()
            ):
                # Parts of equal width in log ε, rounded to three digits as in a config.
                cuts = (float(f"{low * (high / low) ** (part / PARTS):.3g}") for part in range(1, PARTS))
                new |= {cut for cut in cuts if low < cut < high}
        if new:
            found[curve.label] = tuple(sorted(new))
    return found


@dataclass(frozen=True)
class LevelAt:
    """The value of one curve at an ε, or of a baseline: RMSE in rating units, or another metric.

    epsilon       inf for a baseline
    claimed, provable, over   as in `Crossing`
    value         None where a task has no result, inf where the model diverged
    beside        the errors `BESIDE` by key, interpolated as `value` is; one that was not measured is not there
    low, high     95 % interval of `value`, including what interpolation leaves open; None where there is none
    """

    experiment: Experiment
    curve: Measured
    epsilon: float
    claimed: float
    provable: float
    value: float | None = None
    beside: Mapping[str, float] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    over: Over = "none"

    @property
    def interpolated(self) -> bool:
        return self.epsilon not in self.curve.epsilons


def levels_at(experiment: Experiment, epsilon: float) -> list[LevelAt]:
    """The level of every curve at an ε, then of every baseline. Raises DpmfError for an ε outside a curve's grid."""
    for curve in experiment.curves:
        first, last = curve.epsilons[[curve.first, -1]]
        if not (first <= epsilon <= last or epsilon in curve.epsilons):
            raise DpmfError(
                f"{experiment.name}: ε = {epsilon:g} is outside of the grid of {curve.label}, {first:g} to {last:g}; "
                "ask for an ε within the grid, or add this one to `epsilons` and run the config again"
            )
    curves = [_level(experiment, curve, epsilon) for curve in experiment.curves]
    return [*curves, *(_level(experiment, baseline, math.inf) for baseline in experiment.baselines)]


def band(experiment: Experiment, curve: Measured) -> tuple[Doubles, Doubles]:
    """(E,), (E,) the 95 % interval of a complete curve's mean, from the same draws as its crossings; NaN for none."""
    return _drawn(experiment, curve).interval


def _drawn(experiment: Experiment, curve: Measured) -> Replicates:
    """The mean of a complete curve, NaN where a model diverged, and its replicates."""
    finite = np.where(np.isfinite(curve.values), curve.values, np.nan)
    return bootstrap.replicate_means(
        finite, rng=curve_stream(experiment, curve), partition=experiment.partition
    )


def _level(experiment: Experiment, curve: Measured, epsilon: float) -> LevelAt:
    grid = curve.epsilons
    claimed, provable = (
        epsilon if curve.is_baseline else spent_at(epsilon, grid, spent)
        for spent in (curve.claimed, curve.provable)
    )
    level = LevelAt(experiment, curve, epsilon, claimed, provable)
    if not is_complete(curve):
        return level
    beside = {each.key: float(value_range(grid, curve.mean(each), epsilon)[0]) for each in BESIDE}
    beside = {key: error for key, error in beside.items() if not math.isnan(error)}
    drawn = _drawn(experiment, curve)
    value = float(value_range(grid, drawn.mean, epsilon)[0])
    level = replace(level, value=math.inf if math.isnan(value) else value, beside=beside)
    if math.isnan(value) or drawn.over == "none":
        return level
    _, least, most = value_range(grid, drawn.curves, epsilon)
    low, high = float(bootstrap.percentile_interval(least)[0]), float(bootstrap.percentile_interval(most)[1])
    return replace(level, low=low, high=high, over=drawn.over)


SAFETY, WIDEST = 2.0, 1.5
"""Factor on the bend of a quadratic, and the largest ratio of ε across a gap in which quadratics are trusted."""

SETTLED = 0.01
"""Interpolation may always move a crossing by up to this fraction of its ε."""


def first_crossing(epsilons: Doubles, difference: Doubles) -> Doubles:
    """(…) the first ε, from small to large, at which each curve is no longer above its baseline.

    `epsilons` (E,) is ascending, positive, finite; `difference` (…, E) is RMSE − baseline RMSE, finite.
    −inf stands for "below the grid", +inf for "not reached in the grid".
    """
    lower, upper = _gap(difference)
    above, below = _at(difference, lower), _at(difference, upper)
    drop = np.where(above > below, above - below, 1.0)
    between = epsilons[lower] * (epsilons[upper] / epsilons[lower]) ** (above / drop)
    crossing = np.where(below == 0, epsilons[upper], np.clip(between, epsilons[lower], epsilons[upper]))
    crossing = np.where(upper == 0, -np.inf, crossing)
    return np.where((difference <= 0).any(axis=-1), crossing, np.inf)


def crossing_range(epsilons: Doubles, difference: Doubles) -> tuple[Doubles, Doubles]:
    """(…), (…) the smallest and the largest ε at which each curve may cross first.

    Where the crossing is outside the grid, both are the crossing. Takes the arguments of `first_crossing`.
    """
    chord = first_crossing(epsilons, difference)
    if len(epsilons) == 1:
        return chord, chord
    lower, upper = _gap(difference)
    above, below = _at(difference, lower), _at(difference, upper)
    low = high = chord
    for bends in bends_beside(epsilons, difference):
        # With t from 0 to 1 over the gap: bend·t² − (above − below + bend)·t + above = 0.
        bend = _at(bends, lower)
        middle = above - below + bend
        whole = middle + np.sqrt(np.maximum(middle**2 - 4 * bend * above, 0.0))
        t = np.clip(2 * above / np.where(whole > 0, whole, 1.0), 0.0, 1.0)
        root = epsilons[lower] * (epsilons[upper] / epsilons[lower]) ** t
        low, high = np.minimum(low, root), np.maximum(high, root)
    unknown = are_unknown(epsilons)[lower]
    low, high = np.where(unknown, epsilons[lower], low), np.where(unknown, epsilons[upper], high)
    crosses = np.isfinite(chord)
    return np.where(crosses, low, chord), np.where(crosses, high, chord)


def value_range(epsilons: Doubles, values: Doubles, epsilon: float) -> tuple[Doubles, Doubles, Doubles]:
    """(…) each: the values of curves (…, E) at an ε within the grid, then the smallest and largest possible values.

    At a grid point all three are the same. NaN where either end of the gap is NaN.
    """
    at = int(np.searchsorted(epsilons, epsilon))
    if epsilons[at] == epsilon:
        return values[..., at], values[..., at], values[..., at]
    lower, upper = values[..., at - 1], values[..., at]
    t = np.log(epsilon / epsilons[at - 1]) / np.log(epsilons[at] / epsilons[at - 1])
    chord = lower + t * (upper - lower)
    if are_unknown(epsilons)[at - 1]:
        return chord, np.minimum(lower, upper), np.maximum(lower, upper)
    bent = chord + bends_beside(epsilons, values)[..., at - 1] * t * (t - 1)
    return chord, np.fmin.reduce([chord, *bent]), np.fmax.reduce([chord, *bent])


def open_gaps(
    epsilons: Doubles, mean: Doubles, replicates: Doubles, first: int = 0
) -> list[tuple[float, float]]:
    """The gaps (from ε, to ε) in which interpolation may move the crossing by more than its statistical interval.

    Three crossings are examined, each with its own range: that of `mean` (E,), and the two ends of its interval,
    which are crossings of two of the `replicates` (B, E). A gap is open if a crossing in it may move, in log ε, by
    more than the distance from the crossing of `mean` to the nearer end. If no end is on the grid, or that distance
    is below `SETTLED`, then `SETTLED` is the limit. There are no open gaps where `mean` does not cross, nor
    below the grid's place `first`.
    """
    epsilons, mean, replicates = epsilons[first:], mean[first:], replicates[:, first:]
    found = float(first_crossing(epsilons, mean))
    if not np.isfinite(found):
        return []
    curves = mean[None]
    if len(replicates):
        ordered = replicates[np.argsort(first_crossing(epsilons, replicates), kind="stable")]
        curves = np.vstack([curves, ordered[list(bootstrap.percentile_places(len(ordered)))]])
    crossings = first_crossing(epsilons, curves)
    distances = np.abs(np.log(crossings[(crossings > 0) & np.isfinite(crossings)] / found))[1:]
    tolerance = max(SETTLED, min(distances, default=0.0))
    gaps = []
    for crossing, low, high, lower, upper in zip(
        crossings, *crossing_range(epsilons, curves), *_gap(curves), strict=True
    ):
        if np.isfinite(crossing) and max(high / crossing, crossing / low) > np.exp(tolerance):
            gaps.append((float(epsilons[lower]), float(epsilons[upper])))
    return list(dict.fromkeys(gaps))


def bends_beside(epsilons: Doubles, values: Doubles) -> Doubles:
    """(2, …, E − 1) how much a curve may bend in each gap, judged by the grid points below and above the gap.

    Let t go from 0 to 1 over the gap, with log ε linear in t. Then the curve deviates from its chord by
    bend·t·(t − 1). A gap at an end of the grid has one neighbour, so its other bend is 0. `values` (…, E).
    """
    x = np.log(epsilons)
    second = np.zeros_like(values)
    second[..., 1:-1] = np.diff(np.diff(values) / np.diff(x)) / (x[2:] - x[:-2])
    return SAFETY * np.diff(x) ** 2 * np.stack([second[..., :-1], second[..., 1:]])


def are_unknown(epsilons: Doubles) -> Flags:
    """(E − 1,) whether the grid says too little about the curve inside each gap."""
    wide = epsilons[1:] > WIDEST * epsilons[:-1] * (1 + 1e-9)
    unknown: Flags = wide | (len(epsilons) == 2)
    return unknown


def _gap(difference: Doubles) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(…), (…) the indices of the grid points on either side of each first crossing; 0 and 0 without a crossing."""
    upper = (difference <= 0).argmax(axis=-1)
    return np.maximum(upper - 1, 0), upper


def _at(values: Doubles, index: NDArray[np.intp]) -> Doubles:
    taken: Doubles = np.take_along_axis(values, index[..., None], axis=-1)[..., 0]
    return taken
