"""The interface for programs and notebooks: experiments are run by a call, and tables come as data frames.

Tasks are executed in other processes, even if it is one at a time. So Ctrl-C, or the interrupt of a notebook, need
not wait for a kernel (docs/design.md), and a fit that takes too much memory does not end the program.
"""

import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from matplotlib.figure import Figure

from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.files import cache_folder, read_file, sha256
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, cache as kept, load
from dpmf_cli.experiment.config import ExperimentConfig, suggested
from dpmf_cli.experiment.config.documents import EXTENDS, config_file, given
from dpmf_cli.experiment.config.loading import config_of, load_config, validated
from dpmf_cli.experiment.running.plan import refuse_failures
from dpmf_cli.report.advice import answer
from dpmf_cli.report.figures.drawings import figures
from dpmf_cli.report.figures.style import drawn
from dpmf_cli.report.outputs import curves_csv
from dpmf_cli.report.tables.crossings import crossings_table
from dpmf_cli.report.tables.layout import draw
from dpmf_cli.report.tables.ranked import frontier_table
from dpmf_cli.studies import experiment

if TYPE_CHECKING:
    from pandas import DataFrame

Folder = str | os.PathLike[str]
Config = Folder | Mapping[str, Any]
"""A file, the name of a shipped config, or what a file would hold."""
Limits = tuple[float, float] | tuple[float, float, float]
"""A scale: minimum, maximum, and the step if there is one."""

ROLES, MORE = ("user", "item", "rating"), ("timestamp", "epsilon")
"""The columns of a data frame of ratings, and those that it may have, too: `epsilon` is a budget for each rating."""

_TEXTS = dict.fromkeys(("title", "dataset", "label", "experiment", "clean", "tied"), str)
"""Columns that hold names, which may look like numbers."""


@dataclass(frozen=True)
class Results:
    """A finished experiment: its tables as data frames, with the columns of the commands' CSV, and its figures.

    folder   its results folder
    page     the page of `advise`; empty after `run`
    """

    folder: Path
    _finished: experiment.Finished = field(repr=False)
    page: str = field(default="", repr=False)

    def crossings(self) -> "DataFrame":
        """Returns a row for each method and baseline, as `dpmf crossings --format csv`."""
        return _frame(draw(crossings_table(self._finished.crossings), "csv"))

    def curves(self) -> "DataFrame":
        """Returns a row for each method and ε, and for each baseline, as `curves.csv`."""
        return _frame(curves_csv(self._finished.collected.shown))

    def frontier(self) -> "DataFrame":
        """Returns a row for each guarantee and ε, with the method that leads, as `dpmf frontier --format csv`."""
        return _frame(draw(frontier_table([self._finished.collected.experiment]), "csv"))

    def plot(self, name: str = "") -> Figure:
        """Returns a figure by the name that `dpmf plot` gives its file, such as `curves`; by default the first.

        Raises DpmfError for a name that there is not, with those that there are.
        """
        found = figures(self._finished.collected.shown)
        if not found or name not in ("", *found):
            raise DpmfError(f'{self.folder}: no figure "{name}"{did_you_mean(name, found)}')
        return drawn(found[name or next(iter(found))])


