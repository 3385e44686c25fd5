"""Arguments and options that several commands have."""

from glob import escape
from pathlib import Path
from typing import Annotated

import typer


def _configs_like(begun: str) -> list[str]:
    """For the shell: files that begin so, and configs that dpmf ships."""
    from dpmf_cli.config.shipped import names

    files = sorted(
        str(path) for path in Path().glob(f"{escape(begun)}*") if path.suffix in ("", ".yaml", ".yml")
    )
    return [*files, *(name for name in names() if name.startswith(begun))]


ConfigArgument = Annotated[
    Path,
    typer.Argument(
        autocompletion=_configs_like,
        help="A YAML config, or the name of one that dpmf ships.",
        show_default=False,
    ),
]
ResultsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        autocompletion=_configs_like,
        help="Configs or results folders; default: every result found.",
        show_default=False,
    ),
]
ConfigsOption = Annotated[
    Path | None, typer.Option("--configs", help="Folder of configs; default those that dpmf ships.")
]
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of results.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder of data files; default $DPMF_DATA, else ./datasets.")
]
DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", help="Another data set than the config's, by its key; the name says so."),
]
HeldOutOption = Annotated[
    int | None,
    typer.Option("--held-out", min=1, help="Hold out only the first so many folds; the name says so."),
]
RunsOption = Annotated[int | None, typer.Option("--runs", min=1, help="Runs of each fold; the name says so.")]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="rmse, or what `ranking` measured: ndcg@10, recall@20; default what each config says.",
    ),
]
FormatOption = Annotated[str, typer.Option("--format", help="table, csv, md, latex or json.")]


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
        help="A Python file with algorithms that configs may name in `plugins`; it is run. May be repeated.",
    ),
]
