"""The block of a page that compares methods with private popularity."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from docs.makers.pages import with_tables
from docs.makers.ranking import beaten, beside, table, unknown
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.evaluation.metrics import RMSE, Metric
from tests.evaluation.made_curves import curve, experiment

NDCG = Metric("ndcg@20", "nDCG@20", larger_is_better=True)
NOISE = np.linspace(-0.001, 0.001, 5)[:, None, None] * np.ones(4)


def method(label: str, *means: float, sd: float = 1.0, algorithm: str = "pge") -> Measured:
    made = curve([1e-6, 1, 3, 8], np.array(means) + sd * NOISE, label=label)
    found = replace(made, algorithm=algorithm, metric=NDCG, others={NDCG.key: made.rmse - 1})
    return replace(found, scores_only=algorithm == "private_popularity")


FIRST = method("popular", 0.01, 0.10, 0.12, 0.15, algorithm="private_popularity")
PURE = method("pure", 0.01, 0.05, 0.14, 0.14, algorithm="private_popularity")
GOOD = method("good", 0.01, 0.08, 0.13, 0.20, sd=-1)
BETTER = method("better", 0.01, 0.11, 0.10, 0.18, sd=50)
WHOLE = replace(experiment(GOOD, BETTER, FIRST, PURE), metric=NDCG, metrics=(RMSE, NDCG))


def test_it_says_first_where_nothing_beats_private_popularity() -> None:
    """The best entry of popularity counts at each ε, and only a difference whose interval is above 0 beats it."""
    said = beaten(beside(replace(WHOLE, curves=(GOOD, FIRST, PURE))))
    first, *others = said.split("; ")
    assert first == "nothing beats private popularity at ε → 0, ε = 1, ε = 3"
    assert others[-1].startswith("at ε = 8 good does: +0.05")
    said = beaten(beside(replace(WHOLE, curves=(BETTER, FIRST, PURE))))
    assert said.startswith("nothing beats private popularity at any ε; at ε")
    assert "at ε = 8 better has a larger mean, but its interval holds 0" in said
    never = replace(WHOLE, curves=(method("bad", 0, 0, 0, 0, sd=0), FIRST))
    assert beaten(beside(never)) == "nothing beats private popularity at any ε"


def test_the_table_has_popularity_first_and_marks_what_beats_it() -> None:
    drawn = table(WHOLE, beside(WHOLE))
    (group,) = drawn.groups
    assert [row[0] for row in group.rows] == ["popular", "pure", "good", "better", "ia"]
    assert [cell.endswith("*") for cell in group.rows[2]] == [False, False, False, False, True]
    assert not any("*" in cell for row in (*group.rows[:2], *group.rows[3:]) for cell in row)
    assert group.rows[0][2] == f"{FIRST.mean()[1]:.4f}"
    partly = replace(WHOLE, curves=(FIRST, replace(GOOD, missing=1), BETTER))
    drawn = table(partly, beside(partly))
    assert [row[0] for row in drawn.groups[0].rows] == ["popular", "better", "ia"]
    assert (unknown(partly), unknown(WHOLE)) == (" (not measured yet: good)", "")


def test_the_block_stays_where_there_are_no_results(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- popularity of ranking_ml1m ranking_jester -->\nold\n<!-- end -->\n")
    assert with_tables(page) == with_tables(page, results=tmp_path) == page.read_text()
