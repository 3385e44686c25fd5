"""Arguments and options that several commands have."""

from glob import escape
from pathlib import Path
from typing import Annotated

import typer


def _configs_like(begun: str) -> list[str]:
    """The completions of a word for the shell: files and shipped configs that begin with it."""
    from dpmf_cli.experiment.config.documents import shipped_names

    files = sorted(
        str(path) for path in Path().glob(f"{escape(begun)}*") if path.suffix in ("", ".yaml", ".yml")
    )
    return [*files, *(name for name in shipped_names() if name.startswith(begun))]


ConfigArgument = Annotated[
    Path, typer.Argument(autocompletion=_configs_like, help="A YAML config, or the name of a shipped config.")
]
ResultsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        autocompletion=_configs_like, help="Configs or results folders; default: every result found."
    ),
]
ResultsOption = Annotated[Path, typer.Option(help="Folder of results.")]
DataOption = Annotated[
    Path | None, typer.Option(help="Folder of data files; default: $DPMF_DATA, else ./datasets.")
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        help="Key of a data set to use instead of the config's; the experiment's name then says so."
    ),
]
HeldOutOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Hold out only this many folds, the first ones; the experiment's name then says so."
    ),
]
RunsOption = Annotated[
    int | None,
    typer.Option(min=1, help="How often to repeat the experiment with fresh noise; its name then says so."),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        help="rmse, or a metric that `ranking` or `groups` measured, e.g. ndcg@10; default: each config's `metric`."
    ),
]
JobsOption = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Number of processes; default: one per core.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
PlanOption = Annotated[
    bool, typer.Option("--plan", help="Say what would be run and how long it takes; run nothing.")
]
FormatOption = Annotated[str, typer.Option("--format", help="table, csv, md, latex or json.")]


def _choose_json(context: typer.Context, asked: bool) -> None:
    context.default_map = {"form": "json"} if asked else None


JsonFormatOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="JSON on stdout: short for `--format json`.",
        callback=_choose_json,
        is_eager=True,
        expose_value=False,
    ),
]
"""An option for a command with a parameter `form`, which then is `json` by default."""


def _give(files: list[Path] | None) -> None:
    if files:
        from dpmf_cli.algorithms.plugins import give

        give(files)


PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        callback=_give,
        help="A Python file with algorithms that configs may name in `plugins`; the file is run. May be repeated.",
    ),
]
