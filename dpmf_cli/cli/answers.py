"""Runs a command of dpmf inside another one and captures what it prints."""

import contextlib
import io
import itertools
import shlex
from pathlib import Path
from typing import Any

import typer

from dpmf_cli.errors import DpmfError
from dpmf_cli.terminal import say


def answer(words: list[str], results: Path | None = None, data: Path | None = None) -> str | None:
    """Returns what a command of dpmf prints, or None if it fails, and says why.

    results, data   folders that are given to the command if it has these options
    """
    from dpmf_cli.cli.main import app

    command = typer.main.get_command(app)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            given = {"results": results, "data": data}
            of = [
                [f"--{name}", str(path)]
                for name, path in given.items()
                if path and _takes(command, words, name)
            ]
            command.main([*words, *itertools.chain(*of)], standalone_mode=False)
    except DpmfError as error:
        say(f"output left as it was: {shlex.join(['dpmf', *words])}: {error}")
        return None
    return printed.getvalue()


def _takes(command: Any, words: list[str], name: str) -> bool:
    """Whether the command that `words` begin with has an option of that name."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return any(option.name == name for option in command.params)
