"""The bibliography of docs/paper.md, docs/paper.bib, and the keys that a text cites as `[@key]`."""

import re
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "paper.bib"

Entry = Mapping[str, str]
"""The fields of an entry; `type` is the word after its @."""

VENUES = ("journal", "booktitle", "howpublished")


def entries() -> dict[str, Entry]:
    """Returns the entries by key. A field stands on a line of its own, in braces."""
    found = re.findall(
        r"^@(\w+)\{(\w+),\n(.*?)^\}$", FILE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return {
        key: {"type": kind, **dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, re.MULTILINE))}
        for kind, key, body in found
    }


def cited(text: str) -> set[str]:
    """Returns the keys that a text cites."""
    return set(re.findall(r"@(\w+)(?=[;\]])", text))


def told(entry: Entry) -> str:
    """Returns an entry in words: authors, title, venue, year, and where it is."""
    venue = next(entry[name] for name in VENUES if name in entry)
    volume = f" {entry['volume']}" if "volume" in entry else ""
    number = f"({entry['number']})" if "number" in entry else ""
    pages = f", {entry['pages'].replace('--', '–')}" if "pages" in entry else ""
    place = f"https://doi.org/{entry['doi']}" if "doi" in entry else entry["url"]
    end = "" if entry["title"].endswith("?") else "."
    words = f"{entry['author'].replace(' and ', '; ')}: {entry['title']}{end} {venue}{volume}{number}{pages}"
    return f"{re.sub('[{}]', '', words)}, {entry['year']}. {place.replace('_', '%5F')}"
