"""A figure's file that a user names: its form, and writing it."""

from pathlib import Path

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import write_whole
from dpmf_cli.report.figures.style import FORMATS


def figure_form(path: Path) -> str:
    """The form that the name of a file asks for. Raises DpmfError for none that is known."""
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise DpmfError(f"{path}: name a .png, .svg or .pdf file")
    return form


def write_figure(path: Path, drawn: bytes) -> None:
    """Writes a figure, whole or not at all. Raises DpmfError where it cannot be written."""
    try:
        write_whole(path, drawn)
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be written: {error.strerror or error}; name a file in a folder that can be"
        ) from None
