"""Tables of papers for pages: what each is about and leaves open, which claims hold, and which methods lead today.

The tables need only committed files: the papers' YAML, the records of their explorations, the leaders, the page of
all methods, and the bibliography. They need no results.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from docs.makers import bibliography, combined, studies
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.terminal import signed, significant
from dpmf_cli.evaluation.crossings import DISTANCE, FACTOR, Agreement, agreement
from dpmf_cli.papers.claims import ANY, Claim, PaperFindings, all_papers
from dpmf_cli.papers.printed import printed_crossing
from dpmf_cli.papers.record import Explored, Record, path_of, read_record
from dpmf_cli.papers.space import Setting, Space
from dpmf_cli.papers.verdicts import OPEN, Judged, Word
from dpmf_cli.report.leaders import Ranking, shipped
from dpmf_cli.report.tables.layout import NONE, Group, TextTable
from dpmf_cli.report.tables.papers import agreeing, most_agreeing, verdicts
from dpmf_cli.studies.reproduce import Figure, path_of as expected_path, read_expected

Records = Callable[[str], Record]
"""From a paper's key to its record; the record has no data if nothing was explored."""

TURNS = 0.1
"""The probability from which it is said that other settings would turn a verdict."""

SHOWN = (0.1, 1.0, 8.0)
"""The ε for which the leaders are shown."""


def _papers(records: Records) -> TextTable:
    rows = [
        (
            found.title,
            found.subject,
            *map(str, (len(found.configs), len(found.claims), len(found.errata))),
        )
        for found in all_papers().values()
    ]
    return _table("Papers", ("paper", "about", "experiments", "claims", "mistakes listed"), "llrrr", rows)


def _explored(records: Records) -> TextTable:
    rows = [
        (
            found.title,
            name,
            str(len(data.tried)),
            f"{data.folds} of {data.partition}",
            str(data.runs),
            str(data.seed),
        )
        for key, found in all_papers().items()
        for name, data in records(key).data.items()
    ]
    return _table("Explored", ("paper", "on", "settings", "folds", "runs", "seed"), "llrrrr", rows)


def _verdicts(records: Records) -> TextTable:
    words: tuple[Word, ...] = get_args(Word)
    kinds = ("figures", "theorems")
    together = "all together"
    titles = [*(found.title for found in all_papers().values()), together]
    counts = {(title, kind): Counter[Word]() for title in titles for kind in kinds}
    unsure = Counter[tuple[str, str]]()
    for each in all_verdicts(records):
        for title in (each.paper.title, together):
            counts[title, kinds[not each.data]][each.of.word] += 1
            unsure[title, kinds[not each.data]] += each.of.flips > TURNS
    return _table(
        "Verdicts",
        ("paper", "inequalities of", *words, "unsure"),
        "ll" + "r" * (len(words) + 1),
        [
            (*of, *(str(count[word]) for word in words), str(unsure[of]))
            for of, count in counts.items()
            if count
        ],
        "a claim counts once for each of its inequalities, and for each data set that it is about",
        f"unsure: more than {100 * TURNS:.0f} % of other samples of settings, as large, would turn the verdict",
        "undecided: no replay contradicts the theorem, and nothing here proves it",
        "no data: it was not run on that data set, no result could decide it, or the grid leaves it open",
    )


AGAIN = Path(__file__).parents[1] / "papers" / "explored" / "again"
"""Records of explorations with another seed: `make explore-again`."""


def _again(records: Records) -> TextTable:
    """Returns how many verdicts of each word got which word with other folds, other noise, and other settings."""

    def second(key: str) -> Record:
        return read_record(path_of(AGAIN, key)) or Record(paper=key, version="")

    def found(records: Records) -> dict[tuple[str, str, str], Judged]:
        on_it = (each for each in all_verdicts(records) if each.data == "ml-100k")
        return {(each.paper.title, each.claim.id, each.of.text): each.of for each in on_it}

    first, again, none = found(records), found(second), Judged("no data")
    words = [word for word in get_args(Word) if word != "undecided"]
    turned, same, likely = Counter[tuple[Word, Word]](), dict[str, list[bool]](), 0.0
    for key in first | again:
        before, after = first.get(key, none), again.get(key, none)
        if {before.word, after.word} != {"no data"}:
            turned[before.word, after.word] += 1
            same.setdefault(key[0], []).append(before.word == after.word)
            likely += before.flips
    by_paper = (f"{title} {sum(each)} of {len(each)}" for title, each in same.items())
    return _table(
        "Verdicts on MovieLens 100K, first and again",
        ("first", *(f"again: {word}" for word in words)),
        "l" + "r" * len(words),
        [
            (word, *(str(turned[word, other]) for other in words))
            for word in words
            if any(turned[word, other] for other in words)
        ],
        "again: with another seed, from which folds, noise and settings are drawn; first: those of the other tables",
        f"the same: {sum(turned[word, word] for word in words)} of {turned.total()} ({'; '.join(by_paper)})",
        f"from holds to fails or back: {turned['holds', 'fails'] + turned['fails', 'holds']}",
        f"if only the settings were drawn anew, {likely:.0f} verdicts would be expected to turn",
    )


