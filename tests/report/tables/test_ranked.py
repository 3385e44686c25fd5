"""The tables of ranked methods: nothing is dropped, nothing ranked across guarantees, and a leader for each ε."""

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Guarantee, Protection
from dpmf_cli.report.tables.layout import draw
from dpmf_cli.report.tables.ranked import CAVEAT, NOT_PROVABLE, combined_table, frontier_table

Make = Callable[..., Experiment]
KINDS = (
    Protection.USER,
    Protection.VALUE,
    Protection.VALUE,
    Protection.LOCAL,
    Protection.VALUE,
    Protection.VALUE,
)
EVERYBODY, OTHERS = Guarantee(Protection.VALUE), Guarantee(Protection.VALUE, joint=True)


def mixed(made: Make, **changes: Any) -> Experiment:
    """Curves of three kinds, one of which protects from other users only. pge, psgd, pknn and dpals have
    provable ε."""
    experiment = made(6)
    curves = [
        replace(curve, protects=kind, source="Friedman 2016")
        for curve, kind in zip(experiment.curves, KINDS, strict=True)
    ]
    curves[2] = replace(curves[2], provable=curves[2].epsilons, label="psgd, bounded, published")
    curves[4] = replace(curves[4], provable=2 * curves[4].epsilons, delta=1e-6, mode="corrected")
    curves[5] = replace(curves[5], provable=curves[5].epsilons, joint=True)
    return replace(experiment, curves=tuple(curves), **changes)


def headings(text: str) -> list[str]:
    lines = text.splitlines()
    return [lines[at - 2] for at, line in enumerate(lines) if {"algorithm", "from"} <= set(line.split())]


def test_each_group_stands_by_itself_and_what_is_not_provable_below_it(made: Make) -> None:
    text = draw(combined_table([mixed(made)]))
    assert headings(text) == [
        "MovieLens 1M: rating value, towards everybody",
        "MovieLens 1M: rating value, towards everybody, not provable",
        "MovieLens 1M: rating value, towards other users (joint DP)",
        "MovieLens 1M: user, towards everybody",
        "MovieLens 1M: local, towards everybody, not provable",
    ]
    assert text.count(NOT_PROVABLE) == 2
    for guarantee in (EVERYBODY, OTHERS, Guarantee(Protection.USER)):
        assert text.count(guarantee.statement) == 1
    assert "they are not comparable, and not ranked" in text
    assert "protection towards everybody implies protection towards other users (joint) at the same ε" in text


def test_what_is_joint_is_ranked_below_a_sentence_that_is_true_of_it(made: Make) -> None:
    """No row made from the user's own clean ratings is under a sentence about what anybody learns, nor the
    reverse."""
    above, sentence = {}, ""
    for line in draw(combined_table([mixed(made)])).splitlines():
        sentence = line if line.startswith("ε bounds") else sentence
        for label in re.findall(r" (psgd|pknn§|dpals‡) ", line):
            above[label] = sentence
    assert above == {
        "psgd": EVERYBODY.statement,
        "pknn§": EVERYBODY.statement,
        "dpals‡": OTHERS.statement,
    }


def test_a_row_in_words(made: Make) -> None:
    text = draw(combined_table([mixed(made)]))
    row = next(line for line in text.splitlines() if " pknn" in line)
    cells = row.split()
    assert cells[:6] == ["2", "–", "pknn§", "Friedman", "2016", "corrected"]
    meets, claimed, provable = float(cells[6]), float(cells[9]), float(cells[10])
    assert meets == claimed
    assert provable == pytest.approx(2 * claimed, rel=0.01)
    best = mixed(made).curves[4].mean()[mixed(made).curves[4].provable <= 1].min()
    assert cells[-1] == f"{best:.4f}"
    assert next(line for line in text.splitlines() if " dpals" in line).split()[:3] == ["1", "1", "dpals‡"]
    assert "joint DP" in text
    assert "δ = 1e-06" in text
    assert "a row with § is (ε, δ), and promises less than a row without § at the same ε" in text


@pytest.mark.parametrize(
    ("deltas", "said"),
    [
        ((1e-6, 1e-9), True),
        ((1e-6, 1e-6), False),
        ((1e-6, 0.0), False),
    ],
)
def test_where_several_deltas_are_ranked_it_says_at_which(
    made: Make, deltas: tuple[float, float], said: bool
) -> None:
    """psgd and pknn have the same guarantee. Curves without a provable ε, or under other headings, are not
    ranked there."""
    experiment = mixed(made)
    given = dict(zip((2, 4), deltas, strict=True))
    curves = [replace(each, delta=given.get(rank, 1e-3)) for rank, each in enumerate(experiment.curves)]
    text = draw(combined_table([replace(experiment, curves=tuple(curves))]))
    assert ("rank is for the largest δ under its heading" in text) == said


