"""Files that a user names: finds the format of a figure's file, and writes files."""

from pathlib import Path

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import write_whole
from dpmf_cli.report.figures.style import FORMATS


def figure_form(path: Path) -> str:
    """Returns the format that a file's name asks for. Raises DpmfError for an unknown format."""
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise DpmfError(f"{path}: name a .png, .svg or .pdf file")
    return form


def write_named(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all. Raises DpmfError if it cannot be written."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be written: {error.strerror or error}; name a file in a folder that you can write to"
        ) from None
