"""`dpmf recommend`: runs, on the ratings of a config, the private method that leads on public ratings."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.cli.options import DataOption, PluginOption, ResultsOption
from dpmf_cli.cli.own_config import (
    EpsilonOption,
    ForceOption,
    ToOption,
    asked_for,
    fitting,
    print_answer,
    write_config,
)
from dpmf_cli.cli.run import JobsOption
from dpmf_cli.core.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.experiment.config import ExperimentConfig
    from dpmf_cli.privacy.neighbours import Neighbours
    from dpmf_cli.privacy.protection import Guarantee

TOWARDS = ("everybody", "others")
NOT_TAKEN = (
    *("name", "algorithms", "parameters", "epsilons", "thetas", "neighbours", "mode"),
    *("delta", "twins", "references", "growth", "error_cdf", "refine"),
)
"""Keys of the user's config that the written config leaves out or sets itself."""


def recommend(
    config: Annotated[
        Path,
        typer.Argument(
            help="A YAML config with your `dataset`; its methods and grid are not used.", show_default=False
        ),
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
            help="Run all provable methods, and choose by their errors on these ratings. The choice costs ε that is "
            "counted nowhere.",
        ),
    ] = False,
    to: ToOption = None,
    force: ForceOption = False,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
    plugin: PluginOption = None,
) -> None:
    """Run on your ratings the method that leads on public ones.

    Says which method that is, with which parameters, and how much accuracy it loses to privacy. Writes the config
    to use.

    Example: dpmf recommend my.yaml --protects value --epsilon 1
    """
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.experiment.config.suggested import Candidates, config_text
    from dpmf_cli.privacy.accounting import LEAST_DELTA, MOST_DELTA
    from dpmf_cli.privacy.protection import Guarantee, protection_of
    from dpmf_cli.report.leaders import chosen_in_words, shipped
    from dpmf_cli.report.words import wrapped

    neighbours = asked_for(protects, epsilon)
    if towards not in TOWARDS:
        raise DpmfError(f"--towards {towards}: choose one of {', '.join(TOWARDS)}")
    if delta and not LEAST_DELTA <= delta <= MOST_DELTA:
        raise DpmfError(f"--delta {delta:g}: give 0, or one from {LEAST_DELTA:g} to {MOST_DELTA:g}")
    wanted = Guarantee(protection_of(neighbours), towards == "others", delta)
    leaders = shipped()
    ranking = None if by_errors else leaders.ranking(wanted)
    written: list[Any] = (
        [leaders.methods[each.method] for each in ranking.nearest(epsilon).methods]
        if ranking
        else _keeping(wanted, neighbours)
    )
    stem = config.stem.removesuffix(f"-{protects}")
    target = to or config.with_name(f"{stem}-{protects}-recommended.yaml")
    keys, valid = _with_methods(config, target, written, neighbours, delta, epsilon)
    folders = Folders.named(data, base=target.parent, results=results)
    ratings = load(valid.dataset, folders, valid.test).ratings
    methods = fitting(zip(written, valid.algorithms, strict=True), ratings, epsilon, str(config))
    if ranking:
        methods = Candidates(methods.taken[:1], methods.left_out)
    options = {"protects": protects, "epsilon": f"{epsilon:g}", "towards": towards, "delta": f"{delta:g}"}
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    command = shlex.join(["dpmf", "recommend", str(config), *given, *["--by-errors"] * by_errors])
    why = (
        "Every method with a provable ε for these options."
        if by_errors
        else "The method that leads on public ratings, with its parameters there."
    )
    text = config_text(keys, neighbours, epsilon, methods, command, why=why)
    write_config(target, text, methods, force=force)
    before = ""
    if ranking:
        (chosen,) = methods.taken
        paragraphs = chosen_in_words(ranking, epsilon, chosen["label"], chosen)
        before = "".join(map(wrapped, [*paragraphs, f"The config to use: {target}."])).lstrip("\n") + "\n"
    print_answer(target, folders, jobs, epsilon, by_errors=by_errors, before=before)


def _keeping(wanted: "Guarantee", neighbours: "Neighbours") -> list[str]:
    """Returns the keys of all methods whose every ε is provable for a guarantee.

    A method with a δ suits every guarantee with δ > 0.
    """
    from dpmf_cli.experiment.config.suggested import provable
    from dpmf_cli.privacy.protection import Guarantee
    from dpmf_cli.report.leaders import options_of

    kept = {
        key: Guarantee(wanted.protects, entry.joint, entry.spends_delta)
        for key, entry in provable(neighbours)
    }
    found = [
        key
        for key, each in kept.items()
        if each.joint <= wanted.joint and (each.delta == 0 or wanted.delta > 0)
    ]
    if not found:
        raise DpmfError(
            f"dpmf has no method with a provable ε for these options; {options_of(kept.values())}"
        )
    return found


def _with_methods(
    config: Path, target: Path, written: list[Any], neighbours: "Neighbours", delta: float, epsilon: float
) -> "tuple[dict[str, Any], ExperimentConfig]":
    """Returns (keys that `target` takes from the user's config, the complete config with these methods).

    Raises `DpmfError` for a mistake in the user's config, with its place.
    """
    from dpmf_cli.experiment.config.documents import means_a_config, read_whole, relative_to
    from dpmf_cli.experiment.config.loading import validated
    from dpmf_cli.experiment.config.suggested import FOLDS, RUNS, grid_with

    if not means_a_config(config):
        raise DpmfError(
            f"{config}: not a config (.yaml); `dpmf advise` takes a file of ratings, and writes a config"
        )
    document = read_whole(config)
    relative_to(target.parent, document)
    keys = {"folds": FOLDS, "runs": RUNS} | {
        key: value for key, value in document.data.items() if key not in NOT_TAKEN
    }
    keys |= {"delta": delta} if delta else {}
    document.data = {
        **keys,
        "epsilons": list(grid_with(epsilon)),
        "neighbours": neighbours.value,
        "mode": "corrected",
        "algorithms": written,
    }
    return keys, validated(document)