def _cells(records: Records) -> TextTable:
    """Returns a row for each paper and data set, and one for all data sets that the same settings were tried on."""
    rows = []
    for key, found in all_papers().items():
        data = {name: each for name, each in records(key).data.items() if each.printed}
        whole = [each for each in data.values() if {of.setting for of in each.tried} == _settings(data)]
        sets = [
            *((name, [each]) for name, each in data.items()),
            *([(", ".join(data), whole)] * (len(whole) > 1)),
        ]
        for name, each in sets:
            shipped = Counter(agreement(cell.off) for one in each for cell in one.printed.values())
            best = agreeing(each, most_agreeing(each))
            rows.append((found.title, name, *_three(shipped), *_three(best)))
    return _table(
        "Printed figures",
        ("paper", "on", "agree", "near", "differ", "best setting: agree", "near", "differ"),
        "llrrrrrr",
        rows,
        "agree, near, differ: with the shipped configs, on all folds",
        "best setting: the one of those tried in which the most agree, on the folds that were explored; it is a "
        "reading of the paper, not a fact",
    )


def _settings(data: Mapping[str, Explored]) -> set[Setting]:
    return {each.setting for each in next(iter(data.values())).tried} if data else set()


def _three(counts: Counter[Agreement]) -> tuple[str, str, str]:
    return str(counts[Agreement.AGREES]), str(counts[Agreement.NEAR]), str(counts[Agreement.DIFFERS])


def settings_text(of: Judged) -> str:
    """Returns how many settings have each state; "" if the best setting for each ε decides."""
    states = {1: "+", -1: "−", 0: "≈", OPEN: "open"}
    return ", ".join(f"{of.counts[at]} {sign}" for at, sign in states.items() if of.counts.get(at))


def turns_text(of: Judged) -> str:
    """Returns how many other samples of settings would turn the verdict; "" if few would."""
    return f"{100 * of.flips:.0f} % of other samples of settings would turn it" * (of.flips > TURNS)


def _settings_and_turns(of: Judged) -> str:
    return "; ".join(filter(None, (settings_text(of), turns_text(of))))


SIGNS = {Agreement.AGREES: "✓", Agreement.NEAR: "≈", Agreement.DIFFERS: "✗"}


