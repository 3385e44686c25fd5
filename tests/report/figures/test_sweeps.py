"""Figures of sweeps: a line for each entry and each point of the grid, whatever its axis; what is not swept is level."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Axis, Experiment, Measured
from dpmf_cli.report.figures.style import GREY, Dash
from dpmf_cli.report.figures.sweeps import sweep_bytes, swept_lines, swept_parameters
from tests.evaluation.made_curves import twin_of

Make = Callable[..., Experiment]


def values_of(curve: Measured, axis: Axis, line: str, shift: float = 0.0) -> tuple[Measured, ...]:
    """An entry at two θ (or ε), with three values of a parameter that changes the ε of a θ."""
    grid = curve.epsilons[4:6]
    return tuple(
        replace(
            curve,
            label=f"{line}, k {k}",
            line=line,
            epsilons=grid * k if axis == "theta" else grid,
            thetas=grid if axis == "theta" else None,
            rmse=curve.rmse[:, :, 4:6] + 0.01 * k + shift,
            claimed=grid,
            provable=grid,
            swept=("k", float(k)),
        )
        for k in (3, 1, 2)
    )


def mean_of(measured: Measured) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return measured.mean(), measured.mean(), measured.mean()


@pytest.mark.parametrize(("axis", "sign"), [("epsilon", "ε"), ("theta", "θ")])
def test_the_points_of_one_grid_point_are_one_line(made: Make, axis: Axis, sign: str) -> None:
    experiment = made(1)
    experiment = replace(experiment, curves=values_of(experiment.curves[0], axis, "PGE"), axis=axis)
    assert swept_parameters(experiment) == ["k"]
    lines = [line for line in swept_lines(experiment, "k", mean_of) if not line.level]
    assert [[point[0] for point in sorted(line.points)] for line in lines] == [[1, 2, 3]] * 2
    points = experiment.curves[1].along(axis)
    assert [line.name for line in lines] == [f"PGE, {sign} = {point:g}" for point in points]
    assert len({line.colour for line in lines}) == 2
    assert sweep_bytes(experiment, "k", "png") == sweep_bytes(experiment, "k", "png")


def test_entries_of_one_algorithm_are_lines_of_their_own(made: Make) -> None:
    (curve,) = made(1).curves
    curves = (*values_of(curve, "epsilon", "first"), *values_of(curve, "epsilon", "second", 0.5))
    lines = swept_lines(replace(made(1), curves=curves, baselines=()), "k", mean_of)
    assert [line.name.partition(",")[0] for line in lines] == ["first", "first", "second", "second"]
    for line, first in zip(lines, [curves[0]] * 2 + [curves[3]] * 2, strict=True):
        assert [point[0] for point in sorted(line.points)] == [1, 2, 3]
        assert max(line.points)[1] in first.mean()


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
    lines = swept_lines(replace(made(1), curves=(*curves, *beside)), "k", mean_of)
    apart = [line for line in lines if line.look is not None]
    assert len({line.look for line in apart}) == len(apart)
    assert [line.name for line in lines if line.look is None] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    of_first = [line.name for line in lines if line.name.startswith("0, ")]
    assert len(of_first) == most
    assert "0, ε = 20" in of_first


def test_dashes_are_of_what_has_no_noise_alone(made: Make) -> None:
    (curve,) = made(1).curves
    swept = tuple(
        replace(each, twin=twin_of(each.rmse[:, 0, 0])) for each in values_of(curve, "epsilon", "PGE")
    )
    lines = swept_lines(replace(made(1), curves=swept), "k", mean_of)
    assert [line.name for line in lines if line.dash == Dash.NO_NOISE] == ["PGE, no noise"]


def test_what_is_not_swept_is_level_and_named(made: Make) -> None:
    curve, other = made(2).curves
    few = replace(other, **{key: getattr(other, key)[:2] for key in ("epsilons", "claimed", "provable")})
    few = replace(few, rmse=other.rmse[:, :, :2], line="DP", twin=twin_of(other.rmse[:, 0, 0]))
    experiment = replace(
        made(1), curves=(*values_of(curve, "epsilon", "PGE"), few, replace(other, label="x"))
    )
    levels = [line for line in swept_lines(experiment, "k", mean_of) if line.level]
    assert [line.name for line in levels if line.colour == GREY] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    # Two ε and the twin of the entry with a short grid; only the largest ε of the other.
    private = [line.name for line in levels if line.colour != GREY]
    assert private == ["DP, ε = 0.1", f"DP, ε = {few.epsilons[1]:g}", "DP, no noise", "ISGD, ε = 20"]
    assert levels[-1].points[0][1] == pytest.approx(experiment.baselines[-1].mean()[0])
    without = replace(experiment, baselines=(), curves=experiment.curves[:3])
    assert sweep_bytes(experiment, "k", "svg").count(b"<g id=") > sweep_bytes(without, "k", "svg").count(
        b"<g id="
    )


def test_an_epsilon_that_one_value_alone_has_is_no_line(made: Make) -> None:
    experiment = made(2)
    curves = values_of(experiment.curves[0], "epsilon", "a")
    first, *others = curves
    grid, rmse = np.append(first.epsilons, 1e3), np.append(first.rmse, first.rmse[..., -1:], axis=-1)
    spent = np.append(first.claimed, 1e3)
    finer = replace(first, epsilons=grid, rmse=rmse, claimed=spent, provable=spent)
    names = [
        {line.name for line in swept_lines(replace(experiment, curves=each, baselines=()), "k", mean_of)}
        for each in (curves, (finer, *others))
    ]
    assert names[0] == names[1]
