"""Ranks private recommenders by the ε that they need, among those whose ε protects the same thing, never across.

An ε is a statement about a pair of neighbouring data sets. They may differ in one rating's value, in its presence,
in all ratings of a user, or in a rating that not even the aggregator sees. An ε of one of these kinds cannot be
converted into an ε of another kind. An ε that holds against the other users only says nothing about an observer who
sees everything. So `ranked` orders the curves of one data set and one `Guarantee`, and refuses mixtures. Claimed ε
are not compared with provable ones: curves with only a claimed ε follow the ranked ones, without a rank.

Within a group some ε are pure and others come with a δ. Pure ε-DP implies (ε, δ)-DP for every δ; the converse is
false. So there are two rankings: one of all curves, for readers who accept the δ, and one of the pure ones, for
readers who accept no δ.

The frontier of a guarantee: at each ε, the lowest error of any method that provably keeps the guarantee.

A guarantee says what is protected, from whom, and with which δ. A method enters the frontier of each guarantee that
its own guarantee implies: an ε that holds against everybody also holds against the other users, and a pure ε holds
at any δ. A method enters at its provable ε, whatever ε is claimed. A method without a provable ε does not enter.

Choosing the method with the lowest error on private ratings costs ε that no ledger counts. The frontier is therefore
a benchmark on public ratings, not a way to choose a method on private ratings.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.streams import named_generator
from dpmf_cli.evaluation.crossings import Crossing, Status, is_complete, measure_crossing
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.levels import band
from dpmf_cli.evaluation.statistics import Over, percentile_interval, replicate_means
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee

Bar = Literal["ia", "ge"]
"""The baseline that a curve has to meet: item average, or global effects."""
BARS: tuple[Bar, ...] = get_args(Bar)

MODEST = 1.0
"""The ε up to which `Standing.best` looks for the lowest RMSE."""


@dataclass(frozen=True)
class Standing:
    """One curve of an experiment, with its crossings with those baselines that the experiment has."""

    experiment: Experiment
    curve: Measured
    crossings: dict[Bar, Crossing]

    @property
    def guarantee(self) -> Guarantee:
        """What the curve's ε protects and from whom, whatever its δ."""
        return self.curve.guarantee.at_any_delta

    @property
    def complete(self) -> bool:
        return is_complete(self.curve)

    @property
    def provable(self) -> bool:
        """Whether an ε can be proved for the curve somewhere on its grid; True while results are missing."""
        return not self.complete or bool(np.isfinite(self.curve.provable).any())

    @property
    def best(self) -> float | None:
        """The lowest mean RMSE at a provable ε of at most `MODEST`; None where there is none."""
        found = best_at(self, MODEST) if self.complete else None
        return None if found is None else found.rmse

    def needs(self, bar: Bar, *, claimed: bool = False) -> float:
        """The provable (or claimed) ε of a run at the crossing with a baseline; ∞ if there is no such ε or crossing.

        A curve that meets the baseline at the smallest ε of its grid needs at most that ε.
        """
        crossing = self.crossings.get(bar)
        spent = self.curve.claimed if claimed else self.curve.provable
        if crossing is None or crossing.status not in (Status.CROSSED, Status.BELOW_GRID):
            return math.inf
        if crossing.status is Status.BELOW_GRID:
            return float(spent[0])
        found = crossing.claimed if claimed else crossing.provable
        return math.inf if found is None else found


@dataclass(frozen=True)
class Ranked:
    """A curve with its ranks among those of one guarantee; None where it meets the baseline at no provable ε.

    rank   among all of them, by ε, whatever δ comes with it
    pure   among those whose ε is pure; None for the others
    """

    rank: int | None
    pure: int | None
    standing: Standing


def standings(experiment: Experiment, bars: Sequence[Bar] = BARS) -> list[Standing]:
    """Every curve over ε of an experiment, in its order. Points of sweeps are left out (see `swept_labels`)."""
    baselines = {bar: baseline for bar in bars if (baseline := experiment.baseline(bar)) is not None}
    found = []
    for curve in experiment.curves:
        if curve.swept is not None:
            continue
        if curve.protects is None:
            raise ValueError(f"{curve.label}: it is not known what its ε protects")
        crossings = {bar: measure_crossing(experiment, curve, each) for bar, each in baselines.items()}
        found.append(Standing(experiment, curve, crossings))
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


