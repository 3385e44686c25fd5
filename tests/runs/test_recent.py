"""A complete run whose test ratings are each user's latest, and the other commands that take such a config."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.streams import OWN
from dpmf_cli.datasets import Folders, load
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.experiment.running.cutting import cut_ratings
from tests.command import dpmf, task_files
from tests.runs.tiny import rows

CONFIG = (
    "dataset: {kind: csv, name: shop, path: shop.csv, columns: {user: user, item: item, rating: rating, "
    "timestamp: time}, scale: {minimum: 1, maximum: 5, step: 1}}\n"
    "test: recent\nheld_out: 2\nruns: 1\nepsilons: [5]\nrefine: false\n"
    "baselines: [ga]\nalgorithms: [{algorithm: pge, mode: corrected}]\n"
)
GROWTH = "twins: true\ngrowth: {portions: [0.5, 1], order: timestamp}\n"


def shop(times: list[int]) -> str:
    """Fifteen ratings of each of twelve users, made at these times."""
    rng = np.random.default_rng(4)
    lines = [f"u{at % 12},i{at // 12},{rng.integers(1, 6)},{time}" for at, time in enumerate(times)]
    return "user,item,rating,time\n" + "\n".join(lines) + "\n"


def mean_error(folder: Path, cache: Path, portion: float) -> float:
    """RMSE of the training mean, over both folds."""
    dataset = load(load_config(folder / "x.yaml").dataset, Folders(folder, cache, folder))
    cuts = (
        cut_ratings(dataset.ratings, Cut(3, fold, portion, test="recent"), dataset=OWN, seed=2016)
        for fold in range(2)
    )
    errors = [np.sqrt(np.mean((test.values - train.values.mean()) ** 2)) for train, test in cuts]
    return float(np.mean(errors))


def test_the_latest_are_predicted_on_every_portion(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    times = np.random.default_rng(0).permutation(180)
    (tmp_path / "shop.csv").write_text(shop(times.tolist()))
    (tmp_path / "x.yaml").write_text(CONFIG + GROWTH)

    def planned() -> list[tuple[int, int]]:
        plan = json.loads(dpmf(tmp_path, cache, "plan", "x.yaml", "--json").stdout)
        return [(part["tasks"], part["left"]) for part in plan["algorithms"]]

    assert planned() == [(4, 4), (8, 8)]
    dpmf(tmp_path, cache, "run", "x.yaml", "-j", "1")
    assert planned() == [(4, 0), (8, 0)]
    assert all(json.loads(body)["settings"]["test"] == "recent" for body in task_files(tmp_path).values())
    curves = rows(tmp_path / "results" / "x" / "curves.csv")
    found = next(float(row["rmse"]) for row in curves if row["label"] == "GA")
    assert found == pytest.approx(mean_error(tmp_path, cache, 1.0), abs=1e-6)
    assert found != pytest.approx(mean_error(tmp_path, cache, 0.5), abs=1e-3)
    shown = dpmf(tmp_path, cache, "baselines", "--format", "table").stdout
    assert shown.startswith("shop, each user's latest held out (x)\n")
    anew = dpmf(tmp_path, cache, "verify", "--recompute", "4").stdout.splitlines()[-1]
    assert anew.split() == ["computed", "anew", "4", "0"]
    dpmf(tmp_path, cache, "audit", "x.yaml", "--pairs", "2", "--trials", "20", "-j", "1")
    dpmf(tmp_path, cache, "release", "x.yaml", "--method", "pge", "--epsilon", "5")


@pytest.mark.parametrize(
    ("times", "growth", "message"),
    [
        ([7] * 180, "", "shop: these ratings have the same time stamp on every rating"),
        (list(range(180)), GROWTH.replace("0.5", "0.001"), "shop: 0.001 of the ratings are 0, too few"),
    ],
)
def test_ratings_without_latest_ones_are_one_message(
    tmp_path: Path, times: list[int], growth: str, message: str
) -> None:
    (tmp_path / "shop.csv").write_text(shop(times))
    (tmp_path / "x.yaml").write_text(CONFIG + growth)
    said = dpmf(tmp_path, tmp_path / "cache", "run", "x.yaml", expect=2).stderr
    assert message in said
    assert task_files(tmp_path) == {}
