"""An experiment end to end: plan, run, collect, and write the results folder."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from dpmf_cli import provenance
from dpmf_cli.calibration import known
from dpmf_cli.collect import Collected, collect
from dpmf_cli.config import ExperimentConfig, load_config
from dpmf_cli.datasets import Dataset, load
from dpmf_cli.datasets.prize import load_test_set
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.evaluation.portions import Portion, first_share, portion
from dpmf_cli.machine import REFERENCE, Machine
from dpmf_cli.plan import Plan, make_plan, sum_of_squares
from dpmf_cli.progress import Progress
from dpmf_cli.report.curves import curves_csv
from dpmf_cli.report.distributions import (
    distribution_bytes,
    distribution_csv,
    has_distribution,
    swept_distribution_bytes,
    swept_distribution_csv,
)
from dpmf_cli.report.figures import figure_bytes, is_drawable
from dpmf_cli.report.growth import growth_bytes, growth_csv, growth_lines
from dpmf_cli.report.layout import markdown
from dpmf_cli.report.ledgers import ledger_csv, records_csv
from dpmf_cli.report.local_tables import learned_nothing_table
from dpmf_cli.report.sweeps import sweep_bytes, swept_parameters
from dpmf_cli.report.tables import crossings_table, twins_table
from dpmf_cli.runner import Outcome, available_cores, run_plan
from dpmf_cli.store import Store, encode, write_atomically
from dpmf_cli.tasks import arrivals, fold_assignment

MANIFEST = "manifest.json"


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
    config: ExperimentConfig, *, base: Path, results: Path, data: Path, cache: Path, jobs: int
) -> Finished:
    """Runs what is left of a config and writes its results folder. Raises DpmfError for all that a user can mend."""
    begin = time.perf_counter()
    store = Store(results, warn=say)
    store.check_writable()
    dataset = load(config.dataset, data=data, cache=cache, base=base)
    if len(dataset.ratings) < config.folds:
        raise DpmfError(
            f"{dataset.title} has {len(dataset.ratings)} ratings, fewer than the {config.folds} folds asked for"
        )
    spec, test = config.dataset, ""
    if config.test != "folds" and isinstance(spec, CatalogSpec):
        test = load_test_set(spec, config.test, dataset, data=data, cache=cache, base=base).checksum
    portions = _portions(config, dataset)
    machine = known(cache, available_cores()) or REFERENCE
    plan = plan_for(config, dataset, test, store, machine)
    left = plan.left
    say(
        f"{config.name}: {dataset.title}, {plan.total} tasks, {plan.total - len(left)} done, {len(left)} left"
    )
    folder = results / config.name
    progress = Progress(config.name, len(left), sum(map(plan.cost_of, left)))
    outcomes = run_plan(plan, store, cache, jobs, progress)
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
    _keep_manifest(folder, config, dataset, test, outcomes, time.perf_counter() - begin, jobs)
    crossings = write_outputs(folder, collected)
    missing = sum(each.missing for each in collected.experiment.measured())
    return Finished(collected, crossings, folder, len(outcomes) - len(failures), missing, failures)


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
    for form in ("png", "svg"):
        drawable = any(is_drawable(curve) for curve in experiment.curves if curve.swept is None)
        if drawable:
            write_atomically(folder / f"curves.{form}", figure_bytes(experiment, form))
        if drawable and has_distribution(experiment):
            write_atomically(folder / f"error_cdf.{form}", distribution_bytes(experiment, form))
        for parameter in swept_parameters(experiment):
            write_atomically(folder / f"sweep-{parameter}.{form}", sweep_bytes(experiment, parameter, form))
            if has_distribution(experiment):
                data = swept_distribution_bytes(experiment, parameter, form)
                write_atomically(folder / f"error_cdf-{parameter}.{form}", data)
        if growth_lines(experiment):
            write_atomically(folder / f"growth.{form}", growth_bytes(experiment, form))
    return crossings


def _keep_manifest(
    folder: Path,
    config: ExperimentConfig,
    dataset: Dataset,
    test_checksum: str,
    outcomes: list[Outcome],
    seconds: float,
    jobs: int,
) -> None:
    """Writes the manifest, unless nothing was computed and the one that is there is of this config and data."""
    try:
        kept = json.loads((folder / MANIFEST).read_bytes())
        theirs = kept["config_sha256"], kept["dataset"]["checksum"], kept["dataset"].get("test_checksum", "")
    except (OSError, ValueError, KeyError, TypeError):
        theirs = None
    ours = config.hash, dataset.checksum, test_checksum
    if theirs == ours and not outcomes:
        return
    if theirs is not None and theirs != ours:
        say(f"{folder}/ held another experiment of that name; its tasks are kept, its tables are replaced")
    by_algorithm: dict[str, float] = {}
    peaks: dict[int, int] = {}
    for outcome in outcomes:
        name = outcome.task.algorithm.name
        by_algorithm[name] = by_algorithm.get(name, 0.0) + outcome.seconds
        peaks[outcome.process] = max(peaks.get(outcome.process, 0), outcome.peak_bytes)
    ratings = dataset.ratings
    manifest = {
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
        "git": provenance.git_state(),
        "versions": provenance.versions(),
        "cpu": provenance.cpu(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "last_run": {
            "tasks": len(outcomes),
            "failed": sum(outcome.failure is not None for outcome in outcomes),
            "processes": jobs,
            "wall_seconds": round(seconds, 3),
            "task_seconds": {name: round(value, 3) for name, value in by_algorithm.items()},
            "peak_bytes_of_processes": sorted(peaks.values(), reverse=True),
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
    write_atomically(folder / MANIFEST, json.dumps(json.loads(encode(manifest)), indent=2).encode() + b"\n")


def collect_folder(folder: Path, warn: Callable[[str], None] = say) -> Collected:
    """The results of the config that a results folder's manifest holds; its tasks lie beside the folder."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        config = ExperimentConfig.model_validate(manifest["config"])
        dataset = manifest["dataset"]
        key, title, checksum = dataset["key"], dataset["title"], dataset["checksum"]
        test = dataset.get("test_checksum", "")
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be read: {error.strerror}; run the experiment's config first"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DpmfError(
            f"{path}: not a config of this version of dpmf ({what}); run the config again"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise DpmfError(f"{path}: damaged, or of another version of dpmf; run the config again") from None
    return collect(
        config,
        dataset=key,
        title=title,
        checksum=checksum,
        test_checksum=test,
        store=Store(folder.parent, warn),
    )


def collected_results(of: list[Path], results: Path) -> Iterator[Collected]:
    """The experiments that are meant: of configs, of folders themselves, or of all folders with a manifest.

    Where all are asked for, a folder that cannot be read is told and passed over. A config that has changed since
    it was run is told too: what is shown is what was run.
    """
    if not of:
        found = sorted(path.parent for path in results.glob(f"*/{MANIFEST}"))
        if not found:
            raise DpmfError(
                f"{results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
            )
        for folder in found:
            try:
                yield collect_folder(folder)
            except DpmfError as error:
                say(f"passed over: {error}")
        return
    for path in of:
        if path.is_dir():
            yield collect_folder(path)
        elif path.suffix in (".yaml", ".yml"):
            config = load_config(path)
            folder = results / config.name
            collected = collect_folder(folder)
            if json.loads((folder / MANIFEST).read_bytes()).get("config_sha256") != config.hash:
                say(f"{path} is not what {folder}/ was run with; `dpmf run {path}` brings it up to date")
            yield collected
        else:
            raise DpmfError(f"{path}: neither a config (.yaml) nor a results folder")
