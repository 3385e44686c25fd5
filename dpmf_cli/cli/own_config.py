"""`dpmf init`, `advise`, `recommend`: write a config for own ratings, run it, and say which private method suits."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import say

if TYPE_CHECKING:
    from dpmf_cli.datasets.guess import Guess
    from dpmf_cli.experiment.config.suggested import Candidates

GUESSES = ("--separator", "--header", "--decimal", "--user", "--item", "--rating", "--scale")
"""The options that replace guesses."""

FileArgument = Annotated[Path, typer.Argument(help="Ratings: CSV (compressed or not), JSON or Parquet.")]
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
    bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
]
DecimalOption = Annotated[str | None, typer.Option(help="The decimal mark of numbers: . or ,")]
ZeroOption = Annotated[
    bool | None, typer.Option("--zero-is-missing", help="A rating of 0 means that there is none.")
]
ToOption = Annotated[Path | None, typer.Option(help="The config file to write.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing config that differs.")]


SAID = ("scale", "user", "item", "rating", "timestamp", "separator", "header", "decimal", "zero_is_missing")
"""The options that say something about a file. What they leave out is guessed."""


def write_own_config(
    ratings: Path,
    said: tuple[Any, ...],
    protects: str,
    epsilon: float,
    to: Path | None,
    *,
    force: bool,
    cut: Mapping[str, Any] = {},
) -> tuple[Path, list[str]]:
    """Writes a config with every provable method for a file of ratings, or with those named, and returns its path and
    lines on the ratings.

    said   the values of the options `SAID`, None for those that are not given
    cut    those of the options of `advise` for fewer `folds`, `runs` or `methods` that are given

    Reads the complete file first, and says what it guessed about it. If (user, item) pairs repeat, the config keeps
    the last rating of each, and if rows lack something, it leaves them out.
    """
    from pydantic import ValidationError

    from dpmf_cli.datasets import Folders, load, look
    from dpmf_cli.datasets.guess import guess_format
    from dpmf_cli.datasets.spec import CsvSpec
    from dpmf_cli.experiment.config import suggested

    neighbours = suggested.asked_for(protects, epsilon)
    stem = ratings.name.lstrip(".-").partition(".")[0] or "ratings"
    config = to or Path(f"{stem}-{protects}.yaml")
    if config.exists() and ratings.exists() and config.samefile(ratings):
        raise DpmfError(f"--to {config}: this is the file of ratings; name another file")
    given = {name: value for name, value in zip(SAID, said, strict=True) if value is not None}
    if given.get("decimal", ".") not in (".", ","):
        raise DpmfError(f"--decimal {given['decimal']}: choose one of . and ,")
    scale = given.get("scale")
    guess = guess_format(ratings, **{name: value for name, value in given.items() if name != "scale"})
    for each in guess.words:
        say(f"{ratings}: {each}")
    say(f"{ratings}: if a guess is wrong, correct it with its option: {', '.join(GUESSES)}")
    wanted = ["user", "item", "rating", *["timestamp"] * ("timestamp" in given)]
    if absent := [role for role in wanted if role not in guess.columns]:
        more = " ".join(f"--{role} COLUMN" for role in absent)
        raise DpmfError(f"{ratings}: no column looks like the {' or the '.join(absent)}; add {more}")
    low, high, step = _scale(scale, ratings, guess)
    dataset: dict[str, Any] = {
        "kind": "csv",
        "name": suggested.name_of(stem),
        "path": os.path.relpath(ratings, config.parent),
        **guess.keys,
        "columns": {role: guess.columns[role] for role in wanted},
        "scale": {"minimum": low, "maximum": high, "step": step}
        | ({"guessed": True} if scale is None else {}),
        **{key: given[key] for key in ("zero_is_missing",) if key in given},
    }
    try:
        spec = CsvSpec(**{**dataset, "path": str(ratings), "duplicates": "last", "drop_missing": True})
        whole = load(spec, Folders.named())
    except ValidationError as error:
        first = error.errors()[0]
        where = f"--scale {scale}" if scale and "scale" in first["loc"] else str(ratings)
        raise DpmfError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    if whole.merged:
        dataset["duplicates"] = spec.duplicates
    if whole.left_out.get("drop_missing"):
        dataset["drop_missing"] = spec.drop_missing
    provable = suggested.among(suggested.provable(neighbours), cut.get("methods"))
    methods = suggested.fitting(provable, whole.ratings, epsilon, str(ratings))
    asked = ["--protects", protects, "--epsilon", f"{epsilon:g}"]
    asked += [word for name, value in cut.items() for word in (f"--{name}", str(value))]
    flags = {"header": given.pop("header", None), "zero-is-missing": given.pop("zero_is_missing", None)}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    words += [f"--{'' if value else 'no-'}{name}" for name, value in flags.items() if value is not None]
    command = shlex.join(["dpmf", "advise" if cut else "init", str(ratings), *asked, *words])
    note = suggested.GUESSED if scale is None else ""
    folds, runs = cut.get("folds", suggested.FOLDS), cut.get("runs", suggested.RUNS)
    keys = {"dataset": dataset, "folds": folds, "runs": runs}
    why = {"why": "The methods that you named."} if "methods" in cut else {}
    text = suggested.config_text(keys, neighbours, epsilon, methods, command, note=note, **why)
    write_config(config, text, methods, force=force)
    return config, look(spec, whole).report()


def write_config(config: Path, text: str, methods: "Candidates", *, force: bool) -> None:
    """Writes a config and says what is in it. Refuses to overwrite a different config, unless `force` is set."""
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


def _scale(text: str | None, ratings: Path, guess: "Guess") -> tuple[float, float, float]:
    if text is not None:
        try:
            low, high, every = map(float, text.split(":"))
        except ValueError:
            raise DpmfError(f"--scale {text}: write minimum:maximum:step, like 0.5:5:0.5") from None
        return low, high, every
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
    zero_is_missing: ZeroOption = None,
    to: ToOption = None,
    force: ForceOption = False,
) -> None:
    """Write a config for a file of ratings by looking at it.

    Says what it guesses about the file; an option can replace each guess. Runs nothing: `dpmf advise` also runs the
    config.

    Example: dpmf init ratings.csv --scale 0.5:5:0.5
    """
    said = scale, user, item, rating, timestamp, separator, header, decimal, zero_is_missing
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
    zero_is_missing: ZeroOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Stop after a first answer, which names what was not run.")
    ] = False,
    folds: Annotated[int | None, typer.Option(min=2, help="Cut the ratings into this many folds.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Repeat each fold with fresh noise.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Keys of the methods to run, e.g. pge,isgd; default: all provable ones."),
    ] = None,
    to: ToOption = None,
    force: ForceOption = False,
    results: options.ResultsOption = Path("results"),
    jobs: options.JobsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Say in a page which private method suits a file of ratings.

    Looks at the file, writes a config with every provable method (as `dpmf init` does), and runs it. The page says
    which method to take at your ε.

    Example: dpmf advise ratings.csv --protects value --epsilon 1
    """
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.studies.session import print_answer

    said = scale, user, item, rating, None, separator, header, decimal, zero_is_missing
    given = {"folds": folds, "runs": runs, "methods": methods}
    cut = {name: value for name, value in given.items() if value is not None}
    config, _ = write_own_config(ratings, said, protects, epsilon, to, force=force, cut=cut)
    folders = Folders.named(base=config.parent, results=results)
    print_answer(load_config(config), config, folders, jobs, epsilon, only_first=quick, as_json=as_json)


