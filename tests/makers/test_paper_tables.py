"""Tables of all papers: their counts are those of the records that they are made from."""

import re
from pathlib import Path

import numpy as np
import pytest

from docs.makers import paper_tables
from docs.makers.combined import best_of_papers
from docs.makers.margins import margins_picture
from docs.makers.pages import summary_table
from docs.makers.paper_tables import KINDS, SHOWN, Records, expected_text
from docs.makers.pictures import pictures
from dpmf_cli.papers.claims import all_papers, paper
from dpmf_cli.papers.record import (
    Explored,
    PrintedValue,
    Proved,
    Record,
    Tried,
    path_of,
    read_record,
    text_of,
)
from dpmf_cli.report.leaders import shipped
from dpmf_cli.studies.reproduce import path_of as expected_path, read_expected
from tests.papers.explored import ATOM, explored

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDS = DOCS / "papers" / "explored"


def recorded(key: str) -> Record:
    return read_record(path_of(RECORDS, key)) or Record(paper=key, version="")


def nothing(key: str) -> Record:
    return Record(paper=key, version="")


def rows(kind: str, records: Records = recorded) -> tuple[tuple[str, ...], ...]:
    (group,) = KINDS[kind](records).groups
    return group.rows


def of_neera(explored: Explored, **theorems: Proved) -> dict[str, Record]:
    found = Record(paper="neera2020", version="", data={"ml-100k": explored}, theorems=theorems)
    return {key: found if key == "neera2020" else nothing(key) for key in all_papers()}


HOLDS, FAILS = (
    ATOM.model_copy(update={"claim": claim, "said": said, "shipped": ()})
    for claim, said in (("mixture-helps", "a figure"), ("completely-hides", "another"))
)
CELLS = (
    {"near": 0.9, "far": 1.9, "in a setting": 3.0},
    {"near": 0.1, "far": 2.1, "in a setting": 0.5},
)


def made() -> Explored:
    margins = ((1.0, 1.0, 1.0), (-1.0, -1.0, -1.0))
    return explored(lambda _: 1.0, atoms=[HOLDS, FAILS]).model_copy(
        update={
            "seed": 3,
            "open": {"choice": ("first", "second")},
            "printed": {name: PrintedValue.of(1, 1 + off / 10, 0.1) for name, off in CELLS[0].items()},
            "tried": tuple(Tried(setting=(at,), margins=margins, off=off) for at, off in enumerate(CELLS)),
        }
    )


def test_every_claim_of_every_paper_has_a_verdict() -> None:
    counted: dict[str, int] = {}
    for title, _, *counts, _ in rows("verdicts"):
        counted[title] = counted.get(title, 0) + sum(map(int, counts))
    for found in all_papers().values():
        assert counted[found.title] >= sum(len(claim.data) for claim in found.claims)


def test_the_abstract_of_the_paper_says_what_is_counted() -> None:
    """ "Fewer than half hold, one in seven fails, nearly a third depend …"; "one in six verdicts is unsure"."""
    (row,) = (row for row in rows("verdicts") if row[:2] == ("all together", "figures"))
    counts = np.array([*map(int, row[2:6])])
    summary, paper_text = summary_table(recorded), (DOCS / "paper.md").read_text(encoding="utf-8")
    said, names = " ".join(paper_text.split()), {5: "five", 6: "six", 7: "seven"}
    assert "| 33 of 38 |" in summary
    assert "| 0 of 4 |" in summary
    assert "33 of 38 in one paper and none of 4 in another" in said
    holds, fails, depends, close = counts / counts.sum()
    assert close < fails < depends < holds < 0.5
    assert f"fewer than half hold, one in {names[round(1 / fails)]} fails, nearly a third depend" in said
    assert f"One in {names[round(counts.sum() / int(row[-1]))]} verdicts is unsure" in said
    assert 0.27 < depends < 1 / 3
    _, same, turned, _ = KINDS["again"](recorded).notes
    stayed, of = map(int, re.findall(r"\d+", same)[:2])
    assert 0.85 < stayed / of < 0.95
    assert turned.endswith(": 0")


