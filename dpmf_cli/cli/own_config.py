"""A config for a file of ratings that has none: what its owner says of it, what is guessed, and how it is written."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
    from dpmf_cli.config.suggested import Candidates
    from dpmf_cli.datasets.formats.guess import Guess
    from dpmf_cli.privacy.neighbours import Neighbours
    from dpmf_cli.ratings import Ratings

PROTECTS = {"value": "bounded", "presence": "unbounded", "user": "user", "local": "local"}
"""What --protects may say, and the neighbours of it."""

GUESSES = ("--separator", "--header", "--decimal", "--user", "--item", "--rating", "--scale")
"""The options that stand for guesses."""

FileArgument = Annotated[
    Path, typer.Argument(help="A file of ratings: CSV, packed or not, or Parquet.", show_default=False)
]
ProtectsOption = Annotated[
    str,
    typer.Option(
        help="What is hidden: the value of a rating, the presence of one, a user with all ratings, or (local) "
        "values even from the service."
    ),
]
EpsilonOption = Annotated[float, typer.Option(help="The ε that you would accept.")]
ScaleOption = Annotated[
    str | None,
    typer.Option(help="What the site allows, as minimum:maximum:step, like 0.5:5:0.5; 0 for any value."),
]
UserOption = Annotated[str | None, typer.Option(help="The column of users, by name or number.")]
ItemOption = Annotated[str | None, typer.Option(help="The column of items.")]
RatingOption = Annotated[str | None, typer.Option(help="The column of ratings.")]
TimestampOption = Annotated[
    str | None, typer.Option(help="The column of times; left out, the config has none.")
]
SeparatorOption = Annotated[
    str | None, typer.Option(help="What stands between columns: a character, or tab, semicolon, space, …")
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line names the columns.", show_default=False
    ),
]
DecimalOption = Annotated[
    str | None, typer.Option(help="What stands before the tenths in a number: . or a comma.")
]
ToOption = Annotated[Path | None, typer.Option(help="The config that is written.", show_default=False)]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a config that says something else.")]


@dataclass(frozen=True)
class Said:
    """What the options say of a file, each named as its option; the rest is guessed."""

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
        """The options again, as words of a command."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        header = {True: ["--header"], False: ["--no-header"]}.get(given.pop("header", None), [])
        return [word for name, value in given.items() for word in (f"--{name}", value)] + header

    def guess(self, ratings: Path) -> "Guess":
        """What the file is: as said, and beyond that as it looks."""
        from dpmf_cli.datasets.formats.guess import Told, guess_format, separator_named

        if self.decimal not in (None, ".", ","):
            raise DpmfError(f"--decimal {self.decimal}: choose one of . and ,")
        named = {role: getattr(self, role) for role in ("user", "item", "rating", "timestamp")}
        separator = None if self.separator is None else separator_named(self.separator)
        columns = {role: column for role, column in named.items() if column is not None}
        return guess_format(ratings, Told(separator, self.header, self.decimal, columns))


def write_own_config(
    ratings: Path, said: Said, protects: str, epsilon: float, to: Path | None, *, force: bool
) -> Path:
    """Writes the config of every provable method for a file of ratings, which is read whole first, and says what it
    guessed. Gives the config."""
    from pydantic import ValidationError

    from dpmf_cli.config.suggested import FOLDS, GUESSED, RUNS, config_text, name_of, provable
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.datasets.spec import CsvSpec

    neighbours = asked_for(protects, epsilon)
    stem = ratings.name.lstrip(".-").partition(".")[0] or "ratings"
    config = to or Path(f"{stem}-{protects}.yaml")
    if config.exists() and ratings.exists() and config.samefile(ratings):
        raise DpmfError(f"--to {config}: is the file of ratings; name another")
    dataset = {"kind": "csv", "name": name_of(stem), **_dataset(ratings, config, said)}
    try:
        found = load(CsvSpec(**{**dataset, "path": str(ratings)}), Folders.named()).ratings
    except ValidationError as error:
        first = error.errors()[0]
        where = f"--scale {said.scale}" if said.scale and "scale" in first["loc"] else str(ratings)
        raise DpmfError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    methods = fitting(provable(neighbours), found, epsilon, str(ratings))
    asked = ["--protects", protects, "--epsilon", f"{epsilon:g}"]
    command = shlex.join(["dpmf", "init", str(ratings), *asked, *said.words])
    note = GUESSED if said.scale is None else ""
    keys = {"dataset": dataset, "folds": FOLDS, "runs": RUNS}
    write(config, config_text(keys, neighbours, epsilon, methods, command, note=note), methods, force=force)
    return config


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


def write(config: Path, text: str, methods: "Candidates", *, force: bool) -> None:
    """Writes a config and says what is in it; one that is there and says something else is the user's, and kept."""
    from dpmf_cli.results.store import write_atomically
    from dpmf_cli.terminal import say

    try:
        if not force and config.exists() and config.read_text() != text:
            raise DpmfError(
                f"{config}: is there and says something else; `dpmf run` it, name another by --to, or overwrite it "
                "by --force"
            )
        write_atomically(config, text.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise DpmfError(f"{config}: cannot be written or read ({error}); name another by --to") from None
    count = len(methods.taken)
    say(f"wrote {config}: {count} method{'s' * (count > 1)} whose ε can be proved")
    for each in methods.left_out:
        say(f"left out: {each}")


def _dataset(ratings: Path, config: Path, said: Said) -> dict[str, Any]:
    """The keys of `dataset:` beside its name, as said or guessed; every guess is told."""
    from dpmf_cli.terminal import say

    guess = said.guess(ratings)
    for each in guess.words:
        say(f"{ratings}: {each}")
    say(f"{ratings}: where that is wrong, say so: {', '.join(GUESSES)}")
    wanted = ["user", "item", "rating", *["timestamp"] * (said.timestamp is not None)]
    if absent := [role for role in wanted if role not in guess.columns]:
        options = " ".join(f"--{role} COLUMN" for role in absent)
        raise DpmfError(f"{ratings}: no column looks like the {' or the '.join(absent)}; add {options}")
    low, high, step = _scale(said.scale) if said.scale is not None else _guessed_scale(ratings, guess)
    return {
        "path": os.path.relpath(ratings, config.parent),
        **guess.keys,
        "columns": {role: guess.columns[role] for role in wanted},
        "scale": {"minimum": low, "maximum": high, "step": step},
        "duplicates": "last",
    }


def _guessed_scale(ratings: Path, guess: "Guess") -> tuple[float, float, float]:
    from dpmf_cli.terminal import say

    if guess.scale is None:
        raise DpmfError(
            f"{ratings}: has no number for a rating; correct the file, or name the column by --rating"
        )
    if guess.scale[0] == guess.scale[1]:
        raise DpmfError(
            f"{ratings}: all ratings are {guess.scale[0]:g}, so that the scale cannot be guessed, and a constant "
            "predicts them without error; give ratings that differ"
        )
    say(
        f"{ratings}: the scale is taken from what occurs. Your site's own is public and may be wider: "
        "give it by --scale minimum:maximum:step"
    )
    return guess.scale


def _scale(text: str) -> tuple[float, float, float]:
    try:
        low, high, every = map(float, text.split(":"))
    except ValueError:
        raise DpmfError(f"--scale {text}: write minimum:maximum:step, like 0.5:5:0.5") from None
    return low, high, every
