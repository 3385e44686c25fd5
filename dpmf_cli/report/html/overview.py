"""What the page of all results shows: own results, papers, all curves by guarantee, and what is missing."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpmf_cli.datasets import Folders
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.claims import Claim, PaperFindings, all_papers
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules import compute
from dpmf_cli.papers.verdicts import Word, of_parts
from dpmf_cli.report.html.compared import Agreement
from dpmf_cli.report.html.exhibits import Absent, ExhibitView, Sources, exhibit_view
from dpmf_cli.report.html.experiment import ExperimentView, advice_on, view_of
from dpmf_cli.report.reductions import whole_first
from dpmf_cli.report.tables.combined import combined_text
from dpmf_cli.report.tables.layout import TextTable
from dpmf_cli.results.manifest import MANIFEST
from dpmf_cli.terminal import say

Verdict = Literal["holds here", "in part here", "fails here", "not run here"]
"""What one setting says of a claim. A verdict on the paper needs many settings (`papers.verdicts`)."""
NOT_RUN: Verdict = "not run here"
HERE: dict[Word, Verdict] = {"confirmed": "holds here", "in part": "in part here", "refuted": "fails here"}


@dataclass(frozen=True)
class ClaimView:
    """A claim on one data set, and what the results at hand say of it. These results are of one setting.

    The verdict comes from these results only.

    on        key of the data set; `ANY` for a theorem
    measured  the figures behind the verdict; "" if nothing was run
    by        for each config that measures the claim: (config, name of the experiment at hand that ran it, or "")
    reduced   whether one of these experiments is a reduction
    """

    id: str
    statement: str
    remark: str
    on: str
    verdict: Verdict
    measured: str
    by: tuple[tuple[str, str], ...]
    reduced: bool


@dataclass(frozen=True)
class PaperView:
    """One paper with results. `experiments` are those that no earlier paper on the page has shown."""

    key: str
    paper: PaperFindings
    exhibits: tuple[ExhibitView, ...]
    claims: tuple[ClaimView, ...]
    experiments: tuple[ExperimentView, ...]


@dataclass(frozen=True)
class DataMissing:
    """A data set that is not here, how to get it, and the experiments that wait for it."""

    title: str
    how: str
    waiting: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """All content of the page.

    own           experiments that belong to no paper
    advice        advice on these experiments, from `report.advice`
    not_run       the papers without results
    pages         relative links from the results folder to the pages of papers, by key, for pages that exist
    protected     every curve, by guarantee
    not_made      parts that were not run although their data are here
    passed_over   for each folder that cannot be read, why
    """

    own: tuple[ExperimentView, ...]
    advice: tuple[str, ...]
    papers: tuple[PaperView, ...]
    not_run: tuple[tuple[str, PaperFindings], ...]
    pages: dict[str, str]
    protected: TextTable
    agreement: Counter[Agreement]
    verdicts: Counter[Verdict]
    data_missing: tuple[DataMissing, ...]
    not_made: tuple[Absent, ...]
    passed_over: tuple[str, ...]

    @property
    def experiments(self) -> list[ExperimentView]:
        return [*self.own, *(view for paper in self.papers for view in paper.experiments)]


def overview(folders: Folders, configs: Path) -> Overview:
    """Collects everything in the results folder. Raises DpmfError if there are no results."""
    views, passed_over = _all_views(folders.results)
    if not views:
        raise DpmfError(
            f"{folders.results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
        )
    # A complete experiment comes before its reductions.
    found: dict[str, ExperimentView] = {}
    for view in sorted(views, key=lambda view: view.is_reduced):
        found.setdefault(view.stands_for, view)
    sources = Sources(folders, found, configs)
    by_data: dict[str, dict[str, tuple[Experiment, Sequence[Crossing]]]] = {}
    for name, view in found.items():
        experiment = view.collected.experiment
        by_data.setdefault(experiment.dataset, {})[name] = (experiment, view.crossings)

    papers, not_run, shown = [], [], set[str]()
    for key, paper in all_papers().items():
        if not _is_run(paper, sources):
            not_run.append((key, paper))
            continue
        exhibits = tuple(exhibit_view(exhibit, sources) for exhibit in paper.exhibits)
        names = [name for exhibit in exhibits for name in exhibit.shown if name not in shown]
        of_paper = tuple(view for name in dict.fromkeys(names) for view in views if view.name == name)
        shown.update(names)
        claims = tuple(
            _claim(key, claim, Evidence(by_data, data), found)
            for claim in paper.claims
            for data in claim.data
        )
        papers.append(PaperView(key, paper, exhibits, claims, of_paper))
    rows = [row for paper in papers for exhibit in paper.exhibits for row in (*exhibit.rows, *exhibit.unmet)]
    absent = [each for paper in papers for exhibit in paper.exhibits for each in exhibit.absent]
    own = tuple(view for view in views if view.name not in shown)
    return Overview(
        own=own,
        advice=advice_on(own),
        papers=tuple(papers),
        not_run=tuple(not_run),
        pages={key: link for key, paper in all_papers().items() if (link := _link(paper, sources))},
        protected=_combined(views),
        agreement=Counter(row.agreement for row in rows),
        verdicts=Counter(claim.verdict for paper in papers for claim in paper.claims),
        data_missing=_data_missing(absent),
        not_made=tuple({each.what: each for each in absent if not each.waits_for}.values()),
        passed_over=tuple(passed_over),
    )


def _is_run(paper: PaperFindings, sources: Sources) -> bool:
    """Whether an experiment of a paper is here, or a file that one of the paper's commands makes."""
    return any(
        any(name in sources.found for name in exhibit.configs)
        or (exhibit.file and (sources.folders.results / exhibit.file).is_file())
        for exhibit in paper.exhibits
    )