def _printed(records: Records) -> TextTable:
    """Returns Friedman et al.'s tables 4 and 5: a row for each method and baseline, a column for each data set."""
    known = records("friedman2016").data
    data = {name: known[name].printed for name in ("ml-100k", "ml-1m") if name in known}
    rows: dict[str, list[str]] = {}
    for table in ("table 4", "table 5"):
        for cells in data.values():
            of_table = {
                name.partition(", ")[2]: cell for name, cell in cells.items() if name.startswith(table)
            }
            for name, cell in of_table.items():
                measured = "–" if cell.measured is None else significant(cell.measured)
                gap = "" if cell.gap is None else f" ({signed(cell.gap, 4)})"
                said = f"{significant(cell.printed)} → {measured}{gap} {SIGNS[agreement(cell.off)]}"
                rows.setdefault(name, []).append(said)
    names = [
        (on, name) for on, cells in data.items() for name in cells if name.startswith(("table 4", "table 5"))
    ]
    found = [data[on][name] for on, name in names]
    never = [
        f"{name.partition(', ')[2]} of {name.partition(', ')[0]} on {on.upper()}"
        for on, name in names
        if not any(agreement(each.off.get(name, math.inf)) is Agreement.AGREES for each in known[on].tried)
    ]
    tried = [_with_only(known[on], {name for of, name in names if of == on}) for on in data]
    best = agreeing(tried, most_agreeing(tried)) if tried else Counter[Agreement]()
    counts = Counter(agreement(cell.off) for cell in found)
    below = sum(cell.measured is not None and cell.measured < cell.printed for cell in found)
    return _table(
        "Printed figures",
        ("meets", *(f"{name.upper()}, {kind}" for kind in ("bounded", "unbounded") for name in data)),
        "l" * (1 + 2 * len(data)),
        [(name, *cells) for name, cells in rows.items()],
        "printed ε → measured ε (RMSE at the printed ε, less the baseline's); "
        f"✓ {counts[Agreement.AGREES]} agree: the curve passes within a factor {FACTOR} in ε and {DISTANCE} in RMSE "
        f"of the printed point; ≈ {counts[Agreement.NEAR]} are near, within 1.21 and 0.01; ✗ "
        f"{counts[Agreement.DIFFERS]} differ; {below} of {len(found)} measured ε are below the printed ones",
        f"one setting for all {len(found)}: on the folds explored the best of the {len(_settings(known))} tried "
        f"agrees at {best[Agreement.AGREES]}" + f", and none agrees at {'; '.join(never)}" * bool(never),
    )


def _pairs(records: Records) -> TextTable:
    """Returns the errors of Friedman et al.'s search over pairs of λ and d: a row for each λ, a column for each d."""
    name = "friedman_fig6_pairs"
    cells: dict[str, dict[str, dict[int, Figure]]] = {}
    for key, each in read_expected(expected_path(small=False))[name].items():
        if of := re.fullmatch(r"(\w+), d (\d+), regularization ([\d.]+)(?:, .+)? at (\w+)", key):
            title = f"{of[1]}, " + ("without noise" if of[4] == "inf" else f"ε {of[4]}")
            cells.setdefault(title, {}).setdefault(of[3], {})[int(of[2])] = each
    ranks = sorted({d for rows in cells.values() for row in rows.values() for d in row})
    groups, best = [], []
    for title, rows in cells.items():
        said = {λ: [f"{row[d].mean:.4f} ± {row[d].deviation:.4f}" for d in ranks] for λ, row in rows.items()}
        groups.append(Group(title, tuple((λ, *row) for λ, row in said.items())))
        _, λ, d = min((row[d].mean, λ, d) for λ, row in rows.items() for d in ranks)
        best.append(f"{title}: λ {λ}, d {d}")
    return TextTable(
        ("λ", *(f"d {d}" for d in ranks)),
        "l" + "r" * len(ranks),
        tuple(groups),
        (
            f"mean RMSE on ML-100K and its standard deviation over folds and runs, of the config {name}",
            f"λ: ridge; d: factors; the best pair is printed as λ 0.08, d 3; the least error here: {'; '.join(best)}",
        ),
    )


def _with_only(found: Explored, names: Set[str]) -> Explored:
    """Returns findings in which only these printed values were compared."""
    tried = [
        each.model_copy(update={"off": {n: off for n, off in each.off.items() if n in names}})
        for each in found.tried
    ]
    return found.model_copy(update={"tried": tuple(tried)})


def _holding(records: Records) -> TextTable:
    """Returns a row for each inequality of figures that holds, with the data sets on which it does."""
    on: dict[tuple[str, ...], list[str]] = {}
    for each in all_verdicts(records):
        if each.data and each.of.word == "holds":
            claim = each.paper.title, each.claim.statement, each.of.text
            unsure = f" ({_settings_and_turns(each.of)})" * bool(turns_text(each.of))
            on.setdefault(claim, []).append(each.data + unsure)
    rows = [(*claim, ", ".join(data)) for claim, data in on.items()]
    note = "in brackets: the settings, and how many other samples of settings would turn the verdict, if many"
    return _table("Holds", ("paper", "it says", "that is", "on"), "llll", rows, note)


def _failing(records: Records) -> TextTable:
    """Returns a row for each inequality of figures that fails, with both sides."""
    rows = [
        (
            each.paper.title,
            each.claim.told,
            each.of.text,
            each.data,
            each.of.said,
            _settings_and_turns(each.of) or NONE,
        )
        for each in all_verdicts(records)
        if each.data and each.of.word == "fails"
    ]
    return _table(
        "Fails",
        ("paper", "it says", "that is", "on", "measured", "settings"),
        "llllll",
        rows,
        "measured: both sides with the shipped setting, or the best for each ε; others may fail where it does not",
        "settings: + true, − false, ≈ too close, open; –: the best setting for each ε decides",
    )


