"""Rules of Neera et al. 2020, on made-up curves: where a claim holds, where it fails, where results are missing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.papers.evidence import Evidence, Proof
from dpmf_cli.papers.rules import RULES, cells, compute
from dpmf_cli.papers.rules.base import Computed
from tests.papers.made import INFINITE, baseline, curve, evidence, experiment

HERE, THERE = "ml-100k", "jester-1"
NAMES = {HERE: "explore_neera_ml100k", THERE: "explore_neera_jester"}
GRID = np.array([0.1, 1.0, 3.0])
OURS = (1.2, 1.1, 1.0)
COMPARED = {"isgd_local": "ISGD", "local_mean": "mean", "pg_mf": "PG-MF"}


def made(key: str, *values: float, **more: Any) -> Measured:
    label = COMPARED.get(key, key)
    grid = {"epsilons": GRID, "claimed": GRID, "provable": GRID}
    return replace(curve(key, label=label, values=values), **{**grid, **more})


def shown(data: str, *curves: Measured, clean: float = 0.9) -> Experiment:
    found = experiment(NAMES[data], *curves)
    return replace(found, partition=10, baselines=(replace(baseline("mf_sgd", clean), epsilons=INFINITE),))


def seen(claim: str, *curves: Measured, data: str = HERE, clean: float = 0.9) -> Computed | None:
    return compute("neera2020", claim, evidence(shown(data, *curves, clean=clean), data=data))


def held(claim: str, *curves: Measured, **more: Any) -> tuple[bool, ...] | None:
    found = seen(claim, *curves, **more)
    return None if found is None else found.held


def both(claim: str, here: tuple[Measured, ...], there: tuple[Measured, ...]) -> tuple[bool, ...] | None:
    """On Jester, beside what was measured on ML-100K."""
    found = {
        data: evidence(shown(data, *curves), data=data).found[data]
        for data, curves in ((HERE, here), (THERE, there))
    }
    judged = compute("neera2020", claim, Evidence(found, THERE))
    return None if judged is None else judged.held


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("beats-isgd-everywhere", "isgd_local"),
        ("accurate-under-strong-privacy", "local_mean"),
        ("beats-pg-mf", "pg_mf"),
    ],
)
def test_a_lower_error_counts_at_each_epsilon_that_the_claim_is_about(claim: str, other: str) -> None:
    parts = {"beats-isgd-everywhere": 3, "accurate-under-strong-privacy": 2, "beats-pg-mf": 2}[claim]
    ours = made("blp_mog_mf", *OURS)
    assert held(claim, ours, made(other, 1.3, 1.05, 0.9)) == (True, False, False)[:parts]
    assert held(claim, ours) is None
    assert held(claim, ours, made(other, 1.3, 1.05, np.nan, missing=1)) is None


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("blp-beats-laplace", "MF, clamped Laplace"),
        ("blp-beats-randomised-response", "MF, randomised response"),
    ],
)
def test_mechanisms_are_compared_behind_the_same_factorisation(claim: str, label: str) -> None:
    messages = made("local_mf", *OURS, label="MF, BLP")
    assert held(claim, messages, made("local_mf", 1.3, 1.05, 1.3, label=label)) == (True, False, True)


def test_of_several_curves_of_isgd_and_pg_mf_the_first_is_the_paper_s() -> None:
    ours = made("blp_mog_mf", *OURS)
    first, second = (
        made("isgd_local", *[level] * 3, label=label) for level, label in ((2, "ISGD, a"), (0.5, "ISGD, b"))
    )
    assert held("beats-isgd-everywhere", ours, first, second) == (True, True, True)


@pytest.mark.parametrize(("factor", "expected"), [(0.79, True), (0.806, True), (0.75, False), (0.83, False)])
def test_a_printed_improvement_is_met_within_its_tolerance(factor: float, expected: bool) -> None:
    theirs = made("isgd_local", 1.0, 1.0, 1.0)
    ours = made("blp_mog_mf", factor, 0.84, 0.9)
    assert held("improvement-at-0.1", ours, theirs) == (expected,)
    assert held("improvement-at-1", ours, theirs) == (True,)
    assert held("improvement-at-1", ours, theirs, data=THERE) == (False,)
    assert held("improvement-shrinks", ours, theirs) == (factor < 0.84,)


def test_the_printed_improvements_are_cells() -> None:
    curves = made("isgd_local", 2.0, 2.0, 2.0), made("blp_mog_mf", 1.5, 1.8, 1.9)
    found = cells("neera2020", evidence(shown(THERE, *curves), data=THERE))
    assert [(each.printed, each.tolerance) for each in found] == [(0.35, 0.02), (0.28, 0.02)]
    assert [each.measured for each in found] == pytest.approx([0.25, 0.1])
    assert cells("neera2020", evidence(data=THERE)) == []


@pytest.mark.parametrize(("theirs", "more"), [(2.0, True), (1.3, False)])
def test_jester_is_denser_so_that_a_larger_gain_there_is_none_of_sparsity(theirs: float, more: bool) -> None:
    here = made("blp_mog_mf", *OURS), made("isgd_local", 1.5, 1.4, 1.3)
    there = made("blp_mog_mf", *OURS), made("isgd_local", *[theirs] * 3)
    assert both("gains-more-on-jester", here, there) == (more,) * 3
    assert both("better-when-sparse", here, there) == (not more,) * 3
    assert both("gains-more-on-jester", (), there) is None


@pytest.mark.parametrize(("factor", "expected"), [(6.0, (True, False)), (4.0, (False, False))])
def test_errors_on_a_wider_scale_are_larger(factor: float, expected: tuple[bool, ...]) -> None:
    here, there = (made("blp_mog_mf", *[level] * 3) for level in (1.0, factor))
    assert both("larger-errors-on-jester", (here,), (there,)) == expected


def test_errors_fall_but_for_what_a_fold_moves_them() -> None:
    curves = made("blp_mog_mf", *OURS), made("isgd_local", 1.2, 1.2005, 1.0), made("pg_mf", 1.2, 1.21, 1.0)
    assert held("error-falls-with-epsilon", *curves) == (True, True, False)
    assert held("error-falls-with-epsilon", curves[0], replace(curves[1], missing=1)) is None


def test_no_method_goes_below_what_is_fitted_without_noise() -> None:
    curves = made("blp_mog_mf", *OURS), made("isgd_local", 1.2, 1.0, 0.85)
    assert held("clean-is-the-limit", *curves) == (True, False)
    assert held("clean-is-the-limit", *curves, clean=0.8) == (True, True)


@pytest.mark.parametrize(("plain", "expected"), [(1.3, True), (1.202, False), (1.1, False)])
def test_a_mixture_helps_by_more_than_nothing(plain: float, expected: bool) -> None:
    found = held(
        "mixture-helps", made("blp_mog_mf", *[1.2] * 3), made("local_mf", *[plain] * 3, label="MF, BLP")
    )
    assert found == (expected,) * 3


def test_what_is_sent_is_neither_hidden_nor_of_mean_0() -> None:
    ours = made("blp_mog_mf", *OURS)
    assert held("completely-hides", ours) == (False, False, False)
    assert held("figure-2", ours) == (True, True, False)


def test_table_1_is_counted() -> None:
    found = seen("traffic", made("blp_mog_mf", *OURS))
    assert found is not None
    assert found.held == (True, True, False, True, True)
    assert "of 6 bytes" in found.measured
    assert "10 iterations, and 0.336 MB back" in found.measured


@pytest.mark.parametrize(("found", "expected"), [((), True), (("a flaw",), False)])
def test_bounded_laplace_noise_is_as_private_as_an_audit_says(found: tuple[str, ...], expected: bool) -> None:
    proofs = {"blp_mog_mf, local, published": Proof(1.0, found)}
    judged = compute("neera2020", "blp-is-private", evidence(proofs=proofs))
    assert judged is not None
    assert judged.held == (expected,)


def test_shipped_configs_are_judged_where_nothing_was_explored() -> None:
    curves = made("blp_mog_mf", *OURS), made("isgd_local", 2.0, 2.0, 2.0), made("pg_mf", 2.0, 2.0, 2.0)
    for name, claim in (("neera_fig4_ml100k", "beats-isgd-everywhere"), ("neera_fig3_ml100k", "beats-pg-mf")):
        found = replace(shown(HERE, *curves), name=name)
        judged = compute("neera2020", claim, evidence(found, data=HERE))
        assert judged is not None
        assert all(judged.held)


@pytest.mark.parametrize("claim", RULES["neera2020"])
def test_without_results_nothing_is_judged(claim: str) -> None:
    assert compute("neera2020", claim, evidence(data=HERE)) is None
