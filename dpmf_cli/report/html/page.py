"""Pages from templates, each one string of HTML that refers to nothing outside itself."""

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import duration, printable, say, significant
from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import DISTANCE, FACTOR, Agreement
from dpmf_cli.evaluation.curves import ERROR_CDF, Experiment, Measured
from dpmf_cli.experiment.results.collect import Compared
from dpmf_cli.experiment.results.manifest import MANIFEST
from dpmf_cli.papers.claims import Claim, PaperFindings, all_papers
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules import margins
from dpmf_cli.papers.verdicts import limit_of, states_of, word_of
from dpmf_cli.report.advice import paragraphs
from dpmf_cli.report.figures.charts import Chart, Line, charts_of, epsilon_ticks, spread
from dpmf_cli.report.figures.style import GREY_LEVEL
from dpmf_cli.report.html import views
from dpmf_cli.report.html.views import ExhibitView, ExperimentView, exhibit_view, view_of
from dpmf_cli.report.tables.ranked import combined_table, differences_table, settings_table, whole_first

NOT_RUN = "not run here"
HERE = {"holds": "holds here", "fails": "fails here", "too close": "too close here", "no data": "open here"}
"""What one setting says of an inequality. A verdict on the paper needs many settings (`papers.verdicts`)."""


def experiment_page(folder: Path) -> str:
    """The page of one results folder. Raises DpmfError if the folder has no complete manifest."""
    view = view_of(folder)
    return render("experiment.html.j2", title=f"dpmf: {view.name}", view=view, advice=_advice_on([view]))


def _advice_on(views: Sequence[ExperimentView]) -> list[str]:
    experiments = [view.collected.experiment for view in views]
    return paragraphs(experiments, [crossing for view in views for crossing in view.crossings])


class PaperView(NamedTuple):
    """One paper with results. `experiments` are those that no earlier paper on the page has shown."""

    key: str
    paper: PaperFindings
    exhibits: Sequence[ExhibitView]
    claims: "Sequence[ClaimView]"
    experiments: Sequence[ExperimentView]


class ClaimView(NamedTuple):
    """A claim on one data set, and what the results at hand say of it, which are of one setting.

    on        key of the data set; `ANY` for a theorem
    atoms     (verdict, inequality, both sides) of each inequality; one `NOT_RUN` if nothing was run
    by        for each config that measures the claim: (config, name of the experiment at hand that ran it, or "")
    reduced   whether one of these experiments is a reduction
    """

    claim: Claim
    on: str
    atoms: Sequence[tuple[str, str, str]]
    by: Sequence[tuple[str, str]]
    reduced: bool

    @property
    def is_run(self) -> bool:
        return self.atoms[0][0] != NOT_RUN


def overview_page(folders: Folders) -> str:
    """The page of all results. Raises DpmfError if there are no results."""
    return render("overview.html.j2", title="dpmf: report", view=overview(folders))


def overview(folders: Folders) -> dict[str, Any]:
    """All content of the page, from the results folder. Raises DpmfError if there are no results."""
    views, passed_over = _all_views(folders.results)
    if not views:
        raise DpmfError(
            f"{folders.results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
        )
    # A complete experiment comes before its reductions.
    found: dict[str, ExperimentView] = {}
    for view in sorted(views, key=lambda view: view.is_reduced):
        found.setdefault(view.stands_for, view)
    by_data: dict[str, dict[str, Experiment]] = {}
    for name, view in found.items():
        experiment = view.collected.experiment
        by_data.setdefault(experiment.dataset, {})[name] = experiment

    papers, not_run, shown = [], [], set[str]()
    for key, paper in all_papers().items():
        is_run = any(
            any(name in found for name in each.configs)
            or (each.file and (folders.results / each.file).is_file())
            for each in paper.exhibits
        )
        if not is_run:
            not_run.append((key, paper))
            continue
        of_it = [exhibit_view(exhibit, found, folders) for exhibit in paper.exhibits]
        names = [name for exhibit in of_it for name in exhibit.shown if name not in shown]
        # Those that no earlier paper on the page has shown.
        of_paper = [view for name in dict.fromkeys(names) for view in views if view.name == name]
        shown.update(names)
        claims = []
        for claim in paper.claims:
            by = [(name, found[name].name if name in found else "") for name in claim.configs]
            is_reduced = any(found[name].is_reduced for name, ran in by if ran)
            for data in claim.data:
                atoms = _here(key, claim, Evidence(by_data, data)) or [(NOT_RUN, "", "")]
                claims.append(ClaimView(claim, data, atoms, by, is_reduced))
        papers.append(PaperView(key, paper, of_it, claims, of_paper))
    exhibits = [exhibit for paper in papers for exhibit in paper.exhibits]
    absent = [each for exhibit in exhibits for each in exhibit.absent]
    waiting: dict[tuple[str, str], dict[str, None]] = {}
    for each in absent:
        if each.waits_for:
            waiting.setdefault(each.waits_for, {})[each.what] = None
    own = [view for view in views if view.name not in shown]
    # Made for the combined table, experiments hold every algorithm on one data set. Without one, all are combined.
    made_for_it = [view for view in views if view.name.startswith("combined_")]
    combined, notes = whole_first([view.collected.experiment for view in made_for_it or views])
    return {
        "own": own,
        "advice": _advice_on(own),
        "papers": papers,
        "experiments": [*own, *(view for paper in papers for view in paper.experiments)],
        "not_run": not_run,
        "protected": combined_table(combined, notes=notes),
        "agreement": Counter(row.agreement for exhibit in exhibits for row in exhibit.rows),
        "verdicts": Counter(each[0] for paper in papers for claim in paper.claims for each in claim.atoms),
        "data_missing": [
            (title, how, [name for name in names if name != title]) for (title, how), names in waiting.items()
        ],
        "not_made": {each.what: each for each in absent if not each.waits_for}.values(),
        "passed_over": passed_over,
    }


