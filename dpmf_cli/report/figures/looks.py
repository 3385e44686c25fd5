"""Gives each line of a figure a colour and a marker, so that no two lines share both."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from dpmf_cli.report.figures.style import COLOURS, MARKERS

LOOKS = len(COLOURS) * len(MARKERS)
"""The number of lines that can be told apart."""


@dataclass(frozen=True)
class Look:
    """Numbers of a colour in `COLOURS` and of a marker in `MARKERS`."""

    colour: int
    marker: int


def looks(groups: Sequence[Hashable]) -> list[Look]:
    """Returns a look for each line, given the group to which it belongs.

    Lines of a group share a colour as long as there are markers for it. No two of the first `LOOKS` lines share
    colour and marker. A marker comes again only when all have been used.
    """
    turns = {group: turn for turn, group in enumerate(dict.fromkeys(groups))}
    times, taken = Counter[int](), set[Look]()
    found: list[Look] = []
    for group in groups:
        if len(taken) == LOOKS:
            taken.clear()
        colours = ((turns[group] + step) % len(COLOURS) for step in range(len(COLOURS)))
        free = (
            [look for marker in range(len(MARKERS)) if (look := Look(colour, marker)) not in taken]
            for colour in colours
        )
        chosen = min(next(filter(None, free)), key=lambda look: times[look.marker])
        times[chosen.marker] += 1
        taken.add(chosen)
        found.append(chosen)
    return found
