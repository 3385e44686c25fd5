"""`dpmf run`, `plan` and `tune`: run an experiment, say what a run would do, or try settings of its methods."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import duration, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpmf_cli.datasets import Sizes
    from dpmf_cli.experiment.config import ExperimentConfig
    from dpmf_cli.experiment.running.plan import Plan
    from dpmf_cli.studies.experiment import Finished

DONE = "nothing to compute: all tasks are done"

MOST_ROWS = 1000
"""Most rows of one table that `dpmf run` prints. The table's file has all rows."""


def run(
    config: options.ConfigArgument,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    new_data: Annotated[
        bool, typer.Option("--new-data", help="Replace results if their data file has changed since.")
    ] = False,
    dataset: options.DatasetOption = None,
    held_out: options.HeldOutOption = None,
    runs: options.RunsOption = None,
    if_present: Annotated[
        bool,
        typer.Option("--if-present", help="If the data are missing, say how to get them and do nothing."),
    ] = False,
    as_json: options.JsonOption = False,
    plugin: options.PluginOption = None,
) -> None:
    """Run an experiment; finished tasks are not run again.

    Example: dpmf run configs/ml100k_bounded.yaml -j 2
    """
    from dpmf_cli.core.remembered import recall, remember
    from dpmf_cli.datasets import Folders, known
    from dpmf_cli.datasets.located import what_is_missing
    from dpmf_cli.experiment.results.folders import name_and_hash

    folders = Folders.named(data, base=config.parent, results=results)
    name, digest, left = name_and_hash(config, dataset=dataset, held_out=held_out, runs=runs)
    place = f"run {results / name} {(results / name).absolute()} {left}"
    if not as_json and (again := recall(place)):
        of, spec, test, said, tables = again
        found = None if what_is_missing(spec, folders) else known(spec, folders, test)
        if found is not None and of == (digest, found.identity, found.merged):
            say("\n".join(said))
            print(tables, end="")
            say(f"{DONE}; results in {results / name}/")
            return
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.loading import flags, reduced
    from dpmf_cli.studies.experiment import run as run_experiment

    experiment_config = reduced(load_config(config), dataset=dataset, held_out=held_out, runs=runs)
    missing = what_is_missing(experiment_config.dataset, folders)
    if if_present and missing:
        say(f"{experiment_config.name}: skipped: {missing}")
        return
    plugins = [word for file in plugin or () for word in ("--plugin", str(file))]
    finished = run_experiment(
        experiment_config,
        folders,
        jobs or available_cores(),
        new_data=new_data,
        command=shlex.join(["dpmf", "run", str(config), *flags(dataset, held_out, runs), *plugins]),
    )
    tables = _tables(finished, as_json=as_json)
    print(tables, end="")
    if finished.again and not as_json:
        remember(place, (*finished.again, tables), finished.collected.made_from)
    done = f"computed {finished.computed} tasks" if finished.computed else DONE
    say(f"{done}; results in {finished.folder}/")
    if finished.failures:
        first, count = finished.failures[0], len(finished.failures)
        say(f"{count} tasks failed; the first, {first.task.algorithm.name}:\n{first.failure}")
        where = f"all tracebacks are in {finished.folder}/manifest.json"
        say(f"{where}; the same command tries these tasks again")
    elif finished.missing:
        why = "was results/tasks changed meanwhile?"
        say(f"{finished.missing} tasks have no result though they were run: {why}")
    if finished.failures or finished.missing:
        raise typer.Exit(1)


def plan(
    config: options.ConfigArgument,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    dataset: options.DatasetOption = None,
    held_out: options.HeldOutOption = None,
    runs: options.RunsOption = None,
    as_json: options.JsonOption = False,
    plugin: options.PluginOption = None,
) -> str:
    """Say what a run would do and how long it takes; run nothing.

    Shows all tasks, those done and those left, time and memory.

    Example: dpmf plan configs/ml1m_bounded.yaml
    """
    from dpmf_cli.datasets import Folders, known, look
    from dpmf_cli.datasets.spec import CsvSpec
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.loading import reduced
    from dpmf_cli.experiment.running.calibration import calibrated
    from dpmf_cli.experiment.running.plan import plan_without_parsing

    loaded = reduced(load_config(config), dataset=dataset, held_out=held_out, runs=runs)
    folders = Folders.named(data, base=config.parent, results=results)
    machine = calibrated(folders.cache, available_cores(), "dpmf_cli.studies.experiment", say)
    made, size = plan_without_parsing(loaded, folders, machine)
    own = known(loaded.dataset, folders) if isinstance(loaded.dataset, CsvSpec) else None
    seen = look(loaded.dataset, own).report() if own else []
    return describe(loaded, made, size, jobs or available_cores(), seen=seen, as_json=as_json)


