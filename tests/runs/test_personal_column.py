"""A privacy column in a user's own CSV, from the config to the ledger."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.experiment.results.folders import collect_folder
from tests.conftest import make_ratings
from tests.runs.tiny import Place

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


def write_ratings(folder: Path) -> NDArray[np.float64]:
    """Writes ratings, each with its own ε, and returns those ε."""
    ratings = make_ratings()
    levels = np.random.default_rng(1).uniform(0.1, 4, len(ratings)).round(3)
    columns = zip(ratings.users, ratings.items, ratings.values, levels, strict=True)
    lines = "".join(f"u{user},i{item},{stars:g},{level}\n" for user, item, stars, level in columns)
    (folder / "ratings.csv").write_text("customer,sku,stars,privacy\n" + lines)
    return levels


def test_a_users_own_column_works_and_what_it_cost_the_records_is_told(place: Place) -> None:
    """With a column, the cost of each record is known: min(ε_ui, ceiling, t)."""
    levels = write_ratings(place.folder)
    printed = place.run(CONFIG).stdout
    experiment = collect_folder(place.path("")).experiment
    assert [each.missing for each in experiment.measured()] == [0] * 4
    uniform, personal = experiment.curves
    assert personal.label == "DP-PMF, personalised"
    assert np.isfinite(personal.rmse).all()
    assert personal.provable == pytest.approx([0.5, 2.0])
    assert uniform.provable == pytest.approx([0.5, 4.0])
    steps = {row["step"] for row in place.rows("ledger.csv") if row["epsilon"] == "4.0"}
    assert {"objective, item factors", "determinants, item factors"} <= steps
    low, high = place.rows("records.csv")
    assert {row["label"] for row in (low, high)} == {"DP-PMF, personalised"}
    for row, epsilon, bound in ((low, 0.5, 0.5), (high, 4.0, 2.0)):
        assert (float(row["epsilon"]), float(row["threshold"])) == (epsilon, bound)
        assert float(row["least"]) == pytest.approx(levels.min())
        assert float(row["largest"]) == pytest.approx(bound)
        below = np.minimum(levels, bound)
        assert float(row["median"]) == pytest.approx(np.median(below), abs=0.1)
        expected = np.minimum(np.expm1(below) / np.expm1(bound), 1).mean()
        assert float(row["kept"]) == pytest.approx(expected, abs=0.03)
    table = printed[printed.index("DP-PMF, personalised, per record") :]
    assert "diagnostics that you must not release" in table
    share = f"{100 * float(high['kept']):.1f} %"
    (line,) = [line.split() for line in table.splitlines() if share in line]
    assert (line[:3], line[-1]) == (["4.00", "2.00", share.split()[0]], "2.00")
