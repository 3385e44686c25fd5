"""Explores a paper on one data set: runs every setting, and judges every claim and printed cell in it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmf_cli.datasets import Folders, load
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.partial import of_folds
from dpmf_cli.exploring.applied import Configs, distinct, shipped, with_settings
from dpmf_cli.exploring.tuned import best_of_each
from dpmf_cli.papers.claims import PaperFindings, paper
from dpmf_cli.papers.evidence import Evidence, Found
from dpmf_cli.papers.record import Explored, Halves, Printed, Tried
from dpmf_cli.papers.rules import cells, compute
from dpmf_cli.papers.space import Setting, Space, halves, space
from dpmf_cli.results.collect import collect
from dpmf_cli.results.manifest import Ran
from dpmf_cli.results.store import Store
from dpmf_cli.running.cutting import portions_of
from dpmf_cli.running.plan import Plan
from dpmf_cli.running.runner import Datasets, Executor, refuse_failures, run_whole, whole_plan
from dpmf_cli.terminal import say

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
    configs = (config for under in of.configs.values() for config in distinct(under))
    return whole_plan(configs, folders, parsing=parsing)


def explore(of: Exploration, folders: Folders, executor: Executor) -> Explored:
    """Runs what is left of an exploration, and judges it. Raises DpmfError for every error that a user can mend."""
    plan = plan_of(of, folders)
    say(f"{of.key}: {len(of.settings)} settings on {of.data}, {plan.summary}")
    refuse_failures(run_whole(f"explore {of.key}", plan, folders, executor))
    return _judged(of, folders, Store(folders.results, warn=say, set_aside=True))


def _judged(of: Exploration, folders: Folders, store: Store) -> Explored:
    experiments = {data: list(_collected(under, folders, store)) for data, under in of.configs.items()}
    config = next(iter(of.configs[of.data][0].values()))
    data = load(config.dataset, folders, config.test).identity
    tried, printed, figures = [], dict[str, Printed](), dict[str, set[str]]()
    for at, setting in enumerate(of.settings):
        under = {data: each[at] for data, each in experiments.items()}
        both = [Evidence(_found(half), of.data) for half in _halves(under)]
        tried.append(
            Tried(setting=setting, claims=_claims(of, both, figures), cells=_cells(of, both, printed))
        )
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


def _collected(under: Sequence[Configs], folders: Folders, store: Store) -> Iterator[Experiments]:
    """Yields the measurements under each setting. Shared configs, and ratings, are read once."""
    known: dict[str, Experiment] = {}
    datasets = Datasets(folders)
    for configs in under:
        experiments = {}
        for name, config in configs.items():
            digest = config.hash
            if digest not in known:
                dataset = datasets.of(config)
                ran = Ran(config, dataset.identity, portions_of(config, dataset))
                known[digest] = collect(ran, store).experiment
            experiments[name] = known[digest]
        yield experiments


def _halves(under: Mapping[str, Experiments]) -> Iterator[dict[str, Experiments]]:
    """Yields the experiments of all data sets on the folds to choose by, then on the folds to test by."""
    for half in (0, 1):
        yield {
            data: {name: of_folds(each, halves(each.folds)[half]) for name, each in experiments.items()}
            for data, experiments in under.items()
        }


def _found(under: Mapping[str, Experiments]) -> Found:
    return {
        data: {
            name: (each, find_crossings(each, replicates=REPLICATES)) for name, each in experiments.items()
        }
        for data, experiments in under.items()
    }


def _claims(of: Exploration, both: Sequence[Evidence], figures: dict[str, set[str]]) -> dict[str, Halves]:
    """Returns which parts of each claim hold, and adds the figures behind them to `figures`."""
    found = dict[str, Halves]()
    for claim in of.paper.claims:
        if of.data in claim.data:
            halves = [compute(of.key, claim.id, evidence) for evidence in both]
            if halves[0] and halves[1]:
                found[claim.id] = (halves[0].held, halves[1].held)
                figures.setdefault(claim.id, set()).add(f"{halves[0].measured}; {halves[1].measured}")
    return found


def _cells(
    of: Exploration, both: Sequence[Evidence], printed: dict[str, Printed]
) -> dict[str, tuple[float | None, float | None]]:
    """Returns the measured cells, and adds their printed values to `printed`."""
    choosing, testing = ({cell.name: cell for cell in cells(of.key, evidence)} for evidence in both)
    found = {}
    for name, cell in choosing.items():
        if name not in testing:
            continue
        printed.setdefault(name, Printed(printed=cell.printed, tolerance=cell.tolerance, ratio=cell.ratio))
        found[name] = (_finite(cell.measured), _finite(testing[name].measured))
    return found


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
            data: {
                name: best_of_each([each[name] for each in under], *halves(under[0][name].folds))
                for name in under[0]
            }
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
