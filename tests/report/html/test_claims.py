"""Claims with their verdicts: what is shown as measured is credited to the experiment that measured it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.papers.claims import ANY
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules import scope
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.html import page as module
from dpmf_cli.report.html.page import NOT_RUN, overview, overview_page
from dpmf_cli.report.html.views import view_of
from tests.report.conftest import make

Found = Callable[..., Path]


@pytest.fixture
def found(results: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """Replaces the results in a folder by experiments of those names, and returns the folder."""
    base = view_of(results / "mine")
    first, second = (replace(each, protects=Protection.VALUE) for each in make().curves[2:])
    curves = [
        replace(curve, label=label)
        for both in scope("friedman2016", Evidence({}, "ml-1m")).names["raw"].items()
        for curve, label in zip((first, second), both, strict=True)
    ]

    def put(*names: str) -> Path:
        views = []
        for name in names:
            experiment = replace(make(), name=name, dataset="ml-1m", curves=tuple(curves))
            collected = replace(base.collected, experiment=experiment)
            crossings = find_crossings(experiment, replicates=10)
            views.append(replace(base, collected=collected, crossings=crossings, charts=()))
        monkeypatch.setattr(module, "_all_views", lambda _: (views, []))
        return results

    return put


def claim(results: Path, key: str, identifier: str) -> Any:
    of = next(each.claims for each in overview(_folders(results))["papers"] if each.key == key)
    return next(each for each in of if each.claim.id == identifier and each.on in ("ml-1m", ANY))


def _folders(results: Path) -> Folders:
    return Folders(results.parent, results.parent / "cache", results=results)


def test_what_is_computed_of_the_whole_is_credited_to_it(found: Found) -> None:
    view = claim(found("friedman_fig3a"), "friedman2016", "preprocessing-helps")
    assert len(view.atoms) == 3
    assert NOT_RUN not in [verdict for verdict, *_ in view.atoms]
    assert ("friedman_fig3a", "friedman_fig3a") in view.by
    assert not view.reduced


def test_a_reduced_run_is_judged_by_its_own_figures_and_says_so(found: Found) -> None:
    folder = found("friedman_fig3a.held-out-1")
    view = claim(folder, "friedman2016", "preprocessing-helps")
    assert view.reduced
    assert ("friedman_fig3a", "friedman_fig3a.held-out-1") in view.by
    page = overview_page(_folders(folder))
    cell = page[page.index(view.atoms[0][2]) :].partition("</td>")[0]
    assert 'measured by <a href="#friedman_fig3a.held-out-1">' in cell
    assert "from a reduced run" in page


def test_no_verdict_is_one_of_the_papers_page(found: Found) -> None:
    view = claim(found("wang_fig1_ml100k"), "wang2017", "sgd-pnbm-beats-neighbours")
    assert view.atoms == [(NOT_RUN, "", "")]
    assert ("wang_fig1_ml100k", "wang_fig1_ml100k") in view.by
    proved = claim(found("mcsherry_fig1_ml1m"), "mcsherry2009", "theorem-4")
    assert (proved.atoms, proved.by) == ([(NOT_RUN, "", "")], [])
