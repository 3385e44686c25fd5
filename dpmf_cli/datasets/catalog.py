"""The data sets that dpmf knows by name, as catalog.yaml describes them."""

from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.datasets.entry import (
    CatalogEntry,
    Content,
    Counts,
    Download,
    IndexPackage,
    Licence,
    SourcePart,
    TwinShape,
)
from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.ratings import Scale


def read(path: Path) -> dict[str, CatalogEntry]:
    """Reads the entries of a YAML catalog, by key. Raises TypeError for a word that entry.py does not define."""
    described = yaml.safe_load(path.read_text())
    return {key: _entry(key, **words) for key, words in described.items()}


def _entry(key: str, **words: Any) -> CatalogEntry:
    return CatalogEntry(
        key=key,
        scale=Scale(**{name: float(value) for name, value in words.pop("scale").items()}),
        parts=tuple(_part(**part) for part in words.pop("parts")),
        expected=Counts(**words.pop("expected")),
        licence=Licence(**words.pop("licence")),
        shape=TwinShape(**words.pop("shape")),
        **words,
    )


def _part(names: list[str], contents: list[dict[str, Any]], **words: Any) -> SourcePart:
    digests, mirrors = words.pop("digests", ()), words.pop("mirrors", ())
    most_bytes = words.pop("most_bytes", 0)
    return SourcePart(
        names=tuple(names),
        contents=tuple(
            Content(**{**words, "digests": frozenset(words.get("digests", ()))}) for words in contents
        ),
        nested=tuple(words.pop("nested", ())),
        digests=frozenset(digests),
        mirrors=tuple(
            Download(mirror, names[0], digests[0], most_bytes)
            if isinstance(mirror, str)
            else IndexPackage(**mirror)
            for mirror in mirrors
        ),
        **words,
    )


ENTRIES = read(Path(__file__).with_name("catalog.yaml"))


def entry(key: str) -> CatalogEntry:
    """Returns the catalog's entry of that key. Raises `DpmfError` with the nearest key if there is none."""
    try:
        return ENTRIES[key]
    except KeyError:
        raise DpmfError(f'no data set "{key}" in the catalog{did_you_mean(key, ENTRIES)}') from None
