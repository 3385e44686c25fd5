"""The tables in docs/papers that are made: nothing in them is written by hand.

They stand between two comments, `<!-- KIND of KEY -->` and `<!-- end -->`:

exhibits   which config measures what
claims     verdicts on the paper's claims, from the record of its exploration
expected   the same in short, with the experiments that measure each
cells      the printed cells, from that record
open       what the paper leaves open
errata     the paper's mistakes
output     `<!-- output of dpmf … -->`: what that command printed; without `--results` it stays as it stands. That of
           `make bench` is written by that target alone
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from dpmf_cli.cli.reference import markdown_table
from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.claims import PaperFindings, paper
from dpmf_cli.papers.record import FOLDER, Record, path_of, read_record
from dpmf_cli.papers.space import space
from dpmf_cli.report.tables.explored import cells_text, claims_text, expected_text, open_text
from dpmf_cli.report.tables.layout import TextTable, markdown

_MARKED = re.compile(
    r"(<!-- (?:(?P<kind>exhibits|claims|expected|cells|open|errata) of (?P<key>\w+)|"
    r"output of (?P<command>dpmf .+?|make bench)) -->\n)"
    r"(?P<body>.*?)(?=<!-- end -->)",
    re.DOTALL,
)

Run = Callable[[list[str]], str | None]
"""What a command of dpmf prints; None where it has no results to speak of."""


def with_tables(page: Path, run: Run | None = None) -> str:
    """The text of a page with its tables written anew. Raises DpmfError for a page that cannot be read.

    run   what has the commands of the page answer; without it their output stays as it is
    """
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DpmfError(f"{page}: cannot be read: {error}; name a page of docs/papers") from None

    def anew(found: re.Match[str]) -> str:
        if found["command"]:
            program, *arguments = shlex.split(found["command"])
            said = run(arguments) if run and program == "dpmf" else None
            return found[1] + (found["body"] if said is None else f"\n{said}\n")
        record = read_record(path_of(_records(page), found["key"]))
        return found[1] + _table(found["kind"], found["key"], record)

    return _MARKED.sub(anew, text)


def _records(page: Path) -> Path:
    """The folder of records: beside the pages of papers, or as the root of the repository sees it."""
    beside = page.parent / FOLDER
    return beside if beside.is_dir() else page.parent / "docs" / "papers" / FOLDER


def outside_of_tables(text: str) -> tuple[str, str]:
    """(what is written by hand, what is made) of a page."""
    made = [found[0] for found in _MARKED.finditer(text)]
    return _MARKED.sub("", text), "\n".join(made)


def _table(kind: str, key: str, record: Record | None) -> str:
    found = paper(key)
    if kind == "exhibits":
        return exhibits_table(found)
    if kind == "errata":
        return markdown_table(("where", "what"), [(each.where, each.what) for each in found.errata])
    if kind == "open":
        return _drawn(open_text(space(key)))
    record = record or Record(paper=key, version="")
    if kind == "expected":
        return _drawn(expected_text(record, found))
    if kind == "claims":
        return _drawn(claims_text(record, found))
    return (
        "\n".join(_drawn(cells_text(each)) for each in record.data.values() if each.printed)
        or "Nothing was explored.\n"
    )


def _drawn(table: TextTable) -> str:
    return f"\n{markdown(table)}\n"


def exhibits_table(found: PaperFindings) -> str:
    """A row for each table or figure: what it shows, and the configs that measure it."""
    rows = [
        (each.name, each.what, ", ".join(f"`{name}`" for name in each.configs) or f"`{each.command}`")
        for each in found.exhibits
        if each.configs or each.command
    ]
    return markdown_table(("", "", "configs"), rows)
