"""`dpmf init` and `dpmf advise`: write a config for a file of ratings, run it, and say which private method suits."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.cli.options import ResultsOption
from dpmf_cli.cli.run import JobsOption
from dpmf_cli.core.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
    from dpmf_cli.core.ratings import Ratings
    from dpmf_cli.datasets import Folders
    from dpmf_cli.datasets.formats.guess import Guess
    from dpmf_cli.experiment.config.suggested import Candidates
    from dpmf_cli.privacy.neighbours import Neighbours

PROTECTS = {"value": "bounded", "presence": "unbounded", "user": "user", "local": "local"}
"""The neighbours that each value of --protects stands for."""

GUESSES = ("--separator", "--header", "--decimal", "--user", "--item", "--rating", "--scale")
"""The options that replace guesses."""

FileArgument = Annotated[
    Path, typer.Argument(help="A file of ratings: CSV (compressed or not) or Parquet.", show_default=False)
]
ProtectsOption = Annotated[
    str,
    typer.Option(
        help="What ε hides. value: the value of a rating; presence: that a rating exists; user: a user with all "
        "ratings; local: the values of ratings, even from the service."
    ),
]
EpsilonOption = Annotated[float, typer.Option(help="The ε that you would accept.")]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        help="The ratings that the site allows, as minimum:maximum:step, e.g. 0.5:5:0.5; step 0 allows any value."
    ),
]
UserOption = Annotated[str | None, typer.Option(help="The column of users, by name or number.")]
ItemOption = Annotated[str | None, typer.Option(help="The column of items.")]
RatingOption = Annotated[str | None, typer.Option(help="The column of ratings.")]
TimestampOption = Annotated[
    str | None, typer.Option(help="The column of times; without this option the config has none.")
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(help="The separator of columns: a character, or a word: tab, semicolon, space, …"),
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line names the columns.", show_default=False
    ),
]
DecimalOption = Annotated[str | None, typer.Option(help="The decimal mark of numbers: . or ,")]
ToOption = Annotated[Path | None, typer.Option(help="The config file to write.", show_default=False)]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing config that differs.")]


@dataclass(frozen=True)
class Said:
    """What the options say about a file; each field is named as its option. Whatever is None is guessed."""

    scale: str | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    separator: str | None = None
    header: bool | None = None
    decimal: str | None = None

    @property
    def words(self) -> list[str]:
        """The given options, as words of a command."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        header = {True: ["--header"], False: ["--no-header"]}.get(given.pop("header", None), [])
        return [word for name, value in given.items() for word in (f"--{name}", value)] + header

    def guess(self, ratings: Path) -> "Guess":
        """Returns the format of a file: as the options say, and guessed where they say nothing."""
        from dpmf_cli.datasets.formats.guess import Told, guess_format, separator_named

        if self.decimal not in (None, ".", ","):
            raise DpmfError(f"--decimal {self.decimal}: choose one of . and ,")
        named = {role: getattr(self, role) for role in ("user", "item", "rating", "timestamp")}
        separator = None if self.separator is None else separator_named(self.separator)
        columns = {role: column for role, column in named.items() if column is not None}
        return guess_format(ratings, Told(separator, self.header, self.decimal, columns))


def write_own_config(
    ratings: Path, said: Said, protects: str, epsilon: float, to: Path | None, *, force: bool
) -> tuple[Path, list[str]]:
    """Writes a config with every provable method for a file of ratings. Returns its path, and lines on the ratings.

    Reads the complete file first, and says what it guessed about it. If (user, item) pairs repeat, the config keeps
    the last rating of each.
    """
    from pydantic import ValidationError

    from dpmf_cli.datasets import Folders, load, look
    from dpmf_cli.datasets.spec import CsvSpec
    from dpmf_cli.experiment.config.suggested import FOLDS, GUESSED, RUNS, config_text, name_of, provable

    neighbours = asked_for(protects, epsilon)
    stem = ratings.name.lstrip(".-").partition(".")[0] or "ratings"
    config = to or Path(f"{stem}-{protects}.yaml")
    if config.exists() and ratings.exists() and config.samefile(ratings):
        raise DpmfError(f"--to {config}: this is the file of ratings; name another file")
    dataset = {"kind": "csv", "name": name_of(stem), **_dataset(ratings, config, said)}
    try:
        spec = CsvSpec(**{**dataset, "path": str(ratings), "duplicates": "last"})
        whole = load(spec, Folders.named())
    except ValidationError as error:
        first = error.errors()[0]
        where = f"--scale {said.scale}" if said.scale and "scale" in first["loc"] else str(ratings)
        raise DpmfError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    if whole.merged:
        dataset["duplicates"] = spec.duplicates
    methods = fitting(provable(neighbours), whole.ratings, epsilon, str(ratings))
    asked = ["--protects", protects, "--epsilon", f"{epsilon:g}"]
    command = shlex.join(["dpmf", "init", str(ratings), *asked, *said.words])
    note = GUESSED if said.scale is None else ""
    keys = {"dataset": dataset, "folds": FOLDS, "runs": RUNS}
    write_config(
        config, config_text(keys, neighbours, epsilon, methods, command, note=note), methods, force=force
    )
    return config, look(spec, whole).report()


