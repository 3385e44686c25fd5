"""Ranks private recommenders by the ε that they need, among those whose ε protects the same thing, never across.

`ranked` orders the curves of one data set and one `Guarantee`, and refuses mixtures (docs/privacy.md). Claimed ε are
not compared with provable ones: curves with only a claimed ε follow the ranked ones, without a rank. Pure ε-DP
implies (ε, δ)-DP for every δ, and not the other way round, so the pure ε of a group are ranked on their own, too.

The frontier of a guarantee is, at each ε, the lowest error of any method that provably keeps it (docs/frontier.md). A
method enters, at its provable ε, the frontier of each guarantee that its own implies.

Two experiments on the same folds are compared curve by curve: by the difference of RMSE, paired by fold and run.
Folds are a function of the dataset, the seed and the number of folds. Unless the seed is secret, an algorithm with
other parameters also has the same noise (`streams`). Both cancel in the difference, and its interval is narrow.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Literal

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.streams import named_generator
from dpmf_cli.evaluation.crossings import Crossing, Status, band, is_complete, measure_crossing
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.statistics import REPLICATES, Over, replicate_means, surely_positive
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee

Bar = Literal["ia", "ge", "ia_tuned", "ge_tuned"]
"""The baseline that a curve has to meet: item average or global effects, as the papers have them or tuned."""
BARS: dict[Bar, str] = {"ia": "IA", "ge": "GE", "ia_tuned": "tuned IA", "ge_tuned": "tuned GE"}

MODEST = 1.0
"""The ε up to which `Standing.best` looks for the lowest RMSE."""


@dataclass(frozen=True)
class Standing:
    """One curve of an experiment, with its crossings with those baselines that the experiment has.

    rank   among all curves of its guarantee, by ε, whatever δ comes with it; None before it is `ranked`, and where
           the curve meets the baseline at no provable ε
    pure   the same among those whose ε is pure; None for the others
    """

    experiment: Experiment
    curve: Measured
    crossings: Mapping[str, Crossing]
    rank: int | None = None
    pure: int | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What the curve's ε protects and from whom, whatever its δ."""
        return self.curve.guarantee.at_any_delta

    @property
    def provable(self) -> bool:
        """Whether an ε can be proved for the curve somewhere on its grid; True while results are missing."""
        return not is_complete(self.curve) or bool(np.isfinite(self.curve.provable).any())

    @property
    def best(self) -> float | None:
        """The lowest mean RMSE at a provable ε of at most `MODEST`; None where there is none."""
        found = best_at(self, MODEST) if is_complete(self.curve) else None
        return None if found is None else found.rmse

    def cost(self, rmse: float | None) -> float | None:
        """How far an RMSE of the curve is above that of its noise-free run; None where one is not known."""
        noise_free = self.curve.without_noise()
        return (
            None
            if rmse is None or noise_free is None or noise_free.missing
            else rmse - float(noise_free.mean()[0])
        )

    def needs(self, bar: str, kind: str = "provable") -> float:
        """The provable (or claimed) ε of a run at the crossing with a baseline; ∞ if there is no such ε or crossing.

        A curve that meets the baseline at the smallest ε of its grid needs at most that ε. One that meets it at ε → 0
        needs 0, unless it spends more there.
        """
        crossing, curve = self.crossings.get(bar), self.curve
        if crossing is not None and crossing.status is Status.BELOW_GRID:
            return float(getattr(curve, kind)[curve.first])
        if crossing is not None and crossing.status is Status.NO_EPSILON:
            at_zero = float(getattr(curve, kind)[0])
            return 0.0 if at_zero < curve.epsilons[curve.first] else at_zero
        spent = getattr(crossing, kind, None)
        return math.inf if spent is None else float(spent)


def standings(*experiments: Experiment) -> list[Standing]:
    """Every curve over ε of the experiments, in their order. Points of sweeps are left out."""
    found = []
    for experiment in experiments:
        baselines = {bar: each for bar in BARS if (each := experiment.baseline(bar)) is not None}
        for curve in experiment.curves:
            if curve.swept is None:
                if curve.protects is None:
                    raise ValueError(f"{curve.label}: it is not known what its ε protects")
                of_curve = partial(measure_crossing, experiment, curve)
                found.append(
                    Standing(experiment, curve, {bar: of_curve(each) for bar, each in baselines.items()})
                )
    return found


