"""A privacy column in a user's own CSV, from the config to the ledger."""

import csv
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.config import load_config
from dpmf_cli.experiment import run
from tests.conftest import make_ratings

CONFIG = """\
dataset:
  kind: csv
  name: shop
  path: ratings.csv
  columns: {user: customer, item: sku, rating: stars, epsilon: privacy}
  scale: {minimum: 1, maximum: 5, step: 1}
folds: 4
held_out: 2
runs: 1
neighbours: unbounded
mode: corrected
epsilons: [0.5, 4]
baselines: [ga, {algorithm: sampled, base: {algorithm: pmf, factors: 2}, specification: column, threshold: 2}]
algorithms:
  - {algorithm: dp_pmf, factors: 2}
  - {algorithm: personalized, base: {algorithm: dp_pmf, factors: 2}, specification: column, threshold: 2}
"""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_users_own_column_works_end_to_end(tmp_path: Path) -> None:
    ratings = make_ratings()
    levels = np.random.default_rng(1).uniform(0.1, 4, len(ratings)).round(3)
    columns = zip(ratings.users, ratings.items, ratings.values, levels, strict=True)
    lines = "".join(f"u{user},i{item},{stars:g},{level}\n" for user, item, stars, level in columns)
    (tmp_path / "ratings.csv").write_text("customer,sku,stars,privacy\n" + lines)
    (tmp_path / "shop.yaml").write_text(CONFIG)
    finished = run(
        load_config(tmp_path / "shop.yaml"),
        base=tmp_path,
        results=tmp_path / "results",
        data=tmp_path,
        cache=tmp_path / "cache",
        jobs=1,
    )
    assert not finished.failures
    assert finished.missing == 0
    uniform, personal = finished.collected.experiment.curves
    assert personal.label == "DP-PMF, personalised"
    assert np.isfinite(personal.rmse).all()
    assert personal.provable == pytest.approx([0.5, 2.0])
    assert uniform.provable == pytest.approx([0.5, 4.0])
    steps = {row["step"]: row for row in rows_of(finished.folder / "ledger.csv") if row["epsilon"] == "4.0"}
    assert {"objective, item factors", "determinants, item factors"} <= steps.keys()
