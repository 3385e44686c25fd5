"""Accepted configs: what they inherit, their defaults, what they resolve to, and what an editor underlines."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dpmf_cli.algorithms.baselines.clean_averages import AveragesBaseline
from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.config.documents import read
from dpmf_cli.experiment.config.entries import with_inherited
from dpmf_cli.experiment.config.loading import file_schema
from tests.configs import GOOD, GROWTH, NETFLIX, SHIPPED, THETAS, TWINS, load, shipped


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_are_valid_and_point_editors_at_the_schema(path: Path) -> None:
    assert load_config(path).name == path.stem
    assert path.read_text().startswith("# yaml-language-server: $schema=schema.json\n")


def test_a_users_own_config_beside_them_is_none_of_the_shipped(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    for name in ("ours", "own"):
        (tmp_path / "configs" / f"{name}.yaml").write_text(GOOD)
    assert [path.stem for path in shipped(tmp_path)] == ["ours", "own"]
    for command in (["init", "-q"], ["add", "configs/ours.yaml"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert [path.stem for path in shipped(tmp_path)] == ["ours"]


def test_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    assert (config.name, config.folds, config.runs) == ("x", 10, 5)
    assert [entry.name for entry in config.entries] == ["GA", "IA", "GE", "PGE", "ISGD"]
    assert config.grid(config.algorithms[0]) == (0.1, 1.0, 10.0)
    assert config.grid(config.baselines[0]) == (math.inf,)
    assert config.runs_of(config.baselines[0]) == 1


def test_entries_inherit_what_the_experiment_sets_unless_they_set_it(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        GOOD + "    effects: {beta_m: 3}\neffects: {beta_m: 16}\nmode: corrected\nbaselines: [ia]\n",
    )
    assert [entry.effects.beta_m for entry in config.algorithms] == [16, 3]
    assert [entry.mode for entry in config.algorithms] == ["corrected", "corrected"]
    (baseline,) = config.baselines
    assert isinstance(baseline, AveragesBaseline)
    assert baseline.effects.beta_m == 16


@pytest.mark.parametrize("number", ["1e-3", "1E-3", "0.001", "1.e-3", "+1e-3", ".1e-2"])
def test_numbers_in_scientific_notation_are_numbers(tmp_path: Path, number: str) -> None:
    assert (load(tmp_path, GOOD.replace("0.1", number)).epsilons or [])[0] == 0.001


class Gaussian(PrivateGlobalEffects):
    """An algorithm whose θ is not its ε, as with Gaussian noise."""

    def epsilon_of(self, theta: float) -> float:
        return 3 * theta

    def theta_of(self, epsilon: float) -> float:
        return epsilon / 3


def test_each_entry_turns_the_grid_of_theta_into_epsilon_by_its_own_noise(tmp_path: Path) -> None:
    config = load(tmp_path, THETAS)
    pge = config.algorithms[0]
    assert (config.axis, config.grid(pge), config.thetas_of(pge)) == ("theta", (0.1, 1, 10), (0.1, 1, 10))
    assert config.grid(Gaussian(algorithm="pge")) == pytest.approx((0.3, 3, 30))
    assert config.thetas_of(Gaussian(algorithm="pge")) == (0.1, 1, 10)
    assert config.thetas_of(config.baselines[0]) is None
    assert config.grid(config.baselines[0]) == (math.inf,)
    of_epsilon = load(tmp_path, GOOD)
    assert (of_epsilon.axis, of_epsilon.thetas_of(of_epsilon.algorithms[0])) == ("epsilon", None)
    assert of_epsilon.thetas_of(Gaussian(algorithm="pge")) == pytest.approx((0.1 / 3, 1 / 3, 10 / 3))


@pytest.mark.parametrize("epsilon_of", [lambda self, theta: 1.0, lambda self, theta: math.inf])
def test_theta_that_stand_for_no_grid_of_epsilon_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epsilon_of: Any,
) -> None:
    monkeypatch.setattr(PrivateGlobalEffects, "epsilon_of", epsilon_of)
    with pytest.raises(
        DpmfError, match=r"x\.yaml:2:9: thetas: PGE needs ascending ε from 1e-06 up, but these θ give"
    ):
        load(tmp_path, THETAS)


def test_delta_is_inherited_where_an_entry_has_one() -> None:
    class WithDelta(PrivateGlobalEffects):
        delta: float = 1e-6

    inherited = with_inherited({"algorithm": "g"}, {"delta": 1e-7}, {"g": WithDelta})
    assert inherited == {"algorithm": "g", "delta": 1e-7}
    own = with_inherited({"algorithm": "g", "delta": 1e-8}, {"delta": 1e-7}, {"g": WithDelta})
    assert own["delta"] == 1e-8
    assert "delta" not in with_inherited({"algorithm": "g"}, {"delta": 1e-7}, {"g": PrivateGlobalEffects})


def test_a_fixed_test_set_is_one_fold(tmp_path: Path) -> None:
    config = load(tmp_path, NETFLIX + "test: probe\n")
    assert (config.folds, config.folds_run, config.test) == (1, 1, "probe")
    assert load(tmp_path, NETFLIX + "test: judging\nfolds: 1\nheld_out: 1\n").folds_run == 1
    assert ExperimentConfig.model_validate(json.loads(json.dumps(config.resolved()))) == config


def test_the_latest_ratings_are_cut_into_three(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD + "test: recent\n")
    assert (config.folds, config.folds_run, config.test) == (3, 3, "recent")
    assert load(tmp_path, GOOD + "test: recent\nfolds: 5\nheld_out: 2\n").folds_run == 2
    assert load(tmp_path, GOOD + TWINS + "test: recent\n" + GROWTH).portions == (0.5, 1.0)


def test_portions_of_growth(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).portions == (1.0,)
    assert load(tmp_path, GOOD + TWINS + GROWTH).portions == (0.5, 1.0)
    assert load(tmp_path, GOOD + TWINS + GROWTH.replace(", 1]", "]")).portions == (0.5,)


def test_a_geometric_grid_is_rounded_to_three_digits(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD.replace("[0.1, 1, 10]", "{first: 0.1, last: 20, count: 4}"))
    assert config.epsilons == [0.1, 0.585, 3.42, 20.0]


def test_the_resolved_config_is_a_config(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    assert ExperimentConfig.model_validate(json.loads(json.dumps(config.resolved()))) == config
    assert config.hash == load(tmp_path, GOOD + "# a comment\n").hash
    assert config.hash != load(tmp_path, GOOD + "seed: 1\n").hash


def test_a_sweep_is_one_entry_for_each_value_and_errors_after_it_keep_their_place(tmp_path: Path) -> None:
    sweep = "  - {algorithm: psgd, sweep: {epochs: [1, 2, 3]}}\n  - {algorithm: pals, iterations: %s}\n"
    config = load(tmp_path, GOOD + sweep % 2)
    assert [entry.name for entry in config.algorithms[2:]] == [
        "psgd, epochs 1",
        "psgd, epochs 2",
        "psgd, epochs 3",
        "PALS",
    ]
    assert [entry.swept for entry in config.algorithms] == [None, None, "epochs", "epochs", "epochs", None]
    with pytest.raises(DpmfError, match=r"x\.yaml:8:35: algorithms\[3\]\.iterations"):
        load(tmp_path, GOOD + sweep % 0)


def test_a_file_name_becomes_a_folder_name(tmp_path: Path) -> None:
    (tmp_path / "my config (2).yaml").write_text(GOOD)
    assert load_config(tmp_path / "my config (2).yaml").name == "my-config-2"


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