def _link(paper: PaperFindings, sources: Sources) -> str:
    """Returns the relative link from the results folder to the paper's page beside the configs; "" without a page."""
    page = sources.configs.parent / paper.page
    return Path(os.path.relpath(page, sources.folders.results)).as_posix() if page.is_file() else ""


_COMBINED = "combined_"
"""The prefix in the names of experiments that hold every algorithm on one data set."""


def _combined(views: Sequence[ExperimentView]) -> TextTable:
    """Returns the combined table of the experiments made for it, or of all if none of those was run.

    A reduction of an experiment that is here is left out.
    """
    made_for_it = [view for view in views if view.name.startswith(_COMBINED)]
    experiments, notes = whole_first([view.collected.experiment for view in made_for_it or views])
    return combined_text(experiments, notes=notes)


def _data_missing(absent: Iterable[Absent]) -> tuple[DataMissing, ...]:
    """Groups by data set what is absent because data are missing."""
    waiting: dict[tuple[str, ...], list[str]] = {}
    for each in absent:
        if each.waits_for:
            names = waiting.setdefault(each.waits_for, [])
            names += [each.what] if each.what not in (*names, each.waits_for[0]) else []
    return tuple(DataMissing(title, how, tuple(names)) for (title, how), names in waiting.items())


def _all_views(results: Path) -> tuple[list[ExperimentView], list[str]]:
    """Returns a view of every readable results folder, by name, and why the other folders cannot be read."""
    views, passed_over = [], []
    for path in sorted(results.glob(f"*/{MANIFEST}")):
        say(f"report: {path.parent}")
        try:
            views.append(view_of(path.parent))
        except DpmfError as error:
            say(f"passed over: {error}")
            passed_over.append(str(error))
    return views, passed_over


def _claim(key: str, claim: Claim, evidence: Evidence, found: dict[str, ExperimentView]) -> ClaimView:
    """Returns what the results at hand say of a claim on the evidence's data set."""
    by = tuple((name, found[name].name if name in found else "") for name in claim.configs)
    computed = compute(key, claim.id, evidence)
    verdict = HERE[of_parts(computed.held)] if computed else NOT_RUN
    reduced = bool(computed) and any(found[name].is_reduced for name in claim.configs if name in found)
    measured = computed.measured if computed else ""
    return ClaimView(claim.id, claim.statement, claim.remark, evidence.data, verdict, measured, by, reduced)