def tune(
    config: options.ConfigArgument,
    trials: Annotated[
        int,
        typer.Option(
            min=1, help="How many settings to try for each method; the first is the method as written."
        ),
    ] = 16,
    at: Annotated[
        str, typer.Option(help="The ε to judge by, e.g. 0.1,1,5; default: lowest, middle and highest.")
    ] = "",
    to: Annotated[Path | None, typer.Option(help="Write a config with the tuned entries, too.")] = None,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    dataset: options.DatasetOption = None,
    held_out: options.HeldOutOption = None,
    runs: options.RunsOption = None,
    form: options.FormatOption = "table",
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
) -> str:
    """Choose parameters, with equal effort for all methods.

    Tries the same number of settings of each, from the space that `search` in the config declares, and continues an
    interrupted search. Tune on other ratings than those that you report, because the choice leaks.

    Example: dpmf tune configs/frontier_ml100k.yaml --trials 16 --to tuned.yaml
    """
    from dpmf_cli.core.files import write_whole, writing
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.loading import reduced
    from dpmf_cli.experiment.results.manifest import add_file
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.studies import tune as tuning

    try:
        grid = [float(each) for each in at.split(",") if at]
    except ValueError:
        raise DpmfError(f"--at {at}: write numbers with commas between them, like 0.1,1,5") from None
    if to and to.exists():
        raise DpmfError(f"--to {to}: exists already; name a new file, or remove this one")
    if to:  # rather now than after hours
        with writing(to, "name another file with --to"):
            write_whole(to, [])
            to.unlink()
    loaded = load_config(config)
    cut = reduced(loaded, dataset=dataset, held_out=held_out, runs=runs)
    folders = Folders.named(data, base=config.parent, results=results)
    processes = jobs or available_cores()
    rows, table = tuning.tune(cut, loaded.search, trials, grid, folders, processes)
    for suffix in ("csv", "md"):
        add_file(results / cut.name / f"tuned.{suffix}", draw(table, suffix).encode())
    say(f"wrote {results / cut.name}/tuned.csv and tuned.md")
    if to:
        write_atomically(to, tuning.tuned_config(config, loaded, rows, to).encode())
        say(f"wrote {to}: {sum(bool(row.changed) for row in rows)} tuned entries below those as written")
    return draw(table, form)


def describe(
    config: "ExperimentConfig",
    plan: "Plan",
    size: "Sizes",
    jobs: int,
    *,
    seen: "Sequence[str]" = (),
    as_json: bool,
) -> str:
    """A plan as a table or as JSON. `seen` has lines about the ratings, and warnings."""
    from dpmf_cli.datasets.spec import SyntheticSpec
    from dpmf_cli.evaluation.crossings import MOST_ROUNDS
    from dpmf_cli.report.tables.layout import Group, TextTable, terminal

    seconds, peak = plan.seconds(jobs), plan.peak_bytes(jobs)
    parts = [
        {
            "label": part.entry.name,
            "tasks": part.total,
            "done": part.total - len(part.left),
            "left": len(part.left),
            "epsilons_left": max((len(task.epsilons) for task in part.left), default=0),
            "seconds_left": round(plan.seconds_of(part), 3),
        }
        for part in plan.entries
    ]
    if as_json:
        record = {
            "name": config.name,
            "dataset": config.dataset.key,
            "users": size.users,
            "items": size.items,
            "ratings": size.ratings,
            "sizes": size.basis,
            "seen": list(seen),
            "processes": jobs,
            "seconds": round(seconds, 3),
            "peak_bytes": int(peak),
            "seconds_to_make_data": round(plan.made.seconds, 3),
            "bytes_to_make_data": int(plan.made.bytes),
            "refines": config.refines,
            "algorithms": parts,
        }
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    rows = [
        (*(str(value) for value in list(each.values())[:-1]), duration(plan.seconds_of(part)))
        for each, part in zip(parts, plan.entries, strict=True)
    ]
    if isinstance(config.dataset, SyntheticSpec):
        source = "made up, as many as the config asks for"
    else:
        source = "counted" if size.basis == "counted" else "expected: the data are not read yet"
    title = f"{config.name}: {config.dataset.key}, {size.ratings:,} ratings by {size.users:,} users "
    more = (  # how many cannot be known, since that depends on results
        f"more may come: ε are added where curves cross a baseline (`refine`), in at most {MOST_ROUNDS} rounds, "
        "each of which takes at most as long as the private part"
    )
    return terminal(
        TextTable(
            header=("algorithm", "tasks", "done", "left", "ε left", "one core"),
            alignment="lrrrrr",
            groups=(Group(f"{title}of {size.items:,} items ({source})", tuple(rows)),),
            notes=(
                f"left: {len(plan.left)} of {plan.total} tasks, about {duration(seconds)} in {jobs} "
                f"process{'es' if jobs > 1 else ''}, up to {peak / 2**30:.2f} GiB of memory in all",
                *[f"{duration(plan.made.seconds)} of that is for making up the ratings first"]
                * bool(plan.made.seconds),
                *[more] * config.refines,
                *config.left_to_defaults,
                "times are estimates, for this machine when it is idle and kernels are compiled",
                *seen,
            ),
        )
    )


def _tables(finished: "Finished", *, as_json: bool = False) -> str:
    """Tables of baselines, noise-free runs, crossings and ledgers, of very long ones only the first rows; or all rows
    as JSON, by the names of the tables' files."""
    from dpmf_cli.report.tables.crossings import (
        baseline_rows,
        baselines_table,
        crossings_table,
        noise_free_table,
    )
    from dpmf_cli.report.tables.layout import as_objects, draw, first_rows, json_text
    from dpmf_cli.report.tables.ledgers import ledger_table, records_table
    from dpmf_cli.report.tables.papers import learned_nothing_table

    experiment = finished.collected.shown
    tables = [(baselines_table(baseline_rows(experiment)), "curves.csv")]
    if any(curve.noise_free is not None for curve in experiment.curves):
        tables.append((noise_free_table(experiment), "without_noise.md"))
    tables.append((crossings_table(finished.crossings), "crossings.md"))
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        tables.append((learned_nothing, "local_mean.md"))
    tables.append((ledger_table(finished.collected.ledgers, experiment), "ledger.csv"))
    if any(curve.records for curve in experiment.curves):
        tables.append((records_table(experiment.curves), "records.csv"))
    if as_json:
        return json_text({Path(file).stem: as_objects(table) for table, file in tables})
    shown = (first_rows(table, MOST_ROWS, f"{finished.folder}/{file}") for table, file in tables)
    return "\n".join(map(draw, shown))
