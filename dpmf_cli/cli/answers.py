"""What a command prints, for another command."""

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
    """What a command of dpmf prints, of these results and data where it reads any; None where it has none, which is
    told."""
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
        say(f"left as it stands: {shlex.join(['dpmf', *words])}: {error}")
        return None
    return printed.getvalue()


def _takes(command: Any, words: list[str], name: str) -> bool:
    """Whether a command has that option."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return any(option.name == name for option in command.params)
