"""Renders the pages from templates. Each page is one string of HTML that refers to nothing outside itself."""

import base64
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dpmf_cli.datasets import Folders
from dpmf_cli.report.html.agreement import Agreement
from dpmf_cli.report.html.compare import together
from dpmf_cli.report.html.experiment import advice_on, view_of
from dpmf_cli.report.html.overview import NOT_RUN, Verdict, overview
from dpmf_cli.results.compare_folders import Compared
from dpmf_cli.terminal import printable

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
    """Returns the page of several runs beside the first one."""
    view = together(several)
    return render("compare.html.j2", title=f"dpmf: {', '.join(view.names)}", view=view)


def render(template: str, **values: Any) -> str:
    """Renders a template, with the style and the script that all pages share."""
    page = (
        _environment()
        .get_template(template)
        .render(
            style=_verbatim("style.css"),
            script=_verbatim("script.js"),
            agreements=list(Agreement),
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
    environment.filters["base64"] = lambda data: base64.b64encode(data).decode()
    environment.filters["blocks"] = lambda lines: [
        (is_list, list(block)) for is_list, block in groupby(lines, lambda line: line.startswith("- "))
    ]
    environment.filters["code"] = _code
    environment.filters["unbroken"] = _unbroken
    return environment


def _code(text: str) -> Markup:
    """Returns escaped text in which `text in backticks` is code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _unbroken(text: str) -> str:
    """Returns `text` with no line breaks inside [intervals]."""
    return re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def _verbatim(name: str) -> Markup:
    return Markup((resources.files(__package__) / "templates" / name).read_text(encoding="utf-8"))