def by_guarantee(found: Iterable[Standing]) -> dict[tuple[str, Guarantee], list[Standing]]:
    """Groups of standings that may be ranked together: one for each title of a data set and each guarantee.

    Groups are ordered by title as given, then by guarantee as in tables.
    """
    groups: dict[tuple[str, Guarantee], list[Standing]] = {}
    for standing in found:
        groups.setdefault((standing.experiment.title, standing.guarantee), []).append(standing)
    titles = list(dict.fromkeys(title for title, _ in groups))
    order = sorted(groups, key=lambda key: (titles.index(key[0]), GUARANTEES.index(key[1])))
    return {key: groups[key] for key in order}


def ranked(found: Sequence[Standing], bar: Bar = "ia") -> list[Standing]:
    """Ranks curves by the provable ε that they need to meet `bar`; those without one are last, by their claimed ε.

    Equal ε share a rank. Curves that need no ε to meet `bar` come first. These and curves that do not meet it have no
    rank, and are ordered by `Standing.best`. Raises `ValueError` for curves that differ in what they protect, in from
    whom, or in their data: their ε have no order.
    """
    if len(groups := by_guarantee(found)) > 1:
        raise ValueError(
            f"no ranking across data sets and guarantees: {', '.join(f'{t}: {g}' for t, g in groups)}"
        )
    provable = [(each.needs(bar), each) for each in found if each.provable]
    provable.sort(key=lambda pair: (pair[0], math.inf if pair[1].best is None else pair[1].best))
    needs = [need for need, _ in provable if need > 0]
    pure = [need for need, each in provable if need > 0 and not each.curve.delta]

    def rank(need: float, among: Sequence[float]) -> int | None:
        return bisect_left(among, need) + 1 if 0 < need < math.inf else None

    placed = [
        replace(each, rank=rank(need, needs), pure=None if each.curve.delta else rank(need, pure))
        for need, each in provable
    ]
    others = [each for each in found if not each.provable]
    return [*placed, *sorted(others, key=lambda each: each.needs(bar, "claimed"))]


@dataclass(frozen=True)
class Best(Standing):
    """A standing with the place `at` in the grid of its curve that has the lowest mean RMSE at some provable ε."""

    at: int = field(kw_only=True)

    @property
    def rmse(self) -> float:
        return float(self.curve.mean()[self.at])

    @property
    def spent(self) -> float:
        return float(self.curve.provable[self.at])


@dataclass(frozen=True)
class Lead:
    """The order of the methods that keep a guarantee at an ε; the first one leads.

    order      all methods that have an error at this ε, the lowest error first
    low, high  95 % interval of the leader's mean RMSE; None where there is none
    tied       other methods that the leader is not certainly better than, on the folds and runs that all have
               (`statistics.surely_positive`). With one fold and one run this is unknown, and none is listed
    unpaired   methods that were measured on other folds, or in fewer runs, so that differences cannot be paired
    """

    guarantee: Guarantee
    epsilon: float
    order: Sequence[Best]
    low: float | None
    high: float | None
    over: Over
    tied: Sequence[Best]
    unpaired: Sequence[Best]

    @property
    def first(self) -> Best:
        return self.order[0]


@dataclass(frozen=True)
class Frontier:
    """The lower envelope of all methods that keep a guarantee on one data set.

    guarantee  with its δ
    members    every method with complete results and a provable ε for this guarantee
    leads      one for each ε of the members' grids, ascending, from the first ε at which a method has an error
    """

    title: str
    guarantee: Guarantee
    members: tuple[Standing, ...]
    leads: tuple[Lead, ...]

    @property
    def stretches(self) -> list[tuple[Standing, list[Lead]]]:
        """The consecutive leads of each leading method, by ascending ε."""
        runs = (list(each) for _, each in groupby(self.leads, key=lambda lead: id(lead.first.curve)))
        return [(run[0].first, run) for run in runs]


def frontiers(found: Iterable[Standing]) -> list[Frontier]:
    """The frontier of each data set and each guarantee (with its δ) that one of these methods has.

    Frontiers are ordered by data set as given, then by guarantee as in tables, pure ε first.
    """
    provable = [each for each in found if is_complete(each.curve) and each.provable]
    # Of an algorithm's curves with the same errors and provable ε, one stays: the corrected one, not the published.
    once: dict[tuple[object, ...], int] = {}
    for each in sorted(provable, key=lambda standing: standing.curve.mode):
        of, curve = (each.experiment.title, each.curve.algorithm, each.curve.guarantee), each.curve
        once.setdefault((*of, curve.rmse.tobytes(), curve.provable.tobytes()), id(each))
    kept = set(once.values())
    provable = [each for each in provable if id(each) in kept]
    titles = list(dict.fromkeys(each.experiment.title for each in provable))
    keys = {(each.experiment.title, each.curve.guarantee) for each in provable}

    def place(key: tuple[str, Guarantee]) -> tuple[float, ...]:
        return titles.index(key[0]), GUARANTEES.index(key[1].at_any_delta), key[1].delta

    frontiers = []
    for title, guarantee in sorted(keys, key=place):
        members = [each for each in provable if each.experiment.title == title]
        members = [each for each in members if each.curve.guarantee.implies(guarantee)]
        grid = sorted({float(epsilon) for each in members for epsilon in each.curve.epsilons})
        leads = [lead for epsilon in grid if (lead := _lead(members, guarantee, epsilon)) is not None]
        if leads:
            frontiers.append(Frontier(title, guarantee, tuple(members), tuple(leads)))
    return frontiers


