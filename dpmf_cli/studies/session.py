"""The interface for programs and notebooks: experiments are run by a call, and tables come as data frames.

Tasks run in other processes, even one at a time, so that an interrupt need not wait for a kernel (docs/design.md).
"""

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from matplotlib.figure import Figure

from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.files import sha256
from dpmf_cli.core.streams import SECRET
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, cache, load
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.evaluation.crossings import levels_at
from dpmf_cli.experiment.config import ExperimentConfig, config_of, load_config, suggested
from dpmf_cli.experiment.config.documents import EXTENDS, config_file, given
from dpmf_cli.experiment.config.loading import validated
from dpmf_cli.experiment.running.calibration import REFERENCE
from dpmf_cli.experiment.running.plan import plan_without_parsing, refuse_failures
from dpmf_cli.experiment.running.processes import APART
from dpmf_cli.report.advice import answer
from dpmf_cli.report.figures.drawings import figures
from dpmf_cli.report.figures.style import styled
from dpmf_cli.report.leaders import shipped
from dpmf_cli.report.outputs import curves_csv
from dpmf_cli.report.tables.crossings import crossings_table, levels_table
from dpmf_cli.report.tables.layout import as_objects, draw, json_text
from dpmf_cli.report.tables.ranked import frontier_table
from dpmf_cli.studies import experiment

if TYPE_CHECKING:
    from pandas import DataFrame

Config = Path | str | Mapping[str, Any]
Limits = tuple[float, float] | tuple[float, float, float]


@dataclass(frozen=True)
class Results:
    """A finished experiment: its tables as data frames, with the columns of the commands' CSV, and its figures.

    folder   its results folder
    """

    folder: Path
    finished: experiment.Finished = field(repr=False)

    def crossings(self) -> "DataFrame":
        """A row for each method and baseline, as `dpmf crossings --format csv`."""
        return _frame(draw(crossings_table(self.finished.crossings), "csv"))

    def curves(self) -> "DataFrame":
        """A row for each method and ε, and for each baseline, as `curves.csv`."""
        return _frame(curves_csv(self.finished.collected.shown))

    def frontier(self) -> "DataFrame":
        """A row for each guarantee and ε, with the method that leads, as `dpmf frontier --format csv`."""
        return _frame(draw(frontier_table([self.finished.collected.experiment]), "csv"))

    def plot(self, name: str = "") -> Figure:
        """A figure by the name that `dpmf plot` gives its file; by default the first one."""
        found = figures(self.finished.collected.shown)
        if not found or name not in ("", *found):
            raise DpmfError(f'{self.folder}: no figure "{name}"{did_you_mean(name, found)}')
        with styled():
            return found[name or next(iter(found))]()


@contextmanager
def _for_programs() -> Iterator[None]:
    """A context that says that an interrupt loses nothing, and in which errors name the data frame and arguments, not
    its file and options."""
    before = APART.set(True)
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted: what was finished is kept; make the same call again to go on")
        raise
    except DpmfError as error:
        text, times = re.subn(r"/[^\n:]*/frames/\w+\.csv", "ratings", str(error).removeprefix("--"))
        raise DpmfError(text.replace("the file", "the data frame") if times else text) from None
    finally:
        APART.reset(before)


@_for_programs()
def run(
    config: Config,
    *,
    ratings: "DataFrame | None" = None,
    scale: Limits | None = None,
    results: Path | str = "results",
    jobs: int | None = None,
    data: Path | str | None = None,
) -> Results:
    """The results of an experiment, run like `dpmf run`: finished tasks, also of an interrupted call, are not run
    again.

    config    a YAML file, the name of a shipped config, or a dictionary of what such a file holds
    ratings   a data frame with the columns user, item, rating, and timestamp for a split by time; it takes the place
              of the config's `dataset`, except for `name`, `scale` and `duplicates` there
    scale     the scale of these ratings, as the site allows them: minimum, maximum, and the step if there is one
    results   the folder of results
    jobs      how many processes execute tasks; by default one for each core
    data      the folder of the catalog's files; by default $DPMF_DATA, else `datasets`

    Raises DpmfError for what a user can mend, and if a task failed.
    """
    base = Path() if isinstance(config, Mapping) else Path(config).parent
    folders = Folders.named(Path(data) if data else None, base=base, results=Path(results))
    checked = _config(config, ratings, scale, folders)
    found = experiment.run(checked, folders, max(1, jobs or available_cores()), command="dpmf_cli.run")
    refuse_failures(found.failures)
    return Results(found.folder, found)


