"""Aims: which method is first in a group, how certainly, and whether a number is reached."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from docs.makers.aims import aims_table, read_aims
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.tables.layout import draw

Make = Callable[..., Experiment]
ROOT = Path(__file__).resolve().parents[2]
AIM = "- {title: MovieLens 1M, protects: rating value, quantity: %s, before: 2.5, by: PGE%s}\n"


def two(made: Make, own: str) -> Experiment:
    """pge is better than isgd at small ε, and never meets GE. One of them is dpmf's own."""
    experiment = made(2)
    curves = (
        replace(
            each,
            protects=Protection.VALUE,
            source="dpmf" if each.label == own else "Friedman 2016",
            provable=each.epsilons,
            mode="corrected",
        )
        for each in experiment.curves
    )
    return replace(experiment, curves=tuple(curves))


def held(experiment: Experiment, folder: Path, text: str) -> list[dict[str, str]]:
    (folder / "aims.yaml").write_text(text)
    return list(csv.DictReader(io.StringIO(draw(aims_table([experiment], folder / "aims.yaml"), "csv"))))


def test_the_first_and_the_best_of_the_others_with_their_intervals(made: Make, tmp_path: Path) -> None:
    (row,) = held(two(made, "pge"), tmp_path, AIM % ("rmse", ""))
    assert (row["own_by"], row["other_by"], row["verdict"]) == ("pge", "isgd", "yes")
    assert float(row["own_low"]) < float(row["own"]) < float(row["own_high"]) < float(row["other_low"])
    (row,) = held(two(made, "isgd"), tmp_path, AIM % ("ia", ""))
    assert (row["own_by"], row["other_by"], row["verdict"]) == ("isgd", "pge", "no: not first")
    curves = two(made, "isgd").curves
    assert float(row["own"]) == pytest.approx(
        next(e for e, v in zip(curves[1].epsilons, curves[1].mean(), strict=True) if v < 0.9795), rel=0.5
    )


def test_a_number_is_reached_or_it_says_by_how_much_not(made: Make, tmp_path: Path) -> None:
    experiment = two(made, "pge")
    reached = float(held(experiment, tmp_path, AIM % ("ia", ""))[0]["own"])
    for at_most, verdict in ((1.01 * reached, "yes"), (reached / 2, "no: first, and 2.00 times the aim")):
        (row,) = held(experiment, tmp_path, AIM % ("ia", f", at_most: {at_most}"))
        assert row["verdict"] == verdict


def test_within_another_interval_is_not_reached(made: Make, tmp_path: Path) -> None:
    experiment = two(made, "pge")
    ours = experiment.curves[0]
    near = replace(experiment.curves[1], rmse=ours.rmse + 1e-6)
    (row,) = held(replace(experiment, curves=(ours, near)), tmp_path, AIM % ("rmse", ""))
    assert row["verdict"] == "no: first, within another's interval"


def test_nothing_that_gets_there_and_nothing_that_was_run(made: Make, tmp_path: Path) -> None:
    experiment = two(made, "pge")
    high = replace(experiment.curves[0], rmse=experiment.curves[0].rmse + 1)
    text = AIM % ("ge", "")
    (row,) = held(replace(experiment, curves=(high, experiment.curves[1])), tmp_path, text)
    assert row["verdict"] == "no: none of dpmf's own gets there"
    (row,) = held(replace(experiment, title="MovieLens 100K"), tmp_path, text)
    assert (row["verdict"], row["own"], row["other_by"]) == ("not run", "", "")
    shown = draw(aims_table([experiment], tmp_path / "aims.yaml"), "md")
    assert "**MovieLens 1M: rating value, towards everybody**" in shown


def test_the_shipped_aims_are_read_and_name_each_group_once() -> None:
    aims = read_aims(ROOT / "docs" / "frontier_aims.yaml")
    keys = [(aim.title, aim.protects, aim.joint, aim.quantity) for aim in aims]
    assert len(keys) == len(set(keys)) == 18
    assert sum(aim.at_most is not None for aim in aims) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {title: x}\n", "0.protects: Field required"),
        ("[\n", "not YAML"),
        ("3\n", "valid list"),
        ("- {title: x, protects: all, quantity: ia, before: 1, by: y}\n", "0.protects"),
        (AIM % ("mae", ""), "0.quantity"),
    ],
)
def test_bad_aims_are_told(made: Make, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DpmfError, match=f"aims.yaml: .*{said}"):
        held(two(made, "pge"), tmp_path, text)
    with pytest.raises(DpmfError, match=r"none\.yaml: cannot be read"):
        read_aims(tmp_path / "none.yaml")
