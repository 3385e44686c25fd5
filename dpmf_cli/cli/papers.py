"""Commands about the papers: `dpmf configs`, `dpmf explore` and `dpmf reproduce`."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.terminal import duration, say

if TYPE_CHECKING:
    from dpmf_cli.papers.claims import Output, Table
    from dpmf_cli.studies.reproduce import Maker


def configs(data: options.DataOption = None, as_json: options.JsonOption = False) -> str:
    """List the shipped configs: paper, table, data, time.

    `dpmf run` takes their names in any folder.

    Example: dpmf configs
    """
    from dpmf_cli.experiment.config.documents import shipped_names
    from dpmf_cli.papers.claims import all_papers
    from dpmf_cli.report.tables.layout import Group, TextTable, draw

    groups, listed = [], set[str]()
    for key, findings in all_papers().items():
        of = {
            name: ", ".join(dict.fromkeys(each.name for each in findings.exhibits if name in each.configs))
            for name in findings.configs
        }
        groups.append(Group(f"{key}: {findings.title}", tuple(_rows(of, data))))
        listed |= of.keys()
    others = {name: "" for name in shipped_names() if name not in listed}
    groups.append(Group("not from a single paper", tuple(_rows(others, data))))
    notes = (
        "time: of a run from nothing on all cores of this machine, as `dpmf plan` estimates it",
        "no: its data are not here; `dpmf datasets info KEY` says how to get them",
    )
    header = ("config", "table or figure", "data set", "here", "time")
    return draw(TextTable(header, "llllr", tuple(groups), notes), "json" if as_json else "table")


def _rows(of: dict[str, str], data: Path | None) -> Iterator[tuple[str, ...]]:
    """Yields a row for each config. `of` says what each config shows, by its name."""
    from dpmf_cli.datasets import Folders
    from dpmf_cli.datasets.located import what_is_missing
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.documents import FOLDER
    from dpmf_cli.experiment.running.calibration import calibrated
    from dpmf_cli.experiment.running.plan import plan_without_parsing

    folders = Folders.named(data, base=FOLDER, results=Path("no results"))
    cores = available_cores()
    machine = calibrated(folders.cache, cores, "dpmf_cli.studies.experiment", say)
    for name, shows in of.items():
        config = load_config(FOLDER / f"{name}.yaml")
        made, _ = plan_without_parsing(config, folders, machine)
        here = "no" if what_is_missing(config.dataset, folders) else "yes"
        yield name, shows, config.dataset.key, here, duration(made.seconds(cores))


def explore(
    paper: Annotated[str, typer.Argument(help="Key of the paper, e.g. friedman2016, or `all`.")],
    dataset: Annotated[str, typer.Option(help="Key of the data set to explore on.")] = "ml-100k",
    settings: Annotated[
        int | None,
        typer.Option(min=1, help="How many settings to run; default: as many as the paper's space says."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of other folds, other noise, and another sample of settings."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="Folder of records; default: RESULTS/explored, or RESULTS/explored/seed-N."),
    ] = None,
    plan: options.PlanOption = False,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Try what a paper leaves open, and judge its claims.

    Runs many settings, and continues an interrupted exploration. Says which inequalities of each claim hold in them,
    and which printed figures agree.

    Example: dpmf explore friedman2016 --settings 32
    """
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config.documents import FOLDER as SHIPPED
    from dpmf_cli.papers.record import FOLDER
    from dpmf_cli.papers.space import explored, space
    from dpmf_cli.report.tables.layout import as_objects, json_text, terminal
    from dpmf_cli.report.tables.papers import claims_text, printed_values_text
    from dpmf_cli.studies.explore import exploration, plan_of, recorded

    folders = Folders.named(data, base=SHIPPED, results=results)
    keys = [key for key in explored() if dataset in space(key).data] if paper == "all" else [paper]
    if not keys:
        known = dict.fromkeys(data for key in explored() for data in space(key).data)
        raise DpmfError(f'no paper is explored on "{dataset}"{did_you_mean(dataset, known)}')
    for key in keys:
        wanted = exploration(key, dataset, settings, seed)
        processes = jobs or available_cores()
        if plan:
            made = plan_of(wanted, folders, parsing=False)
            about = duration(made.seconds(processes))
            print(f"{key}: {len(wanted.settings)} settings on {dataset}, {made.summary}, about {about}")
            continue
        folder = record or results / FOLDER / ("" if seed is None else f"seed-{seed}")
        path, kept = recorded(wanted, folders, processes, folder)
        found = kept.data[dataset]
        shown = {"claims": claims_text(kept, wanted.paper)}
        if found.printed:
            shown["printed"] = printed_values_text(found)
        if as_json:
            print(json_text({name: as_objects(table) for name, table in shown.items()}), end="")
        else:
            print("\n".join(map(terminal, shown.values())))
        say(str(path))


