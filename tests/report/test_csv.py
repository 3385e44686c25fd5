"""Every CSV column that claims numbers holds numbers: a status that is not a number has its own column."""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.report.figures.papers import noise_figure, noise_samples
from dpmf_cli.report.tables.layout import terminal
from dpmf_cli.report.tables.papers import traffic, traffic_table
from tests.conftest import make_ratings

WORDS = {
    *("dataset", "title", "neighbours", "mode", "algorithm", "label", "baseline", "experiment", "source"),
    *("status", "low_status", "high_status", "over", "protects", "towards", "group", "method", "line"),
    "agreement",
    *("step", "mechanism", "norm", "verdict", "label_a", "label_b", "partial", "metric", "clean"),
    *("tied", "run_a", "run_b"),
    *(f"{bar}_{name}" for bar in ("ia", "ge") for name in ("status", "low_status", "high_status")),
}
TRUTHS = {
    *("joint", "recrosses", "reference", "comparable", "same", "learned_nothing", "coarse", "interpolated"),
    *("ia_recrosses", "ge_recrosses"),
}


def assert_numeric(text: str, truths: set[str] = TRUTHS) -> None:
    """Every column is read as numbers, except columns of words or of truth values."""
    table = pd.read_csv(io.StringIO(text))
    for name in set(table.columns) - WORDS if len(table) else ():
        kind = table[name].dtype.kind
        assert kind == "b" if name in truths else kind in "fi", (name, table[name].tolist())


def test_every_file_of_a_run_and_every_table(results: Path) -> None:
    names = set()
    for path in results.glob("*/*.csv"):
        names.add(path.name.partition("-")[0])
        assert_numeric(path.read_text())
    assert names >= {"curves.csv", "folds.csv", "crossings.csv", "ledger.csv", "growth.csv", "error_cdf.csv"}
    tables = {
        path.stem: re.findall(r"━━ [^\n]*csv\b[^\n]*\n(.*?)\n\n", path.read_text(encoding="utf-8"), re.DOTALL)
        for path in (Path(__file__).parent / "expected").glob("*.txt")
    }
    tested = "baselines combined compared crossings files frontier ledgers levels local"
    assert sorted(stem for stem, found in tables.items() if found) == tested.split()
    for stem, found in tables.items():
        # In the combined table, `provable` says whether something can be proved.
        truths = TRUTHS | {"provable"} if stem == "combined" else TRUTHS
        for table in found:
            assert_numeric(table, truths)


RATINGS = make_ratings()


def test_both_noises_have_their_law() -> None:
    laplace, bounded = noise_samples(RATINGS, 2.0, seed=1)
    assert laplace.std() == pytest.approx(np.sqrt(2) / 2, rel=0.02)
    assert abs(laplace.mean()) < 0.01
    assert np.abs(bounded).max() <= 1
    assert bounded.std() < 0.6 * laplace.std()


def test_the_same_figure_has_the_same_bytes() -> None:
    one, other = (noise_figure(RATINGS, "test", "png") for _ in range(2))
    assert one == other
    assert one.startswith(b"\x89PNG")


@pytest.mark.slow
def test_traffic_is_counted_from_one_fit_of_each_local_method() -> None:
    keys = ("local_mean", "pg_mf", "pge")
    entries = [PRIVATE[key].model_validate({"algorithm": key}) for key in keys]
    table = traffic_table(traffic(entries, RATINGS, "test"), RATINGS, "test")
    assert [row[0] for row in table.groups[0].rows] == ["mean of perturbed ratings", "PG-MF"]
    each = len(RATINGS) / RATINGS.n_users
    assert table.groups[0].rows[0][1:] == ("1", "5", f"{5 * each:,.0f}", "0")
    assert table.groups[0].rows[1][1:] == ("11", "3", f"{33 * each:,.0f}", f"{10 * 40 * 5 * 4:,}")
    assert f"{RATINGS.user_counts.max()} ε at most" in terminal(table)
