"""What the tasks of one experiment measured, gathered: the input of every table and figure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.evaluation.metrics import RMSE, Metric
from dpmf_cli.evaluation.portions import Order, Portion
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of
from dpmf_cli.streams import Seed

Axis = Literal["epsilon", "theta"]
"""The quantity that the grid of an experiment varies: the total ε, or McSherry and Mironov's θ."""


@dataclass(frozen=True)
class Records:
    """What personalised privacy cost the training records, (E,) each, over folds and runs; NaN where there is no
    result.

    threshold   t, the ε of the algorithm that is personalised: the largest
    kept        which part of the records was sampled: the mean
    least, median, largest   the ε that can be proved for a record: the least of all, the median of the medians, and
                the largest of all
    """

    threshold: NDArray[np.float64]
    kept: NDArray[np.float64]
    least: NDArray[np.float64]
    median: NDArray[np.float64]
    largest: NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """The errors of one algorithm over folds, runs and the ε grid, and what else was measured of it.

    algorithm   key of the registry ("pge", "isgd", "ge"); `label` is unique in an experiment and names the
                curve where one config runs an algorithm twice
    epsilons    (E,) total ε, ascending; a non-private baseline has the single value inf. Where the experiment's axis
                is θ, each curve has ε of its own
    rmse        (folds, runs, E) float64, rating units; a deterministic baseline has one run
    claimed     (E,) ε that the method's publication states for what was run
    provable    (E,) ε that can be proved for what was run, inf where none can
    neighbours  "bounded", "unbounded", …; "none" for a baseline
    mode        "published" or "corrected"; "none" for a baseline
    joint       whether it predicts from the target user's own clean ratings: privacy towards the others only
    swept       the parameter that a sweep varies and its value here, where the curve is a point of a sweep
    line        the name that all values of a sweep share; `label` where there is no sweep, "" where it is not known
    missing     how many of its tasks have no result yet: where it is not 0, `values` or `twin_values` hold NaN
                and no figure may be derived from them
    thetas      (E,) the θ of each ε, ascending; None where the grid is of ε and θ is the same
    delta       δ of the (ε, δ) that is spent; 0 for pure ε
    twin        (folds,) RMSE of the same algorithm without noise; None where it was not asked for
    limits      (X,) the x of the distribution of absolute errors, ascending, rating units; empty without
    error_cdf   (folds, runs, E, X) the fraction of errors that are at most x; None where it was not asked for
    twin_cdf    (folds, X) that fraction for the same algorithm without noise
    mae         (folds, runs, E) the mean absolute errors, NaN where none was measured; None where it is not known
    ranked      (folds, runs, E) each: what was measured of the items that it puts first, by the key of the metric
    twin_ranked (folds,) each: the same without noise
    metric      which metric `values` are of
    scores_only whether it orders items without predicting ratings: then `rmse` is NaN
    records     what it cost the records, where privacy is personalised
    protects    what its ε is a statement about; None for a baseline
    source      the paper that it comes from, as tables cite it; "" for a baseline
    """

    algorithm: str
    label: str
    epsilons: NDArray[np.float64]
    rmse: NDArray[np.float64]
    claimed: NDArray[np.float64]
    provable: NDArray[np.float64]
    neighbours: str = "none"
    mode: str = "none"
    missing: int = 0
    joint: bool = False
    swept: tuple[str, float] | None = None
    thetas: NDArray[np.float64] | None = None
    delta: float = 0.0
    twin: NDArray[np.float64] | None = None
    line: str = ""
    limits: tuple[float, ...] = ()
    error_cdf: NDArray[np.float64] | None = None
    twin_cdf: NDArray[np.float64] | None = None
    records: Records | None = None
    protects: Protection | None = None
    source: str = ""
    mae: NDArray[np.float64] | None = None
    ranked: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    twin_ranked: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    metric: Metric = RMSE
    scores_only: bool = False

    @property
    def values(self) -> NDArray[np.float64]:
        """(folds, runs, E) what was measured of the metric that is shown."""
        return self.of(self.metric)

    @property
    def twin_values(self) -> NDArray[np.float64] | None:
        """(folds,) the same without noise; None where it was not asked for."""
        return self.twin if self.twin is None or self.metric == RMSE else self.twin_ranked[self.metric.key]

    def of(self, metric: Metric) -> NDArray[np.float64]:
        """(folds, runs, E) what was measured of a metric. Raises KeyError where it was not asked for."""
        return self.rmse if metric == RMSE else self.ranked[metric.key]

    def has(self, metric: Metric) -> bool:
        """Whether that metric was measured of it."""
        return not self.scores_only if metric == RMSE else metric.key in self.ranked

    @property
    def is_baseline(self) -> bool:
        return self.neighbours == "none"

    @property
    def guarantee(self) -> Guarantee:
        """What the ε protect from whom, with which δ; where `protects` does not say what, that of all with these
        neighbours. Raises `ValueError` for a baseline."""
        protects = self.protects or protection_of(Neighbours(self.neighbours))
        return Guarantee(protects, self.joint, self.delta)

    def mean(self) -> NDArray[np.float64]:
        """(E,) the curve: the metric that is shown, averaged over folds and runs."""
        mean: NDArray[np.float64] = self.values.mean(axis=(0, 1))
        return mean

    def mean_absolute(self) -> NDArray[np.float64]:
        """(E,) MAE averaged over folds and runs; NaN where one of them has none."""
        if self.mae is None:
            return np.full(len(self.epsilons), np.nan)
        mean: NDArray[np.float64] = self.mae.mean(axis=(0, 1))
        return mean

    def along(self, axis: Axis) -> NDArray[np.float64]:
        """(E,) where the curve's points stand on that axis."""
        return self.epsilons if axis == "epsilon" or self.thetas is None else self.thetas

    def without_noise(self) -> "Measured | None":
        """The twin as a curve of the one point ε = ∞; None where there is none."""
        if self.twin is None:
            return None
        infinite = np.array([np.inf])
        return replace(
            self,
            epsilons=infinite,
            rmse=self.twin[:, None, None],
            claimed=infinite,
            provable=infinite,
            missing=int(np.isnan(self.twin).sum()),
            thetas=None if self.thetas is None else infinite,
            twin=None,
            error_cdf=None if self.twin_cdf is None else self.twin_cdf[:, None, None, :],
            twin_cdf=None,
            records=None,
            mae=None,
            ranked={key: values[:, None, None] for key, values in self.twin_ranked.items()},
            twin_ranked={},
        )


