"""Writes the generated tables of the documentation: `python -m docs.makers.pages PAGE [--results FOLDER]`.

A table stands between two comments, `<!-- KIND of KEY -->` and `<!-- end -->`. KEY is the key of a paper. The kinds:

exhibits   which config measures which table or figure
experiments   what a run of each config costs on the reference machine
claims     verdicts on the paper's claims, from the record of its exploration
margins    a picture of the margins for each data set of that record
expected   the same verdicts in short, with the experiments that measure each claim
cells      the printed values, from the same record
open       what the paper leaves open
errata     the paper's mistakes
output     `<!-- output of dpmf … -->`: the output of that command

`<!-- popularity of NAME … -->` compares methods with private popularity in the results of these names
(`docs.makers.ranking`). `<!-- results/NAME.md -->` is that file of the results folder, which a command wrote. Without
`--results`, such blocks and the outputs of commands stay as they are.
`<!-- KIND of all -->` is a table of all papers: `docs.makers.paper_tables` has the kinds.
`<!-- summary of all -->` is the README's table, and `<!-- mistakes of all -->` are bad configs with what dpmf says.
"""

import contextlib
import io
import itertools
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import typer
import yaml

from docs.makers.paper_tables import (
    KINDS,
    Records,
    all_verdicts,
    expected_text,
    open_text,
    settings_text,
    turns_text,
)
from docs.makers.ranking import ranking_text
from docs.makers.reference import markdown_table
from dpmf_cli.cli.main import app
from dpmf_cli.core import terminal
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import printable, say
from dpmf_cli.evaluation.crossings import Agreement, agreement
from dpmf_cli.papers.claims import PaperFindings, all_papers, paper
from dpmf_cli.papers.record import FOLDER, UNBOUNDED, Record, path_of, read_record
from dpmf_cli.papers.space import space
from dpmf_cli.papers.verdicts import Judged, Word
from dpmf_cli.report.tables.layout import NONE, TextTable, markdown, markdown_notes
from dpmf_cli.report.tables.papers import claims_text, printed_values_text

_MARKED = re.compile(
    rf"(<!-- (?:(?P<of_all>summary|mistakes|{'|'.join(KINDS)}) of all|"
    r"(?P<kind>exhibits|experiments|claims|margins|expected|cells|open|errata) of (?P<key>\w+)|"
    r"popularity of (?P<names>\w+(?: \w+)*)|"
    r"output of dpmf (?P<command>.+?)|results/(?P<file>[\w./-]+\.md)) -->\n)"
    r"(?P<body>.*?)(?=<!-- end -->)",
    re.DOTALL,
)

Run = Callable[[list[str]], str | None]
"""Returns what a command of dpmf prints, or None if it cannot answer."""


def with_tables(page: Path, run: Run | None = None, results: Path | None = None) -> str:
    """Returns the text of a page with its tables updated. Raises DpmfError for a page that cannot be read.

    run      runs the commands of the page; without it their output stays as it is
    results  the folder of results whose files the page shows; without it they stay as they are
    """
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DpmfError(f"{page}: cannot be read: {error}; name a page of docs/papers") from None

    def recorded(key: str) -> Record:
        return read_record(path_of(_records(page), key)) or Record(paper=key, version="")

    def anew(found: re.Match[str]) -> str:
        said = None
        if found["command"] and run:
            said = run(shlex.split(found["command"]))
        if found["file"] and results and (file := results / found["file"]).is_file():
            said = file.read_text(encoding="utf-8")
        if found["names"] and results:
            said = ranking_text(found["names"].split(), results)
        if found["command"] or found["file"] or found["names"]:
            return found[1] + (found["body"] if said is None else f"\n{said}\n")
        if found["of_all"] == "summary":
            return found[1] + summary_table(recorded)
        if found["of_all"] == "mistakes":
            return found[1] + mistakes_tables()
        if found["of_all"]:
            return found[1] + _drawn(KINDS[found["of_all"]](recorded))
        return found[1] + _table(found["kind"], found["key"], recorded(found["key"]))

    return _MARKED.sub(anew, text)