TOWARDS = ("everybody", "others")
NOT_TAKEN = (
    *("name", "algorithms", "parameters", "epsilons", "thetas", "neighbours", "mode"),
    *("delta", "twins", "references", "growth", "error_cdf", "refine", "search"),
)
"""Keys of the user's config that the written config leaves out or sets itself."""


def recommend(
    config: Annotated[
        Path, typer.Argument(help="A YAML config with your `dataset`; its methods and grid are not used.")
    ],
    protects: Annotated[
        str, typer.Option(help="What ε hides: value, presence, user or local, as in `dpmf advise`.")
    ] = "value",
    epsilon: EpsilonOption = 1.0,
    towards: Annotated[
        str,
        typer.Option(
            help="From whom ε protects. everybody: from anyone; others: from all other users, so that "
            "predictions for a user may use that user's own clean ratings."
        ),
    ] = "everybody",
    delta: Annotated[float, typer.Option(help="The δ that you would accept; 0 for pure ε.")] = 0.0,
    by_errors: Annotated[
        bool,
        typer.Option(
            "--by-errors",
            help="Run all provable methods, and choose by their errors on these ratings. That leaks more than the "
            "stated ε.",
        ),
    ] = False,
    to: ToOption = None,
    force: ForceOption = False,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    as_json: options.JsonOption = False,
    plugin: options.PluginOption = None,
) -> None:
    """Run on your ratings the method that leads on public ones.

    Says which method that is, with which parameters, and how much accuracy it loses to privacy. Writes the config
    to use.

    Example: dpmf recommend my.yaml --protects value --epsilon 1
    """
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.experiment.config import load_config, suggested
    from dpmf_cli.experiment.config.documents import means_a_config, read_whole, relative_to
    from dpmf_cli.experiment.config.loading import validated
    from dpmf_cli.privacy.accounting import LEAST_DELTA, MOST_DELTA
    from dpmf_cli.privacy.protection import Guarantee, protection_of
    from dpmf_cli.report.leaders import chosen_in_words, options_of, shipped
    from dpmf_cli.report.words import wrapped
    from dpmf_cli.studies.session import print_answer

    neighbours = suggested.asked_for(protects, epsilon)
    if towards not in TOWARDS:
        raise DpmfError(f"--towards {towards}: choose one of {', '.join(TOWARDS)}")
    if delta and not LEAST_DELTA <= delta <= MOST_DELTA:
        raise DpmfError(f"--delta {delta:g}: give 0, or one from {LEAST_DELTA:g} to {MOST_DELTA:g}")
    wanted = Guarantee(protection_of(neighbours), towards == "others", delta)
    leaders = shipped()
    ranking = None if by_errors else leaders.ranking(wanted)
    kept = {
        key: Guarantee(wanted.protects, entry.joint, entry.spends_delta)
        for key, entry in (() if ranking else suggested.provable(neighbours))
    }
    written: list[Any] = (
        [leaders.methods[each.method] for each in ranking.nearest(epsilon).methods]
        if ranking
        else [  # a method with a δ suits every guarantee with δ > 0
            key
            for key, each in kept.items()
            if each.joint <= wanted.joint and (each.delta == 0 or wanted.delta > 0)
        ]
    )
    if not written:
        raise DpmfError(
            f"dpmf has no method with a provable ε for these options; {options_of(kept.values())}"
        )
    stem = config.stem.removesuffix(f"-{protects}")
    target = to or config.with_name(f"{stem}-{protects}-recommended.yaml")
    if not means_a_config(config):
        raise DpmfError(
            f"{config}: not a config (.yaml); `dpmf advise` takes a file of ratings, and writes a config"
        )
    document = read_whole(config)
    relative_to(target.parent, document)
    taken = {key: value for key, value in document.data.items() if key not in NOT_TAKEN}
    cut = {} if isinstance(taken.get("split"), dict) else {"folds": suggested.FOLDS}
    keys = {**cut, "runs": suggested.RUNS, **taken, **({"delta": delta} if delta else {})}
    document.data = {
        **keys,
        "epsilons": list(suggested.grid_with(epsilon)),
        "neighbours": neighbours.value,
        "mode": "corrected",
        "algorithms": written,
    }
    valid = validated(document)
    folders = Folders.named(data, base=target.parent, results=results)
    ratings = load(valid.dataset, folders, valid.split).ratings
    methods = suggested.fitting(zip(written, valid.algorithms, strict=True), ratings, epsilon, str(config))
    if ranking:
        methods = suggested.Candidates(methods.taken[:1], methods.left_out)
    asked = {"protects": protects, "epsilon": f"{epsilon:g}", "towards": towards, "delta": f"{delta:g}"}
    given = [word for name, value in asked.items() for word in (f"--{name}", value)]
    command = shlex.join(["dpmf", "recommend", str(config), *given, *["--by-errors"] * by_errors])
    why = (
        "Every method with a provable ε for these options."
        if by_errors
        else "The method that leads on public ratings, with its parameters there."
    )
    text = suggested.config_text(keys, neighbours, epsilon, methods, command, why=why)
    write_config(target, text, methods, force=force)
    before = ""
    if ranking:
        (chosen,) = methods.taken
        paragraphs = chosen_in_words(ranking, epsilon, chosen["label"], chosen)
        before = "".join(map(wrapped, [*paragraphs, f"The config to use: {target}."])).lstrip("\n") + "\n"
    how: Any = {"by_errors": by_errors, "before": before, "as_json": as_json}
    print_answer(load_config(target), target, folders, jobs, epsilon, **how)