def _here(key: str, claim: Claim, evidence: Evidence) -> list[tuple[str, str, str]]:
    """(verdict, inequality, both sides) of each inequality of a claim that the results at hand measure."""
    whole = margins(key, claim.id, evidence)
    of_data = [each for name, each in evidence.found.get(evidence.data, {}).items() if name in claim.configs]
    count = min((each.folds for each in of_data), default=1)
    by_fold = [
        margins(key, claim.id, evidence.of_fold(fold))
        for fold in (range(count) if whole and count > 1 else ())
    ]
    found = []
    for (text, reading), margin in whole.items():
        own = np.array([[each[text, reading].value for each in by_fold if (text, reading) in each]])
        limit = margin.tolerance
        if own.size > 1:
            limit = float(limit_of(own, margin.tolerance, of_data[0].partition)[0])
        word = word_of(states_of(np.array([margin.value]), limit))
        found.append((HERE[word], text + (f" ({reading})" if reading else ""), margin.said))
    return found


def _all_views(results: Path) -> tuple[list[ExperimentView], list[str]]:
    """A view of every readable results folder, by name, and why the other folders cannot be read."""
    views, passed_over = [], []
    for path in sorted(results.glob(f"*/{MANIFEST}")):
        say(f"report: {path.parent}")
        try:
            views.append(view_of(path.parent))
        except DpmfError as error:
            say(f"passed over: {error}")
            passed_over.append(str(error))
    return views, passed_over


def compare_page(several: Sequence[Compared]) -> str:
    """The page of several runs beside the first one; all comparisons must have the same first run.

    It has the settings that differ, a chart for each method, and the differences of each run from the first.
    """
    first = several[0]
    names = (first.names[0], *(compared.names[1] for compared in several))
    return render(
        "compare.html.j2",
        title=f"dpmf: {', '.join(names)}",
        names=names,
        data=first.title,
        settings=settings_table(several),
        charts=[
            replace(chart, title=f"{each.title}: {chart.title}")
            for each in _by_method(several, names)
            for chart in charts_of(each)
        ],
        differences=[(compared.names[1], differences_table(compared)) for compared in several],
    )


def _by_method(several: Sequence[Compared], names: Sequence[str]) -> Iterator[Experiment]:
    """Yields for each method of the first run an experiment with one curve for each run that is compared.

    It has only the folds and runs that all experiments have; a method with the same errors in all is left out.
    """
    first = several[0].experiments[0]
    experiments = [first, *(compared.experiments[1] for compared in several)]
    folds, runs = (min(getattr(each, key) for each in experiments) for key in ("folds", "runs"))

    def cut(measured: Measured, label: str = "") -> Measured:
        few = measured.changed(lambda cube: cube[:folds, :runs])
        others = {key: cube for key, cube in few.others.items() if key != ERROR_CDF}
        return replace(few, label=label or measured.label, others=others)

    baselines = tuple(cut(each) for each in first.baselines if each.swept is None)
    differences = [compared.comparison.differences for compared in several]
    differ = {each.label_a for of_pair in differences for each in of_pair if not each.same}
    pairs = [{each.label_a: each.label_b for each in of_pair} for of_pair in differences]
    curves = [{curve.label: curve for curve in each.curves} for each in experiments[1:]]
    whole = replace(first, folds=folds, runs=runs, baselines=baselines, growth=())
    for at, curve in enumerate(first.curves):
        if curve.swept is None and curve.label in differ:
            found = [
                cut(of_run[pair[curve.label]], name)
                for of_run, pair, name in zip(curves, pairs, names[1:], strict=True)
                if curve.label in pair
            ]
            beside = (cut(curve, names[0]), *found)
            yield replace(whole, name=f"method-{at}", title=curve.label, curves=beside)


