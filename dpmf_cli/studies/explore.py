"""Runs many settings of what a paper leaves open, as one run, and judges claims and printed cells in each."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as cached
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from dpmf_cli.audit.entries import jobs_of
from dpmf_cli.audit.job import Settings, outcomes_of
from dpmf_cli.core import __version__
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, load
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.experiment.config import ExperimentConfig, config_of, load_config
from dpmf_cli.experiment.config.loading import with_values
from dpmf_cli.experiment.results.folders import collect
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store, write_atomically
from dpmf_cli.experiment.running.cutting import portions_of
from dpmf_cli.experiment.running.plan import Executor, Plan, refuse_failures, run_whole, whole_plan
from dpmf_cli.experiment.running.processes import LocalProcesses
from dpmf_cli.papers.claims import PaperFindings, paper
from dpmf_cli.papers.evidence import Evidence, Found, Proof
from dpmf_cli.papers.record import (
    Explored,
    Halves,
    Printed,
    Proved,
    Record,
    Tried,
    path_of,
    read_record,
    text_of,
)
from dpmf_cli.papers.rules import compute, rules_of
from dpmf_cli.papers.rules.cells import cells
from dpmf_cli.papers.rules.theorem import Theorem
from dpmf_cli.papers.space import OnData, Setting, Space, halves, space

Configs = dict[str, ExperimentConfig]
"""Shipped configs under one setting, by their names."""


def shipped(configs: Path, on: OnData, data: str) -> Configs:
    """Returns the configs of a space on one data set, with its folds and runs.

    Raises DpmfError for a config of another data set.
    """
    found = {}
    for name in on.configs:
        config = load_config(configs / f"{name}.yaml")
        if config.dataset.key != data:
            raise DpmfError(f"{configs / name}.yaml: has the data set {config.dataset.key}, not {data}")
        cut = {"held_out": min(on.folds, config.folds), "runs": on.runs}
        found[name] = _of(config, {**config.resolved(), **cut}, str(configs / f"{name}.yaml"))
    return found


def with_settings(space: Space, settings: Iterable[Setting], configs: Configs) -> list[Configs]:
    """Returns these configs under each setting. Raises DpmfError for values that make an invalid config."""
    found = []
    for setting in settings:
        chosen = (choice.values[at] for choice, at in zip(space.open, setting, strict=True))
        values = {path: value for each in chosen for path, value in each.set.items()}
        under = {}
        for name, config in configs.items():
            data, met = with_values(config, values)
            under[name] = _of(config, data, f"{space.file}: {space.named(setting)}") if met else config
        found.append(under)
    return found


def _of(config: ExperimentConfig, data: dict[str, Any], what: str) -> ExperimentConfig:
    try:
        return config_of(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DpmfError(f"{what}: makes config {config.name} invalid: {place}: {first['msg']}") from None


def best_of_each(under: Sequence[Experiment]) -> Experiment:
    """Returns one experiment on the testing folds, with the best settings of the choosing folds.

    Each curve takes at each ε the setting with the lowest mean RMSE on the choosing folds. So does each baseline.

    under   the same config under all settings: the same curves over the same ε
    """
    choosing, testing = halves(under[0].folds)

    def best(settings: Sequence[Measured]) -> Measured:
        at_choosing = np.array([each.rmse[list(choosing)].mean(axis=(0, 1)) for each in settings])
        chosen = np.where(np.isnan(at_choosing), np.inf, at_choosing).argmin(axis=0)
        rmse = np.stack([settings[at].rmse[list(testing)][:, :, e] for e, at in enumerate(chosen)], axis=-1)
        return replace(
            settings[0],
            rmse=rmse,
            claimed=np.array([settings[at].claimed[e] for e, at in enumerate(chosen)]),
            provable=np.array([settings[at].provable[e] for e, at in enumerate(chosen)]),
            missing=int(np.isnan(rmse).any(axis=(0, 1)).sum()),
            twin=None,
            others={},
        )

    return replace(
        under[0].of_folds(testing),
        curves=tuple(map(best, zip(*(each.curves for each in under), strict=True))),
        baselines=tuple(map(best, zip(*(each.baselines for each in under), strict=True))),
        growth=None,
    )


def proved(key: str, results: Path, processes: int) -> dict[str, Proved]:
    """Returns by claim what audits say about a paper's theorems. Audits in the results folder are not run again."""
    theorems = {claim: rule for claim, rule in rules_of(key).items() if isinstance(rule, Theorem)}
    if not theorems:
        return {}
    jobs = jobs_of({rule.theorem for rule in theorems.values()}, Settings())
    outcomes = outcomes_of(jobs, f"theorems of {key}", results, processes)
    proofs = {}
    for outcome in outcomes.values():
        flaws = tuple(dict.fromkeys(f"{each.flaw}, {each.step}".rstrip(", ") for each in outcome.found))
        proofs[outcome.label] = Proof(
            outcome.provable, flaws, {step.step: step.of_noise for step in outcome.steps}
        )
    evidence = Evidence({}, "", proofs)
    return {
        claim.id: Proved(
            held=all(computed.held),
            proved=theorems[claim.id].is_proved(evidence),
            measured=computed.measured,
        )
        for claim in paper(key).claims
        if claim.id in theorems and (computed := compute(key, claim.id, evidence))
    }


