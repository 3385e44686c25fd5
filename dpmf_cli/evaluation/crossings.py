"""Crossings: the ε at which a private recommender becomes as good as a baseline.

Friedman et al. (2016, section 5.1) compare methods by it; their tables 4 and 5 print it for two baselines,
item average (IA) and global effects (GE). Here a crossing is the first ε, coming from small ε, at which the
mean curve (over folds and runs) is no longer above the baseline's mean. Between two grid points the
difference of RMSE is taken as linear in log ε; a curve that touches the baseline at a grid point crosses
there.

A crossing need not exist on the grid, and then it is no number: it lies "below the grid" if the curve is at
or below the baseline at the smallest ε, and is "not reached in the grid" if it is above at every ε.

The interval is the percentile interval of the crossings of bootstrapped curves (`statistics`), resampled
over the paired differences, each fold against its own baseline. A replicate without a crossing on the grid
counts as −∞ or +∞, so an end of the interval can be out of the grid too. The interval contains the
crossing, except that for a curve which wanders around the baseline the *first* crossing of a shifted curve
can jump far away.

A printed error (`Reference`) is crossed in the same way; being one number, it adds nothing to the interval.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from dpmf_cli.evaluation.statistics import (
    REPLICATES,
    Over,
    percentile_interval,
    replicate_means,
)
from dpmf_cli.streams import named_generator

#: Where a model diverged its RMSE is infinite. There the curve counts as this far above any baseline, in
#: every replicate, to keep the arithmetic defined.
_DIVERGED = 1e6


class Status(StrEnum):
    """What is known of a crossing; also the value of an interval's end that lies outside the grid."""

    CROSSED = "crossed"
    NOT_REACHED = "not reached in the grid"
    BELOW_GRID = "below the grid"
    INCOMPLETE = "incomplete"
    NOT_RUN = "not run"
    NO_DATA = "data not present"


#: An end of an interval: ε, or on which side of the grid it lies; None where there is no interval.
End = float | Status | None


@dataclass(frozen=True)
class Crossing:
    """The crossing of one curve with one baseline.

    baseline    as printed: "IA", "GE", "Cinematch probe"
    printed     total ε that a paper prints for this cell; None where nothing is, which is all that is known here
    reproduced  total ε of the crossing; None unless `status` is "crossed"
    low, high   ends of its 95 % interval
    recrosses   whether the curve is above the baseline again at a larger ε of the grid
    claimed     ε that the method's publication states for a run at the crossing
    provable    ε that can be proved for it, inf where none can
    theta       θ of the crossing; None where the experiment is not over θ
    delta       δ of the (ε, δ) of `claimed` and `provable`; 0 for pure ε
    joint       whether privacy holds towards the other users only (`Measured.joint`)
    reference   whether the baseline is a printed error, not measured here
    comparable  False where that was printed for another test set than the one predicted here
    over        what the interval is resampled over: "folds", or "runs" where there is one fold
    grid_low, grid_high   smallest and largest ε of the grid
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
    folds: int = 0
    runs: int = 0
    grid_low: float | None = None
    grid_high: float | None = None
    experiment: str = ""

    @property
    def ratio(self) -> float | None:
        """Reproduced over printed, where there are both."""
        if self.reproduced is None or self.printed is None:
            return None
        return self.reproduced / self.printed


def first_crossing(epsilons: NDArray[np.float64], difference: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…) the ε at which each curve first is no longer above its baseline, coming from small ε.

    `epsilons` (E,) ascending, positive, finite; `difference` (…, E) is RMSE − baseline RMSE, finite.
    −inf stands for "below the grid", +inf for "not reached in the grid".
    """
    reached = difference <= 0
    upper = reached.argmax(axis=-1)
    lower = np.maximum(upper - 1, 0)

    def at(index: NDArray[np.intp]) -> NDArray[np.float64]:
        taken: NDArray[np.float64] = np.take_along_axis(difference, index[..., None], axis=-1)[..., 0]
        return taken

    above, below = at(lower), at(upper)
    drop = np.where(above > below, above - below, 1.0)
    between = epsilons[lower] * (epsilons[upper] / epsilons[lower]) ** (above / drop)
    crossing = np.where(below == 0, epsilons[upper], np.clip(between, epsilons[lower], epsilons[upper]))
    crossing = np.where(upper == 0, -np.inf, crossing)
    return np.where(reached.any(axis=-1), crossing, np.inf)


def find_crossings(experiment: Experiment, *, replicates: int = REPLICATES) -> list[Crossing]:
    """The crossing of every curve with every one of the experiment's targets, in its order.

    The points of a sweep are left out: their axis is not ε. A crossing depends on its own curve and baseline, the
    dataset and the experiment's seed, on nothing else.
    """
    targets = crossing_targets(experiment)
    return [
        measure_crossing(experiment, curve, target, replicates=replicates)
        for curve in experiment.curves
        if curve.swept is None
        for target in targets
    ]


def crossing_targets(experiment: Experiment) -> list[Measured | Reference]:
    """What crossings are measured against: the baselines that are targets, and all references."""
    found = [
        baseline
        for key in experiment.targets
        for baseline in experiment.baselines
        if baseline.algorithm == key and baseline.swept is None
    ]
    return [*found, *experiment.references]


