"""Figures of sweeps: a line for each algorithm and each point of the grid, whatever its axis."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpmf_cli.evaluation.curves import Axis, Experiment
from dpmf_cli.report.sweeps import _draw, sweep_bytes, swept_parameters

Make = Callable[..., Experiment]


def swept(experiment: Experiment, axis: Axis) -> Experiment:
    """One algorithm at two θ, for three values of a parameter that changes the ε that a θ stands for."""
    (curve,) = experiment.curves
    grid = curve.epsilons[4:6]
    curves = tuple(
        replace(
            curve,
            label=f"pge, k {k}",
            epsilons=grid * k if axis == "theta" else grid,
            thetas=grid if axis == "theta" else None,
            rmse=curve.rmse[:, :, 4:6] + 0.01 * k,
            claimed=grid,
            provable=grid,
            swept=("k", float(k)),
        )
        for k in (3, 1, 2)
    )
    return replace(experiment, curves=curves, axis=axis)


@pytest.mark.parametrize(("axis", "sign"), [("epsilon", "ε"), ("theta", "θ")])
def test_the_points_of_one_grid_point_are_one_line(made: Make, axis: Axis, sign: str) -> None:
    experiment = swept(made(1), axis)
    assert swept_parameters(experiment) == ["k"]
    axes = Figure().add_axes((0, 0, 1, 1))
    _draw(axes, experiment, "k")
    assert [np.asarray(line.get_xdata()).tolist() for line in axes.lines] == [[1, 2, 3]] * 2
    names = [f"PGE, {sign} = {point:g}" for point in experiment.curves[1].along(axis)]
    assert [text.get_text() for text in axes.texts] == names
    assert sweep_bytes(experiment, "k", "png") == sweep_bytes(experiment, "k", "png")
