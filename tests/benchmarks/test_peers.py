"""The arithmetic of `make bench`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.experiment.config import load_config
from tests.benchmarks.contestants import Contestant, NotHereError, Ran
from tests.benchmarks.limits import binding, bounds_of, level_of, measured
from tests.benchmarks.races import TURNS, Race, interleaved, run_race
from tests.benchmarks.scale import Row, Used, table, updates_of
from tests.benchmarks.tables import TIMES_AS_FAST, of_limits, ratios_table, updates_table


def contestant(name: str, seconds: float, models: int = 1, *, threaded: bool = True) -> Contestant:
    return Contestant(name, models, lambda threads: Ran(seconds * threads), threaded)


def absent() -> Contestant:
    raise NotHereError("`pip install it`")


def test_all_take_turns() -> None:
    found = interleaved([contestant("a", 0.1), contestant("b", 9.0)], 1)
    assert [len(runs) for runs in found.values()] == [TURNS, TURNS]


def test_a_ratio_is_of_the_least_times() -> None:
    seconds = iter([3.0, 2.0, 4.0, 5.0, 6.0])
    slow = Contestant("Cornac `MF`", 1, lambda threads: Ran(next(seconds)), threaded=False)
    outcome = run_race(
        Race("20 epochs", 5, lambda: contestant("dpmf ISGD", 1.6, 16), {"Cornac `MF`": lambda: slow}), (1,)
    )
    assert outcome.ratio("Cornac `MF`", 1) == pytest.approx(20)


def test_rows_have_the_aim_whether_it_is_met_and_what_is_absent() -> None:
    race = Race(
        "20 epochs",
        5,
        lambda: contestant("dpmf ISGD", 1.6, 16),
        {"Cornac `MF`": lambda: contestant("Cornac `MF`", 1.4, threaded=False), "LIBMF": absent},
    )
    outcome = run_race(race)
    assert TIMES_AS_FAST["dpmf ISGD", "Cornac `MF`"][5] == 13
    cornac, libmf = (
        row.split(" | ")[2:]
        for row in ratios_table([outcome], {"dpmf ISGD 5": "61% of chain"}).splitlines()[2:]
    )
    assert cornac == ["5", "Cornac `MF`", "14", "", "13", "yes", "61% of chain |"]
    assert libmf[2].startswith("not installed: `pip install it`")


def test_aims_are_of_methods_by_the_names_that_rows_have() -> None:
    titles = {f"dpmf {method.title}" for method in PRIVATE.values()} | {"dpmf PMF, 1 model"}
    assert {ours for ours, _ in TIMES_AS_FAST} <= titles


def test_updates_are_visits_by_models_and_factors_beside_the_limit() -> None:
    outcome = run_race(Race("20 epochs", 20, lambda: contestant("dpmf ISGD", 2.0, 16), {}))
    limits = {20: bounds_of(20, "L3", operations=1e10, dependent=1e9, near=1e10, far=1e9)}
    limit = limits[20]["dpmf ISGD"]
    assert limits[20]["dpmf PALS"] == {"arithmetic": pytest.approx(20 * 23 / 1e10)}
    assert limit == pytest.approx(
        {"arithmetic": 1e-8, "writes": 4e-9, "items in L3": 2.1e-8, "chain": 2.4e-8}
    )
    assert binding(limit) == "chain"
    one, two = (row.split(" | ") for row in updates_table([outcome], 10**8, limits).splitlines()[2:])
    assert one == [
        "| 20", "1", "16.0", "1.84", "arithmetic 32.0, writes 80.0, items in L3 15.2, chain 13.3", "120% of chain", "10.0", "yes |",
    ]  # fmt: skip
    assert of_limits([outcome], {"dpmf ISGD 20": 10**8}, limits) == {"dpmf ISGD 20": "120% of chain"}
    assert two[2:4] == ["32.0", "3.68"]


def test_a_level_is_the_first_cache_with_room(tmp_path: Path) -> None:
    caches = [("Data", 1, 48), ("Instruction", 1, 999), ("Unified", 2, 2048)]
    for index, (kind, level, size) in enumerate(caches):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("type", kind), ("level", level), ("size", f"{size}K")):
            (folder / name).write_text(f"{text}\n")
    assert [level_of(kib << 10, tmp_path) for kib in (48, 49, 2049)] == ["L1", "L2", "memory"]
    assert level_of(1, tmp_path / "none") == "cache or memory"


def test_the_machine_is_measured() -> None:
    bounds = measured(np.arange(2000, dtype=np.int32) % 50, 50, 3)["dpmf ISGD"]
    assert len(bounds) == 4
    assert min(bounds.values()) > 0


CONFIGS = Path(__file__).resolve().parents[2] / "configs"
ROW = Row("scale_ml1m", "PALS", 1000, 2_000_000, Used(9.0, 3.0, 1 << 30), 4.0, float(1 << 29), 1.0)


def test_updates_are_visits_of_training_ratings_or_of_cells() -> None:
    size = (100, 50, 1000)
    assert updates_of({"algorithm": "pge", "neighbours": "bounded"}, *size) == 900
    assert updates_of({"algorithm": "psgd", "neighbours": "unbounded", "epochs": 5}, *size) == 4500
    assert updates_of({"algorithm": "pals", "neighbours": "bounded", "iterations": 3}, *size) == 5400
    assert updates_of({"algorithm": "isgd", "neighbours": "unbounded", "epochs": 2}, *size) == 10_000


def test_the_table_has_ml1m_as_its_measure() -> None:
    large = replace(ROW, config="scale_netflix", ratings=9000, own=1.5)
    _, _, first, second, _, _, growth, seconds, memory = table([large, ROW]).splitlines()
    assert first.split(" | ")[1:5] == ["ml1m", "2.0e+06", "1500.0", "1.00"]
    assert second.split(" | ")[1:5] == ["netflix", "2.0e+06", "750.0", "0.50"]
    assert growth == "- an update costs 0.50 to 0.50 times what it costs on ML-1M"
    assert seconds == "- CPU time over the plan's: 0.75 to 0.75"
    assert memory == "- memory over the plan's: 2.00 to 2.00"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("scale_*.yaml")), ids=lambda path: path.stem)
def test_configs_differ_in_the_data_and_in_how_long_all_cells_are_visited(path: Path) -> None:
    one, first = (load_config(each).resolved() for each in (path, CONFIGS / "scale_ml1m.yaml"))
    for config in (one, first):
        config.pop("name")
        config.pop("dataset")
        for entry in config["algorithms"]:
            if entry["label"] == "ISGD, unbounded":
                entry.pop("epochs")
    assert one == first
