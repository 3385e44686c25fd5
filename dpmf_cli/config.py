"""The config: what an experiment is, validated, with errors that say file:line:column and the fix."""

import hashlib
import json
import math
import re
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.effects import EffectsParameters
from dpmf_cli.algorithms.personal_sampling import PersonalSampling
from dpmf_cli.algorithms.personalized import Personalized
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.config_entries import expand_sweep, with_inherited
from dpmf_cli.config_errors import explain
from dpmf_cli.datasets.spec import PRIZE_DATASET, CatalogSpec, CsvSpec, DatasetSpec, TestSet
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Axis
from dpmf_cli.evaluation.portions import Order
from dpmf_cli.models import StrictModel, tagged
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.yaml_positions import Step, read

LEAST_BUDGET = 1e-6


def _not_noise_alone(budget: float) -> float:
    if budget < LEAST_BUDGET:
        raise PydanticCustomError("budget", "an ε or θ below 1e-6 leaves nothing but noise")
    return budget


Budget = Annotated[float, Field(gt=0, le=1e6), AfterValidator(_not_noise_alone)]
"""A value of ε, or of θ."""


class GeometricGrid(StrictModel):
    """`count` values of ε (or θ) from `first` to `last`, equally spaced in its log, rounded to three digits."""

    first: Budget
    last: Budget
    count: int = Field(ge=2, le=1000)

    @property
    def values(self) -> list[float]:
        step = (self.last / self.first) ** (1 / (self.count - 1))
        return [float(f"{self.first * step**k:.3g}") for k in range(self.count)]


def _expand_grid(value: Any) -> Any:
    return GeometricGrid.model_validate(value).values if isinstance(value, dict) else value


Grid = Annotated[list[Budget], Field(min_length=1, max_length=1000), BeforeValidator(_expand_grid)]


class Growth(StrictModel):
    """The same experiment on growing portions of the ratings: McSherry and Mironov 2009, figure 2."""

    portions: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=1, max_length=100, description="ascending parts of the ratings, 1 for all of them"
    )
    order: Order = Field(description="which ratings come first: the oldest, or a random sample of them")

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if sorted(set(self.portions)) != self.portions:
            raise PydanticCustomError("grid", "the portions must ascend without repetition")
        return self


if TYPE_CHECKING:
    PrivateEntry = PrivateAlgorithm
    BaselineEntry = Algorithm
else:
    _AnyBaseline = reduce(or_, BASELINES.values())
    PrivateEntry = Annotated[reduce(or_, PRIVATE.values()), Field(discriminator="algorithm")]
    BaselineEntry = Annotated[
        _AnyBaseline,
        Field(discriminator="algorithm"),
        BeforeValidator(tagged, json_schema_input_type=Literal[tuple(BASELINES)] | _AnyBaseline),
    ]