def asked_for(protects: str, epsilon: float) -> "Neighbours":
    """Returns the neighbours that a value of --protects stands for.

    Raises `DpmfError` for an unknown value, and for an ε outside of 0.001 to 10000.
    """
    from dpmf_cli.privacy.neighbours import Neighbours

    if protects not in PROTECTS:
        raise DpmfError(f"--protects {protects}: choose one of {', '.join(PROTECTS)}")
    if not 1e-3 <= epsilon <= 1e4:
        raise DpmfError(f"--epsilon {epsilon:g}: give one from 0.001 to 10000")
    return Neighbours(PROTECTS[protects])


def fitting(
    entries: "Iterable[tuple[Any, PrivateAlgorithm]]", ratings: "Ratings", epsilon: float, what: str
) -> "Candidates":
    """Returns those of `entries` that this machine has the time and memory to fit on these ratings, at least one.

    Raises `DpmfError` if there is none, or if there are too few ratings. The message names the ratings by `what`.
    """
    from dpmf_cli.algorithms.shared.cost import Shape
    from dpmf_cli.experiment.config.suggested import FEWEST, FOLDS, candidates, grid_with

    if len(ratings) < FEWEST:
        raise DpmfError(
            f"{what}: {len(ratings)} ratings are too few to tell methods apart; give {FEWEST} or more"
        )
    shape = Shape(ratings.n_users, ratings.n_items, round((1 - 1 / FOLDS) * len(ratings)))
    methods = candidates(entries, shape, len(grid_with(epsilon)))
    if not methods.taken:
        raise DpmfError(f"{what}: no method fits this machine: {'; '.join(methods.left_out)}")
    return methods


