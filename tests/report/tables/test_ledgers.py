"""The privacy ledger as a table: shares of ε for pure steps, μ for Gaussian ones."""

import csv
import io
import math
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import SampledSteps
from dpmf_cli.report.tables.layout import TextTable, terminal
from dpmf_cli.report.tables.ledgers import ledger_csv, ledger_table

L1 = Sensitivity(2.0, 1, Neighbours.UNBOUNDED, "test")
L2 = Sensitivity(2.0, 2, Neighbours.UNBOUNDED, "test")


def steps_of(ledger: Ledger) -> list[dict[str, Any]]:
    return [{**entry.record(), "epsilons": ledger.limit.tolist()} for entry in ledger.entries]


def curve_of(ledger: Ledger) -> Measured:
    return Measured(
        algorithm="x",
        label="x",
        epsilons=ledger.limit,
        rmse=np.ones((1, 1, len(ledger.limit))),
        claimed=ledger.claimed,
        provable=ledger.provable,
        neighbours="unbounded",
        mode="published",
        delta=ledger.delta,
    )


def table_of(ledger: Ledger) -> TextTable:
    return ledger_table({"x": steps_of(ledger)}, [curve_of(ledger)])


def test_pure_steps_show_their_shares_and_the_total() -> None:
    ledger = Ledger([1.0, 4.0])
    ledger.spend("a", "Laplace", L1, 0.25 * ledger.limit)
    ledger.spend("b", "Laplace", L1, 0.75 * ledger.limit, provable=np.full(2, np.inf))
    rows = table_of(ledger).groups[0].rows
    assert [row[3:] for row in rows] == [("0.250 ε", "0.250 ε"), ("0.750 ε", "∞"), ("1.00 ε", "∞")]


def test_gaussian_steps_show_mu_where_no_share_adds_up() -> None:
    ledger = Ledger([10.0], delta=1e-6)
    ledger.spend("charged", "Gaussian", L2, theta=np.array([0.3]), claimed=np.array([2.0]))
    ledger.spend("composed", "Gaussian", L2, theta=np.array([0.4]))
    table = table_of(ledger)
    rows = table.groups[0].rows
    assert [row[3:] for row in rows[:2]] == [("0.200 ε", "0.300 μ"), ("0.400 μ", "0.400 μ")]
    assert float(rows[2][4].split()[0]) == pytest.approx(ledger.provable[0] / 10, rel=1e-2)
    text = terminal(table)
    assert "at ε = 10.0, δ = 1e-06" in text
    assert "the squares of μ add up" in text


def test_a_gaussian_step_of_which_nothing_can_be_proved_shows_infinity() -> None:
    ledger = Ledger([10.0], delta=1e-6)
    ledger.spend("composed", "Gaussian", L2, theta=np.array([0.4]), claimed=np.array([2.0]))
    (step,) = steps_of(ledger)
    table = ledger_table({"x": [{**step, "mu": [math.inf], "provable": [math.inf]}]}, [curve_of(ledger)])
    assert table.groups[0].rows[0][3:] == ("0.200 ε", "∞")


def test_sampled_steps_show_their_noise_where_no_share_adds_up() -> None:
    ledger = Ledger([10.0], delta=1e-6)
    ledger.spend("composed", "sampled", L2, sampled=SampledSteps(np.array([4.0]), 0.1, 5))
    ledger.spend(
        "charged", "sampled", L2, sampled=SampledSteps(np.array([8.0]), 0.1, 5), claimed=np.array([2.0])
    )
    table = table_of(ledger)
    rows = table.groups[0].rows
    assert [row[3:] for row in rows[:2]] == [("4.00 σ/c", "4.00 σ/c"), ("0.200 ε", "8.00 σ/c")]
    assert float(rows[2][4].split()[0]) == pytest.approx(ledger.provable[0] / 10, rel=1e-2)
    text = terminal(table)
    assert "at ε = 10.0, δ = 1e-06" in text
    assert "one user of a sample may add" in text


def test_the_csv_has_one_row_for_each_step_and_epsilon_and_mu_where_there_is_one() -> None:
    ledger = Ledger([1.0, math.inf], delta=1e-6)
    ledger.spend("pure", "Laplace", L1, 0.1 * ledger.limit)
    ledger.spend("gaussian", "Gaussian", L2, theta=np.array([0.01, np.inf]))
    rows = list(csv.DictReader(io.StringIO(ledger_csv({"x": steps_of(ledger)}))))
    assert [(row["step"], row["epsilon"], row["mu"]) for row in rows] == [
        ("pure", "1.0", ""),
        ("pure", "inf", ""),
        ("gaussian", "1.0", "0.01"),
        ("gaussian", "inf", "inf"),
    ]