def ranked(found: Sequence[Standing], bar: Bar = "ia") -> list[Ranked]:
    """Ranks curves by the provable ε that they need to meet `bar`; those without one are last, by their claimed ε.

    Equal ε share a rank. Curves that do not meet `bar` have no rank and are ordered by `Standing.best`. Raises
    `DpmfError` for curves that differ in what they protect, in from whom, or in their data: their ε cannot be ranked
    against each other.
    """
    _refuse_mixed(by_guarantee(found))
    provable = sorted(
        (each for each in found if each.provable),
        key=lambda each: (each.needs(bar), _no_better(each)),
    )
    claimed = sorted(
        (each for each in found if not each.provable), key=lambda each: each.needs(bar, claimed=True)
    )
    needs = [each.needs(bar) for each in provable]
    pure = [each.needs(bar) for each in provable if not each.curve.delta]
    return [
        *(
            Ranked(_rank(need, needs), None if each.curve.delta else _rank(need, pure), each)
            for need, each in zip(needs, provable, strict=True)
        ),
        *(Ranked(None, None, each) for each in claimed),
    ]


def _refuse_mixed(groups: Iterable[tuple[str, Guarantee]]) -> None:
    titles = list(dict.fromkeys(title for title, _ in groups))
    guarantees = list(dict.fromkeys(guarantee for _, guarantee in groups))
    protections = list(dict.fromkeys(guarantee.protects for guarantee in guarantees))
    if len(protections) > 1:
        raise DpmfError(
            f"no ranking across what is protected ({', '.join(protections)}): an ε of one kind says nothing about "
            "the others, so a smaller ε is not better; rank within each kind (docs/privacy.md)"
        )
    if len(guarantees) > 1:
        raise DpmfError(
            f"no ranking across whom an ε protects from ({'; '.join(map(str, guarantees))}): joint DP does not limit "
            "what the predictions for a user reveal about that user, so a smaller ε is not better; rank within each "
            "(docs/privacy.md)"
        )
    if len(titles) > 1:
        raise DpmfError(
            f"no ranking across data sets ({', '.join(titles)}): the ε that a method needs depends on the data; rank "
            "within each"
        )


def _rank(need: float, needs: Sequence[float]) -> int | None:
    """The rank of `need` among the ascending `needs`, where equal ones share a rank; None if it is infinite."""
    return bisect_left(needs, need) + 1 if math.isfinite(need) else None


def _no_better(standing: Standing) -> float:
    return math.inf if standing.best is None else standing.best


@dataclass(frozen=True)
class Best:
    """The lowest mean RMSE of a method at an ε.

    at   index of that RMSE in the grid of the method's curve; only places with a provable ε of at most the requested
         one count
    """

    standing: Standing
    at: int

    @property
    def curve(self) -> Measured:
        return self.standing.curve

    @property
    def rmse(self) -> float:
        return float(self.curve.mean()[self.at])

    @property
    def provable(self) -> float:
        return float(self.curve.provable[self.at])

    @property
    def errors(self) -> NDArray[np.float64]:
        """(folds, runs) RMSE."""
        errors: NDArray[np.float64] = self.curve.rmse[:, :, self.at]
        return errors


@dataclass(frozen=True)
class Lead:
    """The order of the methods that keep a guarantee at an ε; the first one leads.

    order      all methods that have an error at this ε, the lowest error first
    low, high  95 % interval of the leader's mean RMSE; None where there is none
    over       what the interval is resampled over
    tied       other methods that the leader is not certainly better than: the interval of the difference, paired by
               fold and run, contains 0. A method that shares only one fold and one run with the leader has no such
               interval, and is not listed
    unpaired   methods that were measured on other folds, so that no difference can be paired
    """

    guarantee: Guarantee
    epsilon: float
    order: tuple[Best, ...]
    low: float | None
    high: float | None
    over: Over
    tied: tuple[Best, ...]
    unpaired: tuple[Best, ...] = ()

    @property
    def first(self) -> Best:
        return self.order[0]

    @property
    def standing(self) -> Standing:
        """The leader's."""
        return self.first.standing


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
        return [
            (found[0].first.standing, found)
            for _, each in groupby(self.leads, key=lambda lead: id(lead.first.standing))
            for found in [list(each)]
        ]


def frontiers(found: Iterable[Standing]) -> list[Frontier]:
    """The frontier of each data set and each guarantee (with its δ) that one of these methods has.

    Frontiers are ordered by data set as given, then by guarantee as in tables, pure ε first.
    """
    provable = _once([each for each in found if each.complete and each.provable])
    titles = list(dict.fromkeys(each.experiment.title for each in provable))
    keys = {(each.experiment.title, each.curve.guarantee) for each in provable}
    order = sorted(
        keys, key=lambda key: (titles.index(key[0]), GUARANTEES.index(key[1].at_any_delta), key[1].delta)
    )
    frontiers = []
    for title, guarantee in order:
        members = [
            each
            for each in provable
            if each.experiment.title == title and each.curve.guarantee.implies(guarantee)
        ]
        grid = sorted({float(epsilon) for each in members for epsilon in each.curve.epsilons})
        leads = [lead for epsilon in grid if (lead := _lead(members, guarantee, epsilon)) is not None]
        if leads:
            frontiers.append(Frontier(title, guarantee, tuple(members), tuple(leads)))
    return frontiers


