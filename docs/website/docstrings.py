"""Docstrings as the site shows them: lines `name  what it is` become rows of a table."""

import re
from typing import Any

from griffe import Extension, Object

ROW = re.compile(r"^(?P<names>\w+(?:, \w+)*) {2,}(?P<what>\S.*)$")


class Columns(Extension):
    """Rewrites each docstring that is loaded."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = with_tables(obj.docstring.value)


def with_tables(text: str) -> str:
    """The paragraphs of a docstring, those that list names as tables."""
    return "\n\n".join(map(_paragraph, text.split("\n\n")))


def _paragraph(text: str) -> str:
    if not ROW.match(text.partition("\n")[0]):
        return text
    rows: list[list[str]] = []
    for line in text.splitlines():
        found = ROW.match(line)
        if found:
            rows.append(
                [
                    ", ".join(f"`{name}`" for name in found["names"].split(", ")),
                    found["what"].replace("|", r"\|"),
                ]
            )
        else:
            rows[-1][1] += f" {line.strip()}"
    return "\n".join(["| | |", "|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])
