"""The frontier of a guarantee: at each ε, the lowest error of any method that provably keeps the guarantee.

A guarantee says what is protected, from whom, and with which δ. A method enters the frontier of each guarantee that
its own guarantee implies: an ε that holds against everybody also holds against the other users, and a pure ε holds
at any δ. A method enters at its provable ε, whatever ε is claimed. A method without a provable ε does not enter.

Choosing the method with the lowest error on private ratings costs ε that no ledger counts. The frontier is therefore
a benchmark on public ratings, not a way to choose a method on private ratings.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.levels import band
from dpmf_cli.evaluation.ranking import Standing
from dpmf_cli.evaluation.statistics import Over, percentile_interval, replicate_means
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.streams import named_generator


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
        alike = (
            each.experiment.title,
            curve.algorithm,
            curve.guarantee,
            curve.rmse.tobytes(),
            curve.provable.tobytes(),
        )
        kept.setdefault(alike, each)
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