@_for_programs()
def advise(
    ratings: "DataFrame",
    *,
    scale: Limits,
    protects: str = "value",
    epsilon: float = 1.0,
    name: str = "ratings",
    results: Path | str = "results",
    jobs: int | None = None,
) -> Results:
    """The results of every provable method on a data frame of ratings; like `dpmf advise`, it prints which one to
    take.

    protects   what ε hides: value, presence, user or local
    epsilon    the ε that you would accept
    name       a name for the ratings; if a pair of user and item stands there twice, its last rating is kept

    The others are as in `run`. Raises DpmfError as `run` does.
    """
    folders, neighbours = Folders.named(results=Path(results)), suggested.asked_for(protects, epsilon)
    keys = {"folds": suggested.FOLDS, "runs": suggested.RUNS, "dataset": {"name": name, "duplicates": "last"}}
    every = suggested.Candidates(tuple(key for key, _ in suggested.provable(neighbours)), ())
    text = suggested.config_text(keys, neighbours, epsilon, every, "")
    whole = _config({"name": f"{name}-{protects}", **yaml.safe_load(text)}, ratings, scale, folders)
    entries = zip(whole.resolved()["algorithms"], whole.algorithms, strict=True)
    fit = suggested.fitting(entries, load(whole.dataset, folders).ratings, epsilon, name)
    for each in fit.left_out:
        say(f"left out: {each}")
    config = config_of({**whole.resolved(), "algorithms": list(fit.taken)})
    found = print_answer(config, None, folders, jobs, epsilon)
    return Results(found.folder, found)


def print_answer(
    config: ExperimentConfig,
    file: Path | None,
    folders: Folders,
    jobs: int | None,
    epsilon: float,
    *,
    by_errors: bool = True,
    before: str = "",
    only_first: bool = False,
    as_json: bool = False,
) -> experiment.Finished:
    """The outcome of a config, which it runs; it prints the page that says which method to take, in which `before`
    follows the title.

    If that takes long, there is a first page from two folds of a few methods, whose tasks are a part of the whole.

    file        the file of the config; None if it is a program's
    only_first  whether the first page is all, where there is one
    as_json     whether the last page is printed as JSON, with the crossings and the errors at this ε
    """
    again = f"dpmf run {file}" if file else "dpmf_cli.advise"
    quick = first_part(config, folders, epsilon) if by_errors else None
    parts = [quick] if quick and only_first else [each for each in (quick, config) if each]
    for part in parts:
        finished = experiment.run(part, folders, max(1, jobs or available_cores()), command=again)
        refuse_failures(finished.failures)
        found = finished.collected.experiment
        ratings = load(config.dataset, folders, config.split).ratings
        warnings = [curve.guarantee.warning(ratings.n_users, len(ratings)) for curve in found.curves]
        for warning in filter(None, dict.fromkeys(warnings)):
            say(f"warning: {warning}")
        title = f"{found.title}: which private method to take at ε = {epsilon:g}\n\n"
        if part is quick:
            few = f"{len(part.algorithms)} of {len(config.algorithms)} methods, on 2 of {config.folds} folds"
            then = "The whole follows; Ctrl-C keeps what is done."
            if only_first:
                run = {entry.name for entry in part.algorithms}
                not_run = ", ".join(entry.name for entry in config.algorithms if entry.name not in run)
                then = f"Not run: {not_run}, and what privacy costs. `{again}` runs the whole."
            title += f"A FIRST ANSWER, from {few}: others may be better. {then}\n\n"
        page = answer(
            found,
            epsilon,
            str(file or finished.folder),
            by_errors=by_errors,
            guessed_scale=config.has_guessed_scale,
            in_python=file is None,
        )
        if not as_json:
            print(title + before + page, end="" if part is parts[-1] else "\n", flush=True)
        elif part is parts[-1]:
            at = levels_table(levels_at(found, epsilon), epsilon)
            tables = {"levels": at, "crossings": crossings_table(finished.crossings)}
            records = {name: as_objects(table) for name, table in tables.items()}
            print(json_text({"text": title + before + page, **records}), end="")
    return finished


