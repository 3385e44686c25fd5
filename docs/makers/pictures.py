"""Draws the pictures of the documentation from committed facts: `python -m docs.makers.pictures docs/figures`.

plane      which methods protect what from whom, from the registry
choice     the questions that lead to an option of `--protects`
flow       from a config to tables, figures and a release
printed    printed numbers against measured ones, from the records of the explorations
papers     error over ε of each paper's methods, from the expected errors and the page of all methods
best       the same for one method of each paper
frontier   the lowest error over ε for each promise, from the page of the frontier on MovieLens 1M
proofs     provable and audited ε beside the claimed one, from the page of all methods and the table of flaws
margins_*  the margins of a paper's inequalities, from the record of its exploration on ML-100K; with a data set's
           name, on that set and with their words
who_pays   error over ε of groups of users and items, and who gains, from a run's `curves.csv`
"""

import csv
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from textwrap import wrap

from docs.makers import combined
from docs.makers.margins import margins_picture
from docs.makers.svg import arrow, box, line, picture, text
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.evaluation.crossings import FACTOR
from dpmf_cli.evaluation.metrics import GROUPED
from dpmf_cli.papers.record import FOLDER, PrintedValue, path_of, read_record
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection
from dpmf_cli.studies.reproduce import Figures, path_of as path_of_expected, read_expected

_HIDDEN = {
    Protection.VALUE: "the value of one rating",
    Protection.PRESENCE: "whether one rating exists",
    Protection.USER: "whether a user takes part",
    Protection.LOCAL: "the value of one rating, from the service too",
}


def plane() -> str:
    """Returns what is hidden × from whom, with the methods whose ε can be proved in some mode or not, by title."""
    offered: dict[Guarantee, dict[str, set[Mode]]] = {}
    for key, method in PRIVATE.items():
        for neighbours, mode in method.variants if key != "personalized" else ():
            entry = method.model_validate({"algorithm": key, "neighbours": neighbours, "mode": mode})
            fields = offered.setdefault(Guarantee(entry.protects, entry.joint), {})
            fields.setdefault(method.title, set()).add(mode)
    marks, y = [], 0.0
    for protects in dict.fromkeys(guarantee.protects for guarantee in offered):
        rows = []
        for joint, whom in ((False, "against everyone"), (True, "against other users (‡)")):
            modes = offered.get(Guarantee(protects, joint), {})
            names = [name + "°" * (Mode.CORRECTED not in of) for name, of in modes.items()]
            rows.append([whom, *wrap(", ".join(names), 27, break_on_hyphens=False)])
        marks.append(text(4, y + 18, f"hides {_HIDDEN[protects]}", "head"))
        marks += [box(4 + 238 * at, y + 26, 230, row, "") for at, row in enumerate(rows)]
        y += 26 + 18 * max(map(len, rows)) + 10 + 16
    marks.append(text(4, y + 6, "° as published only: ε need not be provable", "note"))
    return picture("What an ε hides, from whom, and which methods do it", y + 14, marks)


def choice() -> str:
    """Returns the questions that lead to what `--protects` asks for."""
    questions = [
        (
            "May the service itself see the ratings?",
            "no",
            "--protects local",
            "one rating's value, hidden before it is sent",
        ),
        (
            "Must it stay hidden whether a person takes part?",
            "yes",
            "--protects user",
            "a user with all ratings",
        ),
        (
            "Must it stay hidden whether a person rated an item?",
            "yes",
            "--protects presence",
            "whether one rating exists",
        ),
    ]
    marks, y = [], 4.0
    for question, answer, option, hidden in questions:
        marks.append(box(4, y, 190, [*wrap(question, 22), ""][:3], "mid plain"))
        marks += [
            box(262, y, 214, [option, *wrap(hidden, 26)]),
            arrow((194, y + 23), (262, y + 23)),
            text(213, y + 17, answer),
        ]
        other = "no" if answer == "yes" else "yes"
        marks += [arrow((99, y + 64), (99, y + 92)), text(106, y + 82, other)]
        y += 92
    marks.append(box(4, y, 190, ["--protects value", "one rating's value"]))
    return picture("Which --protects to choose", y + 52, marks)


