"""The measurements of one experiment, gathered from its tasks: the input of every table and figure."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.streams import OWN, Seed
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.evaluation.metrics import RMSE, Metric
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of

Axis = Literal["epsilon", "theta"]
"""The quantity that the grid of an experiment varies: the total ε, or McSherry and Mironov's θ."""

Cubes = Mapping[str, Doubles]
"""What was measured, by name: (folds, runs, E) each, NaN where there is no result. `ERROR_CDF` has a further axis."""

ERROR_CDF = "error_cdf"
"""(folds, runs, E, X) the fraction of errors that are at most each of the X limits."""

OVER_RECORDS: Mapping[str, Callable[[Doubles], Any]] = {
    "threshold": np.max,
    "kept": np.mean,
    "least": np.min,
    "median": np.median,
    "largest": np.max,
}
"""What personalised privacy cost the training records of a fit, and what is told of all folds and runs.

threshold   t, where t is the ε of the algorithm that is personalised
kept        fraction of the records that was sampled
least, median, largest   ε that can be proved for a record
"""


@dataclass(frozen=True)
class Measured:
    """The errors of one algorithm over folds, runs and the ε grid, with its other measurements.

    algorithm    key of the registry ("pge", "isgd", "ge"); `label` is unique in an experiment and names the curve
                 where one config runs an algorithm twice
    epsilons     (E,) total ε, ascending; a non-private baseline has the single value inf. Where the experiment's axis
                 is θ, each curve has its own ε
    rmse         (folds, runs, E) float64, rating units; a deterministic baseline has one run
    claimed      (E,) ε that the method's publication states for what was run
    provable     (E,) ε that can be proved for what was run, inf where none can
    neighbours   "bounded", "unbounded", …; "none" for a baseline
    mode         "published" or "corrected"; "none" for a baseline
    missing      number of its tasks that have no result yet. If it is not 0, `values` or those of the noise-free run
                 hold NaN and no figure may be derived from them
    joint        whether it predicts from the target user's own clean ratings: the ε holds against other users only
    swept        the parameter that a sweep varies and its value here, where the curve is a point of a sweep
    thetas       (E,) the θ of each ε, ascending; None where the grid is of ε and θ is the same
    delta        δ of the (ε, δ) that is spent; 0 for pure ε
    noise_free   everything that was measured for the same algorithm without noise, in one run at one ε; None where it
                 was not asked for
    line         the name that all values of a sweep share; `label` where there is no sweep, "" where it is not known
    limits       (X,) the x of the distribution of absolute errors, ascending, rating units; empty if not asked for
    others       everything beside `rmse` that was measured, by the key of the metric, or as in `OVER_RECORDS`
    protects     what the ε protects; None for a baseline
    source       the method's paper, as tables cite it; "" for a baseline
    metric       the metric that `values` are of
    scores_only  whether it orders items without predicting ratings: then `rmse` is NaN
    tuned        whether this baseline chose its parameters on the training ratings, where an earlier baseline of its
                 algorithm has stated ones
    """

    algorithm: str
    label: str
    epsilons: Doubles
    rmse: Doubles
    claimed: Doubles
    provable: Doubles
    neighbours: str = "none"
    mode: str = "none"
    missing: int = 0
    joint: bool = False
    swept: tuple[str, float] | None = None
    thetas: Doubles | None = None
    delta: float = 0.0
    noise_free: Cubes | None = None
    line: str = ""
    limits: tuple[float, ...] = ()
    others: Cubes = field(default_factory=dict)
    protects: Protection | None = None
    source: str = ""
    metric: Metric = RMSE
    scores_only: bool = False
    tuned: bool = False

    @property
    def values(self) -> Doubles:
        """(folds, runs, E) the values of the metric that is shown."""
        return self.of(self.metric)

    def of(self, metric: Metric) -> Doubles:
        """(folds, runs, E) the values of a metric; NaN where it was not measured."""
        if metric == RMSE:
            return self.rmse
        return self.others.get(metric.key, np.full_like(self.rmse, np.nan))

    def has(self, metric: Metric) -> bool:
        """Whether that metric was measured for this algorithm."""
        return not self.scores_only if metric == RMSE else metric.key in self.others

    @property
    def error_cdf(self) -> Doubles | None:
        """(folds, runs, E, X) the fraction of errors that are at most x; None where it was not asked for."""
        return self.others.get(ERROR_CDF)

    @property
    def records(self) -> Cubes:
        """(E,) each: what personalised privacy cost the records; empty where privacy is the same for all."""

        def over(cube: Doubles, tell: Callable[[Doubles], Any]) -> Doubles:
            known = [column[~np.isnan(column)] for column in cube.reshape(-1, cube.shape[-1]).T]
            return np.array([tell(column) if len(column) else np.nan for column in known])

        return {key: over(self.others[key], tell) for key, tell in OVER_RECORDS.items() if key in self.others}

    @property
    def is_baseline(self) -> bool:
        return self.neighbours == "none"

    @property
    def first(self) -> int:
        """The place of the smallest ε of the grid after ε → 0, for which `LEAST_EPSILON` stands: 1, or else 0."""
        return int(len(self.epsilons) > 1 and self.epsilons[0] <= LEAST_EPSILON)

    @property
    def guarantee(self) -> Guarantee:
        """What the ε protects, from whom, and with which δ.

        Without `protects`, what is protected follows from `neighbours`. Raises `ValueError` for a baseline.
        """
        protects = self.protects or protection_of(Neighbours(self.neighbours))
        return Guarantee(protects, self.joint, self.delta)

    def mean(self, metric: Metric | None = None) -> Doubles:
        """(E,) a metric, by default the one that is shown, averaged over folds and runs."""
        mean: Doubles = self.of(metric or self.metric).mean(axis=(0, 1))
        return mean

    def along(self, axis: Axis) -> Doubles:
        """(E,) the positions of the curve's points on an axis."""
        return self.epsilons if axis == "epsilon" or self.thetas is None else self.thetas

    def without_noise(self) -> "Measured | None":
        """The noise-free run as a curve with the single point ε = ∞; None where there is none."""
        if self.noise_free is None:
            return None
        infinite, rmse, shown = np.array([np.inf]), self.noise_free["rmse"], self.noise_free[self.metric.key]
        return replace(
            self,
            epsilons=infinite,
            rmse=rmse,
            claimed=infinite,
            provable=infinite,
            missing=int(np.isnan(shown).sum()),
            thetas=None if self.thetas is None else infinite,
            noise_free=None,
            others={key: cube for key, cube in self.noise_free.items() if key != "rmse"},
        )

    def changed(self, change: Callable[[Doubles], Doubles]) -> "Measured":
        """The same with every cube changed, those of the noise-free run too."""

        def each(cubes: Cubes) -> Cubes:
            return {key: change(cube) for key, cube in cubes.items()}

        noise_free = None if self.noise_free is None else each(self.noise_free)
        return replace(self, rmse=change(self.rmse), others=each(self.others), noise_free=noise_free)


