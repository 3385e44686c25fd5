"""Rules of Zhang et al. (2018), on made-up curves: where a claim holds, where a part fails, where all of it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.papers.evidence import Evidence, Proof
from dpmf_cli.papers.rules import RULES, compute
from dpmf_cli.papers.rules.base import Theorem
from tests.papers.made import baseline, curve, evidence, experiment, held

LIMITS = (1.0, 1.5, 2.0)


def figure(name: str, *curves: Measured, pmf: float = 0.9) -> Experiment:
    return replace(experiment(name, *curves), baselines=(baseline("ga", 1.1), baseline("pmf", pmf)))


def point(label: str, rmse: float, shares: Sequence[float] = (), **more: Any) -> Measured:
    """A curve of two ceilings, ε_c and ε_l: what is said of the specification is at the second alone."""
    cdf = np.array([[[[0.0] * len(shares), shares]]]) / 100 if shares else None
    limits = LIMITS[: len(shares)]
    others = {} if cdf is None else {"error_cdf": cdf}
    return curve("personalized", label=label, values=[9.0, rmse], limits=limits, others=others, **more)


def swept(label: str, parameter: str, rmse: Mapping[float, float]) -> list[Measured]:
    return [
        point(f"{label}, {value}", level, line=label, swept=(parameter, value))
        for value, level in rmse.items()
    ]


def dp_pmf(rmse: float, share: float = 50.0) -> Measured:
    """What is printed of it is at ε_c alone."""
    cdf = np.array([[[[share / 100], [0.99]]]])
    return curve("dp_pmf", values=[rmse, 0.1], limits=(1.0,), others={"error_cdf": cdf})


def figure_2(*rmse: float, uniform: float = 1.5, of: str = "ml1m") -> Experiment:
    levels = dict(zip((0.1, 0.2, 0.3), rmse, strict=True))
    return figure(f"zhang_fig2_{of}", dp_pmf(uniform), *swept("PDP-PMF", "conservative", levels))


def figure_3(*shares: float, uniform: float = 50.0, of: str = "ml1m") -> Experiment:
    points = [point(f"PDP-PMF{at + 1}", 1.0, [share]) for at, share in enumerate(shares)]
    return figure(f"zhang_fig3_{of}", dp_pmf(1.5, uniform), *points)


def figure_4(*lines: Sequence[float], uniform: float = 1.5, of: str = "ml1m") -> Experiment:
    curves = [
        each
        for at, line in enumerate(lines)
        for each in swept(
            f"PDP-PMF{at + 1}", "epsilon_moderate", dict(zip((0.1, 0.5, 0.9), line, strict=True))
        )
    ]
    return figure(f"zhang_fig4_{of}", dp_pmf(uniform), *curves)


def figure_5(table: Mapping[float, Sequence[float]], name: str = "zhang_fig5_ml100k") -> Experiment:
    points = [
        point(f"PDP-PMF, {t}", 1.0, shares, line="PDP-PMF", swept=("threshold", t))
        for t, shares in table.items()
    ]
    return figure(name, *points)


FLAT = (0.96, 0.955, 0.95)


@pytest.mark.parametrize(
    ("claim", "measured", "expected"),
    [
        ("rises-with-f-c", figure_2(0.9, 1.0, 1.1), (True, True)),
        ("rises-with-f-c", figure_2(0.9, 1.0, 0.9), (True, False)),
        ("linear-in-f-c", figure_2(0.9, 1.01, 1.1), (True,)),
        ("linear-in-f-c", figure_2(0.9, 1.03, 1.1), (False,)),
        ("linear-in-f-c", figure_2(0.9, 1.0, 0.9), (False,)),
        ("far-below-dp-pmf", figure_2(0.9, 1.0, 1.34), (True, True, True)),
        ("far-below-dp-pmf", figure_2(0.9, 1.0, 1.36), (True, True, False)),
        ("figure2-level", figure_2(0.9, 1.0, 1.1), (True, True, True)),
        ("figure2-level", figure_2(0.89, 1.0, 1.11), (False, True, False)),
        ("smaller-t-is-worse", figure_3(67, 70, 72), (True, True)),
        ("smaller-t-is-worse", figure_3(67, 70, 69), (True, False)),
        ("curves-overlap", figure_3(69, 70, 71), (True, True, True)),
        ("curves-overlap", figure_3(67, 70, 71), (False, False, True)),
        ("errors-at-most-one", figure_3(67.1, 70, 72.9), (True, True, True)),
        ("errors-at-most-one", figure_3(66.9, 70, 73.1), (False, True, False)),
        ("falls-with-eps-m", figure_4(FLAT, FLAT, (0.96, 0.97, 0.95)), (True, True, False)),
        ("linear-in-eps-m", figure_4(FLAT, (1.2, 1.05, 1.0), FLAT), (True, False, True)),
        ("figure4-below-dp-pmf", figure_4(FLAT, (1.36, 1.0, 1.0), (1.34, 1.0, 1.0)), (True, False, True)),
        ("figure4-right-end", figure_4(FLAT, (1, 1, 0.98), (1, 1, 0.94)), (True, False, True)),
        ("flat-where-few-are-conservative", figure_4((1.5, 1, 0.9), FLAT, FLAT), (True,)),
        ("flat-where-few-are-conservative", figure_4(FLAT, FLAT, (1.0, 0.98, 0.96)), (False,)),
    ],
)  # fmt: skip
def test_parts_of_figures_2_to_4(claim: str, measured: Experiment, expected: tuple[bool, ...]) -> None:
    assert held("zhang2018", claim, measured, data="ml-1m") == expected


@pytest.mark.parametrize(
    ("claim", "parts", "expected"),
    [
        ("best-threshold", {0.6: (50, 66, 50), 0.7: (60, 65, 60), 1.0: (57.8, 62.8, 59)}, (True, False, True)),
        ("fall-to-the-liberal-point", {0.6: (50, 66, 50), 0.7: (60, 65, 60), 1.0: (57.8, 62.4, 59)}, (True, True, False)),
        ("small-variations-above-0.4", {0.4: (9, 9, 9), 0.445: (62, 60, 60), 0.7: (60, 63, 60), 1.0: (60, 60, 60)}, (True, False, True)),
    ],
)  # fmt: skip
def test_parts_of_figure_5b(
    claim: str, parts: dict[float, Sequence[float]], expected: tuple[bool, ...]
) -> None:
    assert held("zhang2018", claim, figure_5(parts), data="ml-100k") == expected


def test_the_threshold_has_a_slight_influence_on_all_errors_of_figure_5a() -> None:
    name = "zhang_fig5a_ml100k"
    table = {0.445: (0, 0, 0), 0.6: (60, 70, 80), 0.7: (61, 70, 80), 0.8: (60, 70, 82), 1.0: (60, 73, 80)}
    assert held("zhang2018", "slight-influence-of-t", figure_5(table, name), data="ml-100k") == (
        True, True, False, True, False, False,
    )  # fmt: skip


@pytest.mark.parametrize("pmf", [1.2, np.inf, np.nan])
def test_where_pmf_diverges_nothing_is_decided(pmf: float) -> None:
    diverged = figure("zhang_fig2_ml1m", *figure_2(0.9, 1.0, 1.1).curves, pmf=pmf)
    assert held("zhang2018", "rises-with-f-c", diverged, data="ml-1m") is None


@pytest.mark.parametrize(
    ("rmse", "shares", "expected"),
    [
        ((0.9, 1.0, 1.4), (60, 60, 60), (True, True, True)),
        ((0.9, 1.6, 1.4), (60, 40, 60), (False, False, True)),
    ],
)
def test_pdp_pmf_beats_dp_pmf(
    rmse: tuple[float, ...], shares: tuple[float, ...], expected: tuple[bool, ...]
) -> None:
    figures = (figure_2(*rmse), figure_3(*shares), figure_4(FLAT, FLAT, FLAT))
    assert held("zhang2018", "beats-dp-pmf", *figures, data="ml-1m") == expected
    assert held("zhang2018", "beats-dp-pmf", *figures[:2], data="ml-1m") is None


def test_larger_data_are_held_against_ml_100k() -> None:
    def found(*rmse: float) -> tuple[bool, ...] | None:
        small, large = figure_4(FLAT, FLAT, FLAT, of="ml100k"), figure_4(FLAT, rmse, (0.9, 0.9, 0.8))
        both = {
            data: evidence(each, data=data).found[data]
            for data, each in (("ml-100k", small), ("ml-1m", large))
        }
        said = compute("zhang2018", "larger-data-is-better", Evidence(both, "ml-1m"))
        return None if said is None else said.held

    assert found(0.95, 0.94, 0.9) == (False, True, True)
    assert found(0.95, 0.96, 0.9) == (False, False, True)


@pytest.mark.parametrize(
    "claim", [key for key in RULES["zhang2018"] if key.startswith(("theorem", "remark", "both"))]
)
def test_theorems_are_held_against_audits(claim: str) -> None:
    rule = RULES["zhang2018"][claim]
    assert isinstance(rule, Theorem)
    for proof, holds, proved in (
        (Proof(1.0), True, True),
        (Proof(np.inf), True, False),
        (Proof(1.0, ("moves",)), False, True),
    ):
        seen = evidence(data="", proofs={rule.entry: proof})
        assert rule(seen).held == (holds,)
        assert rule.is_proved(seen) == proved