def best_at(standing: Standing, epsilon: float, *, exactly: bool = False) -> Best | None:
    """The lowest mean RMSE of a complete curve at a provable ε of at most `epsilon`; None where there is none.

    With `exactly`, only a run at that ε of the curve's grid counts.
    """
    curve, mean = standing.curve, standing.curve.mean()
    may = (curve.provable <= epsilon * (1 + TOLERANCE)) & np.isfinite(mean)
    if exactly:
        may &= np.isclose(curve.epsilons, epsilon, rtol=TOLERANCE, atol=0)
    if not may.any():
        return None
    at = int(np.where(may, mean, np.inf).argmin())
    return Best(**{**vars(standing), "at": at})


def clean_level(experiment: Experiment) -> Measured | None:
    """The baseline with the lowest mean RMSE; None where no baseline is complete."""
    complete = [each for each in experiment.baselines if each.swept is None and is_complete(each)]
    return min(complete, key=lambda each: float(each.mean()[0]), default=None)


def _lead(members: Sequence[Standing], guarantee: Guarantee, epsilon: float) -> Lead | None:
    order = [best for each in members if (best := best_at(each, epsilon)) is not None]
    if not order:
        return None
    order.sort(key=lambda best: best.rmse)
    first, *others = order
    experiment = first.experiment
    low, high = (float(ends[first.at]) for ends in band(experiment, first.curve))
    known = math.isfinite(low) and math.isfinite(high)
    folds_of = attrgetter(*(f"experiment.{key}" for key in ("dataset", "seed", "folds", "partition")))
    runs = first.curve.rmse.shape[1]

    def alike(each: Best) -> bool:
        return folds_of(each) == folds_of(first) and each.curve.rmse.shape[1] >= runs

    return Lead(
        guarantee,
        epsilon,
        order,
        low if known else None,
        high if known else None,
        "none" if not known else "folds" if len(first.curve.rmse) > 1 else "runs",
        _tied(first, [each for each in others if alike(each)]),
        [each for each in others if not alike(each)],
    )


def _tied(first: Best, others: Sequence[Best]) -> list[Best]:
    """The members of `others`, in order, that `first` is not certainly better than."""
    runs = first.curve.rmse.shape[1]
    best, *rest = (each.curve.rmse[:, :runs, each.at] for each in (first, *others))
    if not rest or best.size == 1:
        return []
    sure = surely_positive(
        np.stack([each - best for each in rest], axis=-1), partition=first.experiment.partition
    )
    return [each for each, worse in zip(others, sure, strict=True) if not worse]


@dataclass(frozen=True)
class Difference:
    """RMSE of B minus RMSE of A at one ε, over the folds and runs that both have; negative where B is better.

    a, b        the two RMSE, rating units; inf where a model diverged
    difference  None where `a` or `b` is infinite
    low, high   ends of the 95 % interval of `difference`; None where there is none
    same        whether A and B agree to the bit in every pair, so no setting in which they differ has an effect
    provable_a, provable_b  the ε that can be proved for what was run, inf where none can
    """

    algorithm: str
    label_a: str
    label_b: str
    neighbours: str
    epsilon: float
    a: float
    b: float
    difference: float | None
    low: float | None
    high: float | None
    over: Over
    folds: int
    runs: int
    same: bool
    provable_a: float
    provable_b: float

    @property
    def verdict(self) -> str:
        """Whether B is "better" or "worse" than A; "" if the interval contains 0 or there is none."""
        if self.low is None or self.high is None:
            return ""
        return "better" if self.high < 0 else "worse" if self.low > 0 else ""


@dataclass(frozen=True)
class Comparison:
    """The differences of the pairs that can be compared, and for each other curve the reason why it cannot."""

    differences: tuple[Difference, ...]
    left_out: tuple[str, ...]


