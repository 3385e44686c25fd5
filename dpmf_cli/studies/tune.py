"""A search of parameters, with the same number of trials for every method, and a choice by the metric at each of a
few ε.

What suits a small ε seldom suits a large one, so the best setting is chosen at each ε by itself. A tuned entry has it
from the geometric mean of this ε and the one before to that with the next (`by_epsilon`).

A trial is an ordinary entry of an experiment, so its tasks are stored and shared like others, and an interrupted
search continues. The settings are a scrambled Halton sequence, which covers a space evenly and depends on nothing but
the seed and the entry's name: the first 8 of 32 trials are those of 8 trials. A sequential search, such as Optuna's
TPE, would depend on the order in which trials end.

Tune on other ratings than those that you report, because a choice by errors leaks more than the stated ε (Papernot
and Steinke 2022).
"""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError
from scipy.stats import qmc

from dpmf_cli.algorithms.shared.base import OF_THE_CURVE, PrivateAlgorithm
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.streams import named_generator
from dpmf_cli.core.strict_model import in_words
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, load
from dpmf_cli.evaluation.metrics import GROUPED, RMSE
from dpmf_cli.experiment.config import ExperimentConfig, config_of
from dpmf_cli.experiment.config.documents import config_file, read_whole, shipped_file
from dpmf_cli.experiment.config.entries import with_parameters
from dpmf_cli.experiment.results.collect import collect
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.running.cutting import portions_of
from dpmf_cli.experiment.running.plan import run_whole, whole_plan
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.report.tables.layout import TextTable
from dpmf_cli.report.tables.ranked import Tuned, tuned_table

Setting = tuple[PrivateAlgorithm, Mapping[str, Any]]
"""An entry, and the parameters in it that were drawn."""

MOST_DRAWS = 100
"""Draws for each trial before a space counts as exhausted. A draw may be invalid, or repeat another."""


def settings_of(
    entry: PrivateAlgorithm, space: Mapping[str, list[Any]], count: int, *name: str | int
) -> tuple[list[Setting], int]:
    """Distinct settings of an entry, first that as written: `count`, or as many as the space has; and how
    many draws were invalid. Their randomness is a function of `name` and of the entry's."""
    found: dict[str, Setting] = {str(entry.parameters()): (entry, {})}
    refused = 0
    for shares in qmc.Halton(len(space), rng=named_generator(*name, entry.name)).random(MOST_DRAWS * count):
        if len(found) == count:
            break
        listed = zip(space.items(), shares, strict=True)
        values = {key: tried[int(share * len(tried))] for (key, tried), share in listed}
        try:
            trial = type(entry).model_validate({**with_parameters(entry, values), "label": entry.name})
        except ValidationError:
            refused += 1
        else:
            found.setdefault(str(trial.parameters()), (trial, values))
    return list(found.values()), refused


