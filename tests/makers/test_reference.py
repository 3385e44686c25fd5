"""The reference page is generated from the code, and complete."""

import re
from pathlib import Path

import pytest
import typer

from docs.makers.reference import reference
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.cli.main import app
from dpmf_cli.experiment.config import ExperimentConfig
from tests.cli.test_help import ALL

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


@pytest.fixture(scope="module")
def page() -> str:
    return reference(typer.main.get_command(app))


def test_the_shipped_page_is_that_of_the_code(page: str) -> None:
    assert PAGE.read_text() == page, "write it anew: make format"


def test_every_command_key_and_algorithm_has_its_place(page: str) -> None:
    headings = set(re.findall(r"^### (.*)$", page, re.MULTILINE))
    assert headings >= {" ".join(("dpmf", *path)) for path, group in ALL if not group}
    assert headings >= {*BASELINES, *PRIVATE}
    rows = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    assert rows >= set(ExperimentConfig.model_fields)
    for algorithm in (*BASELINES.values(), *PRIVATE.values()):
        assert rows >= algorithm.model_fields.keys() - {"swept", "swept_label"}


def test_what_reading_a_config_fills_in_is_not_required(page: str) -> None:
    keys = page.split("## Keys of a config")[1].split("###")[0]
    assert set(re.findall(r"^\| `(\w+)` \|[^|]*\| required \|", keys, re.MULTILINE)) == {
        "dataset",
        "algorithms",
    }


def test_rows_have_as_many_cells_as_their_table(page: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table
