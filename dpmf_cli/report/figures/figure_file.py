"""A file that a user names: the form of a figure's, and writing it."""

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


def write_named(path: Path, content: bytes) -> None:
    """Writes a file, whole or not at all. Raises DpmfError where it cannot be written."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be written: {error.strerror or error}; name a file in a folder that can be"
        ) from None