def for_trials(config: ExperimentConfig, at: Sequence[float]) -> ExperimentConfig:
    """A config with these ε (or θ), or the lowest but ε → 0, middle and highest of its own, which measures
    nothing but the metric that is shown, of private entries that have it. Raises DpmfError for ε that no grid can
    have."""
    axis = "epsilons" if config.thetas is None else "thetas"
    given = getattr(config, axis)
    own = given[1:] if axis == "epsilons" and len(given) > 1 and given[0] == LEAST_EPSILON else given
    shown = next(metric for metric in config.metrics if metric.key == config.metric)
    unused = ["growth", "error_cdf", "refine", *(["ranking"] if shown in (RMSE, *GROUPED) else [])]
    resolved = config.resolved()
    entries = zip(config.algorithms, resolved["algorithms"], strict=True)
    changes = {
        axis: sorted({*at} or {own[0], own[len(own) // 2], own[-1]}),
        "baselines": [],
        "crossings": ["ia"],
        "twins": False,
        **dict.fromkeys(unused),
        "groups": shown in GROUPED,
        "algorithms": [entry for of, entry in entries if not (of.scores_only and "ranking" in unused)],
    }
    if not changes["algorithms"]:
        raise DpmfError(
            f"{config.name}: no method has an {RMSE.title}; set `metric: {config.metrics[1].key}`"
        )
    try:
        return config_of({**resolved, **changes})
    except ValidationError as error:
        raise DpmfError(f"--at: {in_words(error.errors(include_url=False)[0])}") from None


def tune(
    config: ExperimentConfig,
    search: Mapping[str, Mapping[str, list[Any]]],
    count: int,
    at: Sequence[float],
    folders: Folders,
    processes: int,
) -> tuple[list[Tuned], TextTable]:
    """What `count` trials of every private entry that has a space, of which it runs what is left, have found for
    each, and its table. Raises DpmfError for what a user can mend."""
    base = for_trials(config, at)
    tried = dict[str, tuple[list[Setting], int]]()
    for entry in base.algorithms:
        ignored = entry.ignored.union(entry.only_other(entry.mode))
        space = search.get(entry.name, search.get(entry.algorithm, {}))
        if space := {key: values for key, values in space.items() if key not in ignored}:
            tried[entry.name] = settings_of(entry, space, count, "search", config.seed)
            if len(tried[entry.name][0]) < count:
                say(f"{entry.name}: its space has only {len(tried[entry.name][0])} valid settings")
    if not tried:
        fix = "declare one: `search: {isgd: {factors: [3, 6]}}`"
        raise DpmfError(f"{config.name}: no method has a space to search; {fix}")
    trials = [trial for settings, _ in tried.values() for trial, _ in settings]
    every = base.model_copy(update={"algorithms": trials})
    dataset = load(base.dataset, folders, base.split)
    portions_of(every, dataset)
    if dataset.identity.own:
        say("the choice looks at your ratings, which no ε covers; report the result on others")
    plan, seconds = whole_plan([every], folders), defaultdict[str, float](float)
    say(f"{config.name}: {count} trials of {len(tried)} entries, {plan.summary}")
    for outcome in run_whole(f"tune {config.name}", plan, folders, processes):
        seconds[outcome.task.algorithm.name] += outcome.seconds
        if outcome.failure:
            say(f"a trial of {outcome.task.algorithm.name} failed: {outcome.failure.splitlines()[-1]}")
    ran = Ran(every, dataset.identity)
    experiment = collect(ran, Store(folders.results, warn=say)).experiment.showing(base.metric)
    metric, means, rows = experiment.metric, defaultdict[str, list[Doubles]](list), []
    for curve in experiment.curves:
        means[curve.label].append(curve.mean())
    for name, (settings, refused) in tried.items():
        found = np.array(means[name])
        failed = np.asarray(np.isnan(found).any(axis=1))
        scores = -found if metric.larger_is_better else found
        best = np.where(failed[:, None], np.inf, scores).argmin(axis=0)
        written, tuned = found[0], found[best, np.arange(len(best))]
        entries, drawn = zip(*(settings[at] for at in best), strict=True)
        changed = changes(settings[0][0], entries, base.grid(settings[0][0]))
        counts = len(settings), int(failed.sum()), refused
        rows.append(Tuned(name, written, tuned, drawn, changed, *counts, seconds[name]))
    grid, sign = (base.epsilons, "ε") if base.thetas is None else (base.thetas, "θ")
    over = f"{experiment.folds} of {experiment.partition} folds, runs: {experiment.runs}"
    title = f"{config.name}: tuned on {experiment.title}, {over}"
    return rows, tuned_table(rows, grid or (), sign, title, metric)


def changes(
    written: PrivateAlgorithm, chosen: Sequence[PrivateAlgorithm], grid: Sequence[float]
) -> dict[str, Any]:
    """The keys with which an entry has the chosen setting at each ε of a grid; none if all are as written."""
    if all(each is written for each in chosen):
        return {}
    at_each = [next(entry.pieces([epsilon]))[0] for entry, epsilon in zip(chosen, grid, strict=True)]
    own, *plain = (with_parameters(entry, {}) for entry in (written, *at_each))
    every = set().union(own, *plain) - OF_THE_CURVE  # a dump leaves out what is None
    keys = sorted(key for key in every if any(each.get(key) != own.get(key) for each in plain))
    found = [{key: each.get(key) for key in keys} for each in plain]
    ends = np.sqrt(np.multiply(grid[:-1], grid[1:]))
    pieces = [
        {"up_to": float(f"{end:.4g}"), **piece}
        for end, piece, following in zip(ends, found[:-1], found[1:], strict=True)
        if piece != following
    ]
    return {**found[-1], "by_epsilon": pieces or None}


def tuned_config(path: Path, config: ExperimentConfig, rows: Sequence[Tuned], to: Path) -> str:
    """The text of a file `to` that extends the config of `path`: all entries as written there, then those for
    which a better setting was found, labelled "…, tuned"."""
    found, written = config_file(path), {entry.name: entry for entry in config.algorithms}
    tuned = [
        {
            **with_parameters(written[row.label], {}, exclude_unset=True),
            **row.changed,
            "label": f"{row.label[:72]}, tuned",
        }
        for row in rows
        if row.changed
    ]
    extends = found.name if found == shipped_file(path) else os.path.relpath(found, to.parent)
    whole = {"extends": extends, "algorithms": [*read_whole(path).data["algorithms"], *tuned]}
    warning = f"# Tuned on {config.dataset.key}: report on other ratings, because no ε covers the choice.\n"
    return warning + yaml.safe_dump(
        whole, allow_unicode=True, sort_keys=False, default_flow_style=None, width=120
    )
