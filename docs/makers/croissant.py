"""Describes the catalog's data sets in Croissant 1.0 (MLCommons): `python -m docs.makers.croissant FOLDER [--check]`.

One file for each set, KEY.json. It has the publisher's addresses and checksums as the catalog has them, and no data.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmf_cli.core import terminal
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.catalog import ENTRIES, CatalogEntry, SourcePart

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "md5": "cr:md5",
    "sc": "https://schema.org/",
}

PUBLISHED = {
    "ml-100k": "1998-04",
    "ml-1m": "2003-02",
    "ml-10m": "2009-01",
    "netflix": "2006-10",
    "jester-1": "2003-05",
    "ml-latest-small": "2018-09",
    "ml-10m-partial": "2009-01",
    "netflix-sample": "2006-10",
}
"""When the publisher released a set, or the set that it is a part of."""

CREATORS = {"grouplens.org": "GroupLens Research", "archive.org": "Netflix", "berkeley.edu": "Ken Goldberg"}
"""Who made a set, by the host of its page."""

FORMATS = {
    ".zip": "application/zip",
    ".gz": "application/gzip",
    ".csv": "text/csv",
    ".xls": "application/vnd.ms-excel",
}


def described(entry: CatalogEntry) -> dict[str, Any]:
    """Returns the description of a data set, in Croissant's JSON-LD."""
    counts, scale = entry.expected, entry.scale
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": entry.key,
        "description": f"{entry.title}: {counts.ratings:,} ratings of {counts.items:,} items by "
        f"{counts.users:,} users, from {scale.minimum:g} to {scale.maximum:g}. {entry.licence.summary}",
        "url": entry.homepage,
        "license": entry.licence.url,
        "citeAs": entry.citation,
        "creator": {
            "@type": "sc:Organization",
            "name": next(name for host, name in CREATORS.items() if host in entry.homepage),
        },
        "datePublished": PUBLISHED[entry.key],
        "distribution": [each for part in entry.parts for each in _distribution(part)],
    }


def _distribution(part: SourcePart) -> list[dict[str, Any]]:
    """Returns the archive of a part, and the rating files in it."""
    address = next((mirror.url for mirror in part.mirrors if mirror.url), part.names[0])
    archive = {
        "@type": "cr:FileObject",
        "@id": part.names[0],
        "name": part.names[0],
        "contentUrl": address,
        "encodingFormat": FORMATS[Path(part.names[0]).suffix],
        **_digest(part.digests),
    }
    return [archive, *(_content(part, content.pattern) for content in part.contents[:1])]


def _content(part: SourcePart, pattern: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"ratings-{part.names[0]}",
        "name": f"ratings-{part.names[0]}",
        "containedIn": {"@id": part.names[0]},
        "encodingFormat": FORMATS.get(Path(pattern).suffix, "text/plain"),
        "includes": [pattern, f"*/{pattern}"],
    }


def _digest(digests: frozenset[str]) -> dict[str, str]:
    """Returns the checksum of an archive by its kind."""
    kind, _, digits = min(digests).partition(":")
    return {kind: digits}


def main(folder: Path, check: Annotated[bool, typer.Option("--check")] = False) -> None:
    """Writes the descriptions of all sets, or compares them with those that are there."""
    for key, entry in ENTRIES.items():
        text = json.dumps(described(entry), indent=1, ensure_ascii=False) + "\n"
        path = folder / f"{key}.json"
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            raise DpmfError(f"{path}: is not as the catalog has it; write it anew: make format")


if __name__ == "__main__":
    terminal.guard()
    typer.run(main)