def render(template: str, **values: Any) -> str:
    """A rendered template, with the style and the script that all pages share."""
    folder = resources.files(__package__) / "templates"
    style, script = (
        Markup((folder / name).read_text(encoding="utf-8")) for name in ("style.css", "script.js")
    )
    page = _environment().get_template(template).render(style=style, script=script, **values)
    return printable(page, keep="\n")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dpmf_cli.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "agreements": list(Agreement),
        "bounds": (FACTOR, DISTANCE, views.POINTS, 100 * (views.SHARE - 1)),
        "verdict_signs": {**dict(zip(HERE.values(), "✓✗≈?", strict=True)), NOT_RUN: "–"},
    }
    environment.filters |= {
        "base64": lambda data: base64.b64encode(data).decode(),
        "blocks": lambda lines: [
            (is_list, list(block)) for is_list, block in groupby(lines, lambda line: line.startswith("- "))
        ],
        "code": lambda text: Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text)))),
        "drawn": Drawn,
        "duration": duration,
        "paper_table": views.paper_table,
        "yaml": lambda data: yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=100),
        "unbroken": lambda text: re.sub(
            r"\[[^]]*\]", lambda interval: interval[0].replace(" ", "\N{NO-BREAK SPACE}"), text
        ),
    }
    return environment


_LABEL_GAP, _NAME_GAP = 17.0, 21.0


class Drawn:
    """A chart in a page: the places of its parts in a picture, which `svg.html.j2` draws, and a table of its values.

    The axes end at `right`; a narrow screen cuts off the labels beyond it.
    """

    width, left, right, top, longest = 836, 54, 560, 30, 30

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        labels = len(chart.lines) + sum(level.labelled for level in chart.levels)
        self.height = max(380.0, self.top + 54 + _LABEL_GAP * labels)
        self.bottom = self.height - 54

    def x(self, value: float) -> float:
        first, last = self.chart.places[0], self.chart.places[-1]
        if self.chart.log:
            value, first, last = math.log(value), math.log(first), math.log(last)
        part = (value - first) / (last - first) if last > first else 0.5
        return self.left + 10 + part * (self.right - self.left - 20)

    def y(self, value: float) -> float:
        """A place at most one axis height outside the axes, so that no browser draws a line to infinity."""
        low, high = self.chart.limits
        part = (value - low) / (high - low)
        return self.bottom - min(max(part, -1.0), 2.0) * (self.bottom - self.top)

    @property
    def rows(self) -> Iterator[tuple[str, float, list[tuple[str, str]]]]:
        """The table: each x, its place in the picture, and for each line (mean, interval) there."""
        columns = [(line, {x: at for at, x in enumerate(line.x.tolist())}) for line in self.chart.lines]
        for x in self.chart.places:
            yield f"{x:g}", round(self.x(x), 1), [_cell(line, at.get(x)) for line, at in columns]

    @property
    def x_ticks(self) -> Sequence[float]:
        first, last = self.chart.places[0], self.chart.places[-1]
        if self.chart.log:
            ticks = epsilon_ticks(first * 0.999, last * 1.001)
        else:
            ticks = _round_ticks(first, last, slack=1e-9)
        return ticks or self.chart.places

    @property
    def y_ticks(self) -> list[float]:
        return _round_ticks(*self.chart.limits)

    def points(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> list[tuple[float, float]]:
        """The places of the finite ones of a line's values."""
        return [
            (self.x(a), self.y(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True) if math.isfinite(b)
        ]

    @staticmethod
    def path(points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)

    @property
    def level_names(self) -> Iterator[tuple[str, float]]:
        named = [level for level in self.chart.levels if level.look == GREY_LEVEL]
        heights = [self.y(level.y) - 5 for level in named]
        placed = spread(heights, _NAME_GAP, self.top + _NAME_GAP, self.bottom - 5)
        return zip([level.name for level in named], placed, strict=True)

    @property
    def labels(self) -> list[dict[str, Any]]:
        """The name of each level and line: the end to which it is tied, (x, y), and its height, `at`."""
        found: list[dict[str, Any]] = [
            {"name": f"{each.name} {each.y:.3f}", "x": self.right, "y": self.y(each.y), "look": each.look}
            for each in self.chart.levels
            if each.labelled
        ]
        for rank, line in enumerate(self.chart.lines):
            x, y = [(self.right, self.top), *self.points(line.x, line.y)][-1]
            finite = line.y[np.isfinite(line.y)]
            name = line.name + " ↑" * bool(not len(finite) or finite[-1] > self.chart.limits[1])
            found.append({"name": name, "x": x, "y": y, "look": line.look, "line": rank})
        targets = [min(max(each["y"], self.top), self.bottom) for each in found]
        placed = spread(targets, _LABEL_GAP, self.top + 4, self.bottom)
        return [{**each, "y": y, "at": at} for each, y, at in zip(found, targets, placed, strict=True)]


def _round_ticks(low: float, high: float, slack: float = 0.0) -> list[float]:
    found = MaxNLocator(6, steps=(1, 2, 5, 10)).tick_values(low, high)
    return [float(tick) for tick in found if low - slack <= tick <= high + slack]


def _cell(line: Line, at: int | None) -> tuple[str, str]:
    """(mean, interval) of a point; "" for a part that is missing."""
    if at is None:
        return "", ""
    if np.isnan(line.y[at]):
        return "diverged", ""
    low, high = (line.y[at] if end is None else end[at] for end in (line.low, line.high))
    interval = f"[{_short(low)}, {_short(high)}]" if np.isfinite(low) and low != high else ""
    return _short(line.y[at]), interval


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else significant(value, 5)
