"""The tables of baselines and of fits without noise, read back in every format."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table, twins_table
from dpmf_cli.report.tables.layout import draw, terminal
from tests.evaluation.made_curves import twin_of
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def test_rmse_without_noise_by_hand(made: Make) -> None:
    experiment = of_theta(made(2))
    assert experiment.curves[1].twin is not None
    first = replace(experiment.curves[0], label="a", twin=twin_of([0.9, 0.92]))
    second = replace(experiment.curves[1], twin=twin_of([0.9, np.nan]), missing=1)
    plain = replace(experiment.curves[0], label="b", twin=None)
    drawn = terminal(twins_table(replace(experiment, folds=2, curves=(first, second, plain))))
    assert drawn == (
        "MovieLens 1M (made)\n"
        "RMSE without noise        mean  sd over folds\n"
        "─────────────────────────────────────────────\n"
        "a                       0.9100         0.0141\n"
        "isgd                incomplete              –\n"
    )
    one_fold = replace(first, twin=twin_of([0.9]))
    (group,) = twins_table(replace(experiment, folds=1, curves=(one_fold,))).groups
    assert group.rows == (("a", "0.9000", "–"),)


def test_baselines_by_hand(made: Make) -> None:
    rows = baseline_rows(replace(made(), name="ml1m_bounded"))
    assert [row.baseline for row in rows] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    ge = rows[2]
    assert (ge.printed, ge.folds, ge.runs) == (0.9161, 10, 1)
    expected = made().baselines[2].rmse
    assert ge.reproduced == pytest.approx(expected.mean())
    assert ge.sd_folds == pytest.approx(expected.std(ddof=1))
    assert ge.difference == pytest.approx(expected.mean() - 0.9161)


def test_baselines_table(made: Make) -> None:
    experiment = made()
    shifted = replace(experiment.baselines[1], rmse=np.array([[[0.97]], [[0.98]]]))
    waiting = replace(experiment.baselines[2], missing=1)
    other = replace(shifted, algorithm="constant_s", label="constant_s")
    made_up = replace(experiment, name="ml1m_bounded", baselines=(other, waiting, shifted))
    rows = baseline_rows(made_up)
    assert draw(baselines_table(rows)) == (
        "MovieLens 1M (ml1m_bounded)\n"
        "baseline    printed  reproduced       difference\n"
        "────────────────────────────────────────────────\n"
        "IA           0.9795  0.9750 ± 0.0071     −0.0045\n"
        "GE           0.9161  incomplete                –\n"
        "CONSTANT_S        –  0.9750 ± 0.0071           –\n"
        "\n"
        "RMSE; ± the standard deviation over folds\n"
        "printed: by Friedman et al. (2016), where their tables are reproduced\n"
    )
    (record, *_) = json.loads(draw(baselines_table(rows), "json"))
    assert (record["reproduced"], record["difference"]) == (0.975, 0.975 - 0.9795)


def test_what_reproduces_no_table_has_no_printed_baselines(made: Make) -> None:
    rows = baseline_rows(made(folds=2))
    drawn = draw(baselines_table(rows))
    assert drawn.splitlines()[1].split() == ["baseline", "reproduced"]
    assert drawn.splitlines()[3].split()[:2] == ["GA", f"{rows[0].reproduced:.4f}"]
    assert "Friedman" not in drawn
    both = draw(baselines_table([*rows, *baseline_rows(replace(made(), name="ml1m_bounded"))]))
    assert [line.split()[1] for line in both.splitlines() if line.startswith("IA")] == ["–", "0.9795"]