@contextmanager
def _in_words() -> Iterator[None]:
    """Says that an interrupt loses nothing. Errors name the data frame, not its file, and arguments, not options."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted: what was finished is kept; make the same call again to go on")
        raise
    except DpmfError as error:
        folder = re.escape(str(_frames(cache_folder())))
        text, times = re.subn(rf"{folder}/\w+\.csv", "ratings", str(error))
        text = text.replace("the file", "the data frame") if times else text.removeprefix("--")
        raise DpmfError(text) from None


@_in_words()
def run(
    config: Config,
    *,
    ratings: "DataFrame | None" = None,
    scale: Limits | None = None,
    results: Folder = "results",
    jobs: int | None = None,
    data: Folder | None = None,
) -> Results:
    """Runs an experiment like `dpmf run`: finished tasks are not run again, also not those of an interrupted call.

    config    a YAML file, the name of a shipped config, or a dictionary of what such a file holds
    ratings   a data frame with the columns user, item, rating, and timestamp for a split by time; it takes the place
              of the config's `dataset`, except for `name` and `duplicates` there
    scale     the scale of these ratings, as the site allows them: minimum, maximum, and the step if there is one
    results   the folder of results
    jobs      how many processes execute tasks; by default one for each core
    data      the folder of the catalog's files; by default $DPMF_DATA, else `datasets`

    Raises DpmfError for what a user can mend, and if a task failed.
    """
    folders = Folders.named(
        Path(data) if data else None,
        base=Path() if isinstance(config, Mapping) else Path(config).parent,
        results=Path(results),
    )
    if ratings is not None:
        found = _on_ratings(config, ratings, scale, folders.cache)
    else:
        found = validated(given(config)) if isinstance(config, Mapping) else load_config(Path(config))
    return Results(folders.results / found.name, _finished(found, folders, jobs, "dpmf_cli.run"))


@_in_words()
def advise(
    ratings: "DataFrame",
    *,
    scale: Limits,
    protects: str = "value",
    epsilon: float = 1.0,
    name: str = "ratings",
    results: Folder = "results",
    jobs: int | None = None,
) -> Results:
    """Runs every provable method on a data frame of ratings, like `dpmf advise`; `page` says which one to take.

    protects   what ε hides: value, presence, user or local
    epsilon    the ε that you would accept
    name       a name for the ratings; if a pair of user and item stands there twice, its last rating is kept

    The others are as in `run`. Raises DpmfError as `run` does.
    """
    neighbours = suggested.asked_for(protects, epsilon)
    folders, about = Folders.named(results=Path(results)), {"name": name, "duplicates": "last"}
    keys = {"name": f"{name}-{protects}", "dataset": about, "folds": suggested.FOLDS, "runs": suggested.RUNS}
    every = suggested.Candidates(tuple(key for key, _ in suggested.provable(neighbours)), ())
    written = yaml.safe_load(suggested.config_text(keys, neighbours, epsilon, every, "dpmf_cli.advise"))
    whole = _on_ratings(written, ratings, scale, folders.cache)
    entries = zip(whole.resolved()["algorithms"], whole.algorithms, strict=True)
    fit = suggested.fitting(entries, load(whole.dataset, folders).ratings, epsilon, name)
    for each in fit.left_out:
        say(f"left out: {each}")
    config = config_of({**whole.resolved(), "algorithms": list(fit.taken)})
    folder, finished = folders.results / config.name, _finished(config, folders, jobs, "dpmf_cli.advise")
    page = page_of(finished, config, folders, epsilon, str(folder), in_python=True)
    return Results(folder, finished, "\n".join(page))


def page_of(
    finished: experiment.Finished,
    config: ExperimentConfig,
    folders: Folders,
    epsilon: float,
    of: str,
    *,
    by_errors: bool = True,
    in_python: bool = False,
) -> tuple[str, str]:
    """Returns the title of the page that says which method to take, and its text; says what δ are too large.

    of   the config or results folder that commands on the page name
    """
    found = finished.collected.experiment
    ratings = load(config.dataset, folders, config.split).ratings
    warnings = [curve.guarantee.warning(ratings.n_users, len(ratings)) for curve in found.curves]
    for warning in filter(None, dict.fromkeys(warnings)):
        say(f"warning: {warning}")
    title = f"{found.title}: which private method to take at ε = {epsilon:g}\n"
    guessed = config.has_guessed_scale
    return title, answer(found, epsilon, of, by_errors=by_errors, guessed_scale=guessed, in_python=in_python)


def _frames(cache: Path) -> Path:
    """Returns the folder of the files that data frames are written to."""
    return cache.absolute() / "frames"


def _finished(
    config: ExperimentConfig, folders: Folders, jobs: int | None, command: str
) -> experiment.Finished:
    if jobs is not None and jobs < 1:
        raise DpmfError(f"jobs is {jobs}; give 1 or more, or None for one process on each core")
    found = experiment.run(config, folders, jobs or available_cores(), command=command, apart=True)
    refuse_failures(found.failures)
    if found.missing:
        raise DpmfError(
            f"{found.missing} tasks have no result though they were run; make the same call again"
        )
    return found


def _on_ratings(config: Config, ratings: "DataFrame", scale: Limits | None, cache: Path) -> ExperimentConfig:
    """Returns the config with the ratings of a data frame for its `dataset`, as a file of the cache.

    The file is named by its content. So other ratings are another data set, and the same ones the same.
    """
    import pandas as pd

    names = list(ratings.columns) if isinstance(ratings, pd.DataFrame) else []
    roles = [*ROLES, *(each for each in MORE if each in names)]
    if wrong := [role for role in roles if names.count(role) != 1]:
        raise DpmfError(f'ratings: no column "{wrong[0]}", or two; give a data frame with {", ".join(ROLES)}')
    text = ratings[roles].to_csv(header=False, index=False, lineterminator="\n").encode()
    path = _frames(cache) / f"{sha256(text)}.csv"
    if not path.exists() or read_file(path) != text:
        kept.write(path, [text])
    if not isinstance(config, Mapping):
        found = config_file(Path(config))
        config = {EXTENDS: str(found), "name": suggested.name_of(found.stem)}
    about, columns = config.get("dataset"), dict.fromkeys(MORE) | {role: at for at, role in enumerate(roles)}
    dataset = {"name": "ratings", **(about if isinstance(about, Mapping) else {}), "kind": "csv"}
    dataset |= {"path": str(path), "header": False, "separator": ",", "decimal": ".", "columns": columns}
    limits = () if scale is None else np.ravel(scale).tolist()
    if limits:
        dataset["scale"] = dict(zip(("minimum", "maximum", "step"), limits, strict=False))
    document = given({**config, "dataset": dataset})
    if "scale" not in document.data["dataset"] or len(limits) not in (0, 2, 3):
        raise DpmfError("ratings: give their scale, as the site allows it, like scale=(1, 5, 1)")
    return validated(document)


def _frame(text: str) -> "DataFrame":
    import pandas as pd

    return pd.read_csv(
        io.StringIO(text), dtype=_TEXTS, keep_default_na=False, na_values=[""], float_precision="round_trip"
    )
