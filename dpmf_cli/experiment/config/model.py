"""The model of a config: its keys, what follows from their values, and which contradictions it refuses."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.plugins import PluginName
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import NO_NEW_USERS, Algorithm, PrivateAlgorithm, refuse_list
from dpmf_cli.algorithms.shared.budget import ON_OWN_RATINGS, Budget, Delta, EffectsParameters
from dpmf_cli.core.errors import did_you_mean, nearest
from dpmf_cli.core.strict_model import StrictModel, later, said_as
from dpmf_cli.datasets.spec import PRIZE_DATASET, CatalogSpec, CsvSpec, DatasetSpec, Split
from dpmf_cli.evaluation.curves import REFERENCES
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.evaluation.metrics import GROUPED, RMSE, Metric, TopItems
from dpmf_cli.experiment.config.documents import KeyPath
from dpmf_cli.experiment.config.entries import (
    BASELINES_OF_OWN,
    LISTED,
    BaselineEntry,
    PrivateEntry,
    Registry,
    entry_of,
    is_list_of_choices,
    is_own,
    refused,
    written_out,
)
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.privacy.neighbours import Mode, Neighbours

MOST_TASKS = 1_000_000
"""Most tasks of one config. More would be an oversight: looking up their names alone would take over an hour."""

_RESERVED = {
    "tasks": "where the results of tasks are",
    "audit": "where audits are",
    "audit.md": "the table of all audits",
    "audit.csv": "the table of all audits",
    "report.html": "the page of all results",
}
"""What a folder of results holds besides the folders of experiments."""


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


def _listed(value: Any) -> Any:
    return GeometricGrid.model_validate(value).values if isinstance(value, dict) else value


Grid = Annotated[
    list[Budget],
    Field(min_length=1, max_length=1000),
    BeforeValidator(_listed, json_schema_input_type=list[Budget] | GeometricGrid),
]

Tried = Annotated[
    list[Any],
    Field(min_length=1, max_length=1000),
    BeforeValidator(_listed, json_schema_input_type=list[Any] | GeometricGrid),
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


SeedKey = Annotated[
    Annotated[int, Field(ge=0, lt=2**63)] | Literal["secret"],
    said_as("a seed is a whole number from 0 to 2⁶³ − 1, or the word `secret`"),
]
TwinsKey = Annotated[bool | Literal["available"], said_as("must be `true`, `false` or `available`")]


class ExperimentConfig(StrictModel):
    """One experiment: private algorithms over a grid of ε or θ, and baselines, on the folds of one data set."""

    known: ClassVar[Mapping[str, Registry]] = {"baselines": BASELINES, "algorithms": PRIVATE}

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
    split: Split = Field(
        "folds",
        serialization_alias="test",  # as in the names of results
        description="what is predicted: `folds`, held out of all ratings; `recent`, folds of each user's nine latest "
        "ratings only, while the others are trained on (McSherry and Mironov 2009, figure 2); a test set of the "
        "Netflix Prize, `probe` or `judging`; or one cut, `{by: …}`",
    )
    folds: int = Field(
        10,
        ge=1,
        le=1000,
        description="k of the k-fold cross-validation. With `split: recent`, each of the latest ratings is in a fold "
        "with probability 1/k, and the default is 3. With one cut or a test set of the Netflix Prize, it is 1",
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
        None,
        description="total ε: a list, or {first, last, count} for equal steps in log ε; 1e-6 stands for ε → 0",
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
    search: dict[str, dict[str, Tried]] = Field(
        {},
        exclude=True,
        description="the values that `dpmf tune` tries, by an algorithm's name or an entry's label: `{isgd: "
        "{factors: [3, 6], regularization: {first: 0.01, last: 1, count: 9}}}`. Nothing else reads it",
    )
    twins: TwinsKey = Field(
        False,
        description="also fit every algorithm without noise, once for each fold; `available`: every one that can be",
    )
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
    groups: bool = later(
        False,
        description="measure the RMSE of the least and the most active quarter of the users and of the least and the "
        "most popular quarter of the items, and the share of users who gain over the item average",
    )
    metric: str = later(
        RMSE.key,
        description="what curves, tables and crossings show: `rmse`, or a metric of `ranking` or `groups`, e.g. "
        "`ndcg@10` or `rmse_least_active`",
    )

    _added: Mapping[str, tuple[float, ...]] = PrivateAttr(default_factory=dict)

    @classmethod
    def knowing(cls, plugins: Sequence[type[Algorithm]]) -> type["ExperimentConfig"]:
        """The model of a config whose entries may name these plugins, too."""
        if not plugins:
            return cls
        known = {
            key: {
                **registry,
                **{each.key(): each for each in plugins if each.private == (key == "algorithms")},
            }
            for key, registry in cls.known.items()
        }
        entries: dict[str, Any] = {
            key: (GenericAlias(list, (entry_of(registry),)), cls.model_fields[key])
            for key, registry in known.items()
        }
        model = create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, **entries)
        model.known = known
        return model

    @model_validator(mode="before")
    @classmethod
    def _write_out(cls, data: Any) -> Any:
        """A config with its entries written out, with what they inherit."""
        if not isinstance(data, dict):
            return data
        data = {"split" if key == "test" else key: value for key, value in data.items()}  # as in a manifest
        split = data.get("split", "folds")
        folds = {} if split == "folds" else {"folds": 3 if split == "recent" else 1}
        own = is_own(data.get("dataset"))
        baselines = BASELINES_OF_OWN if own else cls.model_fields["baselines"].default
        if isinstance(split, dict) and split.get("by") == "new_users":
            baselines = [name for name in baselines if BASELINES[name].new_users]
        data = {"baselines": baselines, **folds, **data}
        for key, registry in cls.known.items():
            if isinstance(data.get(key), list):
                data[key] = [each for entry in data[key] for each in written_out(entry, data, registry)]
        return {**data, **{key: data[key][0] for key in LISTED if is_list_of_choices(data.get(key))}}

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        for path, message in contradictions(self):
            raise PydanticCustomError("contradiction", "{message}", {"message": message, "path": path})
        return self

    @property
    def added(self) -> dict[str, tuple[float, ...]]:
        """The ε that were added to each entry's grid, by the entry's name."""
        return dict(self._added)

    def with_added(self, added: Mapping[str, Sequence[float]]) -> Self:
        """The config with these ε added to the grids of its entries, by their names."""
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
        """Which neighbours and mode methods have by default, where the config states none."""
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
        """The limits of the distribution of errors, ascending; empty if it was not asked for."""
        return tuple(self.error_cdf or ())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that can be shown."""
        ranking = self.ranking.metrics if self.ranking else ()
        return (RMSE, *ranking, *(GROUPED if self.groups else ()))

    @property
    def entries(self) -> tuple[Algorithm, ...]:
        """Baselines, then algorithms."""
        return (*self.baselines, *self.algorithms)

    def grid(self, entry: Algorithm) -> tuple[float, ...]:
        """The ε that an entry is fitted for, ascending: the config's, or those that its θ stand for under the
        entry's own noise, and the `added` ones; for a baseline, only ∞."""
        if not isinstance(entry, PrivateAlgorithm):
            return (math.inf,)
        own = self.epsilons if self.thetas is None else map(entry.epsilon_of, self.thetas)
        return tuple(sorted((*(own or ()), *self._added.get(entry.name, ()))))

    def thetas_of(self, entry: Algorithm) -> tuple[float, ...] | None:
        """The θ of each ε of an entry's grid. None for a baseline, and for a grid of ε with the same θ."""
        if not isinstance(entry, PrivateAlgorithm):
            return None
        if self.thetas is not None:
            return tuple(sorted((*self.thetas, *map(entry.theta_of, self._added.get(entry.name, ())))))
        grid = self.grid(entry)
        thetas = tuple(entry.theta_of(epsilon) for epsilon in grid)
        return None if thetas == grid else thetas

    def has_noise_free_run(self, entry: Algorithm) -> bool:
        """Whether an entry is also fitted without noise."""
        return bool(self.twins) and isinstance(entry, PrivateAlgorithm) and not entry.why_no_noise_free_run

    def runs_of(self, entry: Algorithm) -> int:
        return self.runs if entry.stochastic else 1

    def resolved(self) -> dict[str, Any]:
        """The config with every default filled in, as plain data, in which `split` has its older key."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def plugin_sources(self) -> dict[str, dict[str, str]]:
        """Where the code of each plugin comes from, by the plugin's name."""
        return {entry.key(): entry.plugin for entry in self.entries if entry.plugin}

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved config, and of its plugins."""
        content = {**self.resolved(), **({"sources": self.plugin_sources} if self.plugins else {})}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def contradictions(config: ExperimentConfig) -> Iterator[tuple[KeyPath, str]]:
    """Yields what contradicts something else: the path of the key to change, and why. Each rests on those before."""
    yield from _of_grid(config)
    yield from _of_cuts(config)
    for index, private in enumerate(config.algorithms if config.twins is True else ()):
        if private.why_no_noise_free_run:
            yield ("algorithms", index), private.why_no_noise_free_run
    columns = config.dataset.columns.by_role if isinstance(config.dataset, CsvSpec) else {}
    for key, index, entry in _entries(config):
        if entry.needs_epsilons and "epsilon" not in columns:
            fix = "name it in `columns: {epsilon: …}` of a CSV data set, or use `specification: fractions`"
            yield (key, index, "specification"), f"{config.dataset.key} has no column of ε; {fix}"
    if config.error_cdf is not None and sorted(set(config.error_cdf)) != config.error_cdf:
        yield ("error_cdf",), "the limits of the errors must ascend without repetition"
    yield from _of_what_is_shown(config)
    tasks = config.folds_run * len(config.portions) * sum(map(config.runs_of, config.entries))
    if tasks > MOST_TASKS:
        yield ("folds",), f"{tasks:,} tasks, more than {MOST_TASKS:,}; ask for fewer folds or runs"
    yield from _of_names(config)
    yield from _of_search(config)
    for index, private in enumerate(config.algorithms):
        # An entry that makes no averages inherits `effects`, or has them by default on own ratings.
        own = type(private).model_fields["effects"].default
        inherited = (own, config.effects, own.model_copy(update=ON_OWN_RATINGS))
        if not private.averaged and private.effects not in inherited:
            why = "makes no averages of that kind, and has no use for `effects`; remove it"
            yield ("algorithms", index, "effects"), f"{private.algorithm} {why}"


def _entries(config: ExperimentConfig) -> Iterator[tuple[str, int, Algorithm]]:
    for key in ("baselines", "algorithms"):
        for index, entry in enumerate(getattr(config, key)):
            yield key, index, entry


def _of_grid(config: ExperimentConfig) -> Iterator[tuple[KeyPath, str]]:
    if config.epsilons is None and config.thetas is None:
        yield (), "the grid is missing; give `epsilons` or `thetas`"
    if config.epsilons is not None and config.thetas is not None:
        yield (
            ("thetas",),
            "give `epsilons` or `thetas`, not both; `epsilons: null` removes an inherited grid",
        )
    name, sign = ("epsilons", "ε") if config.thetas is None else ("thetas", "θ")
    given: list[float] = getattr(config, name)
    if sorted(set(given)) != given:
        yield (name,), f"the {sign} grid must ascend without repetition"
    for entry in config.algorithms if config.thetas else ():
        grid = config.grid(entry)
        if grid[0] < LEAST_EPSILON or not math.isfinite(grid[-1]) or sorted(set(grid)) != list(grid):
            found = ", ".join(f"{epsilon:g}" for epsilon in grid)
            needs = f"needs ascending ε from {LEAST_EPSILON:g} up, but these θ give"
            yield ("thetas",), f"{entry.name} {needs} {found}"


def _of_cuts(config: ExperimentConfig) -> Iterator[tuple[KeyPath, str]]:
    data, split, folds = config.dataset, config.split, "use `split: folds`"
    by, what = (split, f"the {split} set") if isinstance(split, str) else (split.by, f"one cut ({split})")
    if by == "files" and not isinstance(data, CsvSpec):
        yield ("split",), f"an own test file goes with an own training file, `kind: csv`; {folds}"
    if by == "files" and getattr(data, "duplicates", "") == "mean":
        yield ("dataset", "duplicates"), "a mean would mix training with test ratings; use `last` or `error`"
    if by == "new_users" and config.groups:
        yield ("groups",), "only new users are predicted for, so groups say nothing; remove `groups`"
    if by in ("folds", "recent"):
        if config.folds == 1:
            yield ("folds",), "one fold leaves nothing to train on; give 2 or more"
    elif config.folds != 1:
        yield ("folds",), f"{what} is predicted instead of folds; remove `folds`"
    if by in ("probe", "judging"):
        if not (isinstance(data, CatalogSpec) and data.name == PRIZE_DATASET):
            yield ("split",), f"{what} belongs to the data set {PRIZE_DATASET} only; {folds}"
        elif data.sample is not None:
            yield ("split",), f"{what} belongs to all ratings, not to a sample; {folds}"
    if (by in ("recent", "time") or getattr(split, "which", "") == "last") and not data.has_timestamps:
        named = "name their column in `columns: {timestamp: …}`, or " if isinstance(data, CsvSpec) else ""
        fix = "use `which: random`" if by == "leave_out" else folds
        yield ("split",), f"{data.key} has no time stamps, so no most recent ratings; {named}{fix}"
    for key, index, entry in _entries(config):
        if by == "new_users" and not entry.new_users:
            yield (key, index), f"{entry.name} {NO_NEW_USERS}"
    if config.held_out is not None and config.held_out > config.folds:
        plural = "s" if config.folds > 1 else ""
        yield ("held_out",), f"only {config.folds} fold{plural} can be held out"
    if config.growth is None:
        return
    if config.refine:
        yield ("refine",), "ε are not added while the ratings grow; remove `refine` or `growth`"
    if not config.twins:
        yield ("growth",), "growth measures the loss against the noise-free run; set `twins: true`"
    if by not in ("folds", "recent"):
        yield ("growth",), f"{what} does not grow with the ratings; {folds}"
    if config.growth.order == "timestamp" and not config.dataset.has_timestamps:
        yield ("growth", "order"), f"{config.dataset.key} has no time stamps; use `order: random`"


def _of_what_is_shown(config: ExperimentConfig) -> Iterator[tuple[KeyPath, str]]:
    known = [metric.key for metric in config.metrics]
    if config.metric not in known:
        more = ", and what you ask for by `ranking` or `groups`" * (not nearest(config.metric, known))
        yield ("metric",), f'"{config.metric}" is not measured{did_you_mean(config.metric, known)}{more}'
    for key, index, entry in _entries(config):
        if entry.scores_only and (config.ranking is None or config.growth is not None):
            grows = "remove `growth`, which measures RMSE"
            fix = grows if config.growth else "ask for `ranking: {threshold: 4}`"
            why = f"{entry.name} orders items and predicts no ratings"
            yield (key, index), f"{why}; {fix}, or remove the entry"
    for index, reference in enumerate(config.references):
        of, where = REFERENCES[reference], ("references", index)
        if not (isinstance(config.dataset, CatalogSpec) and config.dataset.name.startswith(of.dataset)):
            what = f"{reference} is an error on {of.ratings} ratings"
            yield where, f"{what}, no reference for {config.dataset.key}; remove it"
        if reference in config.references[:index]:
            yield where, f"{reference} stands there twice; keep one"
    there = {"ia", "ge", *(baseline.algorithm for baseline in config.baselines)}
    for index, key in enumerate(config.crossings):
        if key not in there:
            yield ("crossings", index), f"{key} is not among the baselines; add it there"
        if key in config.crossings[:index]:
            yield ("crossings", index), f"{key} stands there twice; keep one"


def _of_names(config: ExperimentConfig) -> Iterator[tuple[KeyPath, str]]:
    if config.name in _RESERVED:
        yield ("name",), f"results/{config.name} is {_RESERVED[config.name]}; choose another name"
    names: set[str] = set()
    for key, index, entry in _entries(config):
        if entry.name in names:
            yield (key, index), f'two curves are named "{entry.name}"; give one of them another `label`'
        names.add(entry.name)
    known = [name for registry in config.known.values() for name in registry]
    for name, given in config.parameters.items():
        if name not in known:
            yield ("parameters", name), f'unknown algorithm "{name}"{did_you_mean(name, known)}'
        if "algorithm" in given:
            why = "the key above already names the algorithm; remove `algorithm`"
            yield ("parameters", name, "algorithm"), why


def _of_search(config: ExperimentConfig) -> Iterator[tuple[KeyPath, str]]:
    """Refuses what no entry of the name can have, whatever its other parameters are."""
    known = [*(entry.name for entry in config.algorithms), *config.known["algorithms"]]
    for name, space in config.search.items():
        if name not in known:
            what = f'no private algorithm or entry is named "{name}"'
            yield ("search", name), f"{what}{did_you_mean(name, known)}"
        varied = [entry for entry in config.algorithms if name in (entry.name, entry.algorithm)]
        for key, values in space.items():
            for index, value in enumerate(values):
                why = ""
                if varied and all(why := refused(entry, key, value) for entry in varied):
                    yield ("search", name, key, index), why