class ExperimentConfig(StrictModel):
    """One experiment: algorithms over a grid of ε or θ, on the folds of one data set, beside its baselines."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80, description="folder in results/"
    )
    dataset: DatasetSpec
    test: TestSet = Field(
        "folds",
        description="what is predicted: folds held out of the ratings, or a test set of the Netflix Prize",
    )
    folds: int = Field(10, ge=1, le=1000, description="k of the k-fold cross-validation; 1 with another test")
    held_out: int | None = Field(
        None, ge=1, description="hold out only the first so many folds, to save time"
    )
    runs: int = Field(5, ge=1, le=10_000, description="repetitions of each fold with other noise")
    seed: int = Field(2016, ge=0, lt=2**63, description="all randomness follows from it")
    neighbours: Neighbours = Neighbours.BOUNDED
    mode: Mode = Mode.PUBLISHED
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
    baselines: list[BaselineEntry] = Field(description="ga, ia, ge, als, or a mapping with parameters")
    algorithms: list[PrivateEntry] = Field(min_length=1)
    twins: bool = Field(False, description="fit every algorithm without noise too, once a fold")
    references: list[Literal["cinematch"]] = Field(
        [], description="printed errors of the Netflix Prize to hold the curves against"
    )
    crossings: list[Literal[tuple(BASELINES)]] = Field(  # type: ignore[valid-type]
        ["ia", "ge"], min_length=1, description="which of the baselines crossings are measured against"
    )
    growth: Growth | None = Field(None, description="run everything on growing portions of the ratings")
    error_cdf: list[Annotated[float, Field(gt=0)]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="the distribution of absolute errors: which part of them is at most each of these ascending "
        "numbers, in rating units",
    )

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, data: Any) -> Any:
        """Hands the experiment's neighbours, mode and effects to the entries that do not set their own."""
        if not isinstance(data, dict):
            return data
        folds = {} if data.get("test", "folds") == "folds" else {"folds": 1}
        data = {"baselines": ["ga", "ia", "ge"], **folds, **data}
        for key, registry in (("baselines", BASELINES), ("algorithms", PRIVATE)):
            if isinstance(data.get(key), list):
                entries = [expanded for entry in data[key] for expanded in expand_sweep(entry)]
                data[key] = [with_inherited(entry, data, registry) for entry in entries]
        return data

    @model_validator(mode="after")
    def _one_ascending_grid(self) -> Self:
        if self.epsilons is None and self.thetas is None:
            raise _at((), "grid", "the grid is missing; give `epsilons` or `thetas`")
        if self.epsilons is not None and self.thetas is not None:
            raise _at(("thetas",), "grid", "give `epsilons` or `thetas`, not both")
        name, sign = ("epsilons", "ε") if self.thetas is None else ("thetas", "θ")
        given: list[float] = getattr(self, name)
        if sorted(set(given)) != given:
            raise _at((name,), "grid", f"the {sign} grid must ascend without repetition")
        for entry in self.algorithms if self.thetas else ():
            grid = self.grid(entry)
            if grid[0] < LEAST_BUDGET or not math.isfinite(grid[-1]) or sorted(set(grid)) != list(grid):
                found = ", ".join(f"{epsilon:g}" for epsilon in grid)
                message = f"{entry.name} has no ascending ε from {LEAST_BUDGET:g} up for these θ, but {found}"
                raise _at(("thetas",), "grid", message)
        return self

    @model_validator(mode="after")
    def _possible_folds(self) -> Self:
        if self.test != "folds":
            if not (isinstance(self.dataset, CatalogSpec) and self.dataset.name == PRIZE_DATASET):
                raise _at(
                    ("test",), "test", f"the {self.test} set is one of the data set {PRIZE_DATASET} alone"
                )
            if self.dataset.sample is not None:
                raise _at(
                    ("test",),
                    "test",
                    f"the {self.test} set is one of all ratings, not of a sample; use folds",
                )
            if self.folds != 1:
                raise _at(
                    ("folds",), "test", f"the {self.test} set is the only one to predict; remove `folds`"
                )
        elif self.folds == 1:
            raise _at(("folds",), "folds", "one fold leaves nothing to train on; give 2 or more")
        if self.held_out is not None and self.held_out > self.folds:
            plural = "s" if self.folds > 1 else ""
            raise _at(("held_out",), "held_out", f"only {self.folds} fold{plural} can be held out")
        return self

    @model_validator(mode="after")
    def _measurable_growth(self) -> Self:
        if self.growth is None:
            return self
        if not self.twins:
            raise _at(
                ("growth",), "growth", "growth is a loss against the twin without noise; set `twins: true`"
            )
        if self.test != "folds":
            raise _at(("growth",), "growth", f"the {self.test} set does not grow with the ratings; use folds")
        if self.growth.order == "timestamp" and not self.dataset.has_timestamps:
            raise _at(
                ("growth", "order"), "growth", f"{self.dataset.key} has no time stamps; use `order: random`"
            )
        return self

    @model_validator(mode="after")
    def _twins_without_noise(self) -> Self:
        for index, entry in enumerate(self.algorithms if self.twins else ()):
            if isinstance(entry, Personalized):
                raise _at(
                    ("algorithms", index),
                    "twins",
                    "what is personalised has no twin, for its records set their own ε; remove `twins`, and "
                    "add `sampled` to `baselines`",
                )
        return self

    @model_validator(mode="after")
    def _columns_that_are_there(self) -> Self:
        if isinstance(self.dataset, CsvSpec) and self.dataset.columns.epsilon is not None:
            return self
        for key in ("baselines", "algorithms"):
            for index, entry in enumerate(getattr(self, key)):
                if isinstance(entry, PersonalSampling) and entry.specification == "column":
                    raise _at(
                        (key, index, "specification"),
                        "column",
                        f"{self.dataset.key} has no column of ε; name it in `columns: {{epsilon: …}}` of a CSV data "
                        "set, or use `specification: fractions`",
                    )
        return self

    @model_validator(mode="after")
    def _ascending_limits(self) -> Self:
        if self.error_cdf is not None and sorted(set(self.error_cdf)) != self.error_cdf:
            raise _at(("error_cdf",), "grid", "the limits of the errors must ascend without repetition")
        return self

    @model_validator(mode="after")
    def _references_of_netflix(self) -> Self:
        for index, reference in enumerate(self.references):
            if not (isinstance(self.dataset, CatalogSpec) and self.dataset.name.startswith(PRIZE_DATASET)):
                raise _at(
                    ("references", index),
                    "reference",
                    f"{reference} is an error on Netflix ratings, no reference for {self.dataset.key}; remove it",
                )
            if reference in self.references[:index]:
                raise _at(("references", index), "reference", f"{reference} stands there twice; keep one")
        return self

    @model_validator(mode="after")
    def _crossings_of_baselines(self) -> Self:
        known = {"ia", "ge", *(baseline.algorithm for baseline in self.baselines)}
        for index, key in enumerate(self.crossings):
            if key not in known or key in self.crossings[:index]:
                fix = (
                    "stands there twice; keep one"
                    if key in known
                    else "is not among the baselines; add it there"
                )
                raise _at(("crossings", index), "crossings", f"{key} {fix}")
        return self

    @model_validator(mode="after")
    def _distinct_names(self) -> Self:
        if self.name == "tasks":
            raise _at(("name",), "name", "results/tasks holds the results of tasks; choose another name")
        names: set[str] = set()
        for key in ("baselines", "algorithms"):
            for index, entry in enumerate(getattr(self, key)):
                if entry.name in names:
                    raise _at(
                        (key, index),
                        "label",
                        f'two curves are named "{entry.name}"; give one of them another `label`',
                    )
                names.add(entry.name)
        return self

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
    def entries(self) -> tuple[Algorithm, ...]:
        """Baselines, then algorithms."""
        return (*self.baselines, *self.algorithms)

    @property
    def axis(self) -> Axis:
        """What the grid is of."""
        return "epsilon" if self.thetas is None else "theta"

    def grid(self, entry: Algorithm) -> tuple[float, ...]:
        """The ε that an entry is fitted for, ascending: the config's, or those that its θ stand for, each entry by
        its own noise; ∞ alone for a baseline."""
        if not isinstance(entry, PrivateAlgorithm):
            return (math.inf,)
        if self.thetas is not None:
            return tuple(entry.epsilon_of(theta) for theta in self.thetas)
        return tuple(self.epsilons or ())

    def thetas_of(self, entry: Algorithm) -> tuple[float, ...] | None:
        """The θ of each ε of an entry's grid; None for a baseline, and where the grid is of ε and θ is the same."""
        if not isinstance(entry, PrivateAlgorithm):
            return None
        if self.thetas is not None:
            return tuple(self.thetas)
        grid = self.grid(entry)
        thetas = tuple(entry.theta_of(epsilon) for epsilon in grid)
        return None if thetas == grid else thetas

    def runs_of(self, entry: Algorithm) -> int:
        return self.runs if entry.stochastic else 1

    def resolved(self) -> dict[str, Any]:
        """The config with every default filled in, as plain data."""
        return self.model_dump(mode="json")

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved config."""
        return hashlib.sha256(json.dumps(self.resolved(), sort_keys=True).encode()).hexdigest()


def _at(path: tuple[Step, ...], kind: LiteralString, message: str) -> PydanticCustomError:
    """A mistake at the key `path` of the config."""
    return PydanticCustomError(kind, "{message}", {"message": message, "path": path})


def load_config(path: Path) -> ExperimentConfig:
    """Reads and validates a config. Raises DpmfError that lists every mistake with its place and fix."""
    document = read(path)
    document.data.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.") or "experiment")
    try:
        return ExperimentConfig.model_validate(document.data)
    except ValidationError as error:
        lines = dict.fromkeys(explain(document, detail) for detail in error.errors(include_url=False))
        raise DpmfError("\n".join(lines)) from None
