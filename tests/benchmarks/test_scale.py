"""The arithmetic of `make scale`."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpmf_cli.experiment.config import load_config
from tests.benchmarks.scale import Row, Used, table, updates_of

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