REPLICATES = 2
"""Bootstrap replicates. Two are enough, because rules read crossings and not their intervals."""

Experiments = dict[str, Experiment]
"""The measurements under one setting, by the name of the shipped config."""


@dataclass(frozen=True)
class Exploration:
    """The runs of a paper on the data set `data`: `settings` and, by data set, the configs under each setting."""

    key: str
    data: str
    space: Space
    settings: list[Setting]
    configs: dict[str, list[Configs]]

    @property
    def paper(self) -> PaperFindings:
        return paper(self.key)

    @property
    def every_config(self) -> Iterator[ExperimentConfig]:
        return (config for under in self.configs.values() for each in under for config in each.values())


def exploration(key: str, data: str, configs: Path, count: int | None = None) -> Exploration:
    """Returns what exploring a paper would run: `count` settings, or as many as its space says."""
    known = space(key)
    on = known.on(data)
    settings = known.settings(count or on.settings, key)
    under = {
        each: with_settings(known, settings, shipped(configs, known.on(each), each))
        for each in (data, *on.beside)
    }
    return Exploration(key, data, known, settings, under)


def plan_of(of: Exploration, folders: Folders, *, parsing: bool = True) -> Plan:
    """Plans what is left to run. A fit that several settings share runs once."""
    return whole_plan({config.hash: config for config in of.every_config}.values(), folders, parsing=parsing)


def explore(of: Exploration, folders: Folders, executor: Executor) -> Explored:
    """Runs what is left of an exploration, and judges it. Raises DpmfError for every error that a user can mend."""
    plan = plan_of(of, folders)
    say(f"{of.key}: {len(of.settings)} settings on {of.data}, {plan.summary}")
    refuse_failures(run_whole(f"explore {of.key}", plan, folders, executor))
    return _judged(of, folders, Store(folders.results, warn=say, set_aside=True))


def recorded(of: Exploration, folders: Folders, processes: int, folder: Path) -> tuple[Path, Record]:
    """Explores and audits, and adds what was found to the paper's record, in a folder. Returns its file, and it."""
    found = explore(of, folders, LocalProcesses(processes))
    theorems = proved(of.key, folders.results, processes)
    path = path_of(folder, of.key)
    before = read_record(path)
    kept = {key: each for key, each in before.data.items() if each.is_of(of.space)} if before else {}
    data = dict(sorted({**kept, of.data: found}.items()))
    record = Record(paper=of.key, version=__version__, data=data, theorems=theorems)
    write_atomically(path, text_of(record).encode())
    return path, record