def _once(found: Sequence[Standing]) -> list[Standing]:
    """The curves without duplicates: one of each group of an algorithm's curves with identical errors and provable ε.

    If published and corrected coincide, the corrected curve is kept.
    """
    kept: dict[tuple[object, ...], Standing] = {}
    for each in sorted(found, key=lambda standing: standing.curve.mode):
        curve = each.curve
        errors = (curve.rmse.tobytes(), curve.provable.tobytes())
        kept.setdefault((each.experiment.title, curve.algorithm, curve.guarantee, *errors), each)
    chosen = {id(each) for each in kept.values()}
    return [each for each in found if id(each) in chosen]


def best_at(standing: Standing, epsilon: float) -> Best | None:
    """The lowest mean RMSE of a complete curve at a provable ε of at most `epsilon`; None where there is none."""
    mean = standing.curve.mean()
    may = (standing.curve.provable <= epsilon * (1 + TOLERANCE)) & np.isfinite(mean)
    return Best(standing, int(np.where(may, mean, np.inf).argmin())) if may.any() else None


def just_at(standing: Standing, epsilon: float) -> Best | None:
    """A complete curve at that ε of its grid.

    None where the grid has no such ε, the curve has no finite error there, or the provable ε is larger.
    """
    at = np.flatnonzero(np.isclose(standing.curve.epsilons, epsilon, rtol=TOLERANCE, atol=0))
    if not at.size or not np.isfinite(standing.curve.mean()[at[0]]):
        return None
    return Best(standing, int(at[0])) if standing.curve.provable[at[0]] <= epsilon * (1 + TOLERANCE) else None


def clean_level(experiment: Experiment) -> Measured | None:
    """The baseline with the lowest mean RMSE; None where no baseline is complete."""
    complete = [each for each in experiment.baselines if each.swept is None and is_complete(each)]
    return min(complete, key=lambda each: float(each.mean()[0]), default=None)


def _lead(members: Sequence[Standing], guarantee: Guarantee, epsilon: float) -> Lead | None:
    found = [best for each in members if (best := best_at(each, epsilon)) is not None]
    if not found:
        return None
    order = sorted(found, key=lambda best: best.rmse)
    first = order[0]
    experiment = first.standing.experiment
    low, high = (float(ends[first.at]) for ends in band(experiment, first.curve))
    name = (experiment.stream, str(guarantee), f"{guarantee.delta:g}", f"{epsilon:g}", first.curve.label)
    known = math.isfinite(low) and math.isfinite(high)
    over: Over = "none" if not known else "folds" if first.curve.rmse.shape[0] > 1 else "runs"
    paired = [each for each in order[1:] if _same_folds(each.standing.experiment, experiment)]
    return Lead(
        guarantee,
        epsilon,
        tuple(order),
        low if known else None,
        high if known else None,
        over,
        tuple(_tied(first, paired, named_generator(experiment.seed, "frontier", *name))),
        tuple(each for each in order[1:] if each not in paired),
    )


def _tied(first: Best, others: Sequence[Best], rng: np.random.Generator) -> Iterator[Best]:
    """The members of `others`, in order, that `first` is not certainly better than, on the runs that both have."""
    runs = {id(each): min(each.errors.shape[1], first.errors.shape[1]) for each in others}
    tied = set[int]()
    for common in sorted(set(runs.values())):
        group = [each for each in others if runs[id(each)] == common]
        differences = np.stack(
            [each.errors[:, :common] - first.errors[:, :common] for each in group], axis=-1
        )
        drawn = replicate_means(differences, rng=rng, partition=first.standing.experiment.partition)
        if drawn.over != "none":
            low, _ = percentile_interval(drawn.curves)
            tied |= {id(each) for each, end in zip(group, low, strict=True) if end <= 0}
    yield from (each for each in others if id(each) in tied)


def _same_folds(a: Experiment, b: Experiment) -> bool:
    """Whether two experiments have the same folds, so that their errors can be paired."""
    return all(getattr(a, key) == getattr(b, key) for key in ("dataset", "seed", "folds", "partition"))