def reproduce(
    what: Annotated[str, typer.Argument(help="Key of a paper, `combined`, `frontier`, `large` or `all`.")],
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="Run one fold and one run of most experiments, on MovieLens 100K; takes minutes."
        ),
    ] = False,
    plan: options.PlanOption = False,
    results: Annotated[
        Path | None, typer.Option(help="Folder of results; default: results, or results/small with --small.")
    ] = None,
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Reproduce a paper: run, write tables and report, judge.

    Resumes an interrupted reproduction. Names missing data once. It ends with a verdict: whether RMSE
    is as expected, for each curve at three ε. It may differ by two standard deviations over folds and runs, or by a
    thousandth of itself. The exit code is 1 if one differs by more, or if an experiment has no expected figures.

    Example: dpmf reproduce friedman2016 --small
    """
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config.documents import FOLDER
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.papers.claims import parts_named
    from dpmf_cli.report.html.page import overview_page
    from dpmf_cli.report.tables.layout import json_text, markdown, strict
    from dpmf_cli.studies import reproduce as reproducing

    processes = jobs or available_cores()
    folders = Folders.named(data, base=FOLDER, results=results or Path("results", "small" if small else ""))
    of = reproducing.Reproduction.of(parts_named(what), folders, small=small)
    if plan:
        for words, made in of.plans(folders, parsing=False):
            print(f"{words}, about {duration(made.seconds(reproducing.processes_for(made, processes)))}")
    for lacking, names in of.missing.items():
        say(f"not run: {', '.join(names)}: {lacking}")
    if plan:
        return
    if not of.configs:
        raise DpmfError(f"no data of {what} are here: nothing to run")
    began = time.perf_counter()
    found, times = reproducing.run_all(of, folders, processes)
    for path in reproducing.write_outputs(of, folders.results, _outputs(folders.results, data)):
        say(f"wrote {path}")
    page = folders.results / "report.html"
    write_atomically(page, overview_page(folders).encode(errors="backslashreplace"))
    say(f"wrote {page}")
    if times:
        took = folders.results / f"times_{what}.md"
        write_atomically(
            took, markdown(reproducing.times_text(times, time.perf_counter() - began, processes)).encode()
        )
        say(f"wrote {took}")
    expected = reproducing.read_expected(reproducing.path_of(small=small))
    now = {each.name: reproducing.figures_of(each) for each in found}
    off = {name: reproducing.figures_off(expected.get(name, {}), figures) for name, figures in now.items()}
    unknown = [name for name in now if name not in expected]
    count, total = (sum(len(each.get(name, {})) for name in now) for each in (off, expected))
    known = len(now) - len(unknown)
    if as_json:
        numbers = {"experiments": known, "figures": total, "as_expected": total - count}
        wrong = {name: {key: strict(mean) for key, mean in each.items()} for name, each in off.items()}
        print(json_text({**numbers, "off": wrong, "not_expected": unknown}), end="")
        raise typer.Exit(count > 0 or bool(unknown))
    print(f"{total - count:,} of {total:,} RMSE of {known} experiments are as expected")
    for name in unknown:
        print(f"{name}: dpmf ships no expected figures for it")
    for name, figures in off.items():
        for figure, mean in figures.items():
            here, wanted = "none" if mean is None else f"{mean:.5g}", expected[name][figure]
            print(f"{name}: {figure}: {here}, expected {wanted.mean:.5g} ± {wanted.deviation:.2g}")
    if count or unknown:
        raise typer.Exit(1)


def _outputs(results: Path, data: Path | None) -> "Mapping[Table, Maker]":
    """What makes each kind of output, from the folders of the experiments that were run."""
    from dpmf_cli.cli import tables
    from dpmf_cli.cli.datasets import info

    def figure(of: "Output") -> Path | None:
        return results / of.figure if of.figure else None

    return {
        "statistics": lambda of, _: info(list(of.data), data),
        "noise": lambda of, _: tables.noise_of(of.data[0], data, of.form),
        "traffic": lambda of, _: tables.traffic(Path(of.configs[0]), data, of.form),
        "baselines": lambda of, given: tables.baselines(given, results, of.form),
        "crossings": lambda of, given: tables.crossings(given, results, of.form),
        "printed crossings": lambda of, given: tables.crossings(given, results, of.form, printed=True),
        "improvements": lambda of, given: tables.improvements(given, results, of.form),
        "combined": lambda of, given: tables.combined(given, results, of.form, figure=figure(of)),
        "frontier": lambda of, given: tables.frontier(given, results, of.form, figure(of)),
    }
