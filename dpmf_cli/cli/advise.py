"""`dpmf advise`: from a file of ratings to the private method to take."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.cli.options import ResultsOption
from dpmf_cli.cli.run import JobsOption
from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
    from dpmf_cli.config.suggested import Candidates
    from dpmf_cli.datasets import Folders
    from dpmf_cli.privacy.neighbours import Neighbours
    from dpmf_cli.ratings import Ratings

PROTECTS = {"value": "bounded", "presence": "unbounded", "user": "user", "local": "local"}
"""What --protects may say, and the neighbours of it."""


def advise(
    ratings: Annotated[
        Path, typer.Argument(help="A file of ratings: CSV, packed or not, or Parquet.", show_default=False)
    ],
    protects: Annotated[
        str,
        typer.Option(
            help="What is hidden: the value of a rating, the presence of one, a user with all ratings, or (local) "
            "values even from the service."
        ),
    ] = "value",
    epsilon: Annotated[float, typer.Option(help="The ε that you would accept.")] = 1.0,
    scale: Annotated[
        str | None,
        typer.Option(help="What the site allows, as minimum:maximum:step, like 0.5:5:0.5; 0 for any value."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="The column of users, by name or number.")] = None,
    item: Annotated[str | None, typer.Option(help="The column of items.")] = None,
    rating: Annotated[str | None, typer.Option(help="The column of ratings.")] = None,
    to: Annotated[Path | None, typer.Option(help="The config that is written.", show_default=False)] = None,
    results: ResultsOption = Path("results"),
    jobs: JobsOption = None,
) -> None:
    """Answer in a page which private method suits a file of ratings.

    Looks at the file, writes a config with every provable method, runs it, and says which method to take at ε.

    Example: dpmf advise ratings.csv --protects value --epsilon 1
    """
    from pydantic import ValidationError

    from dpmf_cli.config.suggested import FOLDS, GUESSED, RUNS, config_text, name_of, provable
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.datasets.spec import CsvSpec

    neighbours = asked_for(protects, epsilon)
    stem = ratings.name.lstrip(".-").partition(".")[0] or "ratings"
    config = to or Path(f"{stem}-{protects}.yaml")
    named = {role: name for role, name in (("user", user), ("item", item), ("rating", rating)) if name}
    dataset = {"kind": "csv", "name": name_of(stem), **_dataset(ratings, config, scale, named)}
    folders = Folders.named(base=config.parent, results=results)
    try:
        found = load(CsvSpec(**dataset), folders).ratings
    except ValidationError as error:
        first = error.errors()[0]
        where = f"--scale {scale}" if scale and "scale" in first["loc"] else str(ratings)
        raise DpmfError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    methods = fitting(provable(neighbours), found, epsilon, str(ratings))
    options = {"protects": protects, "epsilon": f"{epsilon:g}", "scale": scale, **named}
    given = [word for name, value in options.items() if value for word in (f"--{name}", value)]
    keys = {"dataset": dataset, "folds": FOLDS, "runs": RUNS}
    command = shlex.join(["dpmf", "advise", str(ratings), *given])
    note = GUESSED if scale is None else ""
    write(config, config_text(keys, neighbours, epsilon, methods, command, note=note), methods)
    print_answer(config, folders, jobs, epsilon)


def asked_for(protects: str, epsilon: float) -> "Neighbours":
    """The neighbours of what shall be protected. Raises `DpmfError` for what is nothing of that kind, and for an ε
    that nobody asks for."""
    from dpmf_cli.privacy.neighbours import Neighbours

    if protects not in PROTECTS:
        raise DpmfError(f"--protects {protects}: choose one of {', '.join(PROTECTS)}")
    if not 1e-3 <= epsilon <= 1e4:
        raise DpmfError(f"--epsilon {epsilon:g}: give one from 0.001 to 10000")
    return Neighbours(PROTECTS[protects])


def fitting(
    entries: "Iterable[tuple[Any, PrivateAlgorithm]]", ratings: "Ratings", epsilon: float, what: str
) -> "Candidates":
    """Those of `entries` that these ratings leave time and memory for, one of them at least. Raises `DpmfError` where
    there is none, and for too few ratings, with `what` they are."""
    from dpmf_cli.config.suggested import FEWEST, FOLDS, candidates, grid_with
    from dpmf_cli.running.cutting import training_shape

    if len(ratings) < FEWEST:
        raise DpmfError(f"{what}: {len(ratings)} ratings tell no methods apart; give {FEWEST} or more")
    shape = training_shape(ratings.n_users, ratings.n_items, len(ratings), 1 / FOLDS)
    methods = candidates(entries, shape, len(grid_with(epsilon)))
    if not methods.taken:
        raise DpmfError(f"{what}: no method fits this machine: {'; '.join(methods.left_out)}")
    return methods


def print_answer(
    config: Path,
    folders: "Folders",
    jobs: int | None,
    epsilon: float,
    *,
    by_errors: bool = True,
    before: str = "",
) -> None:
    """Runs a config and prints the page on the method to take; `before` stands between its title and the rest."""
    from dpmf_cli.config import load_config
    from dpmf_cli.experiment import run
    from dpmf_cli.report.answer import answer
    from dpmf_cli.running.machine import available_cores
    from dpmf_cli.running.processes import LocalProcesses

    again = f"dpmf run {config}"
    finished = run(load_config(config), folders, LocalProcesses(jobs or available_cores()), command=again)
    if finished.failures or finished.missing:
        raise DpmfError(f"{finished.missing} tasks have no result; `{again}` says why and tries them again")
    experiment = finished.collected.experiment
    print(f"{experiment.title}: which private method to take at ε = {epsilon:g}\n")
    print(before + answer(experiment, epsilon, str(config), by_errors=by_errors), end="")


def _dataset(ratings: Path, config: Path, scale: str | None, named: dict[str, str]) -> dict[str, Any]:
    """The keys of `dataset:` beside its name, as given or guessed; every guess is told."""
    from dpmf_cli.datasets.formats.guess import guess_format
    from dpmf_cli.terminal import say

    guess = guess_format(ratings)
    for each in guess.words:
        say(f"{ratings}: {each}")
    columns = {
        role: column for role, column in guess.columns.items() if role in ("user", "item", "rating")
    } | {role: int(name) if name.isdigit() and not guess.header else name for role, name in named.items()}
    absent = [role for role in ("user", "item", "rating") if role not in columns]
    if absent:
        options = " ".join(f"--{role} COLUMN" for role in absent)
        raise DpmfError(f"{ratings}: no column looks like the {' or the '.join(absent)}; add {options}")
    if scale is None:
        if guess.scale is None or "rating" in named:
            raise DpmfError(f"{ratings}: say what the site allows: --scale minimum:maximum:step")
        if guess.scale[0] == guess.scale[1]:
            raise DpmfError(
                f"{ratings}: all ratings are {guess.scale[0]:g}, so that the scale cannot be guessed, and a constant "
                "predicts them without error; give ratings that differ"
            )
        say(
            f"{ratings}: the scale is taken from what occurs. Your site's own is public and may be wider: "
            "give it by --scale minimum:maximum:step"
        )
    low, high, step = _scale(scale) if scale else guess.scale or (0.0, 0.0, 0.0)
    return {
        "path": os.path.relpath(ratings, config.parent),
        **guess.keys,
        "columns": columns,
        "scale": {"minimum": low, "maximum": high, "step": step},
        "duplicates": "last",
    }


def _scale(text: str) -> tuple[float, float, float]:
    try:
        low, high, *step = map(float, text.split(":"))
        (every,) = step or (0.0,)
    except ValueError:
        raise DpmfError(f"--scale {text}: write minimum:maximum:step, like 0.5:5:0.5") from None
    return low, high, every


def write(config: Path, text: str, methods: "Candidates") -> None:
    """Writes a config and says what is in it; one that is there and says something else is the user's, and kept."""
    from dpmf_cli.results.store import write_atomically
    from dpmf_cli.terminal import say

    try:
        if config.exists() and config.read_text() != text:
            raise DpmfError(
                f"{config}: is there and says something else; `dpmf run` it, delete it, or name another by --to"
            )
        write_atomically(config, text.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise DpmfError(f"{config}: cannot be written or read ({error}); name another by --to") from None
    count = len(methods.taken)
    say(f"wrote {config}: {count} method{'s' * (count > 1)} whose ε can be proved")
    for each in methods.left_out:
        say(f"left out: {each}")
