"""The complete model of a config: its keys, the algorithms that it may name, and which contradictions it refuses."""

import hashlib
import json
import math
from collections.abc import Sequence
from types import GenericAlias
from typing import Any, Self

from pydantic import create_model, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.effects import ON_OWN_RATINGS
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


def refuse_contradictions(config: ExperimentKeys) -> None:
    """Raises PydanticCustomError for the first contradiction, with the path of the key to change."""
    for check in (
        _one_ascending_grid,
        _possible_folds,
        _measurable_growth,
        _twins_without_noise,
        _columns_that_are_there,
        _ascending_limits,
        _rankings_that_are_measured,
        _references_of_their_data,
        _crossings_of_baselines,
        _countable_tasks,
        _distinct_names,
        _parameters_of_algorithms,
        _effects_that_are_used,
    ):
        check(config)


def _one_ascending_grid(config: ExperimentKeys) -> None:
    if config.epsilons is None and config.thetas is None:
        raise _at((), "the grid is missing; give `epsilons` or `thetas`")
    if config.epsilons is not None and config.thetas is not None:
        raise _at(
            ("thetas",), "give `epsilons` or `thetas`, not both; `epsilons: null` removes an inherited grid"
        )
    name, sign = ("epsilons", "ε") if config.thetas is None else ("thetas", "θ")
    given: list[float] = getattr(config, name)
    if sorted(set(given)) != given:
        raise _at((name,), f"the {sign} grid must ascend without repetition")
    for entry in config.algorithms if config.thetas else ():
        grid = config.grid(entry)
        if grid[0] < LEAST_EPSILON or not math.isfinite(grid[-1]) or sorted(set(grid)) != list(grid):
            found = ", ".join(f"{epsilon:g}" for epsilon in grid)
            message = f"{entry.name} needs ascending ε from {LEAST_EPSILON:g} up, but these θ give {found}"
            raise _at(("thetas",), message)


def _possible_folds(config: ExperimentKeys) -> None:
    if config.test not in ("folds", "recent"):
        if not (isinstance(config.dataset, CatalogSpec) and config.dataset.name == PRIZE_DATASET):
            raise _at(
                ("test",),
                f"the {config.test} set belongs to the data set {PRIZE_DATASET} only; use `test: folds`",
            )
        if config.dataset.sample is not None:
            raise _at(
                ("test",), f"the {config.test} set belongs to all ratings, not to a sample; use `test: folds`"
            )
        if config.folds != 1:
            raise _at(("folds",), f"the {config.test} set is predicted instead of folds; remove `folds`")
    elif config.folds == 1:
        raise _at(("folds",), "one fold leaves nothing to train on; give 2 or more")
    if config.test == "recent" and not config.dataset.has_timestamps:
        named = (
            "name their column in `columns: {timestamp: …}`, or "
            if isinstance(config.dataset, CsvSpec)
            else ""
        )
        message = (
            f"{config.dataset.key} has no time stamps, so no most recent ratings; {named}use `test: folds`"
        )
        raise _at(("test",), message)
    if config.held_out is not None and config.held_out > config.folds:
        plural = "s" if config.folds > 1 else ""
        raise _at(("held_out",), f"only {config.folds} fold{plural} can be held out")


def _measurable_growth(config: ExperimentKeys) -> None:
    if config.growth is None:
        return
    if config.refine:
        raise _at(("refine",), "ε are not added while the ratings grow; remove `refine` or `growth`")
    if not config.twins:
        raise _at(("growth",), "growth measures the loss against the twin without noise; set `twins: true`")
    if config.test not in ("folds", "recent"):
        raise _at(("growth",), f"the {config.test} set does not grow with the ratings; use `test: folds`")
    if config.growth.order == "timestamp" and not config.dataset.has_timestamps:
        raise _at(("growth", "order"), f"{config.dataset.key} has no time stamps; use `order: random`")


def _twins_without_noise(config: ExperimentKeys) -> None:
    for index, entry in enumerate(config.algorithms if config.twins else ()):
        if entry.why_no_twin:
            raise _at(("algorithms", index), entry.why_no_twin)


