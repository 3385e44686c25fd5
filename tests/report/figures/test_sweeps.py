"""Figures of sweeps: a line for each entry and each point of the grid, whatever its axis; what is not swept is level."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Axis, Experiment, Measured
from dpmf_cli.report.figures.chart import Level, Line
from dpmf_cli.report.figures.charts import swept_parameters, swept_series
from dpmf_cli.report.figures.every import drawings
from dpmf_cli.report.figures.style import GREY_LEVEL, Dash
from tests.report.figures.made import cut, values_of

Make = Callable[..., Experiment]


def series(experiment: Experiment) -> list[Line | Level]:
    return swept_series(experiment, "k", lambda each: (each.mean(),) * 3)


def lines(experiment: Experiment) -> list[Line]:
    return [each for each in series(experiment) if isinstance(each, Line)]


def levels(experiment: Experiment) -> list[Level]:
    return [each for each in series(experiment) if isinstance(each, Level)]


@pytest.mark.parametrize(("axis", "sign"), [("epsilon", "ε"), ("theta", "θ")])
def test_the_points_of_one_grid_point_are_one_line(made: Make, axis: Axis, sign: str) -> None:
    experiment = made(1)
    experiment = replace(experiment, curves=values_of(experiment.curves[0], axis, "PGE"), axis=axis)
    assert swept_parameters(experiment) == ["k"]
    found = lines(experiment)
    assert [line.x.tolist() for line in found] == [[1, 2, 3]] * 2
    points = experiment.curves[1].along(axis)
    assert [line.name for line in found] == [f"PGE, {sign} = {point:g}" for point in points]
    assert len({line.look.colour for line in found}) == 2


def test_entries_of_one_algorithm_are_lines_of_their_own(made: Make) -> None:
    (curve,) = made(1).curves
    curves = (*values_of(curve, "epsilon", "first"), *values_of(curve, "epsilon", "second", 0.5))
    found = lines(replace(made(1), curves=curves, baselines=()))
    assert [line.name.partition(",")[0] for line in found] == ["first", "first", "second", "second"]
    for line, first in zip(found, [curves[0]] * 2 + [curves[3]] * 2, strict=True):
        assert line.x.tolist() == [1, 2, 3]
        assert line.y[-1] in first.mean()


@pytest.mark.parametrize(("entries", "most"), [(1, 16), (3, 16), (7, 7), (40, 1)])
def test_no_two_lines_of_a_sweep_share_colour_and_marker(made: Make, entries: int, most: int) -> None:
    """For any number of entries: only some ε of a long grid are drawn, including the largest."""
    (curve,) = made(1).curves
    curves = tuple(
        replace(curve, label=f"{entry}, {k}", line=f"{entry}", swept=("k", float(k)))
        for entry in range(entries)
        for k in (1, 2)
    )
    beside = tuple(replace(curve, label=f"level {k}", line=f"level {k}") for k in range(6))
    found = series(replace(made(1), curves=(*curves, *beside)))
    apart = [each.look for each in found if each.look != GREY_LEVEL]
    assert len(set(apart)) == len(apart)
    assert [each.name for each in found if each.look == GREY_LEVEL] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    of_first = [each.name for each in found if each.name.startswith("0, ")]
    assert len(of_first) == most
    assert "0, ε = 20" in of_first


def test_dashes_are_of_what_has_no_noise_alone(made: Make) -> None:
    (curve,) = made(1).curves
    swept = tuple(replace(each, twin=each.rmse[:, 0, 0]) for each in values_of(curve, "epsilon", "PGE"))
    found = series(replace(made(1), curves=swept))
    assert [each.name for each in found if each.dash == Dash.NO_NOISE] == ["PGE, no noise"]


def beside(curve: Measured, other: Measured) -> tuple[Measured, ...]:
    few = cut(other, slice(2), line="DP", twin=other.rmse[:, 0, 0])
    return *values_of(curve, "epsilon", "PGE"), few, replace(other, label="x")


def test_what_is_not_swept_is_level_and_named(made: Make) -> None:
    experiment = replace(made(1), curves=beside(*made(2).curves))
    found = levels(experiment)
    grey = [level for level in found if level.look == GREY_LEVEL]
    assert [level.name for level in grey] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    # Two ε and the twin of the entry with a short grid; only the largest ε of the other.
    second = made(2).curves[1].epsilons[1]
    private = [level.name for level in found if level not in grey]
    assert private == ["DP, ε = 0.1", f"DP, ε = {second:g}", "DP, no noise", "ISGD, ε = 20"]
    assert found[-1].y == pytest.approx(experiment.baselines[-1].mean()[0])
    without = replace(experiment, baselines=(), curves=experiment.curves[:3])
    whole, bare = (drawings(each)["sweep-k"]("svg").count(b"<g id=") for each in (experiment, without))
    assert whole > bare


def test_an_entry_beside_its_own_sweep_is_level(made: Make) -> None:
    """It has the name of the sweep's lines."""
    (curve,) = made(1).curves
    experiment = replace(
        made(1), curves=(*values_of(curve, "epsilon", "PGE"), cut(curve, slice(4, 6), line="PGE"))
    )
    assert [line.x.tolist() for line in lines(experiment)] == [[1, 2, 3]] * 2
    names = [level.name for level in levels(experiment) if level.look != GREY_LEVEL]
    assert names == [line.name for line in lines(experiment)]


def test_an_epsilon_that_one_value_alone_has_is_no_line(made: Make) -> None:
    curves = values_of(made(2).curves[0], "epsilon", "a")
    first, *others = curves
    grid, rmse = np.append(first.epsilons, 1e3), np.append(first.rmse, first.rmse[..., -1:], axis=-1)
    finer = replace(first, epsilons=grid, rmse=rmse, claimed=grid, provable=grid)
    names = [
        {line.name for line in lines(replace(made(2), curves=each, baselines=()))}
        for each in (curves, (finer, *others))
    ]
    assert names[0] == names[1]
