"""Options that several groups of commands have."""

from pathlib import Path
from typing import Annotated

import typer


def _give(files: list[Path] | None) -> None:
    if files:
        from dpmf_cli.plugins import give

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
