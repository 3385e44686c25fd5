"""`dpmf compare`: how two configs and their results differ, and which pairs cannot be compared."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.collect import different_settings
from tests.command import run_config

SHOP = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 200, items: 60, ratings: 5000}
folds: 4
runs: 2
epsilons: [0.2, 2, 20]
baselines: [ia, ge]
algorithms:
  - algorithm: pge
  - {algorithm: isgd, factors: 2, epochs: 5}
"""
OTHER = (
    SHOP.replace("[0.2, 2, 20]", "[2, 20, 30]")
    .replace("factors: 2", "factors: 3")
    .replace("runs: 2", "runs: 1")
)
CHANGED = {
    "shop": SHOP,
    "other": OTHER,
    "third": SHOP.replace("epochs: 5", "epochs: 9"),
    "seed": SHOP.replace("runs: 2", "runs: 1\nseed: 7"),
    "folds": SHOP.replace("folds: 4", "folds: 3"),
    "data": SHOP.replace("seed: 3", "seed: 4"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configs and their results."""
    folder = tmp_path_factory.mktemp("compare")
    for name, text in CHANGED.items():
        run_config(folder, name, text)
    return folder


def dpmf(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    cli.app([*arguments, "--results", str(folder / "results")], standalone_mode=False)
    return capsys.readouterr().out


def test_settings_and_errors_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = dpmf(folder, capsys, "compare", str(folder / "shop.yaml"), str(folder / "results" / "other"))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "Settings that differ: shop (A), other (B)"
    assert "runs 2 1" in lines
    assert "epsilons [0.2, 2.0, 20.0] [2.0, 20.0, 30.0]" in lines
    assert "algorithms[ISGD].factors 2 3" in lines
    assert sum("algorithms" in line for line in lines) == 1
    assert "the same at every ε in common: IA, GE, PGE" in lines
    assert [line.split()[0] for line in lines[lines.index("ISGD, bounded") + 3 :][:2]] == ["2", "20"]
    assert any(line.startswith("paired over the 4 folds and 1 run that both have") for line in lines)


def test_formats_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = str(folder / "shop.yaml"), str(folder / "other.yaml")
    content = json.loads(dpmf(folder, capsys, "compare", *both, "--format", "json"))
    assert (content["a"], content["b"], content["left_out"]) == ("shop", "other", [])
    assert {"setting": "algorithms[ISGD].factors", "a": 2, "b": 3} in content["settings"]
    rows = list(csv.DictReader(io.StringIO(dpmf(folder, capsys, "compare", *both, "--format", "csv"))))
    assert len(rows) == len(content["differences"]) == 2 + 2 + 2
    for row, same in zip(rows, content["differences"], strict=True):
        assert float(row["difference"]) == same["difference"] == pytest.approx(same["b"] - same["a"])
    assert "| runs | 2 | 1 |" in dpmf(folder, capsys, "compare", *both, "--format", "md")
    with pytest.raises(DpmfError, match='unknown table format "cvs"; did you mean "csv"'):
        dpmf(folder, capsys, "compare", *both, "--format", "cvs")


def test_more_than_two_are_each_held_against_the_first_in_tables_and_on_a_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three = tuple(str(folder / f"{name}.yaml") for name in ("shop", "other", "third"))
    out = dpmf(folder, capsys, "compare", *three)
    assert out.index("shop (A), other (B)") < out.index("shop (A), third (B)")
    rows = list(csv.DictReader(io.StringIO(dpmf(folder, capsys, "compare", *three, "--format", "csv"))))
    assert {(row["run_a"], row["run_b"]) for row in rows} == {("shop", "other"), ("shop", "third")}
    page = folder / "compared.html"
    assert dpmf(folder, capsys, "compare", *three, "--page", str(page)) == f"{page}\n"
    html = page.read_text()
    assert re.findall(r"<figcaption[^>]*>([^<]*)<", html) == ["ISGD: RMSE over ε"]
    assert re.findall(r'<span class="name">([^<]*)</span>', html)[:3] == ["shop", "other", "third"]
    assert "shop (A), other (B), third (C)" in html
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html[: html.index("Methods whose errors differ")])
    factors = cells.index("algorithms[ISGD].factors")
    assert cells[factors + 1 : factors + 4] == ["2", "3", "2"]
    assert "the same at every ε in common: IA, GE, PGE" in html


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("seed", r"seed: 2016 \(A\), 7 \(B\)"),
        ("folds", r"folds: 4 \(A\), 3 \(B\)"),
        ("data", "both are called synthetic-ml-100k, but their ratings differ"),
        ("shop", "both are .*results/shop/"),
        ("fresh", r"results/fresh/manifest\.json: cannot be read.*run the experiment's config first"),
    ],
)
def test_experiments_on_other_ratings_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], other: str, reason: str
) -> None:
    (folder / "fresh.yaml").write_text(SHOP)
    with pytest.raises(DpmfError, match=reason):
        dpmf(folder, capsys, "compare", str(folder / "shop.yaml"), str(folder / f"{other}.yaml"))


def test_settings_that_differ_name_entries_by_their_curves(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SHOP)
    (tmp_path / "b.yaml").write_text(
        SHOP.replace("baselines: [ia, ge]", "baselines: [ge]\nmode: corrected")
        .replace("- algorithm: pge", "- {algorithm: pge, label: mine, effects: {beta_m: 9}}")
        .replace("- {algorithm: isgd, factors: 2, epochs: 5}", "- {algorithm: psgd}")
    )
    found = {
        each.setting: (each.a, each.b)
        for each in different_settings(*(load_config(tmp_path / f"{x}.yaml") for x in "ab"))
    }
    assert found["mode"] == ("published", "corrected")
    assert found["baselines[IA]"] == ("there", None)
    assert found["algorithms[PGE].mode"] == ("published", "corrected")
    assert found["algorithms[PGE].effects.beta_m"][1] == 9
    assert found["algorithms[ISGD]"] == ("there", None)
    assert found["algorithms[PSGD]"] == (None, "there")
    assert "name" not in found
    assert len(found) == 6