def paired(a: Sequence[tuple[str, str]], b: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Pairs of indices into `a` and `b`, whose elements are (label, algorithm).

    Elements are paired by label, and two of the others if their algorithm remains once in `a` and in `b`.
    """
    labels = {label: at for at, (label, _) in enumerate(b)}
    pairs = {at: labels[label] for at, (label, _) in enumerate(a) if label in labels}

    def left(every: Sequence[tuple[str, str]], taken: set[int]) -> dict[str, int]:
        rest = [(algorithm, at) for at, (_, algorithm) in enumerate(every) if at not in taken]
        times = Counter(algorithm for algorithm, _ in rest)
        return {algorithm: at for algorithm, at in rest if times[algorithm] == 1}

    rest_a, rest_b = left(a, set(pairs)), left(b, set(pairs.values()))
    pairs |= {rest_a[algorithm]: rest_b[algorithm] for algorithm in rest_a.keys() & rest_b.keys()}
    return sorted(pairs.items())


def compare(a: Experiment, b: Experiment, *, replicates: int = REPLICATES) -> Comparison:
    """The differences of the curves of two experiments, which must have the same dataset, seed and folds."""
    all_a, all_b = ((*each.baselines, *each.curves) for each in (a, b))
    pairs = paired(*([(one.label, one.algorithm) for one in every] for every in (all_a, all_b)))
    found: list[Difference] = []
    both = [{pair[side] for pair in pairs} for side in (0, 1)]
    left_out = [
        f"{one.label}: only in {name}"
        for name, every, of in zip("AB", (all_a, all_b), both, strict=True)
        for at, one in enumerate(every)
        if at not in of
    ]
    for at_a, at_b in pairs:
        one, other = all_a[at_a], all_b[at_b]
        if reason := _incomparable(one, other):
            names = one.label if one.label == other.label else f"{one.label} and {other.label}"
            left_out.append(f"{names}: {reason}")
        else:
            found += differences(one, other, a, replicates)
    return Comparison(tuple(found), tuple(left_out))


def _incomparable(a: Measured, b: Measured) -> str:
    """Why two curves cannot be compared: their ε mean different things, or errors are missing; "" if they can."""
    if not (is_complete(a) and is_complete(b)):
        return f"{' and '.join(x for x, one in (('A', a), ('B', b)) if not is_complete(one))} lacks results"
    if a.is_baseline != b.is_baseline:
        return f"only {'B' if a.is_baseline else 'A'} is private"
    if not a.is_baseline and a.guarantee.at_any_delta != b.guarantee.at_any_delta:
        same = a.guarantee.protects == b.guarantee.protects
        how = "not ranked against each other" if same else "not comparable"
        return f"A protects the {a.guarantee}, B the {b.guarantee}; their ε are {how}"
    if a.delta != b.delta:
        return f"A has δ = {a.delta:g}, B {b.delta:g}; their ε are not ranked against each other"
    if not np.isin(a.epsilons, b.epsilons).any():
        has = [f"{each.epsilons[0]:.4g} to {each.epsilons[-1]:.4g}" for each in (a, b)]
        return f"no ε in common: A has {has[0]}, B {has[1]}"
    return ""


def differences(
    a: Measured, b: Measured, experiment: Experiment, replicates: int = REPLICATES
) -> Iterator[Difference]:
    """Yields the difference of two curves of one dataset, seed and cut into folds at each ε that both have."""
    common, in_a, in_b = np.intersect1d(a.epsilons, b.epsilons, return_indices=True)
    folds, runs = (min(a.values.shape[axis], b.values.shape[axis]) for axis in (0, 1))
    ours, theirs = a.values[:folds, :runs, in_a], b.values[:folds, :runs, in_b]
    finite = np.asarray((np.isfinite(ours) & np.isfinite(theirs)).all(axis=(0, 1)))
    difference: Doubles = np.subtract(theirs, ours, where=finite, out=np.zeros_like(ours))
    rng = named_generator(experiment.seed, "comparison", experiment.stream, a.neighbours, a.label, b.label)
    drawn = replicate_means(difference, rng=rng, partition=experiment.partition, replicates=replicates)
    for at, (epsilon, low, high) in enumerate(zip(common, *drawn.interval, strict=True)):
        known = drawn.over != "none" and bool(finite[at])
        yield Difference(
            algorithm=a.algorithm,
            label_a=a.label,
            label_b=b.label,
            neighbours=a.neighbours,
            epsilon=float(epsilon),
            a=float(ours[:, :, at].mean()),
            b=float(theirs[:, :, at].mean()),
            difference=float(difference[:, :, at].mean()) if finite[at] else None,
            low=float(low) if known else None,
            high=float(high) if known else None,
            over=drawn.over if known else "none",
            folds=folds,
            runs=runs,
            same=bool(finite[at] and not difference[:, :, at].any()),
            provable_a=float(a.provable[in_a[at]]),
            provable_b=float(b.provable[in_b[at]]),
        )
