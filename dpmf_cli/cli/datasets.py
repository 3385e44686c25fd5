"""`dpmf datasets`: lists, describes and fetches data sets."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import printable

if TYPE_CHECKING:
    from dpmf_cli.datasets.catalog import CatalogEntry

app = typer.Typer(help="List, describe and fetch data sets.", no_args_is_help=True)

_Key = Annotated[str, typer.Argument(help="Key of the data set, as `dpmf datasets list` shows it.")]


def _folder(data: Path | None) -> Path:
    from dpmf_cli.datasets import data_folder

    return data or data_folder()


def _in_columns(rows: list[tuple[str, ...]]) -> str:
    """Rows in columns, of which the last is not padded, so that a narrow terminal cuts nothing off."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return "\n".join(padded)


@app.command("list")
def list_(data: options.DataOption = None, as_json: options.JsonOption = False) -> str:
    """Show the catalog, and which data sets are in the data folder.

    Example: dpmf datasets list
    """
    from dpmf_cli.datasets import catalog, located

    folder = _folder(data)
    found = [
        {
            "key": key,
            "title": entry.title,
            "ratings": entry.expected.ratings,
            "present": located.present(entry, folder) is not None,
            **_files(entry, folder),
        }
        for key, entry in catalog.ENTRIES.items()
    ]
    if as_json:
        return json.dumps(found, indent=2) + "\n"
    rows: list[tuple[str, ...]] = [("key", "ratings", "present", "title", "where")]
    for each in found:
        here = "yes" if each["present"] else "no"
        rows.append((each["key"], f"{each['ratings']:,}", here, each["title"], ", ".join(_places(each))))
    return _in_columns(rows) + "\n"


def _files(entry: "CatalogEntry", folder: Path) -> dict[str, Any]:
    """The present files of a data set, and the mirror that each came from, None if that is not noted."""
    from dpmf_cli.datasets import located

    places = located.present(entry, folder) or []
    return {"files": list(map(str, places)), "fetched_from": [located.origin(path) for path in places]}


def _places(known: dict[str, Any]) -> list[str]:
    """The files of a data set, each with the mirror that it came from if that is noted."""
    pairs = zip(known["files"], known["fetched_from"], strict=True)
    return [f"{path} from {origin}" if origin else path for path, origin in pairs]


@app.command()
def info(
    keys: Annotated[list[str], typer.Argument(help="Keys of data sets, as `dpmf datasets list` shows them.")],
    data: options.DataOption = None,
    as_json: options.JsonOption = False,
) -> str:
    """Show a data set's counts, licence and citation.

    Checks the files, and counts their ratings beside what Friedman et al. (2016) print. With --json, one key gives an
    object, and several keys give a list.

    Example: dpmf datasets info ml-100k
    """
    from dpmf_cli.datasets import catalog, located

    entries = [catalog.entry(key) for key in keys]
    content = [_counts(entry, data) for entry in entries]
    if as_json:
        return json.dumps(content if len(content) > 1 else content[0], indent=2) + "\n"
    texts = []
    for entry, known in zip(entries, content, strict=True):
        scale, counted, printed = entry.scale, known["counted"], known["printed"]
        grid = f" in steps of {scale.step:g}" if scale.step else ""
        rows: list[tuple[str, ...]] = [("", "counted", "Friedman et al. 2016, table 2")]
        for name in ("users", "items", "ratings", "density", "mean", "variance", "per_user", "per_item"):
            cells = (_number(values.get(name) if values else None) for values in (counted, printed))
            rows.append((name.replace("_", " "), *cells))
        if counted is None:
            print(f"\nNot in {_folder(data)}: {located.how_to_get(entry)}", file=sys.stderr)
        lines = [
            f"{entry.title}\nscale {scale.minimum:g} to {scale.maximum:g}{grid}\n",
            _in_columns(rows),
            *([""] * bool(known["seen"])),
            *known["seen"],
            f"\nLicence: {entry.licence.summary}\n         {entry.licence.url}",
            f"Citation: {entry.citation}\nHome: {entry.homepage}",
            *(f"File: {printable(place)}" for place in _places(known)),
        ]
        texts.append("\n".join(lines) + "\n")
    return "\n".join(texts)


def _counts(entry: "CatalogEntry", data: Path | None) -> dict[str, Any]:
    """All that is known about a data set, as plain data. `counted` is None if its files are not here."""
    from dpmf_cli.datasets import Folders, load, located, look
    from dpmf_cli.datasets.soundness import figures
    from dpmf_cli.datasets.spec import CatalogSpec
    from dpmf_cli.papers.printed import printed_statistics

    counted: dict[str, float] | None = None
    seen: list[str] = []
    if located.present(entry, _folder(data)) is not None:
        spec = CatalogSpec(name=entry.key)
        found = load(spec, Folders.named(data))
        seen = look(spec, found).report()
        counted = figures(found.ratings)
    return {
        "key": entry.key,
        "title": entry.title,
        "scale": asdict(entry.scale),
        "counted": counted,
        "seen": seen,
        "expected": asdict(entry.expected),
        "printed": printed_statistics(entry.key),
        "licence": entry.licence.summary,
        "licence_url": entry.licence.url,
        "citation": entry.citation,
        "homepage": entry.homepage,
        **_files(entry, _folder(data)),
    }


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if abs(value) < 30 else f"{value:,.1f}"


@app.command()
def fetch(
    key: _Key,
    from_file: Annotated[
        list[Path] | None, typer.Option(help="Take this file instead of a download; may be repeated.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept the licence without being asked.")] = False,
    data: options.DataOption = None,
) -> None:
    """Download a data set, or import a file that you have.

    Each file is verified by its checksum.

    Example: dpmf datasets fetch ml-1m --from-file ~/Downloads/ml-1m.zip
    """
    from dpmf_cli.datasets import cache_folder, catalog, fetch as fetching

    entry, folder = catalog.entry(key), _folder(data)

    def confirm(question: str) -> bool:
        if yes:
            return True
        if not sys.stdin.isatty():
            raise DpmfError(
                f"{entry.title}: dpmf cannot ask here whether you accept these terms; add --yes to accept them"
            )
        return typer.confirm(question, err=True)

    if from_file:
        places = [fetching.take(entry, path, folder, cache_folder()) for path in from_file]
    else:
        places = fetching.fetch(entry, folder, cache_folder(), confirm=confirm)
    for place in places:
        print(place)