def _records(page: Path) -> Path:
    """Returns the folder of records that belongs to a page in docs/, a folder of it, or the repository's root."""
    places = [page.parent / path / FOLDER for path in ("papers", "docs/papers", "../papers", ".")]
    return next((place for place in places if place.is_dir()), places[-1])


def outside_of_tables(text: str) -> tuple[str, str]:
    """Returns (the hand-written text, the generated text) of a page."""
    made = [found[0] for found in _MARKED.finditer(text)]
    return _MARKED.sub("", text), "\n".join(made)


def _table(kind: str, key: str, record: Record) -> str:
    found = paper(key)
    if kind == "exhibits":
        return exhibits_table(found)
    if kind == "experiments":
        return experiments_table(found)
    if kind == "errata":
        return markdown_table(("where", "what"), [(each.where, each.what) for each in found.errata])
    if kind == "open":
        return _drawn(open_text(space(key)))
    if kind == "expected":
        return _drawn(expected_text(record, found))
    if kind == "margins":
        pictures = (
            f"\n**{data.title}**\n\n![The margin of each inequality over settings on {data.title}, in words]"
            f"(../figures/margins_{key}_{name}.svg)\n"
            for name, data in record.data.items()
        )
        return "".join(pictures) + "\n"
    if kind == "claims":
        table = claims_text(record, found, COLUMNS, _row)
        return f"\n{markdown_notes(table)}{_drawn(replace(table, notes=()))}"
    return (
        "\n".join(_drawn(printed_values_text(each)) for each in record.data.values() if each.printed)
        or "Nothing was explored.\n"
    )


COLUMNS = ("inequality", "on", "verdict", "margin", "settings", "because")
"""The columns of verdicts on a page, which `dpmf explore` shows in brief."""


def _row(verdict: Judged, data: str) -> tuple[str, ...]:
    margins = "; ".join(
        f"{reading}: " * bool(reading) + _margin(of, verdict.unit) for reading, of in verdict.margins.items()
    )
    by = f"depends on {verdict.by}" if verdict.by else ""
    because = "; ".join(filter(None, (verdict.said, by, turns_text(verdict), verdict.note)))
    return (
        verdict.text,
        data or NONE,
        verdict.word,
        margins or NONE,
        settings_text(verdict) or NONE,
        because or NONE,
    )


def _margin(margin: tuple[float, float, float, float], unit: str) -> str:
    """Returns a margin with the limit from which it counts, and its interval. Ratios of ε are factors."""

    def said(value: float) -> str:
        if math.isnan(value):
            return "open"
        if abs(value) >= UNBOUNDED:
            return "−∞" if value < 0 else "∞"
        if unit == "ε":
            return f"×{math.exp(value):.3g}"
        return f"{value:+.4f}" if unit == "RMSE" else f"{round(value, 12) + 0.0:+.3g}"

    *around, limit = margin
    middle, low, high = map(said, around)
    counts = f" ({said(limit).replace('+', '±', 1)})" if limit < UNBOUNDED / 2 else ""
    interval = "" if low == high == middle else f" [{low}, {high}]"
    return f"{middle}{counts}{interval}".replace("-", "−")


def _drawn(table: TextTable) -> str:
    return f"\n{markdown(table)}\n"


def summary_table(records: Records) -> str:
    """Returns a table with a row for each paper: its printed values, and the verdicts on its claims.

    Links start at the root of the repository. A claim counts once for each data set that it is about.
    """
    words = get_args(Word)
    rows = []
    for key, found in all_papers().items():
        off = [cell.off for each in records(key).data.values() for cell in each.printed.values()]
        said = Counter(each.of.word for each in all_verdicts(records) if each.paper is found)
        agreeing = sum(agreement(each) is Agreement.AGREES for each in off)
        of_cells = f"{agreeing} of {len(off)}" if off else "–"
        counts = (str(said[word]) for word in words)
        rows.append((f"[{found.title}]({found.page})", of_cells, *counts))
    return markdown_table(("paper", "printed numbers that agree", *words), rows)