FIRST_SECONDS, LEADING = 3.0, 2
"""How long, on one core, fits of a method on a first page may take, which is made if the whole takes five times as
long; and how many of the methods that lead on public ratings it tries, in each ranking."""


def first_part(config: ExperimentConfig, folders: Folders, epsilon: float) -> ExperimentConfig | None:
    """The config on two folds, in one run, with what leads on public ratings; None if the whole is short."""
    made, _ = plan_without_parsing(config, folders, REFERENCE)
    seconds = sum(map(made.seconds_of, made.entries))
    if config.folds_run < 2 or config.seed == SECRET or seconds < 5 * FIRST_SECONDS:
        return None
    leaders = shipped()
    leading = [
        leaders.methods[each.method]
        for ranking in leaders.rankings
        for each in ranking.nearest(epsilon).methods[:LEADING]
    ]
    keys = {each["algorithm"] for each in leading if each["neighbours"] == config.algorithms[0].neighbours}
    share = 2 / (config.folds_run * config.runs)
    short = {each.entry.name for each in made.entries if share * made.seconds_of(each) < FIRST_SECONDS}
    data = config.resolved()
    for kind, entries in (("baselines", config.baselines), ("algorithms", config.algorithms)):
        wanted = (
            {*keys, *config.crossings} if kind == "algorithms" else {entry.algorithm for entry in entries}
        )
        data[kind] = [
            each
            for each, entry in zip(data[kind], entries, strict=True)
            if entry.algorithm in config.crossings or (entry.name in short and entry.algorithm in wanted)
        ]
    cut = {"name": f"{config.name[:70]}.first", "held_out": 2, "runs": 1, "refine": False, "twins": False}
    return config_of({**data, **cut}) if data["algorithms"] else None


def _config(
    config: Config, ratings: "DataFrame | None", scale: Limits | None, folders: Folders
) -> ExperimentConfig:
    """The checked config. The ratings of a data frame take the place of its `dataset`: they become a file of the
    cache, named by its content, so that worker processes and `dpmf verify` find them."""
    if not isinstance(config, Mapping):
        if ratings is None:
            return load_config(Path(config))
        found = config_file(Path(config))
        config = {EXTENDS: str(found.absolute()), "name": suggested.name_of(found.stem)}
    document = given(config)
    if ratings is not None:
        roles = ["user", "item", "rating", *(each for each in ("timestamp", "epsilon") if each in ratings)]
        if absent := [each for each in roles if each not in ratings]:
            raise DpmfError(f'ratings: no column "{absent[0]}"; name the columns user, item, rating')
        text = ratings[roles].to_csv(header=False, index=False, lineterminator="\n").encode()
        path = folders.cache.absolute() / "frames" / f"{sha256(text)}.csv"
        cache.write(path, [text])
        about = document.data.get("dataset")
        kept = about if isinstance(about, dict) else {}
        about = {key: value for key, value in kept.items() if key in CsvSpec.model_fields}
        if scale is not None and len(scale) in (2, 3):
            about["scale"] = dict(zip(("minimum", "maximum", "step"), scale, strict=False))
        elif scale is not None or "scale" not in about:
            raise DpmfError("ratings: give their scale, as the site allows it, like scale=(1, 5, 1)")
        about |= {"kind": "csv", "path": str(path), "columns": {each: at for at, each in enumerate(roles)}}
        about |= {"header": False, "separator": ",", "decimal": "."}
        document.data["dataset"] = {"name": "ratings", **about}
    return validated(document)


def _frame(text: str) -> "DataFrame":
    import pandas as pd

    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
