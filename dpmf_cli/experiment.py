"""An experiment end to end: plan, run, collect, and write the results folder."""

import json
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmf_cli import provenance
from dpmf_cli.collect import Collected, collect
from dpmf_cli.config import ExperimentConfig, load_config
from dpmf_cli.datasets import Dataset, load
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.plan import Plan, make_plan
from dpmf_cli.progress import Progress
from dpmf_cli.report.curves import curves_csv
from dpmf_cli.report.figures import figure_bytes, is_drawable
from dpmf_cli.report.ledgers import ledger_csv
from dpmf_cli.report.sweeps import sweep_bytes, swept_parameters
from dpmf_cli.report.tables import crossings_table
from dpmf_cli.runner import Outcome, run_plan
from dpmf_cli.store import Store, encode, write_atomically

MANIFEST = "manifest.json"


def say(message: str) -> None:
    """A line for the person at the terminal; results go to stdout, everything else here."""
    print(message, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Finished:
    """What a run came to."""

    collected: Collected
    crossings: list[Crossing]
    folder: Path
    computed: int
    failures: list[Outcome]


def plan_for(config: ExperimentConfig, dataset: Dataset, store: Store) -> Plan:
    """The plan of a config on a data set that is present."""
    return make_plan(
        config,
        dataset=dataset.key,
        checksum=dataset.checksum,
        users=dataset.ratings.n_users,
        items=dataset.ratings.n_items,
        ratings=len(dataset.ratings),
        store=store,
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
    plan = plan_for(config, dataset, store)
    left = plan.left
    say(
        f"{config.name}: {dataset.title}, {plan.total} tasks, {plan.total - len(left)} done, {len(left)} left"
    )
    folder = results / config.name
    progress = Progress(config.name, len(left), sum(map(plan.cost_of, left)))
    outcomes = run_plan(plan, store, cache, jobs, progress)
    failures = [outcome for outcome in outcomes if outcome.failure]
    collected = collect(
        config, dataset=dataset.key, title=dataset.title, checksum=dataset.checksum, store=store
    )
    if outcomes or not (folder / MANIFEST).exists():
        seconds = time.perf_counter() - begin
        _write_manifest(folder, config, dataset, outcomes, seconds, jobs)
    crossings = write_outputs(folder, collected)
    return Finished(collected, crossings, folder, len(outcomes) - len(failures), failures)


def write_outputs(folder: Path, collected: Collected) -> list[Crossing]:
    """Curves, crossings, ledger and figure of an experiment; the same results give the same bytes."""
    experiment = collected.experiment
    crossings = find_crossings(experiment)
    files = {
        "curves.csv": curves_csv(experiment).encode(),
        "crossings.csv": crossings_table(crossings, "csv").encode(),
        "crossings.md": crossings_table(crossings, "md").encode(),
        "ledger.csv": ledger_csv(collected.ledgers).encode(),
    }
    for form in ("png", "svg"):
        if any(is_drawable(curve) for curve in experiment.curves if curve.swept is None):
            files[f"curves.{form}"] = figure_bytes(experiment, form)
        for parameter in swept_parameters(experiment):
            files[f"sweep-{parameter}.{form}"] = sweep_bytes(experiment, parameter, form)
    for name, data in files.items():
        write_atomically(folder / name, data)
    return crossings


def _write_manifest(
    folder: Path,
    config: ExperimentConfig,
    dataset: Dataset,
    outcomes: list[Outcome],
    seconds: float,
    jobs: int,
) -> None:
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
                "fold": outcome.task.fold,
                "run": outcome.task.run,
                "traceback": outcome.failure,
            }
            for outcome in outcomes
            if outcome.failure
        ],
    }
    write_atomically(folder / MANIFEST, json.dumps(json.loads(encode(manifest)), indent=2).encode() + b"\n")


def collect_folder(folder: Path, store: Store) -> Collected:
    """The results of the config that a results folder's manifest holds."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        config = ExperimentConfig.model_validate(manifest["config"])
        dataset = manifest["dataset"]
        return collect(
            config, dataset=dataset["key"], title=dataset["title"], checksum=dataset["checksum"], store=store
        )
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be read: {error.strerror}; run the experiment's config first"
        ) from None
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        what = str(error).splitlines()[0]
        raise DpmfError(
            f"{path}: not a manifest of this version of dpmf ({what}); run the experiment's config again"
        ) from None


def selected_folders(of: list[Path], results: Path) -> list[Path]:
    """The results folders that are meant: of configs, of folders themselves, or all that have a manifest."""
    if not of:
        found = sorted(path.parent for path in results.glob(f"*/{MANIFEST}"))
        if not found:
            raise DpmfError(
                f"{results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
            )
        return found
    folders = []
    for path in of:
        if path.is_dir():
            folders.append(path)
        elif path.suffix in (".yaml", ".yml"):
            folders.append(results / load_config(path).name)
        else:
            raise DpmfError(f"{path}: neither a config (.yaml) nor a results folder")
    return folders