def target_name(target: Measured | Reference) -> str:
    """What crossings call it: "IA", "GE" as the papers do, other baselines by their label."""
    if isinstance(target, Reference):
        return target.name
    return target.algorithm.upper() if target.algorithm in ("ga", "ia", "ge") else target.label


def measure_crossing(
    experiment: Experiment, curve: Measured, target: Measured | Reference, *, replicates: int = REPLICATES
) -> Crossing:
    """Where `curve` crosses `target`, both of `experiment`; a baseline's runs are averaged within a fold.

    Raises `ValueError` for a grid that is not positive, finite and ascending, or for other folds than the
    baseline's.
    """
    epsilons = curve.epsilons
    if not (np.isfinite(epsilons).all() and (epsilons > 0).all() and (np.diff(epsilons) > 0).all()):
        raise ValueError(f"{curve.label}: a crossing needs ε positive, finite and ascending, got {epsilons}")
    folds, runs, _ = curve.rmse.shape
    if isinstance(target, Reference):
        level, known = np.full((folds, 1, 1), target.rmse), True
    else:
        level, known = target.rmse[:, :, :1], is_complete(target)
        if len(level) != folds:
            raise ValueError(f"{curve.label} has {folds} folds, {target.label} has {len(level)}")
    cell = Crossing(
        dataset=experiment.dataset,
        neighbours=curve.neighbours,
        mode=curve.mode,
        algorithm=curve.algorithm,
        label=curve.label,
        baseline=target_name(target),
        status=Status.INCOMPLETE,
        delta=curve.delta,
        joint=curve.joint,
        reference=isinstance(target, Reference),
        comparable=not isinstance(target, Reference) or target.comparable,
        folds=folds,
        runs=runs,
        grid_low=float(epsilons[0]),
        grid_high=float(epsilons[-1]),
        experiment=experiment.name,
    )
    if not (is_complete(curve) and known):
        return cell

    difference = curve.rmse - level.mean(axis=1, keepdims=True)
    difference[:, :, np.isinf(curve.rmse).any(axis=(0, 1))] = _DIVERGED
    mean = difference.mean(axis=(0, 1))
    found = float(first_crossing(epsilons, mean))
    low, high, over = _interval(
        epsilons, difference, curve_stream(experiment, curve), experiment.partition, replicates
    )
    cell = replace(cell, low=low, high=high, over=over, recrosses=_rises_again(mean))
    outside = _outside(found)
    if outside is not None:
        return replace(cell, status=outside)
    return replace(
        cell,
        status=Status.CROSSED,
        reproduced=found,
        claimed=_spent_at(found, epsilons, curve.claimed),
        provable=_spent_at(found, epsilons, curve.provable),
        theta=_theta_at(found, curve) if experiment.axis == "theta" else None,
    )


def is_complete(measured: Measured) -> bool:
    """Whether every task has a result, so that figures may be derived from it."""
    return measured.missing == 0 and not np.isnan(measured.rmse).any()


def curve_stream(experiment: Experiment, curve: Measured) -> np.random.Generator:
    """The bootstrap's random stream of one curve: its crossings and its band come from the same draws."""
    name = (experiment.dataset, curve.neighbours, curve.mode, curve.label)
    return named_generator(experiment.seed, "bootstrap", *name)


def _interval(
    epsilons: NDArray[np.float64],
    difference: NDArray[np.float64],
    rng: np.random.Generator,
    partition: int,
    replicates: int,
) -> tuple[End, End, Over]:
    """The crossing's interval, and what it is over; the ends are None where there is none."""
    drawn = replicate_means(difference, rng=rng, partition=partition, replicates=replicates)
    if drawn.over == "none":
        return None, None, "none"
    low, high = percentile_interval(first_crossing(epsilons, drawn.curves))
    return _outside(float(low)) or float(low), _outside(float(high)) or float(high), drawn.over


def _outside(crossing: float) -> Status | None:
    """On which side of the grid an infinite crossing lies; None for one on the grid."""
    if np.isfinite(crossing):
        return None
    return Status.BELOW_GRID if crossing < 0 else Status.NOT_REACHED


def _rises_again(mean: NDArray[np.float64]) -> bool:
    """Whether a difference curve (E,), once no longer positive, is positive at a larger ε."""
    reached = np.flatnonzero(mean <= 0)
    return len(reached) > 0 and bool((mean[reached[0] :] > 0).any())


def _theta_at(crossing: float, curve: Measured) -> float | None:
    """θ at the ε of a crossing: between two grid points log θ is taken as linear in log ε."""
    if curve.thetas is None:
        return None
    return float(np.exp(np.interp(np.log(crossing), np.log(curve.epsilons), np.log(curve.thetas))))


def _spent_at(crossing: float, epsilons: NDArray[np.float64], spent: NDArray[np.float64]) -> float:
    """What a run at `crossing` spends, given what the runs at the grid points spend.

    In proportion to the grid point; between two that differ in proportion, to the costlier of them.
    """
    upper = int(np.searchsorted(epsilons, crossing))
    lower = upper if epsilons[upper] == crossing else upper - 1
    return crossing * float((spent / epsilons)[lower : upper + 1].max())