def _columns_that_are_there(config: ExperimentKeys) -> None:
    columns = config.dataset.columns.by_role if isinstance(config.dataset, CsvSpec) else {}
    for key in ("baselines", "algorithms"):
        for index, entry in enumerate(getattr(config, key)):
            if entry.needs_epsilons and "epsilon" not in columns:
                fix = (
                    "name it in `columns: {epsilon: …}` of a CSV data set, or use `specification: fractions`"
                )
                raise _at((key, index, "specification"), f"{config.dataset.key} has no column of ε; {fix}")


def _ascending_limits(config: ExperimentKeys) -> None:
    if config.error_cdf is not None and sorted(set(config.error_cdf)) != config.error_cdf:
        raise _at(("error_cdf",), "the limits of the errors must ascend without repetition")


def _rankings_that_are_measured(config: ExperimentKeys) -> None:
    known = [metric.key for metric in config.metrics]
    if config.metric not in known:
        fix = did_you_mean(config.metric, known) if config.ranking else "; ask for it by `ranking`"
        raise _at(("metric",), f'"{config.metric}" is not measured{fix}')
    for index, entry in enumerate(config.baselines):
        if entry.scores_only and (config.ranking is None or config.growth is not None):
            fix = (
                "remove `growth`, which measures RMSE"
                if config.growth
                else "ask for `ranking: {threshold: 4}`"
            )
            message = f"{entry.name} orders items and predicts no ratings; {fix}, or remove the entry"
            raise _at(("baselines", index), message)


def _references_of_their_data(config: ExperimentKeys) -> None:
    for index, reference in enumerate(config.references):
        of = REFERENCES[reference]
        if not (isinstance(config.dataset, CatalogSpec) and config.dataset.name.startswith(of.dataset)):
            raise _at(
                ("references", index),
                f"{reference} is an error on {of.ratings} ratings, no reference for {config.dataset.key}; remove it",
            )
        if reference in config.references[:index]:
            raise _at(("references", index), f"{reference} stands there twice; keep one")


def _crossings_of_baselines(config: ExperimentKeys) -> None:
    known = {"ia", "ge", *(baseline.algorithm for baseline in config.baselines)}
    for index, key in enumerate(config.crossings):
        if key not in known or key in config.crossings[:index]:
            fix = (
                "stands there twice; keep one" if key in known else "is not among the baselines; add it there"
            )
            raise _at(("crossings", index), f"{key} {fix}")


def _countable_tasks(config: ExperimentKeys) -> None:
    tasks = config.folds_run * len(config.portions) * sum(map(config.runs_of, config.entries))
    if tasks > MOST_TASKS:
        raise _at(("folds",), f"{tasks:,} tasks, more than {MOST_TASKS:,}; ask for fewer folds or runs")


def _distinct_names(config: ExperimentKeys) -> None:
    if config.name in _RESERVED:
        message = f"results/{config.name} is {_RESERVED[config.name]}; choose another name"
        raise _at(("name",), message)
    names: set[str] = set()
    for key in ("baselines", "algorithms"):
        for index, entry in enumerate(getattr(config, key)):
            if entry.name in names:
                raise _at(
                    (key, index), f'two curves are named "{entry.name}"; give one of them another `label`'
                )
            names.add(entry.name)


def _parameters_of_algorithms(config: ExperimentKeys) -> None:
    known = [*config.known_baselines, *config.known_private]
    for name, given in config.parameters.items():
        if name not in known:
            message = f'unknown algorithm "{name}"{did_you_mean(name, known)}'
            raise _at(("parameters", name), message)
        if "algorithm" in given:
            message = "the key above already names the algorithm; remove `algorithm`"
            raise _at(("parameters", name, "algorithm"), message)


def _effects_that_are_used(config: ExperimentKeys) -> None:
    """Refuses `effects` of an entry that makes no averages, unless it inherits them or has them on own ratings."""
    for at, entry in enumerate(config.algorithms):
        if not entry.averaged:
            own = type(entry).model_fields["effects"].default
            inherited = (own, config.effects, own.model_copy(update=ON_OWN_RATINGS))
            if entry.effects not in inherited:
                message = f"{entry.algorithm} makes no averages of that kind, and has no use for `effects`; remove it"
                raise _at(("algorithms", at, "effects"), message)


def _at(path: KeyPath, message: str) -> PydanticCustomError:
    """A mistake at the key `path` of the config."""
    return PydanticCustomError("contradiction", "{message}", {"message": message, "path": path})


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
        refuse_contradictions(self)
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