def flow() -> str:
    """Returns the way of the data, from a config to tables and to a release."""
    steps = [
        ("config (YAML) and ratings", "dpmf plan: tasks, time, memory"),
        ("tasks: fold × run × method", "fit for all ε, predict, measure errors"),
        ("results folder", "a file a task; interrupted runs go on"),
        ("curves and crossings", "dpmf crossings, levels, explain"),
        ("tables, figures, report", "dpmf plot, report, frontier"),
    ]
    marks, y = [], 4.0
    for at, step in enumerate(steps):
        marks.append(box(4, y, 282, step))
        if at + 1 < len(steps):
            marks.append(arrow((145, y + 46), (145, y + 66)))
        y += 66
    marks += [
        box(314, 70, 162, ["noise interface", "every noise is drawn", "and charged here"]),
        arrow((286, 93), (314, 93)),
        box(314, 158, 162, ["ledger", "claimed and", "provable ε"]),
        arrow((395, 134), (395, 158)),
        arrow((395, 246), (395, 232)),
        box(314, 246, 162, ["dpmf release", "all ratings, one ε,", "secret seed"]),
        text(4, y - 4, "Errors are measured on real ratings: publish a release, never a curve.", "note"),
    ]
    return picture("The way of the data", y + 4, marks)


def _crossings(records: Path) -> Iterator[tuple[str, PrintedValue]]:
    """Yields the printed crossings of Friedman et al. on MovieLens that were measured, each with its data set."""
    record = read_record(path_of(records, "friedman2016"))
    assert record is not None
    for name in ("ml-100k", "ml-1m"):
        for of, cell in record.data[name].printed.items():
            if not of.startswith("table 3") and cell.measured:
                yield name, cell


def printed(records: Path) -> str:
    """Returns printed crossings against measured ones. A dot is full if the curve passes the printed point."""
    low, high = 0.1, 100.0
    size, left, top = 400.0, 56.0, 30.0

    def place(value: float) -> float:
        return size * math.log(min(max(value, low), high) / low) / math.log(high / low)

    def at(across: float, up: float) -> tuple[float, float]:
        return left + place(across), top + size - place(up)

    band = [
        at(low, low * FACTOR),
        at(high / FACTOR, high),
        at(high, high),
        at(high, high / FACTOR),
        at(low * FACTOR, low),
        at(low, low),
    ]
    marks = [f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in band)}" class="band"/>']
    for tick in (0.1, 0.3, 1, 3, 10, 30, 100):
        (x, _), (_, y) = at(tick, low), at(low, tick)
        marks += [
            line((x, top), (x, top + size), kind="grid"),
            line((left, y), (left + size, y), kind="grid"),
        ]
        marks += [text(x, top + size + 18, f"{tick:g}", "mid"), text(left - 32, y + 5, f"{tick:g}")]
    marks += [line(at(low, low), at(high, high)), text(4, 16, "measured crossing (ε)", "head")]
    marks.append(text(left + size / 2, top + size + 38, "printed crossing (ε)", "mid head"))
    for name, cell in _crossings(records):
        x, y = at(cell.printed, cell.measured or low)
        kind = ("a" if name == "ml-100k" else "b") + " near" * (cell.off > 1)
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" class="{kind}"/>')
    keys = [("a", "MovieLens 100K"), ("b", "MovieLens 1M")]
    for row, (kind, words) in enumerate(keys):
        marks += [f'<circle cx="{left + 16:g}" cy="{top + 18 + 20 * row:g}" r="4.5" class="{kind}"/>']
        marks.append(text(left + 28, top + 23 + 20 * row, words))
    return picture("Printed crossings of Friedman et al. against measured ones", top + size + 48, marks)


_CURVES = """<style>
polyline { fill: none; stroke-width: 2; }
.unproved { stroke-dasharray: 5 3; }
.k0 { stroke: #2f6fde; } .k1 { stroke: #c9552a; } .k2 { stroke: #2a8a4a; } .k3 { stroke: #8a4fc4; }
.k4 { stroke: #b0307a; } text.k4 { fill: #b0307a; }
text.k0 { fill: #2f6fde; } text.k1 { fill: #c9552a; } text.k2 { fill: #2a8a4a; } text.k3 { fill: #8a4fc4; }
text.k0, text.k1, text.k2, text.k3, text.k4 { stroke: none; font-size: 12px; }
</style>"""
_EPSILONS, _ERRORS = (0.1, 200.0), (0.85, 1.3)
"""The range of ε and of RMSE that a panel shows."""


