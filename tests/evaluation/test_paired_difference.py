"""Differences of curves on the same folds: known answers, pairing, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import compare, paired
from dpmf_cli.privacy.protection import Protection

GRID = np.array([0.5, 2.0, 8.0])
INFINITE = np.array([np.inf])
FOLDS, RUNS = 10, 3


def rmse(
    seed: int = 0, shift: float = 0.0, spread: float = 0.002, folds: int = FOLDS, runs: int = RUNS
) -> np.ndarray:
    """Curves whose folds differ by 0.05, and that differ from each other by `shift` and a little."""
    difficulty = np.linspace(-0.1, 0.1, FOLDS)[:folds, None, None]
    return 1 + difficulty + shift + np.random.default_rng(seed).normal(0, spread, (folds, runs, 3))


def curve(label: str, values: np.ndarray, **changed: object) -> Measured:
    made = Measured(label.lower(), label, GRID, values, GRID, GRID, "bounded", "published")
    return replace(made, **changed)  # type: ignore[arg-type]


def experiment(*curves: Measured, folds: int = FOLDS) -> Experiment:
    ge = Measured("ge", "GE", INFINITE, np.full((folds, 1, 1), 0.9), INFINITE, INFINITE)
    return Experiment("x", "shop", "My shop", folds, FOLDS, RUNS, 1, curves, (ge,))


def test_known_answer() -> None:
    values = rmse()
    found = compare(
        experiment(curve("PGE", values)), experiment(curve("PGE", values + np.array([0.01, 0.0, -0.02])))
    )
    baseline, *rest = found.differences
    assert (baseline.label_a, baseline.same, baseline.epsilon) == ("GE", True, np.inf)
    assert [row.epsilon for row in rest] == [0.5, 2.0, 8.0]
    assert [row.difference for row in rest] == pytest.approx([0.01, 0.0, -0.02])
    assert [row.verdict for row in rest] == ["worse", "", "better"]
    assert [(row.low, row.high) for row in rest[::2]] == [pytest.approx((d, d)) for d in (0.01, -0.02)]
    assert {(row.folds, row.runs, row.over) for row in rest} == {(FOLDS, RUNS, "folds")}
    assert found.left_out == ()


def test_folds_are_paired_so_that_their_difficulty_cancels() -> None:
    """A difference of a twentieth of the spread over folds is detected. With B's folds out of order it is not."""
    a, b = rmse(1), rmse(2, shift=0.005)
    (_, *rows) = compare(experiment(curve("PGE", a)), experiment(curve("PGE", b))).differences
    assert [row.verdict for row in rows] == ["worse"] * 3
    (_, *rows) = compare(experiment(curve("PGE", a)), experiment(curve("PGE", b[::-1]))).differences
    assert [row.verdict for row in rows] == [""] * 3


def test_what_both_have_is_compared() -> None:
    a = curve("PGE", rmse(1))
    values = np.concatenate([rmse(1)[:6, :2], np.full((6, 2, 1), 7.0)], axis=2)
    b = curve("PGE", values, epsilons=np.array([0.5, 2.0, 8.0, 9.0]), claimed=np.ones(4), provable=np.ones(4))
    (_, *rows) = compare(experiment(a), experiment(b, folds=6)).differences
    assert [row.epsilon for row in rows] == [0.5, 2.0, 8.0]
    assert all(row.same for row in rows)
    assert {(row.folds, row.runs) for row in rows} == {(6, 2)}
    assert [row.a for row in rows] == pytest.approx(rmse(1)[:6, :2].mean(axis=(0, 1)))
    assert (rows[0].provable_a, rows[0].provable_b) == (0.5, 1.0)


def test_differences_that_cancel_are_not_the_same() -> None:
    values = rmse(1, folds=2, runs=1)
    a, b = values, values[::-1]
    (_, *rows) = compare(
        experiment(curve("PGE", a), folds=2), experiment(curve("PGE", b), folds=2)
    ).differences
    assert [row.difference for row in rows] == pytest.approx([0, 0, 0])
    assert not any(row.same for row in rows)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"neighbours": "unbounded"},
            "PGE: A protects the rating value, against everybody, B the rating presence, against everybody; their ε are "
            "not comparable",
        ),
        (
            {"joint": True},
            "PGE: A protects the rating value, against everybody, B the rating value, against other users (joint DP); "
            "their ε are not ranked against each other",
        ),
        (
            {"protects": Protection.PERSONALISED},
            "PGE: A protects the rating value, against everybody, B the rating presence, personalised, against everybody; "
            "their ε are not comparable",
        ),
        ({"neighbours": "none"}, "PGE: only A is private"),
        ({"delta": 1e-6}, "PGE: A has δ = 0, B 1e-06; their ε are not ranked against each other"),
        ({"epsilons": GRID + 0.1}, "PGE: no ε in common: A has 0.5 to 8, B 0.6 to 8.1"),
        ({"missing": 1}, "PGE: B lacks results"),
        ({"label": "X", "algorithm": "x"}, "X: only in B"),
    ],
)
def test_what_cannot_be_compared_is_left_out_with_the_reason(changed: dict[str, object], reason: str) -> None:
    a, b = curve("PGE", rmse()), replace(curve("PGE", rmse()), **changed)  # type: ignore[arg-type]
    found = compare(experiment(a), experiment(b))
    assert [row.label_a for row in found.differences] == ["GE"]
    assert any(line.startswith(reason) for line in found.left_out)


def test_curves_go_together_by_label_then_by_algorithm() -> None:
    a = [("GE", "ge"), ("PALS", "pals"), ("mine", "isgd"), ("one", "psgd"), ("two", "psgd")]
    b = [("PALS, corrected", "pals"), ("GE", "ge"), ("ISGD", "isgd"), ("three", "psgd")]
    assert paired(a, b) == [(0, 1), (1, 0), (2, 2)]
    assert paired([("one", "psgd")], [("two", "psgd"), ("three", "psgd")]) == []


def test_the_interval_is_widened_for_folds_that_share_training_ratings() -> None:
    a, b = experiment(curve("PGE", rmse(1))), experiment(curve("PGE", rmse(2)))
    (_, wide, *_) = compare(a, b).differences
    (_, narrow, *_) = compare(replace(a, partition=10**9), b).differences
    widths = [row.high - row.low for row in (wide, narrow) if row.high is not None and row.low is not None]
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(1 + FOLDS / (FOLDS - 1)))