def _depending(records: Records) -> TextTable:
    """Returns a row for each inequality of figures that depends on a choice, and on which."""
    rows = [
        (
            each.paper.title,
            each.of.text,
            each.data,
            settings_text(each.of) or NONE,
            "; ".join(filter(None, (each.of.by, turns_text(each.of)))),
        )
        for each in all_verdicts(records)
        if each.data and each.of.word == "depends"
    ]
    return _table("Depends", ("paper", "that is", "on", "settings", "depends on"), "lllll", rows)


def _theorems(records: Records) -> TextTable:
    """Returns the theorems that a replay of neighbours contradicts, and what can be proved instead."""
    rows = [
        (each.paper.title, each.claim.told, each.claim.source, each.of.said.partition("; a replay")[0])
        for each in all_verdicts(records)
        if not each.data and each.of.word == "fails"
    ]
    return _table(
        "Fails", ("paper", "it says", "where", "what was run, and what can be proved"), "llll", rows
    )


def _leaders(records: Records) -> TextTable:
    found = shipped()

    def leader(ranking: Ranking, epsilon: float) -> str:
        best = ranking.nearest(epsilon).methods[0]
        entry, name = found.methods[best.method], best.method
        for word in (entry["mode"], entry["neighbours"]):
            name = name.removesuffix(f", {word}") or name
        return f"{name} ({', '.join(map(str, best.ranks.values()))})"

    rows = [
        (
            f"{ranking.guarantee}, {f'δ = {ranking.delta:g}' if ranking.delta else 'pure ε'}",
            *(leader(ranking, epsilon) for epsilon in SHOWN),
        )
        for ranking in found.rankings
    ]
    titles = "; ".join(each["title"] for each in found.experiments)
    return _table(
        "Leaders",
        ("ε protects", *(f"ε = {epsilon:g}" for epsilon in SHOWN)),
        "l" * (1 + len(SHOWN)),
        rows,
        f"in brackets: the method's ranks, in this order, on {titles}",
        "folds and runs: "
        + "; ".join(
            f"{each['name']} {each['folds']}, {each['runs']} (seed {each['seed']})"
            for each in found.experiments
        ),
    )


def _matches(records: Records) -> TextTable:
    """Returns from which ε each method of the papers is no worse than IA and GE: printed, as published, corrected."""
    page = combined.PAGE.read_text(encoding="utf-8")
    found: dict[str, dict[tuple[str, str], dict[str, combined.Row]]] = {}
    for row in combined.of_papers(page):
        found.setdefault(row.protects, {}).setdefault((row.method, row.paper), {})[row.mode] = row

    def cells(modes: Mapping[str, combined.Row], baseline: str) -> Iterator[str]:
        yield _printed_of(next(iter(modes.values())), baseline)
        for mode in ("published", "corrected"):
            yield str(modes[mode].met[baseline]) if mode in modes else "–"

    groups = tuple(
        Group(
            protects, tuple((*of, *cells(modes, "IA"), *cells(modes, "GE")) for of, modes in methods.items())
        )
        for protects, methods in found.items()
    )
    columns = ("printed", "published", "corrected")
    return TextTable(
        ("method", "paper", *(f"{baseline}: {column}" for baseline in ("IA", "GE") for column in columns)),
        "llrrrrrr",
        groups,
        (
            "the claimed ε at which the measured curve meets IA and GE; in brackets the ε that can be proved there,"
            " if it is another (∞: none); printed: in tables 4 and 5 and section 5.4 of Friedman et al.",
            "corrected: –, where there is no such mode, or where no step needs correction and published is proved",
            "below the grid: met at ε = 0.1 already; not reached: at no ε up to 200",
            *(
                ["needs no ε: met at ε → 0; where no ε can be proved (∞), clean ratings may get through"]
                if "| needs no ε" in page
                else []
            ),
            *(
                line[2:].replace("\\", "")
                for line in page.splitlines()
                if re.match(r"- ([‡§†]|combined)", line)
            ),
        ),
    )


