"""Claims with their verdicts: what is shown as measured is credited to what measured it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.claims import paper
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.html import overview as module
from dpmf_cli.report.html.experiment import view_of
from dpmf_cli.report.html.overview import ClaimView, overview
from dpmf_cli.report.html.page import overview_page

LABELS = {"psgd": "PSGD", "pals": "no preprocessing, norms lifted"}

Found = Callable[..., Path]


@pytest.fixture
def found(results: Path, made: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch) -> Found:
    """Puts experiments of those names in place of what is in the folder that it returns."""
    base = view_of(results / "mine")
    first, second = (
        replace(each, label=LABELS[each.algorithm], protects=Protection.VALUE) for each in made().curves[2:]
    )

    def put(*names: str) -> Path:
        views = []
        for name in names:
            experiment = replace(made(), name=name, curves=(first, second))
            collected = replace(base.collected, experiment=experiment)
            crossings = find_crossings(experiment, replicates=10)
            views.append(replace(base, collected=collected, crossings=crossings, charts=()))
        monkeypatch.setattr(module, "_all_views", lambda _: (views, []))
        return results

    return put


def claim(results: Path, key: str, identifier: str) -> ClaimView:
    of = next(each for each in overview(_folders(results), results).papers if each.key == key)
    at = [each.id for each in paper(key).claims].index(identifier)
    return of.claims[at]


def _folders(results: Path) -> Folders:
    return Folders(results.parent, results.parent / "cache", results=results)


def test_what_is_computed_of_the_whole_is_credited_to_it(found: Found) -> None:
    view = claim(found("friedman_fig3a"), "friedman2016", "preprocessing-helps")
    assert view.computed
    assert (view.by, view.here, view.here_by) == ((("friedman_fig3a", "friedman_fig3a"),), None, ())


def test_a_reduced_run_is_credited_with_its_own_figures_alone(found: Found) -> None:
    folder = found("friedman_fig3a.held-out-1")
    view = claim(folder, "friedman2016", "preprocessing-helps")
    stated = next(each for each in paper("friedman2016").claims if each.id == "preprocessing-helps")
    assert (view.verdict, view.measured, view.computed) == (stated.verdict, stated.measured, False)
    assert view.by == (("friedman_fig3a", ""),)
    assert view.here is not None
    assert view.here_by == ("friedman_fig3a.held-out-1",)
    page = overview_page(_folders(folder), folder)
    whole, here = page[page.index(stated.measured) :].split("Here, on reduced results: ")[:2]
    assert "measured by friedman_fig3a</span>" in whole
    assert "held-out-1" not in whole
    assert 'measured by <a href="#friedman_fig3a.held-out-1">' in here[: here.index("</td>")]


def test_a_reduced_run_that_no_rule_judges_is_not_named(found: Found) -> None:
    view = claim(found("wang_fig1_ml100k.held-out-1"), "wang2017", "sgd-pnbm-beats-neighbours")
    assert (view.here, view.here_by) == (None, ())
    assert ("wang_fig1_ml100k", "") in view.by
    whole = claim(found("wang_fig1_ml100k"), "wang2017", "sgd-pnbm-beats-neighbours")
    assert ("wang_fig1_ml100k", "wang_fig1_ml100k") in whole.by