def _points(row: combined.Row, expected: Figures) -> list[tuple[float, float]]:
    """Returns (ε, RMSE) where a curve was saved, and where it meets IA and GE."""
    name = f"{row.method.rstrip('‡§')}, " + 2 * f"{row.neighbours}, published, "
    found = [
        (float(key.rpartition(" ")[2]), each.mean)
        for key, each in expected.items()
        if key.startswith(name.removesuffix(", ") + " at ")
    ]
    for baseline, met in row.met.items():
        if met.claimed[0].isdigit():
            found.append((float(met.claimed.rstrip("†")), expected[f"{baseline} at inf"].mean))
    return sorted(found)


def _measured(expected: Figures) -> str:
    """Returns the ε at which curves were saved, in words."""
    *others, last = sorted({float(key.rpartition(" ")[2]) for key in expected} - {math.inf})
    return f"{', '.join(f'{each:g}' for each in others)} and {last:g}"


Drawn = tuple[str, str, Sequence[tuple[float, float]]]
"""A curve: its name, the classes of its line ("": a colour by its rank), and its points (ε, height)."""
Panel = tuple[str, Sequence[Drawn], Mapping[str, tuple[float, str]], tuple[float, float]]
"""A diagram: its title, curves, levels and limits, as `_panel` takes them."""


