"""Sets the style of all figures, and turns a figure into the bytes of a file.

Figures use matplotlib's objects: no pyplot, no window, and no global state except the style while drawing. Equal
results give equal bytes.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.text import Text

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.terminal import printable

FORMATS = ("png", "svg", "pdf")

#: Okabe & Ito's palette, safe for colour-blind readers, without the yellow that fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Markers by their names in matplotlib. Only an open circle is a crossing, so the filled circle can come first.
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
MARKER_SIZE = 3.6
GREY = "#666666"


class Dash(IntEnum):
    """What a line is. Dashes mean this and nothing else, in every figure and chart."""

    MEASURED = 0
    NO_NOISE = 1
    PRINTED = 2


DASHES: dict[Dash, Any] = {Dash.MEASURED: "-", Dash.NO_NOISE: (0, (6, 4)), Dash.PRINTED: (0, (1, 2))}

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "svg.hashsalt": "dpmf",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
#: Metadata without matplotlib's version and the date, which would change the bytes.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def check_form(form: str) -> None:
    """Raises `DpmfError` for a format that is not in `FORMATS`."""
    if form not in FORMATS:
        raise DpmfError(f'unknown figure format "{form}"{did_you_mean(form, FORMATS)}')


@contextmanager
def drawing() -> Iterator[None]:
    """Sets the style of all figures while one is drawn."""
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a label may have letters that the font lacks
        yield


def file_of(figure: Figure, form: str, *, dpi: int = 150) -> bytes:
    """Returns the bytes of a figure's file, in one of `FORMATS`. Call it inside `drawing`."""
    for text in figure.findobj(Text):
        text.set_text(printable(text.get_text(), keep="\n"))
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=dpi, metadata=METADATA[form])
    return buffer.getvalue()
