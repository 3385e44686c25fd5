"""The arithmetic of `make bench`."""

from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from tests.benchmarks.aims import TIMES_AS_FAST
from tests.benchmarks.contestants import Contestant, NotHereError, Ran, timed
from tests.benchmarks.limits import Throughput, level_of, limit_of, measured
from tests.benchmarks.races import Race, Ratio, interleaved, ratio, run_race
from tests.benchmarks.tables import ratios_table, updates_table


def contestant(name: str, seconds: float, models: int = 1, *, threaded: bool = True) -> Contestant:
    return Contestant(name, models, lambda threads: Ran(seconds * threads), threaded)


def absent() -> Contestant:
    raise NotHereError("`pip install it`")


def test_a_ratio_is_of_cpu_time_a_model_turn_by_turn() -> None:
    ours, peer = [Ran(8.0), Ran(16.0), Ran(8.0)], [Ran(1.0), Ran(4.0), Ran(1.5)]
    assert ratio(ours, peer, (16, 1)) == Ratio(3.0, 2.0, 4.0)


def test_turns_go_on_until_they_took_enough() -> None:
    def turns(seconds: float) -> list[int]:
        return [
            len(runs) for runs in interleaved([contestant("a", 0.1), contestant("b", seconds)], 1).values()
        ]

    assert turns(0.1) == [5, 5]
    assert turns(9.0) == [3, 3]


def test_rows_have_the_aim_whether_it_is_met_and_what_is_absent() -> None:
    race = Race(
        "20 epochs",
        5,
        lambda: contestant("dpmf ISGD", 1.6, 16),
        {"Cornac `MF`": lambda: contestant("Cornac `MF`", 1.4, threaded=False), "LIBMF": absent},
    )
    outcome = run_race(race)
    assert TIMES_AS_FAST["dpmf ISGD", "Cornac `MF`"][5] == 13
    cornac, libmf = (row.split(" | ")[2:] for row in ratios_table([outcome]).splitlines()[2:])
    assert cornac == ["5", "Cornac `MF`", "14 (14 to 14)", "", "13", "yes |"]
    assert libmf[2].startswith("not installed: `pip install it`")


def test_aims_are_of_methods_by_the_names_that_rows_have() -> None:
    titles = {f"dpmf {method.title}" for method in PRIVATE.values()} | {"dpmf PMF, 1 model"}
    assert {ours for ours, _ in TIMES_AS_FAST} <= titles


def test_updates_are_visits_by_models_and_factors_beside_the_limit() -> None:
    outcome = run_race(Race("20 epochs", 20, lambda: contestant("dpmf ISGD", 2.0, 16), {}))
    limit = limit_of(20, Throughput(operations=1e10, dependent=1e9, near=1e10, far=1e9), "L3")
    assert limit.bounds == pytest.approx(
        {"arithmetic": 1e-8, "writes": 4e-9, "items in L3": 2.1e-8, "chain": 2.4e-8}
    )
    assert limit.binding == "chain"
    one, two = (row.split(" | ") for row in updates_table([outcome], 10**8, {20: limit}).splitlines()[2:])
    assert one == [
        "| 20", "1", "16.0", "1.84", "arithmetic 32.0, writes 80.0, items in L3 15.2, chain 13.3", "120% of chain", "10.0", "yes |",
    ]  # fmt: skip
    assert two[2:4] == ["32.0", "3.68"]


def test_a_level_is_the_first_cache_with_room(tmp_path: Path) -> None:
    for index, (kind, level, size) in enumerate(
        [("Data", 1, 48), ("Instruction", 1, 999), ("Unified", 2, 2048)]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("type", kind), ("level", level), ("size", f"{size}K")):
            (folder / name).write_text(f"{text}\n")
    assert [level_of(kib << 10, tmp_path) for kib in (48, 49, 2049)] == ["L1", "L2", "memory"]
    assert level_of(1, tmp_path / "none") == "cache or memory"


def test_the_machine_is_measured() -> None:
    limit = measured(np.arange(2000, dtype=np.int32) % 50, 50, 3)
    assert limit.seconds == max(limit.bounds.values()) > 0
    assert len(limit.bounds) == 4


def test_what_is_timed_is_cpu_time_and_its_errors() -> None:
    ran = timed(lambda: np.array([1.0, 3.0]), np.array([1.0, 1.0], np.float32))
    assert ran.rmse == pytest.approx(2**0.5)
    assert 0 <= ran.seconds < 1