def test_without_any_delta_one_rank_says_all(made: Make) -> None:
    experiment = mixed(made)
    pure = replace(experiment, curves=tuple(replace(each, delta=0.0) for each in experiment.curves))
    text = draw(combined_table([pure]))
    assert next(line for line in text.splitlines() if " pknn" in line).split()[:2] == ["2", "pknn"]
    assert "§" not in text
    assert "pure" not in text


def test_a_label_is_not_told_twice_what_the_heading_and_the_mode_say(made: Make) -> None:
    text = draw(combined_table([mixed(made)]))
    assert "psgd, bounded, published" not in text
    assert " psgd " in text
    assert "psgd, bounded, published" in draw(combined_table([mixed(made)]), "csv")


def test_for_programs_the_group_is_a_column_and_the_rank_starts_anew(made: Make) -> None:
    rows = list(csv.DictReader(io.StringIO(draw(combined_table([mixed(made)]), "csv"))))
    columns = ("protects", "towards", "joint", "rank", "rank_pure", "algorithm", "provable")
    assert [tuple(row[column] for column in columns) for row in rows] == [
        # claims more than pknn, and needs less
        ("rating value", "everybody", "False", "1", "1", "psgd", "True"),
        ("rating value", "everybody", "False", "2", "", "pknn", "True"),
        ("rating value", "everybody", "False", "", "", "isgd", "False"),
        ("rating value", "other users", "True", "1", "1", "dpals", "True"),
        ("user", "everybody", "False", "1", "1", "pge", "True"),
        ("local", "everybody", "False", "", "", "pals", "False"),
    ]
    assert {row["ia_provable"] for row in rows if row["provable"] == "False"} == {"inf"}
    assert rows[0]["seed"] == "7"


def test_one_ranking_across_groups_is_refused(made: Make) -> None:
    with pytest.raises(DpmfError, match="no ranking across what is protected"):
        combined_table([mixed(made)], across=True)


def test_one_ranking_of_what_protects_the_same_is_the_table(made: Make) -> None:
    experiment = mixed(made)
    same = replace(
        experiment,
        curves=tuple(replace(each, protects=Protection.VALUE, joint=False) for each in experiment.curves),
    )
    assert draw(combined_table([same], across=True)) == draw(combined_table([same]))


def test_by_global_effects_another_order(made: Make) -> None:
    experiment = mixed(made)
    late, early = experiment.curves[4], experiment.curves[2]
    # Above `late` at the ε of the item average, below it at that of the global effects.
    early = replace(
        early, rmse=late.rmse - 0.3 * (0.95 - late.rmse.mean(axis=(0, 1))), provable=late.provable
    )
    made_over = replace(experiment, curves=(late, early))

    def order(bar: str) -> list[str]:
        rows = csv.DictReader(
            io.StringIO(draw(combined_table([made_over], bar="ia" if bar == "ia" else "ge"), "csv"))
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
    text = draw(combined_table([replace(experiment, curves=curves)]))
    assert "left out, since points of a sweep are not curves over ε: pge, factors 3" in text


def test_incomplete_curves_and_baselines_are_shown_as_such(made: Make) -> None:
    experiment = made(2, incomplete="isgd")
    curves = tuple(replace(each, protects=Protection.VALUE, source="x") for each in experiment.curves)
    first, *others = experiment.baselines
    gap = replace(first, rmse=np.full_like(first.rmse, np.nan), missing=1)
    text = draw(
        combined_table([replace(experiment, curves=curves, baselines=(gap, *others))], notes=["run it"])
    )
    row = next(line for line in text.splitlines() if " isgd " in line)
    assert row.split().count("incomplete") == 2
    assert "RMSE ga incomplete, ia 0.97" in text
    assert "10 of 10 folds × 5 runs, seed 7" in text
    assert text.endswith("run it\n")


def test_several_experiments_on_the_same_data_are_ranked_together_and_named(made: Make) -> None:
    one = mixed(made)
    two = replace(one, name="again")
    text = draw(combined_table([one, two]))
    row = next(line for line in text.splitlines() if " pknn" in line)
    assert row.split()[-1] == "made"
    assert len(headings(text)) == 5
    assert "experiment" not in draw(combined_table([one]))
    other_data = replace(two, title="MovieLens 100K")
    assert len(headings(draw(combined_table([one, other_data])))) == 10


def provable(made: Make, **options: int) -> Experiment:
    """pge and isgd are pure; psgd is better at large ε, joint and with a δ; pals has only a claimed ε."""
    experiment = made(4, **options)
    curves = [
        replace(
            each, protects=Protection.VALUE, source="Friedman 2016", mode="corrected", provable=each.epsilons
        )
        for each in experiment.curves
    ]
    psgd = curves[2]
    curves[2] = replace(psgd, rmse=psgd.rmse - 0.1, joint=True, delta=1e-6, label="psgd, bounded, corrected")
    curves[3] = replace(curves[3], provable=np.full(16, np.inf))
    return replace(experiment, curves=tuple(curves))


def rows_of(experiment: Experiment) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(draw(frontier_table([experiment]), "csv"))))


