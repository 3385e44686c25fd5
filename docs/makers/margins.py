"""Draws the margins of an exploration, from its record alone.

After Simonsohn, Simmons and Nelson, Specification curve analysis, Nature Human Behaviour 4, 2020.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from docs.makers.svg import WIDTH, line, picture, text
from dpmf_cli.papers.record import Explored
from dpmf_cli.papers.verdicts import Word, judged, limit_of

_FAR = 100.0
_STYLE = """<style>
.dots { stroke: #59636e; stroke-width: 2.4; stroke-linecap: round; fill: none; opacity: .55; }
.other { fill: #1f2328; } .holds { fill: #1a7f4b; } .fails { fill: #b0307a; } .depends { fill: #c9552a; }
@media (prefers-color-scheme: dark) {
  .dots { stroke: #a8b3bf; } .other { fill: #e6edf3; }
  .holds { fill: #4cc38a; } .fails { fill: #f07fbe; } .depends { fill: #ff9d73; }
}
</style>"""


@dataclass(frozen=True)
class _Row:
    """An inequality under one reading of its sentence. Margins are in units of the limit from which they decide.

    tried   those of the settings
    shown   that of the shipped setting, or of the best setting for each ε if the paper chose parameters for each
    """

    words: str
    verdict: Word
    tried: NDArray[np.float64]
    shown: float


def _rows(explored: Explored) -> Iterator[_Row]:
    verdicts = {
        (claim, each.text): each
        for claim in dict.fromkeys(atom.claim for atom in explored.atoms)
        for each in judged(explored, claim)
    }
    for at, atom in enumerate(explored.atoms):
        table = np.array([each.margins[at] for each in explored.tried], float)
        with np.errstate(invalid="ignore"):
            limits = limit_of(table[:, 1:], atom.tolerance, explored.partition, atom.shipped)
        verdict = verdicts[atom.claim, atom.text]
        middle, _, _, limit = verdict.margins[atom.reading]
        yield _Row(
            f"{atom.text}{f' ({atom.reading})' if atom.reading else ''}",
            verdict.word,
            table[:, 0] / np.maximum(limits, 1e-12),
            middle / max(limit, 1e-12),
        )


def _place(margin: float) -> float:
    """Returns the place of a margin from 0 to 1: linear up to 1, then logarithmic up to `_FAR`."""
    size = min(abs(margin), _FAR)
    scaled = math.copysign(size if size <= 1 else 1 + math.log10(size), margin)
    return 0.5 + scaled / (2 + 2 * math.log10(_FAR))


def margins_picture(explored: Explored, named: bool) -> str:
    """Returns each inequality as a row of settings, grouped by verdict, with its words if `named`.

    Right of 1 a setting says that the inequality holds, left of −1 that it fails. The large dot is the shown margin.
    """
    left, right = 16.0, WIDTH - 16.0

    def across(margin: float) -> float:
        return left + (right - left) * _place(margin)

    rows = sorted(_rows(explored), key=lambda row: -row.shown if row.shown == row.shown else math.inf)
    marks, y = list[str](), 22.0
    for verdict in get_args(Word):
        of = [row for row in rows if row.verdict == verdict]
        if not of:
            continue
        y += 24
        marks.append(text(4, y - 4, f"{verdict}: {len(of)} of {len(rows)}", f"head {_class(verdict)}"))
        for row in of:
            if named:
                words = wrap(row.words, 72)
                marks += [text(8, y + 14 + 14 * at, each, "note") for at, each in enumerate(words)]
                y += 14 * len(words) + 4
            y += 6
            marks += _dots([across(each) for each in row.tried if each == each], y)
            if row.shown == row.shown:
                dot = f'cx="{across(row.shown):.0f}" cy="{y:g}" r="{3.6 if named else 2.8}"'
                marks.append(f'<circle {dot} class="{_class(verdict)}"/>')
            y += 6 if named else 1
    start, end = across(-1), across(1)
    band = f'<rect x="{start:.1f}" y="24" width="{end - start:.1f}" height="{y - 18:.1f}" class="band"/>'
    axis = [
        text(across(tick), 18, f"{tick:g}".replace("-", "−"), "note mid")
        for tick in (-100, -10, -1, 1, 10, 100)
    ]
    axis += [line((across(0), 24), (across(0), y + 6), kind="grid")]
    axis += [text(left, y + 24, "← fails", "note"), text(right - 44, y + 24, "holds →", "note")]
    axis.append(text(WIDTH / 2, y + 24, "margin; between −1 and 1 it decides nothing", "note mid"))
    title = f"Margins of inequalities on {explored.title}, over {len(explored.tried)} settings"
    return picture(title, y + 32, [_STYLE, band, *axis, *marks])


def _dots(places: Sequence[float], y: float) -> list[str]:
    """Returns a path of one dot for each place, to whole units."""
    drawn = "".join(f"M{place} {y:g}h0" for place in sorted({round(place) for place in places}))
    return [f'<path d="{drawn}" class="dots"/>'] if drawn else []


def _class(verdict: Word) -> str:
    return verdict if verdict in ("holds", "fails", "depends") else "other"
