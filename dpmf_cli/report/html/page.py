"""Renders the pages from templates. Each page is one string of HTML that refers to nothing outside itself."""

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dpmf_cli.core.terminal import printable
from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.curves import ERROR_CDF, Experiment, Measured
from dpmf_cli.evaluation.numbers import duration
from dpmf_cli.experiment.results.folders import Compared
from dpmf_cli.report.figures.drawings import charts_of
from dpmf_cli.report.html.compared import DIFFERENCES, POINTS, RATIOS, SHARES, Agreement, paper_table
from dpmf_cli.report.html.overview import NOT_RUN, Verdict, advice_on, overview, view_of
from dpmf_cli.report.html.svg import Drawn
from dpmf_cli.report.tables.compare import differences_table, settings_table

VERDICT_SIGNS: dict[Verdict, str] = {"holds here": "✓", "in part here": "≈", "fails here": "✗", NOT_RUN: "–"}
"""The sign of each verdict, beside its colour."""


def experiment_page(folder: Path) -> str:
    """Returns the page of one results folder. Raises DpmfError if the folder has no complete manifest."""
    view = view_of(folder)
    return render("experiment.html.j2", title=f"dpmf: {view.name}", view=view, advice=advice_on([view]))


def overview_page(folders: Folders, configs: Path) -> str:
    """Returns the page of all results. Raises DpmfError if there are no results."""
    view = overview(folders, configs)
    return render("overview.html.j2", title="dpmf: report", view=view)


def compare_page(several: Sequence[Compared]) -> str:
    """Returns the page of several runs beside the first one; all comparisons must have the same first run.

    It has the settings that differ, a chart for each method, and the differences of each run from the first.
    """
    first = several[0]
    names = (first.names[0], *(compared.names[1] for compared in several))
    charts = (
        replace(chart, title=f"{each.title}: {chart.title}")
        for each in _by_method(several, names)
        for chart in charts_of(each)
    )
    return render(
        "compare.html.j2",
        title=f"dpmf: {', '.join(names)}",
        names=names,
        data=first.title,
        settings=settings_table(several),
        charts=[Drawn(chart) for chart in charts],
        differences=[(compared.names[1], differences_table(compared)) for compared in several],
    )


def _by_method(several: Sequence[Compared], names: Sequence[str]) -> Iterator[Experiment]:
    """Yields for each method of the first run an experiment with one curve for each run that is compared.

    It has only the folds and runs that all experiments have. A method with the same errors in all is left out.
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
    for at, curve in enumerate(first.curves):
        if curve.swept is None and curve.label in differ:
            found = [
                cut(of_run[pair[curve.label]], name)
                for of_run, pair, name in zip(curves, pairs, names[1:], strict=True)
                if curve.label in pair
            ]
            yield replace(
                first,
                name=f"method-{at}",
                title=curve.label,
                folds=folds,
                runs=runs,
                curves=(cut(curve, names[0]), *found),
                baselines=baselines,
                growth=None,
            )


def render(template: str, **values: Any) -> str:
    """Renders a template, with the style and the script that all pages share."""
    page = (
        _environment()
        .get_template(template)
        .render(
            style=_verbatim("style.css"),
            script=_verbatim("script.js"),
            verdict_signs=VERDICT_SIGNS,
            **values,
        )
    )
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
    environment.globals["agreements"] = list(Agreement)
    environment.globals["bounds"] = (RATIOS, DIFFERENCES, POINTS, SHARES)
    environment.filters |= {
        "base64": lambda data: base64.b64encode(data).decode(),
        "blocks": lambda lines: [
            (is_list, list(block)) for is_list, block in groupby(lines, lambda line: line.startswith("- "))
        ],
        "code": _code,
        "duration": duration,
        "paper_table": paper_table,
        "unbroken": _unbroken,
    }
    return environment


def _code(text: str) -> Markup:
    """Returns escaped text in which `text in backticks` is code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _unbroken(text: str) -> str:
    """Returns `text` with no line breaks inside [intervals]."""
    return re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def _verbatim(name: str) -> Markup:
    return Markup((resources.files(__package__) / "templates" / name).read_text(encoding="utf-8"))
