"""Many settings of what a paper leaves open, run as one, and claims and printed values judged in each."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache as cached
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.audit.entries import jobs_of
from dpmf_cli.audit.job import Settings, outcomes_of
from dpmf_cli.core import __version__
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.streams import named_generator
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.loading import title
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.experiment.config import ExperimentConfig, config_of, load_config
from dpmf_cli.experiment.config.documents import FOLDER
from dpmf_cli.experiment.config.loading import with_values
from dpmf_cli.experiment.results.collect import collect
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store, write_atomically
from dpmf_cli.experiment.running.cutting import portions_of
from dpmf_cli.experiment.running.plan import Plan, refuse_failures, run_whole, whole_plan
from dpmf_cli.papers.claims import PaperFindings, paper
from dpmf_cli.papers.evidence import BEST, Evidence, MissingEvidence, Proof
from dpmf_cli.papers.record import (
    UNBOUNDED,
    Explored,
    Inequality,
    Proved,
    Record,
    Tried,
    path_of,
    read_record,
    text_of,
)
from dpmf_cli.papers.rules import Theorem, digest_of, margins, rules_of
from dpmf_cli.papers.rules.language import Margin
from dpmf_cli.papers.rules.printed_values import printed_values
from dpmf_cli.papers.space import OnData, Setting, Space, halves, space

Configs = dict[str, ExperimentConfig]
"""Shipped configs under one setting, by their names."""


def shipped(on: OnData, data: str, folder: Path = FOLDER, seed: int | None = None) -> Configs:
    """The configs of a space on one data set, with its folds and runs, and this seed. Raises DpmfError for a config
    of neither that data set nor a sample of it."""
    found = {}
    for name in on.configs:
        config = load_config(folder / f"{name}.yaml")
        if data != (config.dataset.name if isinstance(config.dataset, CatalogSpec) else config.dataset.key):
            raise DpmfError(f"{folder / name}.yaml: has the data set {config.dataset.key}, not {data}")
        cut = {"held_out": min(on.folds, config.folds), "runs": on.runs}
        cut |= {} if seed is None else {"seed": seed}
        found[name] = _of(config, {**config.resolved(), **cut}, str(folder / f"{name}.yaml"))
    return found


def with_settings(space: Space, settings: Iterable[Setting], configs: Configs) -> list[Configs]:
    """These configs under each setting. Raises DpmfError for values that make an invalid config."""
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


def distinct(explored: Sequence[Configs]) -> list[ExperimentConfig]:
    """Each distinct config of all settings once."""
    return list({config.hash: config for under in explored for config in under.values()}.values())


def best_on_one_half(settings: Sequence[Experiment], *, swap: bool) -> Experiment:
    """A config's experiment on one half of the folds, with the settings that are best on the other half.

    Each curve and each baseline takes at each ε the setting with the lowest mean RMSE on the choosing half. A
    further curve is the best of all curves of its algorithm, so that none is chosen where it is measured.

    swap   choose on the second half, and measure on the first
    """
    parts, first = [list(each) for each in halves(settings[0].folds)], settings[0]
    choosing, testing = parts[::-1] if swap else parts

    def best(part: str) -> list[Measured]:
        of = zip(*(getattr(each, part) for each in settings), strict=True)
        return [_best(each, choosing, testing) for each in of]

    pooled = []
    for key in dict.fromkeys(each.algorithm for each in first.curves if not each.swept):
        every = [c for each in settings for c in each.curves if c.algorithm == key and not c.swept]
        if len({len(each.epsilons) for each in every}) == 1:
            pooled.append(replace(_best(every, choosing, testing), label=BEST + key))
    curves, baselines = (*best("curves"), *pooled), tuple(best("baselines"))
    return replace(first.of_folds(testing), curves=curves, baselines=baselines, growth=())


def _best(settings: Sequence[Measured], choosing: Sequence[int], testing: Sequence[int]) -> Measured:
    best = _least(np.array([each.rmse[choosing].mean(axis=(0, 1)) for each in settings]))
    rmse = np.stack([settings[at].rmse[testing][:, :, e] for e, at in enumerate(best)], axis=-1)
    clean = [each.noise_free["rmse"] for each in settings if each.noise_free]
    noise_free = None
    if len(clean) == len(settings):
        noise_free = {"rmse": clean[_least(np.array([each[choosing].mean() for each in clean]))][testing]}
    return replace(
        settings[0],
        epsilons=np.array([settings[at].epsilons[e] for e, at in enumerate(best)]),
        rmse=rmse,
        claimed=np.array([settings[at].claimed[e] for e, at in enumerate(best)]),
        provable=np.array([settings[at].provable[e] for e, at in enumerate(best)]),
        missing=int(np.isnan(rmse).any(axis=(0, 1)).sum()),
        noise_free=noise_free,
        others={},
    )


def _least(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The place of the least along the first axis; NaN counts as ∞."""
    found: NDArray[np.intp] = np.where(np.isnan(values), np.inf, values).argmin(axis=0)
    return found