def write_config(config: Path, text: str, methods: "Candidates", *, force: bool) -> None:
    """Writes a config and says what is in it. Refuses to overwrite a different config, unless `force` is set."""
    from dpmf_cli.core.terminal import say
    from dpmf_cli.experiment.results.store import write_atomically

    try:
        if not force and config.exists() and config.read_text() != text:
            raise DpmfError(
                f"{config}: exists already and differs; `dpmf run` it, name another with --to, or overwrite it "
                "with --force"
            )
        write_atomically(config, text.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise DpmfError(f"{config}: cannot be written or read ({error}); name another with --to") from None
    count = len(methods.taken)
    say(f"wrote {config}: {count} method{'s' * (count > 1)} whose ε can be proved")
    for each in methods.left_out:
        say(f"left out: {each}")


def _dataset(ratings: Path, config: Path, said: Said) -> dict[str, Any]:
    """Returns the keys of `dataset:` without its kind and name, as said or guessed. Says every guess."""
    from dpmf_cli.core.terminal import say

    guess = said.guess(ratings)
    for each in guess.words:
        say(f"{ratings}: {each}")
    say(f"{ratings}: if a guess is wrong, correct it with its option: {', '.join(GUESSES)}")
    wanted = ["user", "item", "rating", *["timestamp"] * (said.timestamp is not None)]
    if absent := [role for role in wanted if role not in guess.columns]:
        options = " ".join(f"--{role} COLUMN" for role in absent)
        raise DpmfError(f"{ratings}: no column looks like the {' or the '.join(absent)}; add {options}")
    low, high, step = _scale(said.scale) if said.scale is not None else _guessed_scale(ratings, guess)
    return {
        "path": os.path.relpath(ratings, config.parent),
        **guess.keys,
        "columns": {role: guess.columns[role] for role in wanted},
        "scale": {"minimum": low, "maximum": high, "step": step}
        | ({"guessed": True} if said.scale is None else {}),
    }


def _guessed_scale(ratings: Path, guess: "Guess") -> tuple[float, float, float]:
    from dpmf_cli.core.terminal import say

    if guess.scale is None:
        raise DpmfError(
            f"{ratings}: the column of ratings has no numbers; correct the file, or name the column with --rating"
        )
    if guess.scale[0] == guess.scale[1]:
        raise DpmfError(
            f"{ratings}: all ratings are {guess.scale[0]:g}: the scale cannot be guessed, and a constant predicts "
            "them without error; give ratings that differ"
        )
    say(
        f"{ratings}: the scale is guessed from the ratings. Your site's own is public and may be wider: "
        "give it with --scale minimum:maximum:step"
    )
    return guess.scale


def _scale(text: str) -> tuple[float, float, float]:
    try:
        low, high, every = map(float, text.split(":"))
    except ValueError:
        raise DpmfError(f"--scale {text}: write minimum:maximum:step, like 0.5:5:0.5") from None
    return low, high, every


NEXT = {
    "dpmf plan {}": "tasks, time and memory; runs nothing",
    "dpmf run {}": "every method, on folds of the ratings",
    "dpmf explain {}": "what the results say, in words",
}
"""The commands to run on a config, in this order, and what each does or prints."""


def init(
    ratings: FileArgument,
    protects: ProtectsOption = "value",
    epsilon: EpsilonOption = 1.0,
    scale: ScaleOption = None,
    user: UserOption = None,
    item: ItemOption = None,
    rating: RatingOption = None,
    timestamp: TimestampOption = None,
    separator: SeparatorOption = None,
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    to: ToOption = None,
    force: ForceOption = False,
) -> None:
    """Write a config for a file of ratings by looking at it.

    Says what it guesses about the file; an option can replace each guess. Runs nothing: `dpmf advise` also runs the
    config.

    Example: dpmf init ratings.csv --scale 0.5:5:0.5
    """
    from dpmf_cli.core.terminal import say

    said = Said(scale, user, item, rating, timestamp, separator, header, decimal)
    config, seen = write_own_config(ratings, said, protects, epsilon, to, force=force)
    for each in seen:
        say(f"{ratings}: {each}")
    commands = {each.format(shlex.quote(str(config))): why for each, why in NEXT.items()}
    width = max(map(len, commands))
    for command, why in commands.items():
        print(f"{command:<{width}}  # {why}")


def advise(
    ratings: FileArgument,
    protects: ProtectsOption = "value",
    epsilon: EpsilonOption = 1.0,
    scale: ScaleOption = None,
    user: UserOption = None,
    item: ItemOption = None,
    rating: RatingOption = None,
    separator: SeparatorOption = None,
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    to: ToOption = None,
    force: ForceOption = False,
    results: ResultsOption = Path("results"),
    jobs: JobsOption = None,
) -> None:
    """Say in a page which private method suits a file of ratings.

    Looks at the file, writes a config with every provable method (as `dpmf init` does), and runs it. The page says
    which method to take at your ε.

    Example: dpmf advise ratings.csv --protects value --epsilon 1
    """
    from dpmf_cli.datasets import Folders

    said = Said(scale, user, item, rating, separator=separator, header=header, decimal=decimal)
    config, _ = write_own_config(ratings, said, protects, epsilon, to, force=force)
    print_answer(config, Folders.named(base=config.parent, results=results), jobs, epsilon)


def print_answer(
    config: Path,
    folders: "Folders",
    jobs: int | None,
    epsilon: float,
    *,
    by_errors: bool = True,
    before: str = "",
) -> None:
    """Runs a config and prints the page that says which method to take; `before` follows the page's title."""
    from dpmf_cli.core.children import available_cores
    from dpmf_cli.core.terminal import say
    from dpmf_cli.datasets import load
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.running.processes import LocalProcesses
    from dpmf_cli.report.advice import answer
    from dpmf_cli.studies.experiment import run

    again, loaded = f"dpmf run {config}", load_config(config)
    finished = run(loaded, folders, LocalProcesses(jobs or available_cores()), command=again)
    if finished.failures or finished.missing:
        raise DpmfError(f"{finished.missing} tasks have no result; `{again}` says why and tries them again")
    experiment = finished.collected.experiment
    ratings = load(loaded.dataset, folders, loaded.test).ratings
    warnings = [curve.guarantee.warning(ratings.n_users, len(ratings)) for curve in experiment.curves]
    for warning in filter(None, dict.fromkeys(warnings)):
        say(f"warning: {warning}")
    print(f"{experiment.title}: which private method to take at ε = {epsilon:g}\n")
    guessed = loaded.has_guessed_scale
    page = answer(experiment, epsilon, str(config), by_errors=by_errors, guessed_scale=guessed)
    print(before + page, end="")
