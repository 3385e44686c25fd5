"""The printed figures are those of the papers, and code that reads them cannot change them."""

import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.printed import load, papers, printed_baseline, printed_crossing, printed_crossings


def test_every_paper_has_figures() -> None:
    assert papers() == ("friedman2016", "mcsherry2009", "neera2020", "wang2017", "zhang2018")
    assert all(load(key) for key in papers())


def test_cells_are_as_printed() -> None:
    friedman = load("friedman2016")
    assert friedman["table2"]["ml-100k"]["users"] == 943
    assert friedman["table3"]["ml-1m"]["factors"] == 5
    assert friedman["table4"]["isgd"]["GE"]["netflix"] == 1.8
    assert friedman["table5"]["psgd"]["GE"]["ml-100k"] == 60
    assert printed_crossing("ml-100k", "bounded", "pge", "IA") == 0.5
    assert printed_crossing("ml-1m", "unbounded", "pals", "GE") == 8.0
    assert printed_baseline("ml-10m", "GE") == 0.8738


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


def test_a_reader_cannot_change_what_the_next_one_sees() -> None:
    load("friedman2016")["table4"]["pge"]["IA"]["ml-100k"] = 99
    assert load("friedman2016")["table4"]["pge"]["IA"]["ml-100k"] == 0.5
    assert printed_crossing("ml-100k", "bounded", "pge", "IA") == 0.5


def test_an_unknown_paper_is_an_error_with_a_hint() -> None:
    with pytest.raises(DpmfError, match='did you mean "friedman2016"'):
        load("friedmann2016")


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


def test_private_knn_is_printed_in_section_5_4_and_tables_come_first() -> None:
    assert printed_crossing("ml-1m", "bounded", "pknn", "IA") == 0.18
    assert printed_crossing("ml-1m", "bounded", "pge", "IA") == 0.2
    assert printed_crossing("ml-1m", "unbounded", "pknn", "IA") is None
