"""What a user's own data set is called, and the unit of its ratings, change no result."""

import json
from pathlib import Path

from tests.command import dpmf
from tests.conftest import make_ratings

CONFIG = """\
dataset:
  kind: csv
  name: {name}
  path: ratings.csv
  columns: {{user: user, item: item, rating: rating}}
  scale: {{minimum: {low}, maximum: {high}, step: {low}}}
folds: 3
runs: 2
refine: false
epsilons: [0.3, 3, 30]
baselines: [ga, {{algorithm: ge, effects: {{beta_u: 5}}}}]
crossings: [ga, ge]
neighbours: [bounded, unbounded]
mode: corrected
algorithms: [pge]
"""


def crossings(folder: Path, cache: Path, name: str, unit: int) -> list[dict[str, object]]:
    folder.mkdir()
    ratings = make_ratings()
    rows = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
    lines = ["user,item,rating", *(f"u{user},i{item},{unit * value:g}" for user, item, value in rows)]
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")
    (folder / "x.yaml").write_text(CONFIG.format(name=name, low=unit, high=5 * unit))
    dpmf(folder, cache, "run", "x.yaml", "-j", "1")
    found = json.loads(dpmf(folder, cache, "crossings", "x.yaml", "--format", "json").stdout)
    return [{key: row[key] for key in ("label", "baseline", "reproduced", "low", "high")} for row in found]


def test_neither_the_name_nor_the_unit_changes_a_crossing(tmp_path: Path, session_cache: Path) -> None:
    first = crossings(tmp_path / "a", session_cache, "shop", 1)
    assert any(row["reproduced"] for row in first)
    assert crossings(tmp_path / "b", session_cache, "another", 1) == first
    wide = crossings(tmp_path / "c", session_cache, "wide", 20)
    for row, other in zip(first, wide, strict=True):
        for key in ("reproduced", "low", "high"):
            assert (row[key] is None) == (other[key] is None)
            assert row[key] is None or abs(float(str(other[key])) / float(str(row[key])) - 1) < 1e-3
