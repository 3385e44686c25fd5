"""The JSON schema of configs: what an editor underlines and what it accepts."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dpmf_cli.config import ExperimentConfig
from dpmf_cli.config.documents import read
from dpmf_cli.config.loading import file_schema
from tests.configs import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = Draft202012Validator(file_schema(ExperimentConfig))


def test_the_shipped_schema_is_that_of_the_code() -> None:
    shipped = json.loads((ROOT / "configs" / "schema.json").read_text())
    assert shipped == file_schema(ExperimentConfig)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_nothing_in_the_shipped_configs_is_flagged(path: Path) -> None:
    assert [error.message for error in SCHEMA.iter_errors(read(path).data)] == []


NO_WHOLE = {
    "a config that extends another": ("extends: base.yaml\nfolds: 3\n", True),
    "part of a data set": ("extends: base.yaml\ndataset: {seed: 3}\n", True),
    "part of a grid": ("extends: base.yaml\nepsilons: {last: 3}\n", True),
    "what is taken back": ("extends: base.yaml\neffects: null\nepsilons: null\n", True),
    "a base from parameters": ("extends: base.yaml\nalgorithms: [{algorithm: personalized}]\n", True),
    "lists": (
        "extends: base.yaml\nmode: [published]\nalgorithms: [{algorithm: pge, neighbours: [user]}]\n",
        True,
    ),
    "no data set": ("epsilons: [1]\nalgorithms: [pge]\n", False),
    "no algorithms": ("dataset: ml-1m\nepsilons: [1]\n", False),
    "an unknown key": ("extends: base.yaml\nfold: 3\n", False),
    "an unknown algorithm": ("extends: base.yaml\nalgorithms: [pgee]\n", False),
    "an unknown key of an entry": ("extends: base.yaml\nalgorithms: [{algorithm: pge, factors: 3}]\n", False),
    "a list of no mode": ("extends: base.yaml\nmode: [publish]\n", False),
    "two files": ("extends: [a.yaml, b.yaml]\n", False),
}


@pytest.mark.parametrize(("text", "right"), NO_WHOLE.values(), ids=NO_WHOLE)
def test_an_editor_flags_what_is_wrong_and_not_what_is_inherited(
    tmp_path: Path, text: str, right: bool
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert SCHEMA.is_valid(read(tmp_path / "x.yaml").data) == right
