"""An experiment end to end: plan, run, collect, and write the results folder."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from dpmf_cli import provenance
from dpmf_cli.calibration import known
from dpmf_cli.collect import Collected, collect
from dpmf_cli.config import ExperimentConfig, config_of, load_config
from dpmf_cli.datasets import Dataset, load
from dpmf_cli.datasets.prize import load_test_set
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.evaluation.portions import Portion, first_share, portion
from dpmf_cli.machine import REFERENCE, Machine
from dpmf_cli.manifest import MANIFEST, checksums_of, read_manifest, refuse_changed_data, write_manifest
from dpmf_cli.plan import TWIN_GRID, Plan, make_plan, sum_of_squares
from dpmf_cli.progress import Progress
from dpmf_cli.report.curves import curves_csv
from dpmf_cli.report.distributions import distribution_csv, has_distribution, swept_distribution_csv
from dpmf_cli.report.drawings import drawings, never_drawn
from dpmf_cli.report.figures import FORMATS
from dpmf_cli.report.growth import growth_csv
from dpmf_cli.report.layout import markdown
from dpmf_cli.report.ledgers import ledger_csv, records_csv
from dpmf_cli.report.local_tables import learned_nothing_table
from dpmf_cli.report.sweeps import swept_parameters
from dpmf_cli.report.tables import crossings_table, twins_table
from dpmf_cli.runner import Executor, LocalProcesses, Outcome, available_cores, run_plan
from dpmf_cli.store import Store, write_atomically
from dpmf_cli.tasks import Task, arrivals, fold_assignment

FORMS_OF_RUN = ("png", "svg")
"""The figures that every run draws; `dpmf plot` draws PDF too."""


def say(message: str) -> None:
    """A line for the person at the terminal; results go to stdout, everything else here."""
    print(message, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Finished:
    """What a run came to. `missing` counts tasks without a result: failed ones, or deleted by somebody."""

    collected: Collected
    crossings: list[Crossing]
    folder: Path
    computed: int
    missing: int
    failures: list[Outcome]


def plan_for(
    config: ExperimentConfig, dataset: Dataset, test_checksum: str, store: Store, machine: Machine = REFERENCE
) -> Plan:
    """The plan of a config on a data set that is present, with the checksum of its fixed test set, "" for folds."""
    return make_plan(
        config,
        dataset=dataset.key,
        checksum=dataset.checksum,
        test_checksum=test_checksum,
        squares=sum_of_squares(dataset.ratings),
        users=dataset.ratings.n_users,
        items=dataset.ratings.n_items,
        ratings=len(dataset.ratings),
        store=store,
        machine=machine,
    )


def run(
    config: ExperimentConfig,
    *,
    base: Path,
    results: Path,
    data: Path,
    cache: Path,
    jobs: int = 1,
    executor: Executor | None = None,
    new_data: bool = False,
    command: str = "",
) -> Finished:
    """Runs what is left of a config and writes its results folder. Raises DpmfError for all that a user can mend.

    Tasks are executed in `jobs` processes of this machine, or by another executor. `new_data` replaces the tables of
    ratings that have changed since; without it they are kept, by an error. The manifest tells `command`, as typed.
    """
    begin = time.perf_counter()
    executor = executor or LocalProcesses(jobs)
    folder = results / config.name
    store = Store(results, warn=say, set_aside=True)
    store.prepare(folder)
    dataset = load(config.dataset, data=data, cache=cache, base=base)
    if len(dataset.ratings) < config.folds:
        raise DpmfError(
            f"{dataset.title} has {len(dataset.ratings)} ratings, fewer than the {config.folds} folds asked for"
        )
    spec, test = config.dataset, ""
    if config.test != "folds" and isinstance(spec, CatalogSpec):
        test = load_test_set(spec, config.test, dataset, data=data, cache=cache, base=base).checksum
    if not new_data:
        refuse_changed_data(folder, config, dataset, test)
    portions = _portions(config, dataset)
    machine = known(cache, available_cores()) or REFERENCE
    plan = plan_for(config, dataset, test, store, machine)
    left = plan.left
    say(
        f"{config.name}: {dataset.title}, {plan.total} tasks, {plan.total - len(left)} done, {len(left)} left"
        f"{new_epsilons(config, left)}"
    )
    progress = Progress(config.name, len(left), sum(map(plan.cost_of, left)))
    outcomes = run_plan(plan, store, cache, executor, progress)
    failures = [outcome for outcome in outcomes if outcome.failure]
    collected = collect(
        config,
        dataset=dataset.key,
        title=dataset.title,
        checksum=dataset.checksum,
        test_checksum=test,
        portions=portions,
        store=store,
    )
    seconds = time.perf_counter() - begin
    _keep_manifest(folder, config, dataset, test, portions, outcomes, seconds, executor.processes, command)
    crossings = write_outputs(folder, collected)
    missing = sum(each.missing for each in collected.experiment.measured())
    return Finished(collected, crossings, folder, len(outcomes) - len(failures), missing, failures)


def new_epsilons(config: ExperimentConfig, left: Sequence[Task]) -> str:
    """For the line above a run: which ε alone are computed, where the others of the grid are done."""
    partial = [
        task
        for task in left
        if len(task.epsilons) < len(config.grid(task.algorithm)) and task.epsilons != TWIN_GRID
    ]
    if not partial:
        return ""
    new = sorted({epsilon for task in partial for epsilon in task.epsilons})
    which = ", ".join(f"{epsilon:g}" for epsilon in new) if len(new) <= 8 else f"{len(new)} values"
    return f"; {len(partial)} of them at new ε alone ({which})"


def _portions(config: ExperimentConfig, dataset: Dataset) -> tuple[Portion, ...]:
    """What the portions of a config with growth hold, none for one without.

    Raises `DpmfError` where there is no order of time, or nothing to train on or to test in some fold.
    """
    if config.growth is None:
        return ()
    ratings, order, found = dataset.ratings, config.growth.order, []
    folds = fold_assignment(dataset.key, config.seed, config.folds, len(ratings))
    positions = arrivals(ratings, order, dataset=dataset.key, seed=config.seed)
    for share in config.portions:
        first = first_share(positions, share)
        counts = np.bincount(folds[first], minlength=config.folds)
        if not (counts[: config.folds_run].all() and (counts > 0).sum() > 1):
            raise DpmfError(
                f"{dataset.title}: {share:g} of the ratings are {counts.sum()}, too few for a test and a training "
                f"rating in each of {config.folds} folds; begin `growth.portions` with a larger one"
            )
        found.append(portion(ratings, share, order, first))
    return tuple(found)


def write_outputs(folder: Path, collected: Collected) -> list[Crossing]:
    """Curves, crossings, ledger and figures of an experiment; the same results give the same bytes."""
    experiment = collected.experiment
    crossings = find_crossings(experiment)
    files = {
        "curves.csv": curves_csv(experiment).encode(),
        "crossings.csv": crossings_table(crossings, "csv").encode(),
        "crossings.md": crossings_table(crossings, "md").encode(),
        "ledger.csv": ledger_csv(collected.ledgers).encode(),
    }
    if any(curve.twin is not None for curve in experiment.curves):
        files["without_noise.md"] = twins_table(experiment, "md").encode()
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        files["local_mean.md"] = markdown(learned_nothing).encode()
    if has_distribution(experiment):
        files["error_cdf.csv"] = distribution_csv(experiment).encode()
        for parameter in swept_parameters(experiment):
            files[f"error_cdf-{parameter}.csv"] = swept_distribution_csv(experiment, parameter).encode()
    if any(curve.records for curve in experiment.curves):
        files["records.csv"] = records_csv(experiment.curves).encode()
    if experiment.growth:
        files["growth.csv"] = growth_csv(experiment).encode()
    for name, data in files.items():
        write_atomically(folder / name, data)
    for name, draw in drawings(experiment).items():
        for form in FORMS_OF_RUN:
            write_atomically(folder / f"{name}.{form}", draw(form))
    for name in never_drawn(experiment):
        for form in FORMATS:
            (folder / f"{name}.{form}").unlink(missing_ok=True)
    return crossings


def _keep_manifest(
    folder: Path,
    config: ExperimentConfig,
    dataset: Dataset,
    test_checksum: str,
    portions: tuple[Portion, ...],
    outcomes: list[Outcome],
    seconds: float,
    processes: int,
    command: str,
) -> None:
    """Writes the manifest, unless nothing was computed and the one that is there is of this config and data."""
    kept: dict[str, Any] = {}
    theirs = None
    if (folder / MANIFEST).exists():
        try:
            kept = read_manifest(folder)
            theirs = kept["config_sha256"], *checksums_of(kept)
        except DpmfError:
            say(f"{folder / MANIFEST}: damaged, or of another version of dpmf; it is written anew")
    ours = config.hash, dataset.checksum, test_checksum
    if theirs == ours and not outcomes:
        return
    if theirs is not None and theirs != ours:
        what = "another data set" if theirs[1:] != ours[1:] else "another form of this config"
        say(f"{folder}/ was of {what}: its tables are replaced; finished tasks are kept, and found again")
    by_algorithm: dict[str, float] = {}
    peaks: dict[str, int] = {}
    for outcome in outcomes:
        name = outcome.task.algorithm.name
        by_algorithm[name] = by_algorithm.get(name, 0.0) + outcome.seconds
        peaks[outcome.process] = max(peaks.get(outcome.process, 0), outcome.peak_bytes)
    ratings = dataset.ratings
    before = kept.get("spent", {}) if theirs == ours else {}
    manifest = {
        "command": command,
        "config": config.resolved(),
        "config_sha256": config.hash,
        "seed": config.seed,
        "dataset": {
            "key": dataset.key,
            "title": dataset.title,
            "checksum": dataset.checksum,
            "test_checksum": test_checksum,
            "users": ratings.n_users,
            "items": ratings.n_items,
            "ratings": len(ratings),
            "scale": asdict(ratings.scale),
        },
        "portions": [asdict(each) for each in portions],
        "git": provenance.git_state(),
        "versions": provenance.versions(),
        **({"plugins": config.plugin_sources} if config.plugins else {}),
        "cpu": provenance.cpu(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "last_run": {
            "tasks": len(outcomes),
            "failed": sum(outcome.failure is not None for outcome in outcomes),
            "processes": processes,
            "cpus": sorted({outcome.cpu for outcome in outcomes} - {""}),
            "wall_seconds": round(seconds, 3),
            "task_seconds": {name: round(value, 3) for name, value in by_algorithm.items()},
            "peak_bytes_of_processes": sorted(peaks.values(), reverse=True),
        },
        # Of all runs of this config that ended: what its results took, however often it was resumed.
        "spent": {
            "tasks": before.get("tasks", 0) + sum(outcome.failure is None for outcome in outcomes),
            "wall_seconds": round(before.get("wall_seconds", 0.0) + seconds, 3),
            "task_seconds": round(before.get("task_seconds", 0.0) + sum(by_algorithm.values()), 3),
        },
        "failures": [
            {
                "algorithm": outcome.task.algorithm.name,
                "portion": outcome.task.cut.portion,
                "fold": outcome.task.fold,
                "run": outcome.task.run,
                "traceback": outcome.failure,
            }
            for outcome in outcomes
            if outcome.failure
        ],
    }
    write_manifest(folder, manifest)


@dataclass(frozen=True)
class Ran:
    """What a results folder says was run: the config, the key, title and checksums of its data, and its portions."""

    config: ExperimentConfig
    dataset: str
    title: str
    checksum: str
    test_checksum: str
    portions: tuple[Portion, ...]


def what_ran(folder: Path, warn: Callable[[str], None] = say) -> Ran:
    """Raises DpmfError where the folder has no manifest that this version understands."""
    manifest = read_manifest(folder)
    try:
        config = config_of(manifest["config"])
        portions = tuple(Portion(**each) for each in manifest.get("portions", ()))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DpmfError(
            f"{folder / MANIFEST}: not a config of this version of dpmf ({what}); run the config again"
        ) from None
    except TypeError:
        raise DpmfError(
            f"{folder / MANIFEST}: damaged, or of another version of dpmf; run the config again"
        ) from None
    except DpmfError as error:
        raise DpmfError(f"{folder}: {error}") from None
    if manifest.get("plugins", {}) != config.plugin_sources:
        warn(f"{folder}: a plugin has changed since; `dpmf run` its config computes anew what it changes")
    dataset = manifest["dataset"]
    return Ran(config, dataset["key"], dataset["title"], *checksums_of(manifest), portions)


def collect_folder(folder: Path, warn: Callable[[str], None] = say) -> Collected:
    """The results of the config that a results folder's manifest holds; its tasks lie beside the folder."""
    return collect_ran(what_ran(folder, warn), Store(folder.parent, warn))


