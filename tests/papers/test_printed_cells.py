"""Printed cells beside results: which cells complete a table, and which results stand beside a table."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
from tests.evaluation.made_curves import curve, experiment

PGE_ON_IA = ("ml-1m", "bounded", "pge", "IA")


def cells(crossings: Sequence[Crossing]) -> set[tuple[str, str, str, str]]:
    return {(each.dataset, each.neighbours, each.algorithm, each.baseline) for each in crossings}


def test_a_table_is_completed_by_the_printed_cells_beside_no_result() -> None:
    measured = find_crossings(experiment(curve([1, 4], [1, -1])))
    whole = with_printed_cells(measured, present=["netflix"])
    assert whole[:1] == measured
    added = whole[1:]
    assert cells(added) == cells(with_printed_cells([])) - {PGE_ON_IA}
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
    (started,) = beside_print(find_crossings(experiment(curve([1, 4], [np.nan, -1]))))
    assert (started.status, started.printed, started.ratio) == (Status.INCOMPLETE, 0.2, None)
    assert with_printed_cells([started])[0] == started
    assert len(with_printed_cells([started])) == 4 * 14


def test_one_experiment_hides_its_own_cells_alone() -> None:
    """Figure 5a also runs ISGD. Methods that it does not run, or not beside GE or under unbounded privacy,
    still have their cells."""
    made = replace(curve([0.1, 1, 10], [0.3, 0.1, -0.1]), algorithm="isgd", label="isgd")
    other = replace(made, neighbours="unbounded", label="unbounded")
    for curves in ((made,), (made, other)):
        found = find_crossings(replace(experiment(*curves), name="friedman_fig5a"))
        added = with_printed_cells(found)[len(found) :]
        assert cells(with_printed_cells([])) - cells(added) == cells(found)
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
def test_only_what_reproduces_a_table_has_its_printed_cells(name: str, printed: float | None) -> None:
    """The same methods on the same data with other settings are not what the paper printed."""
    made = replace(experiment(curve([0.1, 1, 10], [0.3, 0.1, -0.1])), name=name)
    (found,) = measured = beside_print(find_crossings(made))
    assert found.printed == printed
    assert found.ratio == (None if printed is None else pytest.approx(np.sqrt(10) / printed))
    assert (PGE_ON_IA in cells(with_printed_cells(measured)[1:])) == (printed is None)
