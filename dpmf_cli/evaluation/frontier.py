"""The frontier: at each ε the method with the lowest error, of all whose provable ε keeps one guarantee.

A guarantee is what is protected, from whom, and by which δ. A method enters the frontier of each guarantee that its
own implies: what holds towards everybody holds towards the other users, and pure ε holds at any δ. It enters at the ε
that can be proved for what was run, whatever is claimed; where none can, it does not.

To choose the method with the lowest error by errors on the ratings that a model is made of costs ε that no ledger
counts. The frontier is a benchmark on public ratings, and no way to choose on private ones.
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
    """The lowest mean RMSE that a method has at an ε.

    at   its place in the grid of the method's curve, of those whose provable ε is at most the ε that is asked for
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
    """What leads at an ε.

    order      all methods that have an error there, the lowest first
    low, high  95 % interval of the first one's mean RMSE; None where there is none
    over       what the interval is resampled over
    tied       those behind it that it is not surely better than: the interval of the difference, paired by fold and
               run, holds 0. Where there is one fold and one run of both there is no interval, and none is among them
    unpaired   those that were measured on other folds: no difference can be paired
    """

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


@dataclass(frozen=True)
class Frontier:
    """The lower envelope of all methods that keep a guarantee on one data set.

    guarantee  with its δ
    members    every method of which an ε can be proved for it, and all results are there
    leads      one for each ε of the members' grids, ascending, from the first at which there is an error
    """

    title: str
    guarantee: Guarantee
    members: tuple[Standing, ...]
    leads: tuple[Lead, ...]

    @property
    def stretches(self) -> list[tuple[Standing, list[Lead]]]:
        """Which method leads from where to where, ascending."""
        return [
            (found[0].first.standing, found)
            for _, each in groupby(self.leads, key=lambda lead: id(lead.first.standing))
            for found in [list(each)]
        ]


def frontiers(found: Iterable[Standing]) -> list[Frontier]:
    """The frontier of each data set and each guarantee, with its δ, that one of these methods has: by title in the
    order given, then in the order of tables, pure ε first."""
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
    """Every curve but for those of an algorithm that are the same to the bit, in errors and in provable ε, as one of
    its others: where published and corrected are one algorithm, the corrected one stands for both."""
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
    """The lowest mean RMSE of a complete curve for which an ε of at most `epsilon` can be proved; None where there is
    none."""
    mean = standing.curve.mean()
    may = (standing.curve.provable <= epsilon * (1 + TOLERANCE)) & np.isfinite(mean)
    return Best(standing, int(np.where(may, mean, np.inf).argmin())) if may.any() else None


def just_at(standing: Standing, epsilon: float) -> Best | None:
    """A complete curve at that ε of its grid; None where it has no such ε, or where no more than it can be proved."""
    at = np.flatnonzero(np.isclose(standing.curve.epsilons, epsilon, rtol=TOLERANCE, atol=0))
    if not at.size or not np.isfinite(standing.curve.mean()[at[0]]):
        return None
    return Best(standing, int(at[0])) if standing.curve.provable[at[0]] <= epsilon * (1 + TOLERANCE) else None


def clean_level(experiment: Experiment) -> Measured | None:
    """The best without privacy: the baseline of the lowest mean RMSE; None where none is complete."""
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
    name = (experiment.dataset, str(guarantee), f"{guarantee.delta:g}", f"{epsilon:g}", first.curve.label)
    known = math.isfinite(low) and math.isfinite(high)
    over: Over = "none" if not known else "folds" if first.curve.rmse.shape[0] > 1 else "runs"
    paired = [each for each in order[1:] if _same_folds(each.standing.experiment, experiment)]
    return Lead(
        epsilon,
        tuple(order),
        low if known else None,
        high if known else None,
        over,
        tuple(_tied(first, paired, named_generator(experiment.seed, "frontier", *name))),
        tuple(each for each in order[1:] if each not in paired),
    )


def _tied(first: Best, others: Sequence[Best], rng: np.random.Generator) -> Iterator[Best]:
    """Those of `others`, in their order, that the first is not surely better than, on the runs that both have."""
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
    """Whether folds are the same, so that errors can be paired."""
    return all(getattr(a, key) == getattr(b, key) for key in ("dataset", "seed", "folds", "partition"))
