"""A table of columns, drawn in every format."""

import csv
import io
import json
import math
from dataclasses import dataclass

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.report.tables.columns import NONE, TableColumn, epsilon, names, number, tabled
from dpmf_cli.report.tables.layout import FORMATS, TextTable, draw


@dataclass(frozen=True)
class Found:
    """A row of a made-up table."""

    of: str
    label: str
    error: float | None
    spent: float
    rare: str = ""


COLUMNS: tuple[TableColumn[Found], ...] = (
    *names("of label"),
    number("error", head="RMSE"),
    epsilon("spent", head="ε"),
    TableColumn("rare", kept=lambda rows: any(row.rare for row in rows)),
)
MARK: TableColumn[Found] = TableColumn("marks", text=lambda row: "†" * (row.error is None), head="")
ROWS = [
    Found("b", "x_1", 0.1 + 0.2, math.inf),
    Found("a", "second", None, 2.0),
    Found("b", "=third", 1e-9, 0.5),
]


def made(*rows: Found) -> TextTable:
    return tabled(rows, COLUMNS, ("label", "error", MARK, "spent", "rare"), title=lambda row: row.of)


def test_people_see_chosen_columns_in_groups_in_the_order_of_their_first_rows() -> None:
    table = made(*ROWS)
    assert (table.header, table.alignment) == (("label", "RMSE", "", "ε"), "lrlr")
    assert [(group.title, group.rows) for group in table.groups] == [
        ("b", (("x_1", "0.3000", "", "∞"), ("=third", "0.0000", "", "0.500"))),
        ("a", (("second", NONE, "†", "2.00"),)),
    ]
    assert made(Found("a", "b", 1, 1, "c")).header[-1] == "rare"


def test_programs_get_every_number_whole_and_an_absent_one_empty() -> None:
    table = made(*ROWS)
    rows = list(csv.DictReader(io.StringIO(draw(table, "csv"))))
    assert [tuple(row) for row in rows] == [("of", "label", "error", "spent")] * 3
    assert [row["error"] for row in rows] == [repr(0.1 + 0.2), "", "1e-09"]
    assert [row["spent"] for row in rows] == ["inf", "2.0", "0.5"]
    assert rows[2]["label"] == "'=third"
    records = json.loads(draw(table, "json"), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert records[0] == {"of": "b", "label": "x_1", "error": 0.1 + 0.2, "spent": "inf"}
    assert records[1]["error"] is None
    assert "\r" not in draw(table, "csv")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_every_row_even_of_none(form: str) -> None:
    drawn = draw(made(*ROWS), form)
    assert all(word in drawn for word in ("second", "third", "1"))
    assert draw(made(), form).endswith("\n")


def test_a_column_of_a_part_is_absent_where_the_part_is() -> None:
    of_second = COLUMNS[3].at(lambda row: row[1], "second", "ε of it")
    table = tabled([(0, ROWS[1]), (1, None)], [of_second], ["second"], title="t")
    assert (table.header, table.alignment, table.records) == (("ε of it",), "r", ((2.0,), (None,)))
    assert table.groups[0].rows == (("2.00",), (NONE,))


def test_a_title_without_rows_is_a_group_and_one_by_row_is_none() -> None:
    assert len(tabled([], (), ("label",), title="t").groups) == 1
    assert draw(made()) == "nothing to show\n"
    assert draw(made(), "json") == "[]\n"


def test_an_unknown_format_is_an_error_with_a_hint() -> None:
    with pytest.raises(DpmfError, match='unknown table format "late"; did you mean "latex"'):
        draw(made(), "late")