def proved(key: str, results: Path, processes: int) -> dict[str, Proved]:
    """By claim what audits say about a paper's theorems. Audits in the results folder are not run again."""
    rules = rules_of(key).rules
    theorems = {claim: rule for claim, rule in rules.items() if isinstance(rule, Theorem)}
    if not theorems:
        return {}
    jobs = jobs_of({rule.theorem for rule in theorems.values()}, Settings())
    outcomes = outcomes_of(jobs, f"theorems of {key}", results, processes)
    proofs = {}
    for outcome in outcomes.values():
        steps: dict[str, dict[str, None]] = {}
        for each in outcome.found:
            steps.setdefault(each.flaw, {})[each.step] = None
        flaws = tuple(
            f"{flaw} ({', '.join(filter(None, of))})".removesuffix(" ()") for flaw, of in steps.items()
        )
        proofs[outcome.label] = Proof(
            outcome.provable, flaws, {step.step: step.of_noise for step in outcome.steps}
        )
    found, evidence = dict[str, Proved](), Evidence({}, "", proofs)
    for claim, rule in theorems.items():
        with suppress(MissingEvidence):
            found[claim] = rule.judged(evidence)
    return found


RESAMPLES = 100
"""How often settings are drawn anew to see what other searches of the same size would find."""


@dataclass(frozen=True)
class Exploration:
    """The runs of a paper on the data set `data`.

    configs   by data set, the configs under each setting
    shipped   by data set, the configs of the shipped setting on all folds
    """

    key: str
    data: str
    space: Space
    settings: list[Setting]
    configs: dict[str, list[Configs]]
    shipped: dict[str, Configs]

    @property
    def paper(self) -> PaperFindings:
        return paper(self.key)

    @property
    def first(self) -> ExperimentConfig:
        """A shipped config; all of them have one data set, one partition, and one seed."""
        return next(iter(self.configs[self.data][0].values()))


def exploration(key: str, data: str, count: int | None = None, seed: int | None = None) -> Exploration:
    """What exploring a paper would run: `count` settings, or as many as its space says.

    seed   if given, folds and noise are drawn with it, and other settings are sampled
    """
    known = space(key).of(data)
    on = known.on(data)
    settings = known.settings(count or on.settings, key, *(() if seed is None else (seed,)))
    under, shipped_on = {}, {}
    for each in (data, *on.beside):
        of = shipped(known.on(each), each, seed=seed)
        under[each] = with_settings(known, settings, of)
        whole = {name: {**config.resolved(), "held_out": config.folds} for name, config in of.items()}
        shipped_on[each] = {name: _of(of[name], config, name) for name, config in whole.items()}
    return Exploration(key, data, known, settings, under, shipped_on)


def plan_of(of: Exploration, folders: Folders, *, parsing: bool = True) -> Plan:
    """What is left to run; a fit that several settings share runs once."""
    configs = [config for under in of.configs.values() for config in distinct(under)]
    configs += [config for under in of.shipped.values() for config in under.values()]
    return whole_plan(configs, folders, parsing=parsing)


def explore(of: Exploration, folders: Folders, processes: int) -> Explored:
    """The findings of an exploration, of which it runs what is left. Raises DpmfError for every error that a user can
    mend."""
    plan = plan_of(of, folders)
    say(f"{of.key}: {len(of.settings)} settings on {of.data}, {plan.summary}")
    refuse_failures(run_whole(f"explore {of.key}", plan, folders, processes))
    return _judged(of, folders, Store(folders.results, warn=say, set_aside=True))


def recorded(of: Exploration, folders: Folders, processes: int, folder: Path) -> tuple[Path, Record]:
    """Writes the paper's record with what exploring and auditing found, and returns its file and the record. Raises
    DpmfError, before anything runs, if the record there is of another seed."""
    path = path_of(folder, of.key)
    before = read_record(path)
    kept, seed = before.data if before else {}, of.first.seed
    if other := {each.seed for each in kept.values()} - {seed}:
        raise DpmfError(f"{path}: is of seed {other.pop()}, not {seed}; name another folder with --record")
    found = explore(of, folders, processes)
    theorems = proved(of.key, folders.results, processes)
    now = {name: digest_of(of.key, space(of.key).of(name)) for name in kept}
    data = {name: each for name, each in kept.items() if each.sets == now[name]} | {of.data: found}
    for left in kept.keys() - data.keys():
        say(f"{path}: {left} was judged by other rules, and is left out; explore {of.key} on it again")
    record = Record(paper=of.key, version=__version__, data=dict(sorted(data.items())), theorems=theorems)
    write_atomically(path, text_of(record).encode())
    return path, record


Experiments = dict[str, dict[str, Experiment]]
"""The measurements under one setting, by data set and the name of the shipped config."""

Atoms = dict[tuple[str, str, str], Margin]
"""The margins of all inequalities, by (claim, text, reading)."""