_KEYS = {method.title: key for key, method in PRIVATE.items()}


def _printed_of(row: combined.Row, baseline: str) -> str:
    """Returns the ε that a paper prints for where a method meets a baseline; only Friedman et al. print any."""
    key = _KEYS.get(row.method.rstrip("‡§"), "") if row.paper == "Friedman 2016" else ""
    printed = printed_crossing(combined.DATA, row.neighbours, key, baseline)
    return "–" if printed is None else significant(printed)


def _best(records: Records) -> TextTable:
    """Returns from which ε a method of each paper is no worse than IA and GE: printed, claimed and provable."""
    rows = [
        (
            row.paper,
            row.method,
            row.protects,
            *(cell for each in ("IA", "GE") for cell in (_printed_of(row, each), str(row.met[each]))),
        )
        for row in combined.best_of_papers(combined.PAGE.read_text(encoding="utf-8"))
    ]
    header = ("paper", "method", "ε is about", "IA: printed", "IA: measured", "GE: printed", "GE: measured")
    return _table("From which ε", header, "lllrrrr", rows)


def _references(records: Records) -> TextTable:
    rows = [(key, bibliography.told(entry)) for key, entry in sorted(bibliography.entries().items())]
    return _table("References", ("key", "work"), "ll", rows)


def _words_of(record: Record, claim: Claim) -> dict[str, list[Word]]:
    """Returns the verdicts on a claim's inequalities by data set."""
    found: dict[str, list[Word]] = {}
    for data, each in verdicts(record, claim):
        found.setdefault(data, []).append(each.word)
    return found


def _summary_of(words: Iterable[Word]) -> str:
    """Returns verdicts side by side: "2 hold, 1 fails"."""
    several = {"holds": "hold", "fails": "fail", "depends": "depend"}
    counts = Counter(words)
    return ", ".join(
        f"{counts[word]} {word if counts[word] == 1 else several.get(word, word)}"
        for word in get_args(Word)
        if counts[word]
    )


def expected_text(record: Record, paper: PaperFindings) -> TextTable:
    """Returns a row for each claim: the verdict expected of an exploration, and the experiments that measure it."""
    rows = [
        (
            claim.statement,
            "; ".join(
                f"{data}: {_summary_of(said)}" if data else _summary_of(said)
                for data, said in _words_of(record, claim).items()
            ),
            ", ".join(claim.configs) or ("dpmf audit" if ANY in claim.data else "dpmf explore: arithmetic"),
        )
        for claim in paper.claims
    ]
    return TextTable(("claim", "expected", "measured by"), "lll", (Group(paper.title, tuple(rows)),))


def open_text(space: Space) -> TextTable:
    """Returns the choices that a paper leaves open: a row for each value, and why that value is plausible.

    The first value of each choice is shipped.
    """
    rows = [
        (f"{choice.name}: {choice.what}" if not at else "″", value.name, value.why)
        for choice in space.open
        for at, value in enumerate(choice.values)
    ]
    return TextTable(("open", "value", "why"), "lll", (Group("Open", tuple(rows)),))


@dataclass(frozen=True)
class _Verdict:
    """The verdict on an inequality of a claim for one data set; `data` is empty for a theorem."""

    paper: PaperFindings
    claim: Claim
    data: str
    of: Judged


@cache
def all_verdicts(records: Records) -> Sequence[_Verdict]:
    """Returns all verdicts, which several tables of a page are about."""
    return [
        _Verdict(found, claim, data, verdict)
        for key, found in all_papers().items()
        for record in [records(key)]
        for claim in found.claims
        for data, verdict in verdicts(record, claim)
    ]


def _table(
    title: str, header: tuple[str, ...], alignment: str, rows: Sequence[tuple[str, ...]], *notes: str
) -> TextTable:
    return TextTable(header, alignment, (Group(title, tuple(rows)),), notes)


KINDS: Mapping[str, Callable[[Records], TextTable]] = {
    "papers": _papers,
    "explored": _explored,
    "verdicts": _verdicts,
    "again": _again,
    "cells": _cells,
    "printed": _printed,
    "pairs": _pairs,
    "holding": _holding,
    "failing": _failing,
    "depending": _depending,
    "theorems": _theorems,
    "leaders": _leaders,
    "matches": _matches,
    "best": _best,
    "references": _references,
    "studies": lambda records: studies.studies_table(),
}