def test_verdicts_are_counted_by_word_and_kind() -> None:
    theorem = next(claim.id for claim in paper("neera2020").claims if claim.data == ("any",))
    records = of_neera(made(), **{theorem: Proved(held=False, proved=False, measured="a; a replay shows: b")})
    found = [row[1:] for row in rows("verdicts", records.__getitem__) if row[0] == paper("neera2020").title]
    untested = sum(len(claim.data) for claim in paper("neera2020").claims) - 3
    assert found == [
        ("figures", "1", "1", "0", "0", "0", str(untested), "0"),
        ("theorems", "0", "1", "0", "0", "0", "0", "0"),
    ]
    assert rows("theorems", records.__getitem__)[0][-1] == "a"
    (holding,) = rows("holding", records.__getitem__)
    assert holding[2:] == ("a < b", "ml-100k")
    (failing,) = rows("failing", records.__getitem__)
    assert failing[2:] == ("a < b", "ml-100k", "another", "2 −")


def test_verdicts_again_are_counted_beside_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turned = tuple(each.model_copy(update={"margins": each.margins[::-1]}) for each in made().tried)
    again = of_neera(made().model_copy(update={"tried": turned}))["neera2020"]
    path_of(tmp_path, "neera2020").write_text(text_of(again))
    monkeypatch.setattr(paper_tables, "AGAIN", tmp_path)
    table = KINDS["again"](of_neera(made()).__getitem__)
    assert [row[:3] for row in table.groups[0].rows] == [("holds", "0", "1"), ("fails", "1", "0")]
    assert table.notes[1] == f"the same: 0 of 2 ({paper('neera2020').title} 0 of 2)"
    assert table.notes[2] == "from holds to fails or back: 2"


def test_errors_of_pairs_stand_in_the_cell_of_their_ridge_and_rank() -> None:
    found = read_expected(expected_path(small=False))["friedman_fig6_pairs"]
    table = KINDS["pairs"](nothing)
    rows_of = {group.title: group.rows for group in table.groups}
    for title, rank, key in (
        ("ALS, without noise", "d 10", "ALS, d 10, regularization 0.1 at inf"),
        ("ISGD, ε 5", "d 3", "ISGD, d 3, regularization 0.1, bounded, published at 5"),
    ):
        (row,) = (row for row in rows_of[title] if row[0] == "0.1")
        assert row[table.header.index(rank)] == f"{found[key].mean:.4f} ± {found[key].deviation:.4f}"


def test_an_inequality_that_depends_is_listed_with_how_sure_that_is() -> None:
    first, second = made().tried
    against = second.model_copy(update={"margins": (second.margins[1], first.margins[0])})
    records = of_neera(made().model_copy(update={"tried": (first, against)}))
    for row in rows("depending", records.__getitem__):
        assert row[1:4] == ("a < b", "ml-100k", "1 +, 1 −")
        assert re.fullmatch(r"no single choice; (4|5)\d % of other samples of settings would turn it", row[4])
    assert len(rows("depending", records.__getitem__)) == 2
    unsure = {row[0]: row[-1] for row in rows("verdicts", records.__getitem__) if row[1] == "figures"}
    assert unsure["all together"] == unsure[paper("neera2020").title] == "2"


def test_a_reader_is_told_what_a_verdict_does_not_rest_on() -> None:
    """Arithmetic is no audit, and a theorem was reconstructed."""
    wang = {row[0]: row for row in expected_text(recorded("wang2017"), paper("wang2017")).groups[0].rows}
    claims = {claim.id: claim.statement for claim in paper("wang2017").claims}
    assert "audit" not in wang[claims["h-makes-it-unbiased"]][2]
    assert wang[claims["theorem-1"]][2] == "dpmf audit"
    (third,) = (row for row in rows("theorems") if row[2] == "theorem 3" and "McSherry" in row[0])
    assert "reconstructed" in third[1]


