"""The table of frontiers: a row for each ε, its distance from no privacy, and what the table does not say."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Guarantee, Protection
from dpmf_cli.report.tables.layout import FORMATS, draw
from dpmf_cli.report.tables.ranked import CAVEAT, frontier_table

Make = Callable[..., Experiment]


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


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_every_row(made: Make, form: str) -> None:
    text = draw(frontier_table([provable(made)]), form)
    assert "pge" in text
    assert "psgd" in text


def test_for_programs_the_group_is_columns(made: Make) -> None:
    records = json.loads(draw(frontier_table([provable(made)]), "json"))
    assert {tuple(record) for record in records} == {frontier_table([provable(made)]).fields}
    assert {(each["towards"], each["delta"]) for each in records} == {
        ("everybody", 0.0),
        ("other users", 1e-6),
    }
    assert len(records) == 32


def test_nothing_is_no_table_and_an_unknown_format_is_told(made: Make) -> None:
    assert draw(frontier_table([])).startswith("nothing to show")
    assert "nobody can tell" not in draw(frontier_table([]))
    assert draw(frontier_table([]), "json") == "[]\n"
    with pytest.raises(DpmfError, match='unknown table format "mb"'):
        draw(frontier_table([provable(made)]), "mb")


def test_a_baseline_that_is_not_there_leaves_a_gap(made: Make) -> None:
    experiment = provable(made)
    bare = replace(experiment, baselines=experiment.baselines[:1])
    row = rows_of(bare)[0]
    assert (row["to_ia"], row["clean"]) == ("", "ga")
