"""Every CSV column that claims numbers holds numbers: a status that is not a number has its own column."""

import io
import re
from pathlib import Path

import pandas as pd

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