def test_only_printed_numbers_are_counted_as_cells() -> None:
    """No mean over cells, no cell twice, and no phrase ("about 70 %")."""
    assert {row[0]: sum(map(int, row[2:5])) for row in rows("cells") if row[1] == "ml-100k"} == {
        paper("friedman2016").title: 18,
        paper("neera2020").title: 2,
    }


def test_printed_figures_agree_as_shipped_and_in_the_best_setting() -> None:
    records = of_neera(made())
    title = paper("neera2020").title
    assert rows("cells", records.__getitem__) == ((title, "ml-100k", "1", "1", "1", "2", "0", "1"),)
    assert rows("explored", records.__getitem__) == (
        (paper("neera2020").title, "ml-100k", "2", "2 of 10", "1", "3"),
    )


@pytest.mark.parametrize("kind", ["explored", "cells", "holding", "failing", "depending", "theorems"])
def test_without_records_nothing_is_said(kind: str) -> None:
    assert rows(kind, nothing) == ()


def test_the_papers_are_listed_with_what_their_files_have() -> None:
    assert [row[2:] for row in rows("papers")] == [
        (str(len(found.configs)), str(len(found.claims)), str(len(found.errata)))
        for found in all_papers().values()
    ]


def test_leaders_are_the_first_of_each_ranking() -> None:
    found = rows("leaders")
    assert len(found) == len(shipped().rankings)
    for row, ranking in zip(found, shipped().rankings, strict=True):
        assert str(ranking.guarantee) in row[0]
        for cell, epsilon in zip(row[1:], SHOWN, strict=True):
            best = min(ranking.at, key=lambda each: abs(each.epsilon - epsilon)).methods[0]
            assert best.method.startswith(cell.partition(" (")[0])
            assert cell.endswith(f"({', '.join(map(str, best.ranks.values()))})")


DRAWN = pictures(RECORDS)


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_drawn_from_what_is_committed_and_shown_on_a_page(name: str) -> None:
    assert (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8") == DRAWN[name]
    pages = (*DOCS.glob("**/*.md"), DOCS.parent / "README.md")
    assert any(f"figures/{name}.svg" in page.read_text(encoding="utf-8") for page in pages)


def test_margins_are_drawn_on_the_side_of_their_verdict() -> None:
    """Between −1 and 1 is the band; a large dot is right of it if all settings hold, and left of it if all fail."""
    record = read_record(path_of(RECORDS, "wang2017"))
    assert record is not None
    drawn = margins_picture(record.data["ml-100k"], named=True)
    start, width = map(float, re.findall(r'<rect x="([\d.]+)" y="24" width="([\d.]+)"', drawn)[0])
    holds, fails = (
        [int(x) for x in re.findall(rf'cx="(\d+)" cy="[\d.]+" r="3.6" class="{word}"', drawn)]
        for word in ("holds", "fails")
    )
    assert min(holds) >= round(start + width)
    assert max(fails) <= round(start)
    assert len(holds) == int(re.findall(r">holds: (\d+) of", drawn)[0])


def test_the_best_of_a_paper_has_a_proof_where_any_has_and_meets_the_item_average_first() -> None:
    line = "| 1 | 1 | {} | Wang 2017 | published | {} [1, 2] | – | 1 | – | – | – | 1 |"
    page = "\n".join(
        (
            "**ml-1m: rating value, against everybody**",
            *(line.format(*each) for each in (("late", 3), ("first", 0.5), ("later", 2))),
            "**ml-1m: rating value, against everybody, not provable**",
            line.format("unproved", "below the grid"),
            line.format("at no ε", "needs no ε"),
        )
    )
    assert [row.method for row in best_of_papers(page)] == ["first"]
    (found,) = best_of_papers(page.partition("\n")[0] + "\n" + page.partition(", not provable**\n")[2])
    assert found.method == "at no ε"