@dataclass(frozen=True)
class PrintedReference:
    """Errors of a recommender that no experiment here runs.

    title     the start of its figures' names
    note      whose recommender it is
    rmse      by test set ("probe", "quiz"), or by what was run
    dataset   how the keys of its data sets begin
    ratings   what messages call them
    """

    title: str
    note: str
    rmse: dict[str, float]
    dataset: str
    ratings: str


REFERENCES = {
    "cinematch": PrintedReference(
        "Cinematch",
        "Netflix's own recommender, as printed by McSherry and Mironov; not measured",
        {"probe": 0.9474, "quiz": 0.9514},
        "netflix",
        "Netflix",
    ),
    "chien2021": PrintedReference(
        "Public DPAM",
        "as the public code of Chien et al. (2021) reports, on another split; not measured",
        {"without noise": 0.7772, "at ε = 1": 0.8991},
        "ml-10m",
        "ML-10M",
    ),
}
"""What `references` may name. Netflix published Cinematch's errors, which McSherry and Mironov draw in figure 1.
Those of Chien et al. are on a random 80/10/10 split: alternating least squares; DPAM at ε = 1, δ = 1e-5 for users."""


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
class Experiment:
    """The results of one config. `dataset` is the key of the catalog ("ml-100k"), `title` its printed name.

    The ratings were cut into `partition` folds, of which `folds` were held out (1 and 1 for a fixed test set). With
    `growth`, by ascending portion, `curves` and `baselines` are those of its largest portion. Crossings are with the
    baselines whose registry keys are `targets`. If the experiment `refines`, ε are added where a curve crosses, and
    intervals of crossings include what interpolation leaves open. `partial` names the finished folds of an
    interrupted run, "3 of 10 folds", if all results are from these folds only.

    Curves and baselines show `metric`, one of the `metrics` that were measured. Those without that metric are in
    `aside`. `own` says that the data set is a user's own, `counted` that its users and items were chosen by counts of
    ratings. `density` is the fraction of all (user, item) pairs that are rated, as the catalog or the spec states it;
    NaN for a user's own.
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
    growth: tuple[Stage, ...] = ()
    targets: tuple[str, ...] = ("ia", "ge")
    refines: bool = False
    partial: str = ""
    metric: Metric = RMSE
    metrics: tuple[Metric, ...] = (RMSE,)
    aside: tuple[Measured, ...] = ()
    own: bool = False
    counted: bool = False
    density: float = math.nan

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
            measured = f"is not measured{did_you_mean(key, [each.key for each in self.metrics])}"
            raise DpmfError(
                f'{self.name}: "{key}" {measured}; `ranking` or `groups` in its config asks for more'
            )
        if metric == self.metric:
            return self
        every = (*self.curves, *self.baselines, *self.aside)
        found = [replace(each, metric=metric) for each in every if each.has(metric)]
        baselines = [each for each in found if each.is_baseline]
        ordering = [each.algorithm for each in baselines if each.scores_only]
        return replace(
            self,
            curves=tuple(each for each in found if not each.is_baseline),
            baselines=tuple(baselines),
            aside=tuple(each for each in every if not each.has(metric)),
            references=self.references if metric == RMSE else (),
            targets=tuple(dict.fromkeys((*ordering, *self.targets))),
            metric=metric,
        )

    def baseline(self, key: str) -> Measured | None:
        """The baseline of that key ("ia", "ge", "ge_tuned", "als"), if the experiment has it."""
        of = key.removesuffix("_tuned"), key.endswith("_tuned")
        return next((each for each in self.baselines if (each.algorithm, each.tuned) == of), None)

    def measured(self) -> Iterator[Measured]:
        """All curves and baselines: those of every portion if there is `growth`, then those in `aside`."""
        for part in self.growth or (self,):
            yield from (*part.curves, *part.baselines)
        yield from self.aside

    def changed(
        self, change: Callable[[Sequence[Measured]], Iterable[Measured]], **fields: Any
    ) -> "Experiment":
        """The same with `change` made to its curves and baselines, those of all portions and those aside too."""

        def of(part: Any) -> dict[str, Any]:
            return {"curves": tuple(change(part.curves)), "baselines": tuple(change(part.baselines))}

        growth = tuple(replace(stage, **of(stage)) for stage in self.growth)
        return replace(self, **{**of(self), "aside": tuple(change(self.aside)), "growth": growth, **fields})

    def of_folds(self, folds: Sequence[int]) -> "Experiment":
        """The experiment as if only these folds had been held out; folds without a result count as missing."""

        def cut(each: Measured) -> Measured:
            missing = sum(not _is_finished(each, fold) for fold in folds)
            return replace(each.changed(lambda cube: cube[list(folds)]), missing=missing)

        return self.changed(lambda found: map(cut, found), folds=len(folds))

    def of_finished_folds(self) -> "Experiment | None":
        """The experiment restricted to the folds on which all curves and baselines have results.

        None where these are all folds, or none. Most curves lose no results by this, because a run goes through the
        folds one after the other.
        """
        found = (*self.curves, *self.baselines, *self.aside)
        folds = [fold for fold in range(self.folds) if all(_is_finished(each, fold) for each in found)]
        if len(folds) in (0, self.folds):
            return None
        partial = f"{len(folds)} of {self.folds} folds"
        return replace(self.of_folds(folds), growth=(), partial=partial)


def _is_finished(measured: Measured, fold: int) -> bool:
    found = [each for each in (measured, measured.without_noise()) if each is not None]
    return not any(np.isnan(each.values[fold]).any() for each in found)
