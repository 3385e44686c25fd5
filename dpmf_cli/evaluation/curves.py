"""The measurements of one experiment, gathered from its tasks: the input of every table and figure."""

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
from dpmf_cli.streams import OWN, Seed

Axis = Literal["epsilon", "theta"]
"""The quantity that the grid of an experiment varies: the total ε, or McSherry and Mironov's θ."""


@dataclass(frozen=True)
class Records:
    """What personalised privacy cost the training records, over folds and runs: (E,) each, NaN without a result.

    threshold   largest t, where t is the ε of the algorithm that is personalised
    kept        mean fraction of the records that was sampled
    least, median, largest   ε that can be proved for a record: the smallest, the median of the medians, the largest
    """

    threshold: NDArray[np.float64]
    kept: NDArray[np.float64]
    least: NDArray[np.float64]
    median: NDArray[np.float64]
    largest: NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """The errors of one algorithm over folds, runs and the ε grid, with its other measurements.

    algorithm   key of the registry ("pge", "isgd", "ge"); `label` is unique in an experiment and names the
                curve where one config runs an algorithm twice
    epsilons    (E,) total ε, ascending; a non-private baseline has the single value inf. Where the experiment's axis
                is θ, each curve has its own ε
    rmse        (folds, runs, E) float64, rating units; a deterministic baseline has one run
    claimed     (E,) ε that the method's publication states for what was run
    provable    (E,) ε that can be proved for what was run, inf where none can
    neighbours  "bounded", "unbounded", …; "none" for a baseline
    mode        "published" or "corrected"; "none" for a baseline
    joint       whether it predicts from the target user's own clean ratings: the ε holds against other users only
    swept       the parameter that a sweep varies and its value here, where the curve is a point of a sweep
    line        the name that all values of a sweep share; `label` where there is no sweep, "" where it is not known
    missing     number of its tasks that have no result yet. If it is not 0, `values` or `twin_values` hold NaN
                and no figure may be derived from them
    thetas      (E,) the θ of each ε, ascending; None where the grid is of ε and θ is the same
    delta       δ of the (ε, δ) that is spent; 0 for pure ε
    twin        (folds,) RMSE of the same algorithm without noise; None where it was not asked for
    limits      (X,) the x of the distribution of absolute errors, ascending, rating units; empty if not asked for
    error_cdf   (folds, runs, E, X) the fraction of errors that are at most x; None where it was not asked for
    twin_cdf    (folds, X) that fraction for the same algorithm without noise
    mae         (folds, runs, E) mean absolute errors, NaN where none was measured; None where they are not known
    ranked      (folds, runs, E) each: the ranking metrics, by the key of the metric
    twin_ranked (folds,) each: the ranking metrics without noise
    metric      the metric that `values` are of
    scores_only whether it orders items without predicting ratings: then `rmse` is NaN
    records     what personalised privacy cost the records; None where privacy is the same for all
    protects    what the ε protects; None for a baseline
    source      the method's paper, as tables cite it; "" for a baseline
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
        """(folds, runs, E) the values of the metric that is shown."""
        return self.of(self.metric)

    @property
    def twin_values(self) -> NDArray[np.float64] | None:
        """(folds,) the values of the twin, without noise; None where it was not asked for."""
        return self.twin if self.twin is None or self.metric == RMSE else self.twin_ranked[self.metric.key]

    def of(self, metric: Metric) -> NDArray[np.float64]:
        """(folds, runs, E) the values of a metric. Raises KeyError where it was not asked for."""
        return self.rmse if metric == RMSE else self.ranked[metric.key]

    def has(self, metric: Metric) -> bool:
        """Whether that metric was measured for this algorithm."""
        return not self.scores_only if metric == RMSE else metric.key in self.ranked

    @property
    def is_baseline(self) -> bool:
        return self.neighbours == "none"

    @property
    def guarantee(self) -> Guarantee:
        """What the ε protects, from whom, and with which δ.

        Without `protects`, what is protected follows from `neighbours`. Raises `ValueError` for a baseline.
        """
        protects = self.protects or protection_of(Neighbours(self.neighbours))
        return Guarantee(protects, self.joint, self.delta)

    def mean(self) -> NDArray[np.float64]:
        """(E,) the curve: the metric that is shown, averaged over folds and runs."""
        mean: NDArray[np.float64] = self.values.mean(axis=(0, 1))
        return mean

    def mean_absolute(self) -> NDArray[np.float64]:
        """(E,) MAE averaged over folds and runs; NaN where a fold or run has no MAE."""
        if self.mae is None:
            return np.full(len(self.epsilons), np.nan)
        mean: NDArray[np.float64] = self.mae.mean(axis=(0, 1))
        return mean

    def along(self, axis: Axis) -> NDArray[np.float64]:
        """(E,) the positions of the curve's points on an axis."""
        return self.epsilons if axis == "epsilon" or self.thetas is None else self.thetas

    def without_noise(self) -> "Measured | None":
        """The twin as a curve with the single point ε = ∞; None where there is no twin."""
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
    """A printed RMSE to compare curves with: one number, not measured here.

    comparable   whether it was printed for the test set of the experiment
    """

    name: str
    rmse: float
    comparable: bool


@dataclass(frozen=True)
class Stage:
    """The measurements on one portion of the ratings."""

    portion: Portion
    curves: tuple[Measured, ...]
    baselines: tuple[Measured, ...]


@dataclass(frozen=True)
class Growth:
    """The measurements on growing portions of the ratings, the smallest first."""

    order: Order
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Experiment:
    """The results of one config. `dataset` is the key of the catalog ("ml-100k"), `title` its printed name.

    The ratings were cut into `partition` folds, of which `folds` were held out (1 and 1 for a fixed test set). With
    `growth`, `curves` and `baselines` are those of its largest portion. Crossings are with the baselines whose
    registry keys are `targets`. If the experiment `refines`, ε are added where a curve crosses, and intervals of
    crossings include what interpolation leaves open. `partial` names the finished folds of an interrupted run, "3 of
    10 folds", if all results are from these folds only.

    Curves and baselines show `metric`, one of the `metrics` that were measured. Baselines without that metric are in
    `aside`. `own` says that the data set is a user's own.
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
    own: bool = False

    @property
    def stream(self) -> str:
        """The name in the random streams of bootstraps."""
        return OWN if self.own else self.dataset

    def showing(self, key: str) -> "Experiment":
        """The same experiment, showing the metric of that key.

        Printed errors are compared with RMSE only. For the other metrics, a baseline that only orders items becomes
        a target of crossings. Raises `DpmfError` where the metric was not measured.
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
        """All curves and baselines: those of every portion if there is `growth`, then those in `aside`."""
        for part in self.growth.stages if self.growth else (self,):
            yield from (*part.curves, *part.baselines)
        yield from self.aside