def collect_ran(ran: Ran, store: Store) -> Collected:
    """The results of what was run."""
    return collect(
        ran.config,
        dataset=ran.dataset,
        title=ran.title,
        checksum=ran.checksum,
        test_checksum=ran.test_checksum,
        portions=ran.portions,
        store=store,
    )


def results_folder(path: Path, results: Path) -> Path:
    """The results folder that is meant: `path` itself, or that of a config, which is told where it has changed since
    it was run: what is shown is what was run. Raises DpmfError for what is neither."""
    if path.is_dir():
        return path
    if path.suffix not in (".yaml", ".yml"):
        raise DpmfError(f"{path}: neither a config (.yaml) nor a results folder")
    config = load_config(path)
    folder = results / config.name
    try:
        changed = read_manifest(folder)["config_sha256"] != config.hash
    except DpmfError:
        return folder  # what is wrong with it, its reader says
    if changed:
        say(f"{path} is not what {folder}/ was run with; `dpmf run {path}` brings it up to date")
    return folder


def collected_results(of: list[Path], results: Path) -> Iterator[Collected]:
    """The experiments that are meant: of configs, of folders themselves, or of all folders with a manifest.

    Where all are asked for, a folder that cannot be read is told and passed over.
    """
    if not of:
        yield from (collected for _, collected in all_results(results))
        return
    for folder in folders_of(of, results):
        yield collect_folder(folder)


def all_results(results: Path) -> Iterator[tuple[Path, Collected]]:
    """Every folder with a manifest and its experiment, by name; one that cannot be read is told and passed over.

    Raises `DpmfError` where there is no such folder.
    """
    found = sorted(path.parent for path in results.glob(f"*/{MANIFEST}"))
    if not found:
        raise DpmfError(
            f"{results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
        )
    for folder in found:
        try:
            collected = collect_folder(folder)
        except DpmfError as error:
            say(f"passed over: {error}")
        else:
            yield folder, collected


def folders_of(of: list[Path], results: Path) -> Iterator[Path]:
    """The results folders that are meant, as `results_folder` finds each."""
    for path in of:
        yield results_folder(path, results)
