"""`dpmf frontier` from the command line: results, a figure, aims, the table of leaders, refusals."""

import csv
import io
from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import load_config
from dpmf_cli.studies.experiment import run
from tests.cli.test_combined import CONFIG
from tests.command import dpmf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frontier")
    (folder / "all.yaml").write_text(CONFIG)
    (folder / "other.yaml").write_text(CONFIG)
    run(load_config(folder / "all.yaml"), Folders(folder, folder / "cache", folder, folder / "results"))
    return folder


def test_a_row_for_each_epsilon_of_each_guarantee(folder: Path) -> None:
    done = dpmf(folder, folder, "frontier", "all.yaml", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len({(row["protects"], row["towards"]) for row in rows}) == 5
    assert [row["epsilon"] for row in rows[:3]] == ["0.5", "2.0", "8.0"]
    assert {row["label"] for row in rows} == {
        "PGE, bounded",
        "PGE, unbounded",
        "averages",
        "mean",
        "PGE around",
    }
    assert done.stderr == ""


def test_a_figure_and_the_leaders_are_files(folder: Path) -> None:
    dpmf(folder, folder, "frontier", "all.yaml", "--figure", "f.svg", "--leaders", "leaders.yaml")
    assert "<svg" in (folder / "f.svg").read_text()[:500]
    text = (folder / "leaders.yaml").read_text()
    assert "PGE, bounded" in text
    assert "personalised" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all.yaml", "--format", "xml"], 'unknown table format "xml"'),
        (["all.yaml", "--figure", "x.gif"], "x.gif: name a .png, .svg or .pdf file"),
        (["all.yaml", "--leaders", "all.yaml/x"], "all.yaml/x: cannot be written"),
    ],
)
def test_mistakes_are_told(folder: Path, words: list[str], said: str) -> None:
    assert said in dpmf(folder, folder, "frontier", *words, expect=2).stderr
