"""What a command prints, for another command."""

import contextlib
import io
import shlex
from pathlib import Path
from typing import Any

import typer

from dpmf_cli.errors import DpmfError
from dpmf_cli.terminal import say


def answer(words: list[str], results: Path | None = None) -> str | None:
    """What a command of dpmf prints, of these results where it reads any; None where it has none, which is told."""
    from dpmf_cli.cli.main import app

    command = typer.main.get_command(app)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            of = ["--results", str(results)] if results and _takes_results(command, words) else []
            command.main([*words, *of], standalone_mode=False)
    except DpmfError as error:
        say(f"left as it stands: {shlex.join(['dpmf', *words])}: {error}")
        return None
    return printed.getvalue()


def _takes_results(command: Any, words: list[str]) -> bool:
    """Whether a command reads a folder of results; some read the data alone."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return any(option.name == "results" for option in command.params)