def _judged(of: Exploration, folders: Folders, store: Store) -> Explored:
    collected = {data: list(_collected(under, folders, store)) for data, under in of.configs.items()}
    experiments = [{data: each[at] for data, each in collected.items()} for at in range(len(of.settings))]
    shipped = {data: next(_collected([under], folders, store)) for data, under in of.shipped.items()}
    config, spec = of.first, of.first.dataset
    whole = spec.model_copy(update={"sample": None}) if isinstance(spec, CatalogSpec) else spec
    by_setting = [_on_folds(of, each, config.folds_run) for each in experiments]
    most = max(each.folds for under in shipped.values() for each in under.values())
    by_fold = _on_folds(of, shipped, most)[1:]
    known = {key: each for folds in reversed(by_setting) for key, each in folds[0].items()}
    crossed, resampled = _searched(of, experiments) if of.space.tuned else ([], [])
    atoms = []
    for (claim, text, reading), atom in known.items():
        key = (claim, text, reading)
        chosen = [each[key] for each in crossed if key in each]
        atoms.append(
            Inequality(
                claim=claim,
                text=text,
                reading=reading,
                unit=atom.unit,
                tolerance=atom.tolerance,
                note=atom.note,
                said="; ".join(each.said for each in chosen) or atom.said,
                shipped=tuple(_recorded(key, each) for each in by_fold),
                chosen=tuple(_finite(each.value) for each in chosen) if len(chosen) == 2 else None,
                resampled=tuple(
                    _finite((a[key].value + b[key].value) / 2) for a, b in resampled if key in a and key in b
                ),
            )
        )
    tried = []
    for setting, under, folds in zip(of.settings, experiments, by_setting, strict=True):
        margins = tuple(tuple(_recorded(key, each) for each in folds) for key in known)
        off = {name: value.off for name, value in printed_values(of.key, Evidence(under, of.data)).items()}
        tried.append(Tried(setting=setting, margins=margins, off=off))
    return Explored(
        title=title(whole),
        checksum=load(spec, folders, config.split).identity.checksum,
        partition=config.folds,
        folds=config.folds_run,
        runs=config.runs,
        seed=int(config.seed),
        configs=of.space.on(of.data).configs,
        open={choice.name: tuple(value.name for value in choice.values) for choice in of.space.open},
        sets=digest_of(of.key, of.space),
        printed=printed_values(of.key, Evidence(shipped, of.data)),
        atoms=tuple(atoms),
        tried=tuple(tried),
    )


def _collected(under: Sequence[Configs], folders: Folders, store: Store) -> Iterator[dict[str, Experiment]]:
    """Yields the measurements under each setting. Shared configs, and ratings, are read once."""
    known: dict[str, Experiment] = {}
    loaded = cached(load)
    for configs in under:
        for config in configs.values():
            if config.hash not in known:
                dataset = loaded(config.dataset, folders, config.split)
                ran = Ran(config, dataset.identity, portions_of(config, dataset))
                known[config.hash] = collect(ran, store).experiment
        yield {name: known[config.hash] for name, config in configs.items()}


def _atoms(of: Exploration, evidence: Evidence) -> Atoms:
    return {
        (claim.id, *key): margin
        for claim in of.paper.claims
        if of.data in claim.data
        for key, margin in margins(of.key, claim.id, evidence).items()
    }


def _on_folds(of: Exploration, experiments: Experiments, folds: int) -> list[Atoms]:
    """All margins on all folds together, then on each."""
    evidence = Evidence(experiments, of.data)
    return [_atoms(of, evidence), *(_atoms(of, evidence.of_fold(fold)) for fold in range(folds))]


def _searched(
    of: Exploration, experiments: Sequence[Experiments]
) -> tuple[list[Atoms], list[tuple[Atoms, Atoms]]]:
    """All margins with the best setting for each ε, chosen on one half of the folds and measured on the other, both
    ways round; then for each of `RESAMPLES` draws of settings."""

    def found(among: Sequence[int], swap: bool) -> Atoms:
        best = {
            data: {
                name: best_on_one_half([experiments[at][data][name] for at in among], swap=swap)
                for name in under
            }
            for data, under in experiments[0].items()
        }
        return _atoms(of, Evidence(best, of.data))

    def both(among: Sequence[int]) -> tuple[Atoms, Atoms]:
        return found(among, swap=False), found(among, swap=True)

    count = len(experiments)
    drawn = named_generator("resampled searches", of.key, of.data).integers(count, size=(RESAMPLES, count))
    return list(both(range(count))), [both(each) for each in drawn.tolist()]


def _recorded(key: tuple[str, str, str], atoms: Atoms) -> float | None:
    return _finite(atoms[key].value) if key in atoms else None


def _finite(value: float) -> float | None:
    """A margin for a record, rounded because NumPy's logarithms differ between processors in the last digits; None
    for NaN, and ±`UNBOUNDED` for ∞."""
    if math.isnan(value):
        return None
    return float(f"{max(-UNBOUNDED, min(UNBOUNDED, value)):.6g}")
