"""5,000 curves take five times as long as 1,000: the time grows with the number of curves, not with its square.

The tests compare the CPU time for sixteen times as many curves with that for the original number. Work that grows
with the square takes 256 times as long, other work about 16 times. The bound lies between, so that slow or busy
machines pass.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import compare, paired, ranked, standings
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.collect import different_settings
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.advice import advice
from dpmf_cli.report.figures.charts import Chart, Line, swept_series
from dpmf_cli.report.figures.style import Look
from dpmf_cli.report.html.page import Drawn
from dpmf_cli.report.tables.crossings import crossings_table
from dpmf_cli.report.tables.layout import draw
from tests.evaluation.made_curves import noise_free_of
from tests.report.conftest import make
from tests.report.figures.made import picture

TIMES, BOUND = 16, 80

Work = Callable[[], object]


def _copies(count: int, **changes: Callable[[int], Any]) -> Experiment:
    """An experiment with that many curves of two points; `changes` makes them different."""
    experiment = make(1, folds=2, runs=1)
    one = experiment.curves[0]
    columns = {key: getattr(one, key)[:2] for key in ("epsilons", "claimed", "provable")}
    one = replace(one, **columns, rmse=one.rmse[:, :, :2], protects=Protection.VALUE)
    copies = tuple(
        replace(one, label=f"curve {rank}", **{key: of(rank) for key, of in changes.items()})
        for rank in range(count)
    )
    return replace(experiment, curves=copies)


def _pairs_by_algorithm(count: int) -> Work:
    a, b = ([(f"{name} {rank}", f"method {rank}") for rank in range(count)] for name in "ab")
    return lambda: paired(a, b)


def _compared(count: int) -> Work:
    a = _copies(count)
    b = replace(a, curves=tuple(replace(each, label=f"other {each.label}") for each in a.curves))
    return lambda: compare(a, b)


def _settings(count: int) -> Work:
    def config(first: int) -> ExperimentConfig:
        sweep = {"learning_rate": [rank / 1e6 for rank in range(first, first + count)]}
        entry = {"algorithm": "isgd", "factors": 2, "sweep": sweep}
        whole = {"name": "a", "dataset": "ml-100k", "epsilons": [1], "algorithms": [entry]}
        return ExperimentConfig.model_validate(whole)

    a, b = config(1), config(1 + count)
    return lambda: list(different_settings(a, b))


def _sweep(count: int) -> Work:
    experiment = _copies(count, swept=lambda rank: ("k", float(rank)), line=lambda rank: f"line {rank}")
    return lambda: swept_series(experiment, "k", lambda each: (each.mean(),) * 3)


def _picture(count: int) -> Work:
    y = np.ones(count)
    line = Line("swept", Look(0, 0), np.arange(count, dtype=float), y, y - 0.1, y + 0.1)
    chart = Chart("key", "title", "x", "y", (line,), (0.0, 2.0))
    return lambda: (picture(Drawn(chart)), list(Drawn(chart).rows))


def _crossings(count: int) -> list[Crossing]:
    (first, *_) = find_crossings(_copies(1), replicates=10)
    low = replace(first, status=Status.NOT_REACHED)
    return [replace(low, label=f"curve {rank}", delta=1e-6 + 1e-9 * rank) for rank in range(count)]


def _table(count: int) -> Work:
    crossings = _crossings(count)
    return lambda: draw(crossings_table(crossings))


def _advised(count: int) -> Work:
    crossings = [replace(crossing, delta=0.0) for crossing in _crossings(count)]
    experiment = _copies(count, noise_free=lambda _: noise_free_of(np.ones(2)))
    return lambda: advice([experiment], crossings)


def _ranking(count: int) -> Work:
    (standing,) = standings(_copies(1))
    crossing = replace(standing.crossings["ia"], status=Status.CROSSED)
    found = [
        replace(standing, crossings={"ia": replace(crossing, provable=1.0 + rank)}) for rank in range(count)
    ]
    return lambda: ranked(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "count"),
    [
        (_pairs_by_algorithm, 2000),
        (_compared, 500),
        (_settings, 500),
        (_sweep, 500),
        (_picture, 400),
        (_table, 1000),
        (_advised, 1500),
        (_ranking, 2000),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_sixteen_times_as_many_take_no_square_of_that(work: Callable[[int], Work], count: int) -> None:
    """A busy machine may disturb two of three measurements. Quadratic work exceeds the bound in every one."""
    few, many = work(count), work(TIMES * count)
    ratios = (_seconds(many, 1) / _seconds(few, 3) for _ in range(3))
    assert any(ratio < BOUND for ratio in ratios)


def _seconds(work: Work, times: int) -> float:
    """CPU seconds of the shortest of several calls."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)
