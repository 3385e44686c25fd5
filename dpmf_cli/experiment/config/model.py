"""The complete model of a config: its keys, the algorithms that it may name, and which contradictions it refuses."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from types import GenericAlias
from typing import Any, Self

from pydantic import create_model, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.budget import ON_OWN_RATINGS
from dpmf_cli.core.errors import did_you_mean
from dpmf_cli.datasets.spec import PRIZE_DATASET, CatalogSpec, CsvSpec
from dpmf_cli.experiment.config.documents import KeyPath
from dpmf_cli.experiment.config.entries import BASELINES_OF_OWN, LISTED, entry_of, is_own, one_of, written_out
from dpmf_cli.experiment.config.keys import REFERENCES, ExperimentKeys
from dpmf_cli.privacy.accounting import LEAST_EPSILON

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


def contradictions(config: ExperimentKeys) -> Iterator[tuple[KeyPath, str]]:
    """Yields what contradicts something else: the path of the key to change, and why. Each rests on those before."""
    yield from _of_grid(config)
    yield from _of_folds(config)
    yield from _of_growth(config)
    for index, private in enumerate(config.algorithms if config.twins else ()):
        if private.why_no_twin:
            yield ("algorithms", index), private.why_no_twin
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
    for index, private in enumerate(config.algorithms):
        # An entry that makes no averages inherits `effects`, or has them by default on own ratings.
        own = type(private).model_fields["effects"].default
        inherited = (own, config.effects, own.model_copy(update=ON_OWN_RATINGS))
        if not private.averaged and private.effects not in inherited:
            why = "makes no averages of that kind, and has no use for `effects`; remove it"
            yield ("algorithms", index, "effects"), f"{private.algorithm} {why}"


def _entries(config: ExperimentKeys) -> Iterator[tuple[str, int, Algorithm]]:
    for key in ("baselines", "algorithms"):
        for index, entry in enumerate(getattr(config, key)):
            yield key, index, entry


def _of_grid(config: ExperimentKeys) -> Iterator[tuple[KeyPath, str]]:
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


def _of_folds(config: ExperimentKeys) -> Iterator[tuple[KeyPath, str]]:
    data, fixed = config.dataset, config.test not in ("folds", "recent")
    if fixed:
        if not (isinstance(data, CatalogSpec) and data.name == PRIZE_DATASET):
            only = f"the {config.test} set belongs to the data set {PRIZE_DATASET} only"
            yield ("test",), f"{only}; use `test: folds`"
        elif data.sample is not None:
            of_all = f"the {config.test} set belongs to all ratings, not to a sample"
            yield ("test",), f"{of_all}; use `test: folds`"
        if config.folds != 1:
            yield ("folds",), f"the {config.test} set is predicted instead of folds; remove `folds`"
    elif config.folds == 1:
        yield ("folds",), "one fold leaves nothing to train on; give 2 or more"
    if config.test == "recent" and not data.has_timestamps:
        own = isinstance(data, CsvSpec)
        named = "name their column in `columns: {timestamp: …}`, or " if own else ""
        why = f"{data.key} has no time stamps, so no most recent ratings"
        yield ("test",), f"{why}; {named}use `test: folds`"
    if config.held_out is not None and config.held_out > config.folds:
        plural = "s" if config.folds > 1 else ""
        yield ("held_out",), f"only {config.folds} fold{plural} can be held out"


def _of_growth(config: ExperimentKeys) -> Iterator[tuple[KeyPath, str]]:
    if config.growth is None:
        return
    if config.refine:
        yield ("refine",), "ε are not added while the ratings grow; remove `refine` or `growth`"
    if not config.twins:
        yield ("growth",), "growth measures the loss against the twin without noise; set `twins: true`"
    if config.test not in ("folds", "recent"):
        yield ("growth",), f"the {config.test} set does not grow with the ratings; use `test: folds`"
    if config.growth.order == "timestamp" and not config.dataset.has_timestamps:
        yield ("growth", "order"), f"{config.dataset.key} has no time stamps; use `order: random`"


def _of_what_is_shown(config: ExperimentKeys) -> Iterator[tuple[KeyPath, str]]:
    known = [metric.key for metric in config.metrics]
    if config.metric not in known:
        fix = did_you_mean(config.metric, known) if config.ranking else "; ask for it by `ranking`"
        yield ("metric",), f'"{config.metric}" is not measured{fix}'
    for index, entry in enumerate(config.baselines):
        if entry.scores_only and (config.ranking is None or config.growth is not None):
            grows = "remove `growth`, which measures RMSE"
            fix = grows if config.growth else "ask for `ranking: {threshold: 4}`"
            why = f"{entry.name} orders items and predicts no ratings"
            yield ("baselines", index), f"{why}; {fix}, or remove the entry"
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


def _of_names(config: ExperimentKeys) -> Iterator[tuple[KeyPath, str]]:
    if config.name in _RESERVED:
        yield ("name",), f"results/{config.name} is {_RESERVED[config.name]}; choose another name"
    names: set[str] = set()
    for key, index, entry in _entries(config):
        if entry.name in names:
            yield (key, index), f'two curves are named "{entry.name}"; give one of them another `label`'
        names.add(entry.name)
    known = [*config.known_baselines, *config.known_private]
    for name, given in config.parameters.items():
        if name not in known:
            yield ("parameters", name), f'unknown algorithm "{name}"{did_you_mean(name, known)}'
        if "algorithm" in given:
            why = "the key above already names the algorithm; remove `algorithm`"
            yield ("parameters", name, "algorithm"), why


class ExperimentConfig(ExperimentKeys):
    """One experiment: private algorithms over a grid of ε or θ, and baselines, on the folds of one data set."""

    @classmethod
    def knowing(cls, plugins: Sequence[type[Algorithm]]) -> type["ExperimentConfig"]:
        """Returns the model of a config whose entries may name these plugins, too."""
        if not plugins:
            return cls
        baselines = {**BASELINES, **{each.key(): each for each in plugins if not each.private}}
        private = {**PRIVATE, **{each.key(): each for each in plugins if each.private}}
        entries: dict[str, Any] = {
            "baselines": (GenericAlias(list, (entry_of(baselines),)), cls.model_fields["baselines"]),
            "algorithms": (GenericAlias(list, (entry_of(private),)), cls.model_fields["algorithms"]),
        }
        model = create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, **entries)
        model.known_baselines, model.known_private = baselines, private
        return model

    @model_validator(mode="before")
    @classmethod
    def _write_out(cls, data: Any) -> Any:
        """Expands the entries of a config, with what they inherit."""
        if not isinstance(data, dict):
            return data
        test = data.get("test", "folds")
        folds = {} if test == "folds" else {"folds": 3 if test == "recent" else 1}
        own = is_own(data.get("dataset"))
        baselines = BASELINES_OF_OWN if own else cls.model_fields["baselines"].default
        data = {"baselines": baselines, **folds, **data}
        for key, registry in (("baselines", cls.known_baselines), ("algorithms", cls.known_private)):
            if isinstance(data.get(key), list):
                data[key] = [each for entry in data[key] for each in written_out(entry, data, registry)]
        return {**data, **{key: one_of(data[key]) for key in LISTED if key in data}}

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        for path, message in contradictions(self):
            raise PydanticCustomError("contradiction", "{message}", {"message": message, "path": path})
        return self

    def resolved(self) -> dict[str, Any]:
        """The config with every default filled in, as plain data."""
        return self.model_dump(mode="json")

    @property
    def plugin_sources(self) -> dict[str, dict[str, str]]:
        """Where the code of each plugin comes from, by the plugin's name."""
        return {entry.key(): entry.plugin for entry in self.entries if entry.plugin}

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved config, and of its plugins."""
        content = {**self.resolved(), **({"sources": self.plugin_sources} if self.plugins else {})}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
