"""Macros of figures: each number of the tables once, under a name that TeX accepts."""

import re
from collections.abc import Callable
from dataclasses import replace

from dpmf_cli.evaluation.crossings import Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.macros import figure_macros

Make = Callable[..., Experiment]


def defined(text: str) -> dict[str, str]:
    found = re.findall(r"^\\dpmfset\{([^{}]*)\}\{(.*)\}$", text, re.MULTILINE)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_every_crossing_and_baseline_has_its_number(made: Make) -> None:
    experiment = made(3)
    crossings = find_crossings(experiment)
    macros = defined(figure_macros(experiment, crossings))
    assert macros["made/IA"] == f"{experiment.baselines[1].mean()[0]:.4f}"
    assert len(macros) == 4 + 4 * len(crossings)
    for cell in crossings:
        name = f"made/{cell.label}/{cell.baseline}"
        assert macros[name] == (significant(cell.reproduced) if cell.reproduced else cell.status.value)
        assert macros[f"{name}/interval"].startswith("[") or cell.status == Status.NOT_REACHED
    assert macros["made/isgd/GE/provable"] == r"$\infty$"


def test_names_are_letters_that_tex_takes_and_never_twice(made: Make) -> None:
    experiment = made(2)
    crossings = [
        replace(cell, label=label)
        for cell, label in zip(find_crossings(experiment), ("λ #1", "λ %1", r"\input{x}", "a_b"), strict=True)
    ]
    names = list(defined(figure_macros(experiment, crossings)))
    assert {"made/lambda -1/IA", "made/lambda -1/GE", "made/textbackslashinput-x-/IA", "made/a_b/GE"} <= set(
        names
    )
    same = [replace(cell, label=label) for cell, label in zip(crossings[:1] * 2, ("#", "%"), strict=True)]
    assert {"made/-/IA", "made/-/IA'"} <= set(defined(figure_macros(experiment, same)))
    assert all(re.fullmatch(r"[A-Za-z0-9 _.,+()/'-]+", name) for name in names)
