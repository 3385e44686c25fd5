"""The printed figures are those of the papers, and stand beside the results that reproduce them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.papers.beside_print import beside_print, with_printed_values
from dpmf_cli.papers.printed import load, papers, printed_baseline, printed_crossing, printed_crossings
from tests.evaluation.made_curves import curve, experiment


def test_every_paper_has_figures_as_printed() -> None:
    assert papers() == ("friedman2016", "mcsherry2009", "neera2020", "wang2017", "zhang2018")
    assert all(load(key) for key in papers())
    friedman = load("friedman2016")
    assert friedman["table2"]["ml-100k"]["users"] == 943
    assert friedman["table3"]["ml-1m"]["factors"] == 5
    assert friedman["table4"]["isgd"]["GE"]["netflix"] == 1.8
    assert printed_crossing("ml-100k", "bounded", "pge", "IA") == 0.5
    assert printed_crossing("ml-1m", "unbounded", "pals", "GE") == 8.0
    assert printed_baseline("ml-10m", "GE") == 0.8738
    # Private kNN is printed in section 5.4; tables come first.
    assert printed_crossing("ml-1m", "bounded", "pknn", "IA") == 0.18
    assert printed_crossing("ml-1m", "bounded", "pge", "IA") == 0.2
    assert printed_crossing("ml-1m", "unbounded", "pknn", "IA") is None
    with pytest.raises(DpmfError, match='did you mean "friedman2016"'):
        load("friedmann2016")


@pytest.mark.parametrize(
    "cell",
    [
        ("ml-10m", "unbounded", "isgd", "IA"),  # a dash
        ("ml-100k", "bounded", "pge", "GE"),  # no row: PGE converges to GE
        ("jester", "bounded", "pge", "IA"),
        ("ml-100k", "user", "pge", "IA"),
    ],
)
def test_what_is_not_printed_is_none(cell: tuple[str, str, str, str]) -> None:
    assert printed_crossing(*cell) is None
    assert printed_baseline("ml-10m", "pknn") is None
    assert printed_baseline("jester", "IA") is None


def test_the_iterator_has_every_cell_once() -> None:
    cells = list(printed_crossings())
    names = {(cell.dataset, cell.neighbours, cell.algorithm, cell.baseline) for cell in cells}
    assert len(names) == len(cells) == 2 * 7 * 4
    assert sum(cell.epsilon is None for cell in cells) == 4
    assert all(
        cell.epsilon == printed_crossing(cell.dataset, cell.neighbours, cell.algorithm, cell.baseline)
        for cell in cells
    )


def test_the_remarks_on_the_claims_are_true_of_the_tables() -> None:
    """Where tables 4 and 5 contradict "every unbounded crossing lies above the bounded one"."""
    exceptions = {
        (cell.dataset, cell.algorithm, cell.baseline)
        for cell in printed_crossings()
        if cell.neighbours == "unbounded" and cell.epsilon is not None
        if cell.epsilon <= (printed_crossing(cell.dataset, "bounded", cell.algorithm, cell.baseline) or 0)
    }
    assert exceptions == {(data, way, "GE") for data in ("ml-1m", "ml-10m") for way in ("psgd", "pals")}
    for cell in printed_crossings():
        if cell.dataset == "ml-100k":
            smaller = printed_crossing("ml-1m", cell.neighbours, cell.algorithm, cell.baseline)
            assert cell.epsilon is not None
            assert smaller is not None
            assert smaller < cell.epsilon


PGE_ON_IA = ("ml-1m", "bounded", "pge", "IA")


def cells(crossings: Sequence[Crossing]) -> set[tuple[str, str, str, str]]:
    return {(each.dataset, each.neighbours, each.algorithm, each.baseline) for each in crossings}


def test_a_table_is_completed_by_the_printed_values_beside_no_result() -> None:
    measured = find_crossings(experiment(curve([1, 4], [1, -1])))
    whole = with_printed_values(measured, present=["netflix"])
    assert whole[:1] == measured
    added = whole[1:]
    assert cells(added) == cells(with_printed_values([])) - {PGE_ON_IA}
    assert len(added) == 4 * 14 - 1
    statuses = {(cell.dataset, cell.status) for cell in added}
    # The files of Netflix are here, and so were those of ML-1M: only the experiments were not run.
    assert statuses == {
        ("ml-100k", Status.NO_DATA),
        ("ml-1m", Status.NOT_RUN),
        ("ml-10m", Status.NO_DATA),
        ("netflix", Status.NOT_RUN),
    }
    assert all(cell.reproduced is None and cell.ratio is None and not cell.experiment for cell in added)


def test_a_cell_whose_tasks_are_missing_has_its_row_already() -> None:
    (started,) = beside_print(experiment(curve([1, 4], [np.nan, -1])))
    assert (started.status, started.printed, started.ratio) == (Status.INCOMPLETE, 0.2, None)
    assert with_printed_values([started])[0] == started
    assert len(with_printed_values([started])) == 4 * 14


def test_one_experiment_hides_its_own_cells_alone() -> None:
    """Figure 5a also runs ISGD. Methods that it does not run, or not beside GE or under unbounded privacy,
    still have their cells."""
    made = replace(curve([0.1, 1, 10], [0.3, 0.1, -0.1]), algorithm="isgd", label="isgd")
    other = replace(made, neighbours="unbounded", label="unbounded")
    for curves in ((made,), (made, other)):
        found = find_crossings(replace(experiment(*curves), name="friedman_fig5a"))
        added = with_printed_values(found)[len(found) :]
        assert cells(with_printed_values([])) - cells(added) == cells(found)
        assert len(added) == 4 * 14 - len(curves)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("ml1m_bounded", 0.2),
        ("ml1m_bounded.held-out-1", 0.2),
        ("ml1m_bounded.held-out-1.runs-1", 0.2),
        ("ml100k_bounded.ml-1m", None),
        ("ml100k_bounded.ml-1m.held-out-1", None),
        ("ml1m_bounded_corrected", None),
        ("wang_fig1_ml1m", None),
        ("mine", None),
    ],
)
def test_only_what_reproduces_a_table_has_its_printed_values(name: str, printed: float | None) -> None:
    """The same methods on the same data with other settings are not what the paper printed."""
    made = replace(experiment(curve([0.1, 1, 10], [0.3, 0.1, -0.1])), name=name)
    (found,) = measured = beside_print(made)
    assert found.printed == printed
    assert found.ratio == (None if printed is None else pytest.approx(np.sqrt(10) / printed))
    assert (PGE_ON_IA in cells(with_printed_values(measured)[1:])) == (printed is None)
