"""The combined table: nothing is dropped, nothing ranked across what is protected, in any format."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.combined import FIELDS, NOT_PROVABLE, combined_table
from dpmf_cli.report.tables import FORMATS

Make = Callable[..., Experiment]
KINDS = (Protection.USER, Protection.VALUE, Protection.VALUE, Protection.LOCAL, Protection.VALUE)


def mixed(made: Make, **changes: object) -> Experiment:
    """Curves of three kinds: pge can be proved, and so can what is left at `provable`; isgd to dpals as they come."""
    experiment = made(5)
    curves = [
        replace(curve, protects=kind, source="Friedman 2016")
        for curve, kind in zip(experiment.curves, KINDS, strict=True)
    ]
    curves[2] = replace(curves[2], provable=curves[2].epsilons, label="psgd, bounded, published")
    curves[4] = replace(curves[4], provable=2 * curves[4].epsilons, joint=True, delta=1e-6, mode="corrected")
    return replace(experiment, curves=tuple(curves), **changes)


def headings(text: str) -> list[str]:
    lines = text.splitlines()
    return [lines[at - 2] for at, line in enumerate(lines) if line.split()[:2] == ["algorithm", "from"]]


def test_each_group_stands_by_itself_and_what_is_not_provable_below_it(made: Make) -> None:
    text = combined_table([mixed(made)])
    assert headings(text) == [
        "MovieLens 1M: rating value",
        "MovieLens 1M: rating value, not provable",
        "MovieLens 1M: user",
        "MovieLens 1M: local, not provable",
    ]
    assert text.count(NOT_PROVABLE) == 2
    assert text.count(Protection.VALUE.statement) == text.count(Protection.USER.statement) == 1
    assert "they are not comparable, and not ranked" in text


def test_a_row_in_words(made: Make) -> None:
    text = combined_table([mixed(made)])
    row = next(line for line in text.splitlines() if " pknn" in line)
    cells = row.split()
    assert cells[:5] == ["2", "pknn‡§", "Friedman", "2016", "corrected"]
    meets, claimed, provable = float(cells[5]), float(cells[8]), float(cells[9])
    assert meets == claimed
    assert provable == pytest.approx(2 * claimed, rel=0.01)
    best = mixed(made).curves[4].mean()[mixed(made).curves[4].provable <= 1].min()
    assert cells[-1] == f"{best:.4f}"
    assert "joint DP" in text
    assert "δ = 1e-06" in text


def test_a_label_is_not_told_twice_what_the_heading_and_the_mode_say(made: Make) -> None:
    text = combined_table([mixed(made)])
    assert "psgd, bounded, published" not in text
    assert " psgd " in text
    assert "psgd, bounded, published" in combined_table([mixed(made)], "csv")


@pytest.mark.parametrize("form", FORMATS)
def test_every_curve_is_in_every_format(made: Make, form: str) -> None:
    text = combined_table([mixed(made)], form)
    for label in ("pge", "isgd", "psgd", "pals", "pknn"):
        assert text.count(label) >= 1
    assert combined_table([mixed(made)], form) == text


def test_for_programs_the_group_is_a_column_and_the_rank_starts_anew(made: Make) -> None:
    rows = list(csv.DictReader(io.StringIO(combined_table([mixed(made)], "csv"))))
    assert tuple(rows[0]) == FIELDS
    assert [(row["protects"], row["rank"], row["algorithm"], row["provable"]) for row in rows] == [
        ("rating value", "1", "psgd", "True"),  # claims more than pknn, and needs less
        ("rating value", "2", "pknn", "True"),
        ("rating value", "", "isgd", "False"),
        ("user", "1", "pge", "True"),
        ("local", "", "pals", "False"),
    ]
    assert {row["ia_provable"] for row in rows if row["provable"] == "False"} == {"inf"}
    records = json.loads(combined_table([mixed(made)], "json"))
    assert [record["rank"] for record in records] == [1, 2, None, 1, None]
    assert all(list(record) == list(FIELDS) for record in records)
    assert records[0]["seed"] == 7


@pytest.mark.parametrize("form", FORMATS)
def test_one_ranking_across_groups_is_refused_in_every_format(made: Make, form: str) -> None:
    with pytest.raises(DpmfError, match="no ranking across what is protected"):
        combined_table([mixed(made)], form, across=True)


def test_one_ranking_of_what_protects_the_same_is_the_table(made: Make) -> None:
    experiment = mixed(made)
    same = replace(
        experiment, curves=tuple(replace(each, protects=Protection.VALUE) for each in experiment.curves)
    )
    assert combined_table([same], across=True) == combined_table([same])
    elsewhere = replace(same, title="MovieLens 100K")
    with pytest.raises(DpmfError, match="no ranking across data sets"):
        combined_table([same, elsewhere], across=True)


def test_by_global_effects_another_order(made: Make) -> None:
    experiment = mixed(made)
    late, early = experiment.curves[4], experiment.curves[2]
    # Above `late` where the item average is, below it where the global effects are.
    early = replace(
        early, rmse=late.rmse - 0.3 * (0.95 - late.rmse.mean(axis=(0, 1))), provable=late.provable
    )
    made_over = replace(experiment, curves=(late, early))

    def order(bar: str) -> list[str]:
        rows = csv.DictReader(
            io.StringIO(combined_table([made_over], "csv", bar="ia" if bar == "ia" else "ge"))
        )
        return [row["algorithm"] for row in rows]

    assert order("ia") == ["pknn", "psgd"]
    assert order("ge") == ["psgd", "pknn"]


def test_points_of_sweeps_are_named_as_left_out(made: Make) -> None:
    experiment = mixed(made)
    curves = (
        replace(experiment.curves[0], swept=("factors", 3.0), label="pge, factors 3"),
        *experiment.curves[1:],
    )
    text = combined_table([replace(experiment, curves=curves)])
    assert "left out, as points of a sweep and not curves over ε: pge, factors 3" in text


def test_incomplete_curves_and_baselines_are_shown_as_such(made: Make) -> None:
    experiment = made(2, incomplete="isgd")
    curves = tuple(replace(each, protects=Protection.VALUE, source="x") for each in experiment.curves)
    first, *others = experiment.baselines
    gap = replace(first, rmse=np.full_like(first.rmse, np.nan), missing=1)
    text = combined_table([replace(experiment, curves=curves, baselines=(gap, *others))], notes=["run it"])
    row = next(line for line in text.splitlines() if " isgd " in line)
    assert row.split().count("incomplete") == 2
    assert "RMSE ga incomplete, ia 0.97" in text
    assert "10 of 10 folds × 5 runs, seed 7" in text
    assert text.endswith("run it\n")


def test_several_experiments_on_the_same_data_are_ranked_together_and_named(made: Make) -> None:
    one = mixed(made)
    two = replace(one, name="again")
    text = combined_table([one, two])
    row = next(line for line in text.splitlines() if " pknn" in line)
    assert row.split()[-1] == "made"
    assert len(headings(text)) == 4
    assert "experiment" not in combined_table([one])
    other_data = replace(two, title="MovieLens 100K")
    assert len(headings(combined_table([one, other_data]))) == 8


def test_an_unknown_format_is_told(made: Make) -> None:
    with pytest.raises(DpmfError, match='unknown table format "mb"'):
        combined_table([mixed(made)], "mb")


def test_nothing_is_no_table() -> None:
    assert combined_table([]).startswith("nothing to show")
    assert combined_table([], "json") == "[]\n"