def test_a_heading_for_each_guarantee_with_its_delta_and_what_it_says(made: Make) -> None:
    text = draw(frontier_table([provable(made)], notes=["run it"]))
    assert "MovieLens 1M: rating value, towards everybody, pure ε" in text
    assert "MovieLens 1M: rating value, towards other users (joint DP), (ε, δ) with δ = 1e-06" in text
    assert text.count(Guarantee(Protection.VALUE).statement) == 1
    assert CAVEAT in text
    assert "psgd‡§" in text
    assert "pals" not in text
    assert "10 of 10 folds × 5 runs, seed 7" in text
    assert text.endswith("run it\n")


def test_a_row_has_the_error_its_interval_and_the_distances_to_baselines(made: Make) -> None:
    experiment = provable(made)
    row = rows_of(experiment)[0]
    pge = experiment.curves[0]
    assert (row["label"], row["epsilon"], row["provable"]) == ("pge", "0.1", "0.1")
    rmse = pge.mean()[0]
    assert float(row["rmse"]) == pytest.approx(rmse)
    assert float(row["low"]) < rmse < float(row["high"])
    levels = {each.algorithm: float(each.mean()[0]) for each in experiment.baselines}
    for name, key in (("to_ia", "ia"), ("to_ge", "ge"), ("to_clean", "als")):
        assert float(row[name]) == pytest.approx(rmse - levels[key])
    assert row["clean"] == "als"
    text = draw(frontier_table([experiment]))
    assert f"{rmse:.4f} [" in text
    assert f"+{rmse - levels['ia']:.4f}" in text


def test_a_leader_that_is_best_at_a_smaller_epsilon_says_at_which(made: Make) -> None:
    experiment = provable(made)
    rises = replace(experiment.curves[0], rmse=experiment.curves[0].rmse[:, :, ::-1])
    text = draw(frontier_table([replace(experiment, curves=(rises,))]))
    assert "pge (at 0.100)" in text
    assert "(at x): the method has its lowest error already at the smaller provable ε x" in text
    assert "(at " not in draw(frontier_table([experiment]))


def test_what_is_tied_is_named_and_of_more_it_says_how_many(made: Make) -> None:
    experiment = provable(made)
    pge = experiment.curves[0]
    noise = np.random.default_rng(1).normal(0, 0.01, (5, *pge.rmse.shape))
    others = [
        replace(pge, label=f"m{at}", rmse=pge.rmse + each - each.mean(axis=(0, 1)) + 1e-5)
        for at, each in enumerate(noise)
    ]
    twice = replace(others[0], label="pge, bounded, published", mode="published")
    many = replace(experiment, curves=(pge, *others))
    assert "; 2 more" in draw(frontier_table([many]))
    assert rows_of(many)[0]["tied"] == "m0; m1; m2; m3; m4"
    assert rows_of(many)[0]["methods"] == "6"
    assert "pge, published" in draw(frontier_table([replace(experiment, curves=(pge, twice))]))


def test_without_intervals_it_says_that_nobody_can_tell(made: Make) -> None:
    text = draw(frontier_table([provable(made, folds=1, runs=1)]))
    assert "there are no intervals, and nobody can tell" in text
    assert "95 %" not in text
    over_runs = draw(frontier_table([provable(made, folds=1, runs=5)]))
    assert "]*" in over_runs
    assert "over runs only" in over_runs


def test_for_programs_the_group_is_columns(made: Make) -> None:
    records = json.loads(draw(frontier_table([provable(made)]), "json"))
    assert {(each["towards"], each["delta"]) for each in records} == {
        ("everybody", 0.0),
        ("other users", 1e-6),
    }
    assert len(records) == 32


def test_a_baseline_that_is_not_there_leaves_a_gap(made: Make) -> None:
    experiment = provable(made)
    bare = replace(experiment, baselines=experiment.baselines[:1])
    row = rows_of(bare)[0]
    assert (row["to_ia"], row["clean"]) == ("", "ga")