BAD_CONFIGS = Path(__file__).parents[2] / "tests" / "config" / "bad_configs.yaml"


def mistakes_tables() -> str:
    """Returns a table for each section of `BAD_CONFIGS`: the mistake, what is written, and what dpmf says."""

    def code(text: str) -> str:
        lines = (line.strip() for line in text.splitlines())
        return "<br>".join(f"`{printable(line)}`".replace("|", "\\|") for line in lines if line)

    def shown(case: dict[str, Any]) -> str:
        parts = [
            f"{code(before)} → {code(after)}" if after else f"without {code(before)}"
            for before, after in case.get("replace", {}).items()
        ]
        parts += [code(case[key]) for key in ("entries", "text", "more") if case.get(key)]
        first = "<br>".join(parts)
        if "own" in case:
            return code(case["own"]) + f"<br>base.yaml: {first}" * bool(first)
        return first or ("nothing" if "text" in case else f"the bytes {code(case['bytes'])}")

    tables = []
    for section, cases in yaml.safe_load(BAD_CONFIGS.read_text(encoding="utf-8")).items():
        lines = [("", "you write", "dpmf says"), ("---",) * 3]
        lines += [
            (name, shown(case), f"`` {case['says']} ``".replace("|", "\\|")) for name, case in cases.items()
        ]
        rows = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        tables.append(f"\n## {section}\n\n{rows}")
    return "".join(tables) + "\n"


def exhibits_table(found: PaperFindings) -> str:
    """Returns a table with a row for each table or figure: what it shows, and the configs that measure it."""
    rows = [
        (each.name, each.what, ", ".join(f"`{name}`" for name in each.configs) or f"`{each.making}`")
        for each in found.exhibits
        if each.configs or each.file
    ]
    return markdown_table(("", "", "configs"), rows)


def experiments_table(found: PaperFindings) -> str:
    """Returns a table with a row for each config: what it shows, on which data, and what a run from nothing costs on
    the reference machine."""
    from docs.makers.sizes import REFERENCE_CORES, REFERENCE_MEMORY, disk_bytes, reference_plan
    from dpmf_cli.core.terminal import duration
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.documents import FOLDER as CONFIGS

    rows = []
    for name in found.configs:
        config = load_config(CONFIGS / f"{name}.yaml")
        plan = reference_plan(config)
        jobs = REFERENCE_CORES if plan.peak_bytes(REFERENCE_CORES) <= REFERENCE_MEMORY else 1
        disk = disk_bytes(plan.left, plan.ratings, timestamps=config.dataset.has_timestamps)
        rows.append(
            (
                f"`{name}`",
                ", ".join(dict.fromkeys(each.name for each in found.exhibits if name in each.configs)),
                config.dataset.key,
                duration(plan.seconds(jobs)),
                str(jobs),
                f"{plan.peak_bytes(jobs) / 2**30:.1f} GiB",
                f"{disk / 1e6:.0f} MB",
            )
        )
    return markdown_table(("config", "shows", "data", "time", "processes", "memory", "disk"), rows)


def answer(words: list[str], results: Path | None = None, data: Path | None = None) -> str | None:
    """Returns what a command of dpmf prints, or None if it fails, and says why.

    results, data   folders that are given to the command if it has these options
    """
    command = typer.main.get_command(app)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            given = {"results": results, "data": data}
            of = [
                [f"--{name}", str(path)]
                for name, path in given.items()
                if path and _takes(command, words, name)
            ]
            command.main([*words, *itertools.chain(*of)], standalone_mode=False)
    except DpmfError as error:
        say(f"output left as it was: {shlex.join(['dpmf', *words])}: {error}")
        return None
    return printed.getvalue()


def _takes(command: Any, words: list[str], name: str) -> bool:
    """Whether the command that `words` begin with has an option of that name."""
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return any(option.name == name for option in command.params)


def main(page: Path, results: Path | None = None) -> None:
    """Prints a page with its generated tables updated; with a folder of results, also what it shows of results."""
    print(with_tables(page, partial(answer, results=results) if results else None, results), end="")


if __name__ == "__main__":
    terminal.guard()
    typer.run(main)
