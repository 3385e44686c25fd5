"""Sentences for people, from the templates of `templates/`, and how they are broken into lines."""

import math
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpmf_cli.core.terminal import significant
from dpmf_cli.evaluation.crossings import Crossing, End, Status

OVER_RUNS = "* one fold: the interval is over runs only, not over the choice of test ratings"
JOINT = "‡ predicts from the target user's own clean ratings: joint DP, which protects from others only"

WIDTH = 80
_BROKEN = "\0"
"""Stands for a line's end inside of a value, which ends no line of the template."""


def lines(template: str, **values: Any) -> list[str]:
    """The lines of a template's text, except empty ones: paragraphs, notes, or items of a list."""
    text = _environment().get_template(f"{template}.txt.j2").render(**values)
    return [line.replace(_BROKEN, "\n") for line in text.split("\n") if line]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dpmf_cli.report"),
        autoescape=False,
        undefined=StrictUndefined,
        line_statement_prefix="%",
        finalize=lambda value: value.replace("\n", _BROKEN) if isinstance(value, str) else value,
    )
    environment.globals |= {"infinity": math.inf, "OVER_RUNS": OVER_RUNS, "JOINT": JOINT}
    environment.filters |= {
        "significant": significant,
        "end_in_words": end_in_words,
        "listed": listed,
        "has": lambda rows, path: any(map(attrgetter(path), rows)),
    }
    return environment


def end_in_words(end: End, crossing: Crossing) -> str:
    """An end of a crossing's interval, in words: an ε, or the side of the grid on which the end lies."""
    if end == Status.NO_EPSILON:
        return "no ε"
    if end == Status.BELOW_GRID:
        return f"below {crossing.grid_low:g}"
    if end == Status.NOT_REACHED:
        return f"beyond {crossing.grid_high:g}"
    return significant(end) if isinstance(end, float) else "?"


def listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def wrapped(paragraph: str) -> str:
    """A paragraph or a list item broken into lines, but never inside ε = 1 or a `command`, which people copy."""
    bullet = paragraph.startswith("- ")
    whole = re.sub("`[^`]*`| = ", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), paragraph)
    filled = textwrap.fill(
        whole, WIDTH, subsequent_indent="  " * bullet, break_on_hyphens=False, break_long_words=False
    )
    return ("" if bullet else "\n") + filled.replace("\N{NO-BREAK SPACE}", " ") + "\n"