def _panel(
    left: float,
    top: float,
    title: str,
    curves: Sequence[Drawn],
    levels: Mapping[str, tuple[float, str]],
    limits: tuple[float, float],
    size: tuple[float, float] = (196.0, 96.0),
    named: bool = True,
    epsilons: tuple[float, float] = _EPSILONS,
) -> list[str]:
    """Returns one diagram over ε of that size, with `levels` by name: their heights and classes.

    `limits` are the lowest and the highest height that is drawn, as `epsilons` are of ε. Around it
    are 28 to the left, 54 above, 22 below.
    """
    (width, height), high = size, top + 54 * named
    (low, most), (least, greatest) = limits, epsilons

    def at(epsilon: float, value: float) -> tuple[float, float]:
        across = math.log(epsilon / least) / math.log(greatest / least)
        return left + 28 + width * across, high + height * (most - value) / (most - low)

    marks = [text(left, top + 12, title, "head")]
    for tick in (each for each in (0.01, 0.1, 1, 10, 100) if least <= each <= greatest):
        x, y = at(tick, low)
        marks += [line((x, high), (x, y), kind="grid"), text(x, y + 14, f"{tick:g}", "note mid")]
    for name, (value, kind) in levels.items():
        (x, y), (end, _) = at(least, value), at(greatest, value)
        marks.append(line((x, y), (end, y), kind=kind))
        marks.append(text(left, y + 4, name, "note"))
    clip = f"clip{left:g}-{top:g}"
    room = f'<rect x="{left + 28:g}" y="{high:g}" width="{width:g}" height="{height:g}"/>'
    marks.append(f'<clipPath id="{clip}">{room}</clipPath>')
    marks.append(text(left + 28 + width, high + height + 14, "ε", "note mid"))
    x = left + 28
    for rank, (name, kind, points) in enumerate(curves):
        if named:
            marks.append(text(x, top + 30 + 15 * (rank // 2), name, (kind or f"k{rank}").split()[0]))
            x = left + 28 if rank % 2 else x + max(108.0, 7.0 * len(name))
        drawn = line(*(at(*point) for point in points), kind=kind or f"k{rank}")
        marks.append(f'<g clip-path="url(#{clip})">{drawn}</g>')
    return marks


def _of_panels(
    title: str,
    panels: Sequence[Panel],
    notes: Sequence[str],
    epsilons: tuple[float, float] = _EPSILONS,
) -> str:
    """Returns a picture of panels in two columns, with notes below."""
    marks = [_CURVES]
    for place, panel in enumerate(panels):
        marks += _panel(4 + 242 * (place % 2), 4 + 176 * (place // 2), *panel, epsilons=epsilons)
    height = 4 + 176 * ((len(panels) + 1) // 2)
    marks += [text(4, height + 12 + 16 * row, words, "note") for row, words in enumerate(notes)]
    return picture(title, height + 52, marks)


def _short(row: combined.Row) -> str:
    return row.method.rstrip("‡§").removeprefix("MM ").removeprefix("DPSGD-")


def _of_papers(
    rows: Sequence[combined.Row], expected: Figures, colours: Mapping[tuple[str, str], int]
) -> tuple[list[Drawn], dict[str, tuple[float, str]], tuple[float, float]]:
    """Returns the curves of rows, the levels of IA and GE, and the limits of RMSE.

    colours  the colour of each (paper, method)
    """
    curves: list[Drawn] = [
        (
            _short(row),
            f"k{colours[row.paper, _short(row)]}" + " unproved" * (not row.proved),
            _points(row, expected),
        )
        for row in rows
    ]
    levels = {"1.3": (1.3, "grid"), "1.1": (1.1, "grid")}
    levels |= {name: (expected[f"{name} at inf"].mean, "line") for name in ("IA", "GE")}
    return curves, levels, _ERRORS


def papers() -> str:
    """Returns error over ε of the papers' methods as published, a panel for each paper and kind of ε, on ML-1M."""
    expected = read_expected(path_of_expected(small=False))[combined.EXPERIMENT]
    panels: dict[tuple[str, str], list[combined.Row]] = {}
    for row in combined.of_papers(combined.PAGE.read_text(encoding="utf-8")):
        if row.mode == "published" and "personalised" not in row.protects:
            panels.setdefault((row.paper, row.protects), []).append(row)
    by_year = sorted(panels.items(), key=lambda each: each[0][0][-4:])
    methods = dict.fromkeys((row.paper, _short(row)) for _, rows in by_year for row in rows)
    of_each = groupby(methods, key=itemgetter(0))  # a method has the same colour in all panels of its paper
    colours = {method: rank for _, of_paper in of_each for rank, method in enumerate(of_paper)}
    drawn: list[Panel] = []
    for (paper, protects), rows in by_year:
        hidden = protects.partition(",")[0].removeprefix("rating ") + "‡" * protects.endswith("(joint DP)")
        drawn.append((f"{paper}: {hidden}", *_of_papers(rows, expected, colours)))
    notes = (
        "RMSE over the claimed ε, as published; a dashed line: no ε can be proved.",
        f"‡: against other users only. Measured are ε = {_measured(expected)}, and where",
        "a curve meets IA and GE; straight lines join these points.",
    )
    title = "Error over ε of each paper's methods on MovieLens 1M, beside IA and GE"
    return _of_panels(title, drawn, notes)


def best() -> str:
    """Returns error over ε of one method of each paper on ML-1M: the one that meets IA at the smallest ε."""
    expected = read_expected(path_of_expected(small=False))[combined.EXPERIMENT]
    rows = combined.best_of_papers(combined.PAGE.read_text(encoding="utf-8"))
    curves, levels, limits = _of_papers(
        rows, expected, {(row.paper, _short(row)): rank for rank, row in enumerate(rows)}
    )
    marks = [
        _CURVES,
        text(4, 12, "RMSE", "note"),
        *_panel(4, 20, "", curves, levels, limits, (444.0, 220.0), named=False),
    ]
    for rank, (row, (name, *_)) in enumerate(zip(rows, curves, strict=True)):
        marks.append(text(4, 290 + 17 * rank, f"{row.paper}, {name}: {row.protects}", f"k{rank}"))
    notes = (
        "RMSE on MovieLens 1M over the claimed ε, as published; dashed: no ε can be",
        f"proved. Measured are ε = {_measured(expected)}, and where a curve meets IA and GE;",
        "straight lines join these points.",
    )
    marks += [text(4, 294 + 17 * len(rows) + 15 * row, words, "note") for row, words in enumerate(notes)]
    title = (
        "Error over ε of a method of each paper on MovieLens 1M, beside the item average and global effects"
    )
    return picture(title, 300 + 17 * len(rows) + 15 * len(notes), marks)


def frontier(page: str) -> str:
    """Returns the lowest RMSE of any method with a provable ε, over ε, a panel for each promise.

    page   the tables of `dpmf frontier` on MovieLens 1M
    """
    panels: dict[str, dict[str, list[tuple[float, float, float, float]]]] = {}
    levels = {"0.85": (0.85, "grid"), "1.1": (1.1, "grid")}
    promise = kind = ""
    for row in page.splitlines():
        if title := re.fullmatch(r"\*\*.+?: (.+), (pure ε|\(ε, δ\)).*\*\*", row):
            promise, kind = title.groups()
        elif found := re.match(
            r"\| ([\d.]+) \|.+?\| ([\d.]+) \[([\d.]+), ([\d.]+)\] \| ([^ ]+) \| ([^ ]+) \|", row
        ):
            epsilon, error, low, high, to_average, to_effects = (
                float(each.strip("°").replace("−", "-")) for each in found.groups()
            )
            panels.setdefault(promise, {}).setdefault(kind, []).append((epsilon, error, low, high))
            levels |= {"IA": (error - to_average, "line"), "GE": (error - to_effects, "line")}
    drawn: list[Panel] = []
    for promise, kinds in panels.items():
        curves: list[Drawn] = []
        for kind, points in kinds.items():
            (first, _, *start), (last, _, *end) = points[0], points[-1]
            middle = [(epsilon, error) for epsilon, error, *_ in points]
            curves.append(
                (kind, "", [*((first, each) for each in start), *middle, *((last, each) for each in end)])
            )
        of, _, whom = promise.removeprefix("rating ").partition(", against ")
        words = f"{of}, from {whom.replace(' (joint DP)', '‡')}"
        drawn.append((words, curves, levels, (0.84, 1.15)))
    notes = (
        "Lowest RMSE of any method on MovieLens 1M over its provable ε; bars at the",
        "ends: 95 % intervals. Do not compare the ε of two panels, which hide different",
        "things. ‡: against other users only. The tables name the method at each ε.",
    )
    about = "Lowest RMSE over provable ε on MovieLens 1M, beside IA and GE"
    return _of_panels(about, drawn, notes, epsilons=(0.01, 20.0))


_SHOWN = re.compile(r"^\|.+\| ([^|]+), published \|[^|]+\| ([\d.]+|∞)(?: ×)? \|[^|]+\|$", re.MULTILINE)
"""A row of the table of flaws: the method that shows it, and the size."""


def _audited(row: combined.Row, flaws: Sequence[tuple[str, str]]) -> float | None:
    """Returns the largest size of a flaw that such a method shows, as a multiple of what it claims."""
    sizes = []
    for shown, size in flaws:
        key, *settings, neighbours = shown.replace("\\", "").split(", ")
        noises = [each for each in ("Laplace", "Gaussian") if each in row.method]
        same = all(each.lower() in settings for each in noises) and neighbours == row.neighbours
        if same and row.method.startswith(PRIVATE[key].title):
            sizes.append(float(size.replace("∞", "inf")))
    return max(sizes, default=None)


def proofs(audits: str) -> str:
    """Returns bars of the provable and of the audited ε over the claimed one, for published methods.

    audits   the page of audits, with the table of flaws
    """
    flaws = _SHOWN.findall(audits)
    left, right, least, most = 8.0, 472.0, 0.3, 1000.0

    def across(value: float) -> float:
        return left + (right - left) * math.log(min(value, most) / least) / math.log(most / least)

    shown: dict[str, list[tuple[str, float]]] = {"a": [], "b": []}
    rows = combined.of_papers(combined.PAGE.read_text(encoding="utf-8"))
    for row in sorted(rows, key=lambda row: row.paper[-4:]):
        met = next((met for met in row.met.values() if met.claimed[0].isdigit()), None)
        if row.mode != "published" or "personalised" in row.protects:
            continue
        name = f"{row.paper}, {row.method.rstrip('‡§')}: {row.protects.partition(',')[0].removeprefix('rating ')}"
        provable = float(met.provable) / float(met.claimed.rstrip("†")) if row.proved and met else math.inf
        if abs(provable - 1) >= 0.01 and (met or not row.proved):
            shown["a"].append((name, provable))
        if (audited := _audited(row, flaws)) is not None:
            shown["b"].append((name, audited))
    titles = {"a": "Provable: at most, of all steps together", "b": "Audited: at least, of one step"}
    marks, y = list[str](), 0.0
    for kind, bars in shown.items():
        marks.append(text(left, y + 15, titles[kind], "head"))
        marks.append(text(across(1) + 4, y + 32, "claimed = 1", "note"))
        y += 48
        for name, value in bars:
            end = across(value)
            marks.append(text(left, y, name))
            marks.append(
                f'<rect x="{left:g}" y="{y + 6:g}" width="{end - left:.1f}" height="9" class="{kind}"/>'
            )
            words = ("no bound" if kind == "a" else "∞") if value == math.inf else f"× {value:.3g}"
            told = max(end, across(1)) + 5
            marks.append(text(min(told, right - 56), y + 15 - 12 * (end > right - 56), words, "note"))
            marks.append(line((across(1), y + 3), (across(1), y + 18)))
            y += 34
    notes = (
        "Provable: where the curve on MovieLens 1M meets a baseline; no bar: as",
        "claimed, or none is met. Audited: of the worst step on its worst pair of",
        "data sets, at another ε, so that a number above and one below are not an",
        "interval; no bar: no flaw is listed. Logarithmic axes.",
    )
    marks += [text(left, y + 16 * row, words, "note") for row, words in enumerate(notes)]
    return picture(
        "Provable and audited ε of published methods, as multiples of the claimed ε", y + 58, marks
    )


def who_pays(table: Path) -> str:
    """Returns how much worse than IA each method is for the quarters of users and of items, and who gains over IA.

    table   `curves.csv` of a run whose config asks for `groups`
    """
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    (average,) = (row for row in rows if row["label"] == "IA")
    *groups, share = (metric.key for metric in GROUPED)
    methods: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["neighbours"] != "none":
            methods.setdefault(row["label"], []).append(row)

    def curve(name: str, of: Sequence[dict[str, str]], key: str, level: float = 0.0) -> Drawn:
        return name, "", [(float(row["epsilon"]), float(row[key]) - level) for row in of]

    levels = {"IA": (0.0, "line"), "+0.2": (0.2, "grid"), "+0.4": (0.4, "grid"), "−0.2": (-0.2, "grid")}
    panels = [
        (
            method + "‡" * (of[0]["joint"] == "true"),
            [curve(key[5:].replace("_", " "), of, key, float(average[key])) for key in groups],
            levels,
            (-0.36, 0.5),
        )
        for method, of in methods.items()
    ]
    # Of one promise only, because the ε of two are not comparable.
    gains = [
        curve(name.partition(",")[0], of, share)
        for name, of in methods.items()
        if of[0]["neighbours"] == Neighbours.BOUNDED
    ]
    shares = {f"{height:g}": (height, "grid") for height in (0.0, 0.5, 1.0)}
    panels.append(("Share of users who gain", gains, shares, (0.0, 1.0)))
    notes = (
        "RMSE over the provable ε, less that of IA for the same quarter: the least",
        "and most active users, the least and most popular items. Last panel: users",
        "with less error than by IA, rating value. ‡: against other users only.",
    )
    return _of_panels("Who pays for privacy on MovieLens 100K", panels, notes)


def pictures(records: Path) -> dict[str, str]:
    """Returns each picture by the name of its file, from a folder of records in docs/papers."""
    docs = records.parents[1]
    drawn = {
        "plane": plane(),
        "choice": choice(),
        "flow": flow(),
        "printed": printed(records),
        "papers": papers(),
        "best": best(),
        "who_pays": who_pays(docs / "generated" / "who_pays_ml100k.csv"),
        "frontier": frontier((docs / "generated" / "frontier_ml1m.md").read_text(encoding="utf-8")),
        "proofs": proofs((docs / "audit.md").read_text(encoding="utf-8")),
    }
    for path in sorted(records.glob("*.json")):
        record = read_record(path)
        assert record is not None
        drawn[f"margins_{record.paper}"] = margins_picture(record.data["ml-100k"], named=False)
        for name, found in record.data.items():
            drawn[f"margins_{record.paper}_{name}"] = margins_picture(found, named=True)
    return drawn


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for stem, drawn in pictures(folder.parent / "papers" / FOLDER).items():
        (folder / f"{stem}.svg").write_text(drawn, encoding="utf-8")