def _judged(of: Exploration, folders: Folders, store: Store) -> Explored:
    known, loaded = dict[str, Experiment](), cached(load)  # shared configs, and ratings, are read once
    for config in of.every_config:
        if config.hash not in known:
            dataset = loaded(config.dataset, folders, config.test)
            ran = Ran(config, dataset.identity, portions_of(config, dataset))
            known[config.hash] = collect(ran, store).experiment
    experiments = {
        data: [{name: known[config.hash] for name, config in each.items()} for each in under]
        for data, under in of.configs.items()
    }
    config = next(iter(of.configs[of.data][0].values()))
    data = load(config.dataset, folders, config.test).identity
    tried, printed, figures = [], dict[str, Printed](), dict[str, set[str]]()
    for at, setting in enumerate(of.settings):
        under = {data: each[at] for data, each in experiments.items()}
        both = [Evidence(_found(under, half), of.data) for half in (0, 1)]
        claims, values = dict[str, Halves](), dict[str, tuple[float | None, float | None]]()
        for claim in of.paper.claims:
            if of.data in claim.data:
                halved = [compute(of.key, claim.id, evidence) for evidence in both]
                if halved[0] and halved[1]:
                    claims[claim.id] = halved[0].held, halved[1].held
                    figures.setdefault(claim.id, set()).add(f"{halved[0].measured}; {halved[1].measured}")
        choosing, testing = (cells(of.key, evidence) for evidence in both)
        for name, (cell, value) in choosing.items():
            if name in testing:
                printed.setdefault(name, cell)
                values[name] = _finite(value), _finite(testing[name][1])
        tried.append(Tried(setting=setting, claims=claims, cells=values))
    measured, chosen = _shown(of, experiments)
    return Explored(
        title=data.title,
        checksum=data.checksum,
        partition=config.folds,
        folds=config.folds_run,
        runs=config.runs,
        seed=int(config.seed),
        configs=of.space.on(of.data).configs,
        open={choice.name: tuple(value.name for value in choice.values) for choice in of.space.open},
        sets=of.space.digest,
        printed=printed,
        tried=tuple(tried),
        measured=measured,
        fixed=tuple(claim for claim, seen in figures.items() if len(seen) == 1 and len(tried) > 1),
        chosen=chosen,
    )


def _found(under: Mapping[str, Experiments], half: int | None = None) -> Found:
    """Returns what experiments show on all folds, or on those to choose by (`half` 0), or to test by (1)."""
    shown = {
        data: {
            name: each if half is None else each.of_folds(halves(each.folds)[half])
            for name, each in experiments.items()
        }
        for data, experiments in under.items()
    }
    return {
        data: {
            name: (each, find_crossings(each, replicates=REPLICATES)) for name, each in experiments.items()
        }
        for data, experiments in shown.items()
    }


def _finite(value: float) -> float | None:
    """Rounds a value for a record, because NumPy's logarithms differ between processors in the last digits. None for
    ∞ and NaN."""
    return float(f"{value:.9g}") if math.isfinite(value) else None


def _shown(
    of: Exploration, experiments: Mapping[str, list[Experiments]]
) -> tuple[dict[str, str], dict[str, tuple[bool, ...]] | None]:
    """Returns by claim the figures that a table shows, on all folds. If parameters were chosen for each ε, returns by
    claim which parts hold with the best of them."""
    if of.space.tuned:
        shown = {
            data: {name: best_of_each([each[name] for each in under]) for name in under[0]}
            for data, under in experiments.items()
        }
    else:
        shown = {data: under[0] for data, under in experiments.items()}
    evidence = Evidence(_found(shown), of.data)
    found = {
        claim.id: computed
        for claim in of.paper.claims
        if of.data in claim.data and (computed := compute(of.key, claim.id, evidence))
    }
    chosen = {claim: each.held for claim, each in found.items()} if of.space.tuned else None
    return {claim: each.measured for claim, each in found.items()}, chosen