@dataclass(frozen=True)
class Reference:
    """A printed RMSE that curves are held against: one number, not measured here.

    comparable   whether it was printed for the test set of the experiment
    """

    name: str
    rmse: float
    comparable: bool


@dataclass(frozen=True)
class Stage:
    """What was measured on one portion of the ratings."""

    portion: Portion
    curves: tuple[Measured, ...]
    baselines: tuple[Measured, ...]


@dataclass(frozen=True)
class Growth:
    """What was measured on growing portions, the smallest first."""

    order: Order
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Experiment:
    """One config's results. `dataset` is the key of the catalog ("ml-100k"), `title` its printed name.

    `folds` were held out of the `partition` folds that the ratings were cut into (1 and 1 where a fixed test set was
    predicted). With `growth`, `curves` and `baselines` are those of its largest portion. Crossings are with the
    baselines whose registry keys are `targets`. Where it `refines`, ε are added where a curve crosses, and intervals
    of crossings hold what interpolation leaves open. `partial` says which part of the folds an interrupted run has
    finished, "3 of 10 folds", where all is of these alone.

    Curves and baselines show `metric`, one of the `metrics` that were measured. What has none of it stands `aside`.
    """

    name: str
    dataset: str
    title: str
    folds: int
    partition: int
    runs: int
    seed: Seed
    curves: tuple[Measured, ...]
    baselines: tuple[Measured, ...]
    axis: Axis = "epsilon"
    references: tuple[Reference, ...] = ()
    growth: Growth | None = None
    targets: tuple[str, ...] = ("ia", "ge")
    refines: bool = False
    partial: str = ""
    metric: Metric = RMSE
    metrics: tuple[Metric, ...] = (RMSE,)
    aside: tuple[Measured, ...] = ()

    def showing(self, key: str) -> "Experiment":
        """The same experiment, showing the metric of that key. Printed errors are held against RMSE alone; a baseline
        that only orders items is one that crossings of the other metrics are measured against.

        Raises `DpmfError` where it was not measured.
        """
        metric = next((each for each in self.metrics if each.key == key), None)
        if metric is None:
            near = did_you_mean(key, [each.key for each in self.metrics])
            raise DpmfError(
                f'{self.name}: "{key}" is not measured{near}; `ranking` in its config asks for more'
            )
        if metric == self.metric:
            return self
        baselines = [
            replace(each, metric=metric) for each in (*self.baselines, *self.aside) if each.has(metric)
        ]
        ordering = [each.algorithm for each in baselines if each.scores_only]
        return replace(
            self,
            curves=tuple(replace(curve, metric=metric) for curve in self.curves),
            baselines=tuple(baselines),
            aside=tuple(each for each in (*self.baselines, *self.aside) if not each.has(metric)),
            references=self.references if metric == RMSE else (),
            targets=tuple(dict.fromkeys((*ordering, *self.targets))),
            metric=metric,
        )

    def baseline(self, key: str) -> Measured | None:
        """The baseline of that key ("ia", "ge", "ga", "als"), if the experiment has it."""
        return next((baseline for baseline in self.baselines if baseline.algorithm == key), None)

    def measured(self) -> Iterator[Measured]:
        """All that was measured: of every portion, where the ratings grow."""
        for part in self.growth.stages if self.growth else (self,):
            yield from (*part.curves, *part.baselines)
        yield from self.aside
