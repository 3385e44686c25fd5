"""The keys of a config, and what follows from their values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.plugins import PluginName
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm, refuse_list
from dpmf_cli.algorithms.shared.budget import Budget, Delta
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.core.strict_model import StrictModel, later
from dpmf_cli.datasets.spec import PRIZE_DATASET, CsvSpec, DatasetSpec, TestSet
from dpmf_cli.evaluation.curves import Axis
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.evaluation.metrics import RMSE, Metric, TopItems
from dpmf_cli.experiment.config.entries import LISTED, BaselineEntry, PrivateEntry, Registry
from dpmf_cli.privacy.neighbours import Mode, Neighbours


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
        PRIZE_DATASET,
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


class GeometricGrid(StrictModel):
    """`count` values of ε (or θ) from `first` to `last`, equally spaced in its log, rounded to three digits."""

    first: Budget
    last: Budget
    count: int = Field(ge=2, le=1000)

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if not self.first < self.last:
            what = f"`first` ({self.first:g}) is not below `last` ({self.last:g})"
            raise PydanticCustomError("grid", "{what}; swap them, a grid ascends", {"what": what})
        return self

    @property
    def values(self) -> list[float]:
        step = (self.last / self.first) ** (1 / (self.count - 1))
        return [float(f"{self.first * step**k:.3g}") for k in range(self.count)]


Grid = Annotated[
    list[Budget],
    Field(min_length=1, max_length=1000),
    BeforeValidator(
        lambda value: GeometricGrid.model_validate(value).values if isinstance(value, dict) else value,
        json_schema_input_type=list[Budget] | GeometricGrid,
    ),
]


class GrowthKeys(StrictModel):
    """The same experiment on growing portions of the ratings: McSherry and Mironov 2009, figure 2."""

    portions: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=1, max_length=100, description="ascending fractions of the ratings; 1 is all of them"
    )
    order: Order = Field(description="which ratings come first: the oldest, or a random sample")

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if sorted(set(self.portions)) != self.portions:
            raise PydanticCustomError("grid", "the portions must ascend without repetition")
        return self


def _refuse_other_words(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError(
            "seed", "a seed is a whole number from 0 to 2⁶³ − 1, or the word `secret`"
        ) from None


SeedKey = Annotated[
    Annotated[int, Field(ge=0, lt=2**63)] | Literal["secret"], WrapValidator(_refuse_other_words)
]


class ExperimentKeys(StrictModel):
    """The keys of an experiment, each valid by itself. `ExperimentConfig` also checks them against each other."""

    known_baselines: ClassVar[Registry] = BASELINES
    known_private: ClassVar[Registry] = PRIVATE

    extends: None = Field(
        None,
        exclude=True,
        json_schema_extra={"type": "string"},
        description="path of another config, relative to this one. This config inherits its keys, except `name`: a "
        "mapping is merged key by key, any other value replaces the inherited one, and null removes it",
    )
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80, description="name of the folder in results/"
    )
    dataset: DatasetSpec
    test: TestSet = Field(
        "folds",
        description="what is predicted: `folds`, held out of all ratings; `recent`, folds of each user's nine latest "
        "ratings only, while the others are trained on (McSherry and Mironov 2009, figure 2); or a test set of the "
        "Netflix Prize",
    )
    folds: int = Field(
        10,
        ge=1,
        le=1000,
        description="k of the k-fold cross-validation. With `test: recent`, each of the latest ratings is in a fold "
        "with probability 1/k, and the default is 3. With a test set of the Netflix Prize, it is 1",
    )
    held_out: int | None = Field(
        None, ge=1, description="hold out only this many folds, the first ones, to save time"
    )
    runs: int = Field(5, ge=1, le=10_000, description="repetitions of each fold, each with fresh noise")
    seed: SeedKey = Field(
        2016,
        description="all randomness follows from the seed. `secret` draws a seed for each fit and writes it nowhere; "
        "a release needs that, since a printed seed gives all noise away",
    )
    neighbours: Annotated[
        Neighbours, BeforeValidator(refuse_list, json_schema_input_type=Neighbours | list[Neighbours])
    ] = Field(
        Neighbours.BOUNDED,
        description="the neighbours of algorithms that do not set it themselves; a list makes one entry for each. "
        "Without this key, each algorithm has its own default, which `dpmf plan` prints",
    )
    mode: Annotated[Mode, BeforeValidator(refuse_list, json_schema_input_type=Mode | list[Mode])] = Field(
        Mode.PUBLISHED,
        description="the mode of algorithms that do not set it themselves; a list makes one entry for each. Without "
        "this key, each algorithm has its own default, which `dpmf plan` prints",
    )
    epsilons: Grid | None = Field(
        None, description="total ε: a list, or {first, last, count} for equal steps in log ε"
    )
    thetas: Grid | None = Field(
        None,
        description="instead of `epsilons`: McSherry and Mironov's θ, the sum of the θ_i, where the noise of "
        "measurement i has the scale Δ_i/θ_i",
    )
    delta: Delta = Field(1e-6, description="δ of (ε, δ)-DP, where an algorithm's noise is Gaussian")
    effects: EffectsParameters = EffectsParameters()
    plugins: list[PluginName] = Field(
        [],
        max_length=100,
        description="names of algorithms from outside dpmf: from an installed package, or from `--plugin FILE`",
    )
    baselines: list[BaselineEntry] = Field(
        ["ga", "ia", "ge"],  # type: ignore[list-item]
        description="names of algorithms, or mappings with parameters",
    )
    algorithms: list[PrivateEntry] = Field(
        min_length=1, description="names of private algorithms, or mappings with parameters"
    )
    parameters: dict[str, dict[str, Any]] = Field(
        {},
        exclude=True,
        description="defaults for the entries of an algorithm, by its name: `{isgd: {factors: 3}}`. They do not "
        "apply to a `base`, which is inside another entry",
    )
    twins: bool = Field(False, description="also fit every algorithm without noise, once for each fold")
    references: list[Literal["cinematch", "chien2021"]] = Field(
        [],
        description="printed errors to compare the curves with: Cinematch's on Netflix, or DPAM's on ML-10M",
    )
    crossings: list[Literal[tuple(BASELINES)]] = Field(  # type: ignore[valid-type]
        ["ia", "ge"], min_length=1, description="the baselines that crossings are measured against"
    )
    refine: bool | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="add ε to a curve's grid where it crosses a baseline, until interpolation between grid points "
        "moves the crossing by less than its interval; by default only for data sets of your own (`kind: csv`)",
    )
    growth: GrowthKeys | None = Field(None, description="run everything on growing portions of the ratings")
    error_cdf: list[Annotated[float, Field(gt=0)]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="measure the distribution of absolute errors: the fraction of errors that are at most each of "
        "these ascending limits, in rating units",
    )
    ranking: TopItems | None = later(
        None,
        description="measure the nDCG and recall of each user's top items, out of all items that the user did not "
        "rate in training",
    )
    metric: str = later(
        RMSE.key,
        description="what curves, tables and crossings show: `rmse`, or a metric of `ranking`, e.g. `ndcg@10`",
    )

    _added: Mapping[str, tuple[float, ...]] = PrivateAttr(default_factory=dict)

    @property
    def added(self) -> dict[str, tuple[float, ...]]:
        """The ε that were added to each entry's grid, by the entry's name."""
        return dict(self._added)

    def with_added(self, added: Mapping[str, Sequence[float]]) -> Self:
        """Returns the config with these ε added to the grids of its entries, by their names."""
        more = self.model_copy()
        more._added = {
            name: tuple(sorted({*self._added.get(name, ()), *added.get(name, ())}))
            for name in {**self._added, **added}
        }
        return more

    @property
    def refines(self) -> bool:
        """Whether ε are added where a curve crosses a baseline."""
        if self.refine is None:
            return isinstance(self.dataset, CsvSpec) and self.growth is None
        return self.refine

    @property
    def folds_run(self) -> int:
        """How many of the folds are held out, one after the other."""
        return self.held_out or self.folds

    @property
    def portions(self) -> tuple[float, ...]:
        """The portions of the ratings that everything is run on, ascending."""
        return tuple(self.growth.portions) if self.growth else (1.0,)

    @property
    def has_guessed_scale(self) -> bool:
        """Whether the scale is a function of the user's ratings, so that no ε covers what it shows of them."""
        return isinstance(self.dataset, CsvSpec) and self.dataset.scale.guessed

    @property
    def left_to_defaults(self) -> list[str]:
        """Says which neighbours and mode methods have by default, where the config states none."""
        left = dict[str, str]()
        for entry in self.algorithms:
            unset = [key for key in LISTED if key not in entry.model_fields_set]
            left[entry.name] = ", ".join(f"{key}: {getattr(entry, key).value}" for key in unset)
        said = [f"{name} ({keys})" for name, keys in left.items() if keys]
        lines = [f"not stated, so the method's default holds: {', '.join(said)}"] if said else []
        published = [name for name, keys in left.items() if Mode.PUBLISHED.value in keys]
        if published and isinstance(self.dataset, CsvSpec):
            lines.append(
                f"warning: {', '.join(published)}: as published, with a claimed ε that may not hold; write `mode: "
                "corrected` for an ε that can be proved, or `mode: published` if that is what you want"
            )
        return lines

    @property
    def limits(self) -> tuple[float, ...]:
        """The limits of the distribution of errors, ascending. Empty if it was not asked for."""
        return tuple(self.error_cdf or ())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that can be shown."""
        return (RMSE, *(self.ranking.metrics if self.ranking else ()))

    @property
    def entries(self) -> tuple[Algorithm, ...]:
        """Baselines, then algorithms."""
        return (*self.baselines, *self.algorithms)

    @property
    def axis(self) -> Axis:
        """The quantity that the grid varies."""
        return "epsilon" if self.thetas is None else "theta"

    def grid(self, entry: Algorithm) -> tuple[float, ...]:
        """Returns the ε that an entry is fitted for, ascending; for a baseline, only ∞.

        They are the config's ε, or the ε that its θ stand for under the entry's own noise, and the `added` ones.
        """
        if not isinstance(entry, PrivateAlgorithm):
            return (math.inf,)
        own = self.epsilons if self.thetas is None else map(entry.epsilon_of, self.thetas)
        return tuple(sorted((*(own or ()), *self._added.get(entry.name, ()))))

    def thetas_of(self, entry: Algorithm) -> tuple[float, ...] | None:
        """Returns the θ of each ε of an entry's grid. None for a baseline, and for a grid of ε with the same θ."""
        if not isinstance(entry, PrivateAlgorithm):
            return None
        if self.thetas is not None:
            return tuple(sorted((*self.thetas, *map(entry.theta_of, self._added.get(entry.name, ())))))
        grid = self.grid(entry)
        thetas = tuple(entry.theta_of(epsilon) for epsilon in grid)
        return None if thetas == grid else thetas

    def runs_of(self, entry: Algorithm) -> int:
        return self.runs if entry.stochastic else 1
