"""The keys of a config, and what follows from their values."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.plugins import PluginName
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm, refuse_list
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.config.entries import BaselineEntry, PrivateEntry, Registry
from dpmf_cli.config.grids import Grid, GrowthKeys
from dpmf_cli.datasets.spec import CsvSpec, DatasetSpec, TestSet
from dpmf_cli.evaluation.curves import Axis
from dpmf_cli.evaluation.metrics import RMSE, Metric
from dpmf_cli.evaluation.top_items import TopItems
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.strict_model import StrictModel, later


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
    """The keys of an experiment, each valid by itself; `ExperimentConfig` is what holds together too."""

    known_baselines: ClassVar[Registry] = BASELINES
    known_private: ClassVar[Registry] = PRIVATE

    extends: None = Field(
        None,
        exclude=True,
        json_schema_extra={"type": "string"},
        description="another config, by its path from this one, whose keys hold here too, but for its `name`: a "
        "mapping is merged key by key, anything else replaced, and null takes back what was inherited",
    )
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80, description="folder in results/"
    )
    dataset: DatasetSpec
    test: TestSet = Field(
        "folds",
        description="what is predicted: `folds` held out of the ratings; `recent`, folds of the nine latest of each "
        "user alone, the others being trained on (McSherry and Mironov 2009, figure 2); or a test set of the "
        "Netflix Prize",
    )
    folds: int = Field(
        10,
        ge=1,
        le=1000,
        description="k of the k-fold cross-validation; with `test: recent` each of the latest ratings is in a fold "
        "with probability 1/k, 3 by default; 1 with a test set of the Netflix Prize",
    )
    held_out: int | None = Field(
        None, ge=1, description="hold out only the first so many folds, to save time"
    )
    runs: int = Field(5, ge=1, le=10_000, description="repetitions of each fold with other noise")
    seed: SeedKey = Field(
        2016,
        description="all randomness follows from it; `secret` draws one for each fit, which is written nowhere: for "
        "a release, since a printed seed gives all noise away",
    )
    neighbours: Annotated[
        Neighbours, BeforeValidator(refuse_list, json_schema_input_type=Neighbours | list[Neighbours])
    ] = Field(
        Neighbours.BOUNDED, description="of algorithms that do not set it; a list is one entry for each"
    )
    mode: Annotated[Mode, BeforeValidator(refuse_list, json_schema_input_type=Mode | list[Mode])] = Field(
        Mode.PUBLISHED, description="of algorithms that do not set it; a list is one entry for each"
    )
    epsilons: Grid | None = Field(
        None, description="total ε: a list, or {first, last, count} for equal steps in log ε"
    )
    thetas: Grid | None = Field(
        None,
        description="instead of `epsilons`: McSherry and Mironov's θ, the sum of the θ_i, where the noise of "
        "measurement i has the scale Δ_i/θ_i",
    )
    delta: float = Field(
        1e-6, ge=1e-15, le=0.01, description="δ of (ε, δ), where an algorithm's noise is Gaussian"
    )
    effects: EffectsParameters = EffectsParameters()
    plugins: list[PluginName] = Field(
        [],
        max_length=100,
        description="algorithms from outside dpmf, by name: of an installed package, or of `--plugin FILE`",
    )
    baselines: list[BaselineEntry] = Field(
        ["ga", "ia", "ge"],  # type: ignore[list-item]
        description="names of algorithms, or mappings with parameters",
    )
    algorithms: list[PrivateEntry] = Field(min_length=1, description="the same, private")
    parameters: dict[str, dict[str, Any]] = Field(
        {},
        exclude=True,
        description="what the entries of an algorithm have where they do not set it themselves: "
        "`{isgd: {factors: 3}}`; not for a `base`, which stands inside of another",
    )
    twins: bool = Field(False, description="fit every algorithm without noise too, once a fold")
    references: list[Literal["cinematch", "chien2021"]] = Field(
        [],
        description="printed errors to hold the curves against, of the Netflix Prize, or of DPAM on ML-10M",
    )
    crossings: list[Literal[tuple(BASELINES)]] = Field(  # type: ignore[valid-type]
        ["ia", "ge"], min_length=1, description="which of the baselines crossings are measured against"
    )
    refine: bool | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="add ε to a curve's grid where it crosses a baseline, until interpolation between grid points "
        "moves the crossing by less than its interval; by default for data sets of your own (`kind: csv`) alone",
    )
    growth: GrowthKeys | None = Field(None, description="run everything on growing portions of the ratings")
    error_cdf: list[Annotated[float, Field(gt=0)]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="the distribution of absolute errors: which part of them is at most each of these ascending "
        "numbers, in rating units",
    )
    ranking: TopItems | None = later(
        None,
        description="how good the items are that each user is shown first, out of all that the user did not rate in "
        "training: nDCG and recall",
    )
    metric: str = later(
        RMSE.key,
        description="what curves, tables and crossings show: `rmse`, or one that `ranking` measures, as `ndcg@10`",
    )

    _added: Mapping[str, tuple[float, ...]] = PrivateAttr(default_factory=dict)

    @property
    def added(self) -> dict[str, tuple[float, ...]]:
        """By an entry's name, the ε of its grid beside those that the file gives."""
        return dict(self._added)

    def with_added(self, added: Mapping[str, Sequence[float]]) -> Self:
        """The config with these ε in the grids of its entries, by their names, beside those that it has."""
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
    def limits(self) -> tuple[float, ...]:
        """The x of the distribution of errors, ascending; none where it was not asked for."""
        return tuple(self.error_cdf or ())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What can be shown."""
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
        """The ε that an entry is fitted for, ascending: the config's, or those that its θ stand for, each entry by
        its own noise, with those that were `added`; ∞ alone for a baseline."""
        if not isinstance(entry, PrivateAlgorithm):
            return (math.inf,)
        own = self.epsilons if self.thetas is None else map(entry.epsilon_of, self.thetas)
        return tuple(sorted((*(own or ()), *self._added.get(entry.name, ()))))

    def thetas_of(self, entry: Algorithm) -> tuple[float, ...] | None:
        """The θ of each ε of an entry's grid; None for a baseline, and where the grid is of ε and θ is the same."""
        if not isinstance(entry, PrivateAlgorithm):
            return None
        if self.thetas is not None:
            return tuple(sorted((*self.thetas, *map(entry.theta_of, self._added.get(entry.name, ())))))
        grid = self.grid(entry)
        thetas = tuple(entry.theta_of(epsilon) for epsilon in grid)
        return None if thetas == grid else thetas

    def runs_of(self, entry: Algorithm) -> int:
        return self.runs if entry.stochastic else 1
