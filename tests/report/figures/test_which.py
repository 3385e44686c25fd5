"""Every figure of an experiment in every format, the same bytes each time, and the command that draws them."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.figures.style import FORMATS
from dpmf_cli.report.figures.which import drawings
from dpmf_cli.results.folders import collect_folder

Make = Callable[..., Experiment]
HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ml100k_bounded", ["curves"]),
        ("friedman_fig6", ["curves", "error_cdf", "sweep-epochs", "error_cdf-epochs"]),
        ("mine", ["curves", "growth"]),
    ],
)
def test_the_figures_of_an_experiment(results: Path, name: str, expected: list[str]) -> None:
    found = drawings(collect_folder(results / name).experiment)
    assert list(found) == expected
    assert {f"{each}.{form}" for each in expected for form in ("png", "svg")} == {
        path.name for path in (results / name).iterdir() if path.suffix in (".png", ".svg")
    }


def test_nothing_complete_is_no_figure(made: Make) -> None:
    assert drawings(made(1, incomplete="pge")) == {}


@pytest.mark.parametrize("form", FORMATS)
def test_bytes_are_the_same_at_another_time(
    results: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = drawings(collect_folder(results / "friedman_fig6").experiment)
    first = {name: draw(form) for name, draw in found.items()}
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    assert all(data.startswith(HEADS[form]) for data in first.values())
    assert {name: draw(form) for name, draw in found.items()} == first
    assert not any(re.search(rb"CreationDate|ModDate|/Producer|dc:date", data) for data in first.values())


def test_the_command_draws_into_a_folder_and_says_what(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    out.mkdir()
    (out / "manifest.json").write_text("of something else")
    asked = ["plot", str(results / "mine"), "--format", "svg, pdf", "--out", str(out)]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    expected = {f"mine-{name}.{form}" for name in ("curves", "growth") for form in ("svg", "pdf")}
    assert {path.name for path in out.iterdir()} == expected | {"manifest.json"}
    assert {Path(line).name for line in done.stdout.splitlines()} == expected


def test_beside_the_result_by_default_and_by_its_config(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "results" / "ml100k_bounded"
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(json.loads((folder / "manifest.json").read_bytes())["config"]))
    before = (folder / "curves.png").read_bytes()
    (folder / "curves.png").unlink()
    asked = ["plot", str(config), "--results", str(tmp_path / "results"), "--format", "png"]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.stdout.strip() == str(folder / "curves.png")
    assert "has changed since" not in done.stderr
    assert (folder / "curves.png").read_bytes() == before


def test_all_experiments_among_what_else_lies_there(results: Path, tmp_path: Path) -> None:
    """A results folder also holds tasks, tables and pages. A damaged experiment is reported and skipped."""
    here, out = tmp_path / "results", tmp_path / "figures"
    shutil.copytree(results, here)
    (here / "tasks").mkdir(exist_ok=True)
    (here / "README.md").write_text("")
    (here / "mine" / "manifest.json").write_text("{")
    asked = ["plot", "--all", "--results", str(here), "--format", "svg", "--out", str(out)]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    drawn = {path.name for path in out.iterdir()}
    others = {path.parent.name for path in here.glob("*/manifest.json")} - {"mine"}
    assert others
    assert all(any(name.startswith(f"{other}-") for name in drawn) for other in others)
    assert not any(name.startswith("mine-") for name in drawn)
    assert "passed over: " in done.stderr


def test_what_cannot_be_drawn_is_an_error(results: Path, tmp_path: Path) -> None:
    for arguments, said in (
        ([str(results / "mine"), "--format", "pgn"], 'did you mean "png"'),
        ([str(tmp_path)], "run the experiment's config first"),
        (["x.txt"], "neither a config"),
        ([], "give --all"),
        (["--all", "x.yaml"], "give --all"),
        (["--all", "--results", str(tmp_path)], "run a config first"),
    ):
        with pytest.raises(DpmfError, match=said):
            CliRunner().invoke(app, ["plot", *arguments], catch_exceptions=False)
