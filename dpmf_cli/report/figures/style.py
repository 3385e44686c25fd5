"""The style of all figures, the looks of lines, and the bytes and names of files.

Figures use matplotlib's objects: no pyplot, no window, and no global state except the style while drawing. Equal
results give equal bytes.
"""

import io
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import write_whole, writing
from dpmf_cli.core.terminal import printable

FORMATS = ("png", "svg", "pdf")

#: Okabe & Ito's palette, safe for colour-blind readers, without the yellow that fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Markers by their names in matplotlib. Only an open circle is a crossing, so the filled circle can come first.
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
MARKER_SIZE = 3.6
GREY = "#666666"
LOOKS = len(COLOURS) * len(MARKERS)
"""The number of lines that can be told apart."""


class Dash(IntEnum):
    """What a line is. Dashes mean this and nothing else, in every figure and chart."""

    MEASURED = 0
    NO_NOISE = 1
    PRINTED = 2


DASHES: dict[Dash, Any] = {Dash.MEASURED: "-", Dash.NO_NOISE: (0, (6, 4)), Dash.PRINTED: (0, (1, 2))}

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "svg.hashsalt": "dpmf",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
#: Metadata without matplotlib's version and the date, which would change the bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


class Look(NamedTuple):
    """Numbers of a colour in `COLOURS` and of a marker in `MARKERS`. Without a colour a line is grey."""

    colour: int | None
    marker: int | None

    @property
    def hue(self) -> str:
        return GREY if self.colour is None else COLOURS[self.colour]


GREY_LEVEL = Look(None, None)
"""The look of a baseline's level. Its name stands at its line."""


def looks(groups: Sequence[Hashable]) -> list[Look]:
    """A look for each line, given the group to which it belongs, so that no two lines share both.

    Lines of a group share a colour as long as there are markers for it, and a marker comes again only when all have
    been used. No two of the first `LOOKS` lines share colour and marker.
    """
    turns = {group: turn for turn, group in enumerate(dict.fromkeys(groups))}
    times, taken = Counter[int](), set[tuple[int, int]]()
    found: list[Look] = []
    for group in groups:
        if len(taken) == LOOKS:
            taken.clear()
        free = (look for look in product(range(len(COLOURS)), range(len(MARKERS))) if look not in taken)
        colour, marker = min(free, key=lambda look: ((look[0] - turns[group]) % len(COLOURS), times[look[1]]))
        times[marker] += 1
        taken.add((colour, marker))
        found.append(Look(colour, marker))
    return found


def write_figure(path: Path, draw: Callable[[str], bytes]) -> None:
    """Draws a figure in the format that a file's name asks for, and writes the file completely or not at all.

    Raises DpmfError for an unknown format, and if the file cannot be written.
    """
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise DpmfError(f"{path}: name a .png, .svg or .pdf file")
    drawn = draw(form)
    with writing(path, "name a file in a folder that you can write to"):
        write_whole(path, drawn)


class ShownFigure(Figure):
    """A figure that notebooks show, also where nothing has imported pyplot."""

    def _repr_png_(self) -> bytes:
        return file_of(lambda: self, "png")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, its size in inches."""
    figure = ShownFigure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def styled() -> Iterator[None]:
    """A context in which figures have the style of all figures."""
    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a label may have letters that the font lacks
        yield


def file_of(draw: Callable[[], Figure], form: str) -> bytes:
    """The bytes of a figure's file, in one of `FORMATS` and in the style of all figures."""
    with styled():
        figure = draw()
        for text in figure.findobj(Text):
            text.set_text(printable(text.get_text(), keep="\n"))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, dpi=150, metadata=_METADATA[form])
    return buffer.getvalue()
