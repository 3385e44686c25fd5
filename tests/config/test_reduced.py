"""A config made smaller from the command line: what changes, its name, and what is refused."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.catalog import ENTRIES
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.config.loading import flags, is_on_own_data, is_reduction, reduced, whole_name

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.fixture(scope="module")
def whole() -> ExperimentConfig:
    return load_config(CONFIGS / "friedman_fig3a.yaml")


def test_what_was_changed_is_in_the_name(whole: ExperimentConfig) -> None:
    small = reduced(whole, dataset="ml-100k", held_out=2, runs=1)
    assert small.name == "friedman_fig3a.ml-100k.held-out-2.runs-1"
    assert (small.dataset.key, small.folds_run, small.folds, small.runs) == ("ml-100k", 2, 10, 1)
    assert small.algorithms == whole.algorithms
    assert whole_name(small.name) == whole.name == whole_name(whole.name)
    assert is_reduction(small.name, whole.name)
    assert not is_reduction(whole.name, whole.name)
    assert not is_reduction(f"{whole.name}_2", whole.name)


def test_the_name_says_whether_the_data_set_is_another_one(whole: ExperimentConfig) -> None:
    assert is_on_own_data(whole.name)
    assert is_on_own_data(reduced(whole, dataset="ml-1m", held_out=2, runs=1).name)
    for key in ENTRIES:
        if key != whole.dataset.key:
            assert not is_on_own_data(reduced(whole, dataset=key).name)
            assert not is_on_own_data(reduced(whole, dataset=key, held_out=1, runs=1).name)


def test_asking_for_what_is_there_changes_nothing(whole: ExperimentConfig) -> None:
    assert reduced(whole) is whole
    assert reduced(whole, dataset="ml-1m", held_out=10, runs=5) is whole


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_config_can_be_reduced_to_a_fold_and_a_run(path: Path) -> None:
    config = load_config(path)
    small = reduced(config, held_out=1, runs=1)
    assert (small.folds_run, small.runs) == (1, 1)
    assert "." not in config.name


def test_what_makes_no_experiment_is_refused_in_the_words_of_the_command_line(
    whole: ExperimentConfig,
) -> None:
    with pytest.raises(DpmfError, match=r"friedman_fig3a with --held-out 11: only 10 folds can be held out"):
        reduced(whole, held_out=11)
    with pytest.raises(DpmfError, match=r"--dataset ml-100x.*did you mean"):
        reduced(whole, dataset="ml-100x")


def test_flags_ask_for_it_again() -> None:
    assert flags("ml-100k", 2, None) == ["--dataset", "ml-100k", "--held-out", "2"]
    assert flags(None, None, None) == []


def test_without_its_data_a_config_is_skipped_only_where_that_is_asked_for(tmp_path: Path) -> None:
    arguments = [
        "run",
        str(CONFIGS / "friedman_fig3a.yaml"),
        "--data",
        str(tmp_path),
        "--results",
        str(tmp_path),
    ]
    skipped = CliRunner().invoke(app, [*arguments, "--if-present"])
    assert skipped.exit_code == 0
    assert (
        "friedman_fig3a: skipped: MovieLens 1M is not present; get it with `dpmf datasets fetch ml-1m`"
        in (skipped.stderr)
    )
    assert not list(tmp_path.iterdir())
    with pytest.raises(DpmfError, match="ml-1m"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
