"""What the page of all results shows: paper by paper, then by what is protected from whom, and what is missing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmf_cli.datasets import Folders
from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.claims import Claim, PaperFindings, Word, all_papers
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules import compute
from dpmf_cli.papers.rules.base import Computed
from dpmf_cli.report.html.agreement import Agreement
from dpmf_cli.report.html.exhibits import Absent, ExhibitView, Sources, exhibit_view
from dpmf_cli.report.html.experiment import ExperimentView, view_of
from dpmf_cli.report.reductions import whole_first
from dpmf_cli.report.tables.combined import combined_text
from dpmf_cli.report.tables.layout import TextTable
from dpmf_cli.results.manifest import MANIFEST
from dpmf_cli.terminal import say


@dataclass(frozen=True)
class ClaimView:
    """A claim with its verdict: computed from the results at hand, or stated of those of the whole paper.

    by        (config, name of the experiment at hand that ran it whole, or "") of what measures it
    here      what is computed of reduced results, beside the verdict of the whole
    here_by   names of the experiments at hand that `here` is computed of
    """

    statement: str
    remark: str
    verdict: Word
    measured: str
    computed: bool
    by: tuple[tuple[str, str], ...]
    here: Computed | None = None
    here_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class PaperView:
    """One paper. `experiments` are those that no paper before it has shown."""

    key: str
    paper: PaperFindings
    exhibits: tuple[ExhibitView, ...]
    claims: tuple[ClaimView, ...]
    experiments: tuple[ExperimentView, ...]


@dataclass(frozen=True)
class DataMissing:
    """A data set that is not here, the way to get it, and the experiments that wait for it."""

    title: str
    how: str
    waiting: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """All of the page.

    others        experiments of no paper
    protected     every curve, by what its ε protects from whom
    not_made      what has its data and was not run
    passed_over   why folders cannot be read
    """

    papers: tuple[PaperView, ...]
    others: tuple[ExperimentView, ...]
    protected: TextTable
    agreement: Counter[Agreement]
    verdicts: Counter[Word]
    data_missing: tuple[DataMissing, ...]
    not_made: tuple[Absent, ...]
    passed_over: tuple[str, ...]

    @property
    def experiments(self) -> list[ExperimentView]:
        return [view for paper in self.papers for view in paper.experiments] + list(self.others)


def overview(folders: Folders, configs: Path) -> Overview:
    """Everything found in the results folder. Raises DpmfError where there is nothing."""
    views, passed_over = _all_views(folders.results)
    if not views:
        raise DpmfError(
            f"{folders.results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
        )
    # An experiment that was run whole speaks before its reductions.
    found: dict[str, ExperimentView] = {}
    for view in sorted(views, key=lambda view: view.is_reduced):
        found.setdefault(view.stands_for, view)
    sources = Sources(folders, found, configs)
    evidence = Evidence({name: (view.collected.experiment, view.crossings) for name, view in found.items()})

    papers, shown = [], set[str]()
    for key, paper in all_papers().items():
        exhibits = tuple(exhibit_view(exhibit, sources) for exhibit in paper.exhibits)
        names = [name for exhibit in exhibits for name in exhibit.shown if name not in shown]
        of_paper = tuple(view for name in dict.fromkeys(names) for view in views if view.name == name)
        shown.update(names)
        claims = tuple(_claim(key, claim, evidence, found) for claim in paper.claims)
        papers.append(PaperView(key, paper, exhibits, claims, of_paper))
    rows = [row for paper in papers for exhibit in paper.exhibits for row in (*exhibit.rows, *exhibit.unmet)]
    absent = [each for paper in papers for exhibit in paper.exhibits for each in exhibit.absent]
    return Overview(
        papers=tuple(papers),
        others=tuple(view for view in views if view.name not in shown),
        protected=_combined(views),
        agreement=Counter(row.agreement for row in rows),
        verdicts=Counter(claim.verdict for paper in papers for claim in paper.claims),
        data_missing=_data_missing(absent),
        not_made=tuple({each.what: each for each in absent if not each.waits_for}.values()),
        passed_over=tuple(passed_over),
    )


_COMBINED = "combined_"
"""What the names of the experiments begin with that hold every algorithm on one data set."""


def _combined(views: Sequence[ExperimentView]) -> TextTable:
    """The combined table: of the experiments made for it, or where none of them was run, of all; the whole of one
    before its reductions."""
    made_for_it = [view for view in views if view.name.startswith(_COMBINED)]
    experiments, notes = whole_first([view.collected.experiment for view in made_for_it or views])
    return combined_text(experiments, notes=notes)


def _data_missing(absent: Iterable[Absent]) -> tuple[DataMissing, ...]:
    """What is absent for want of data, by data set."""
    waiting: dict[tuple[str, ...], list[str]] = {}
    for each in absent:
        if each.waits_for:
            names = waiting.setdefault(each.waits_for, [])
            names += [each.what] if each.what not in (*names, each.waits_for[0]) else []
    return tuple(DataMissing(title, how, tuple(names)) for (title, how), names in waiting.items())


def _all_views(results: Path) -> tuple[list[ExperimentView], list[str]]:
    """Every results folder that can be read, by name, and why the others cannot."""
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
    computed = compute(key, claim.id, evidence)
    used = [found[name] for name in claim.configs if name in found]
    whole = {name for name in claim.configs if name in found and not found[name].is_reduced}
    by = tuple((name, name if name in whole else "") for name in claim.configs)
    if computed is None:
        return ClaimView(claim.statement, claim.remark, claim.verdict, claim.measured, False, by)
    if all(not view.is_reduced for view in used):
        return ClaimView(claim.statement, claim.remark, computed.verdict, computed.measured, True, by)
    # One fold of a smaller set does not overturn what was found on the whole.
    names = tuple(view.name for view in used)
    return ClaimView(claim.statement, claim.remark, claim.verdict, claim.measured, False, by, computed, names)
