"""Configs given by name, of which a file wins over the shipped one, and made smaller from the command line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.catalog import ENTRIES
from dpmf_cli.experiment.config import ExperimentConfig, documents, load_config
from dpmf_cli.experiment.config.documents import _tell, config_file, means_a_config, shipped_names
from dpmf_cli.experiment.config.loading import flags, reduced
from dpmf_cli.experiment.results.folders import results_folders
from tests.configs import GOOD, SHIPPED

OF_REPOSITORY = {path.stem: path for path in SHIPPED}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and no messages given yet."""
    _tell.cache_clear()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["ml1m_bounded", "ml1m_bounded.yaml"])
def test_a_name_means_the_shipped_config_unless_there_is_a_file(
    elsewhere: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(shipped_names()) == list(OF_REPOSITORY)
    assert load_config(Path(name)) == load_config(OF_REPOSITORY["ml1m_bounded"])
    assert "using the shipped config of that name" in capsys.readouterr().err
    (elsewhere / "own.yaml").write_text("extends: ml1m_bounded.yaml\nfolds: 3\n")
    assert load_config(Path("own.yaml")).dataset.key == "ml-1m"
    (elsewhere / "ml1m_bounded.yaml").write_text(GOOD)
    assert load_config(Path("own.yaml")).dataset.key == "ml-100k"
    assert load_config(Path(name)).dataset.key == "ml-100k"
    said = "" if name.endswith(".yaml") else "ml1m_bounded: no such file; using ml1m_bounded.yaml\n"
    assert capsys.readouterr().err == said


def test_a_folder_of_results_of_that_name_is_no_config(elsewhere: Path) -> None:
    results = elsewhere / "results"
    assert results_folders(Path("ml1m_bounded"), results) == [results / "ml1m_bounded"]
    with pytest.raises(DpmfError, match='neither a config nor a results folder; did you mean "ml1m_bounded"'):
        results_folders(Path("ml1m_boundd"), results)
    assert means_a_config(Path("ml1m_bounded"))
    (elsewhere / "ml1m_bounded").mkdir()
    assert not means_a_config(Path("ml1m_bounded"))
    assert config_file(Path("ml1m_bounded")).parent.name == "shipped"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ml1m_bouded", 'did you mean "ml1m_bounded"'),
        ("configs/ml1m_bounded.yaml", 'did you mean "ml1m_bounded"'),
        ("unlike-any", "`dpmf configs` lists"),
        ("", "`dpmf configs` lists"),
    ],
)
def test_an_unknown_name_gets_a_hint(elsewhere: Path, name: str, hint: str) -> None:
    with pytest.raises(DpmfError, match=f"no such file.*{hint}"):
        load_config(Path(name))


@pytest.fixture(scope="module")
def whole() -> ExperimentConfig:
    return load_config(OF_REPOSITORY["friedman_fig3a"])


def test_what_was_changed_is_in_the_name(whole: ExperimentConfig) -> None:
    small = reduced(whole, dataset="ml-100k", held_out=2, runs=1)
    assert small.name == "friedman_fig3a.ml-100k.held-out-2.runs-1"
    assert (small.dataset.key, small.folds_run, small.folds, small.runs) == ("ml-100k", 2, 10, 1)
    assert small.algorithms == whole.algorithms
    assert documents.whole_name(small.name) == whole.name == documents.whole_name(whole.name)
    assert documents.is_reduction(small.name, whole.name)
    assert not any(documents.is_reduction(name, whole.name) for name in (whole.name, f"{whole.name}_2"))
    assert documents.is_on_own_data(reduced(whole, dataset="ml-1m", held_out=2, runs=1).name)
    for key in ENTRIES.keys() - {whole.dataset.key}:
        assert not documents.is_on_own_data(reduced(whole, dataset=key).name)
        assert not documents.is_on_own_data(reduced(whole, dataset=key, held_out=1, runs=1).name)
    assert reduced(whole) is whole
    assert reduced(whole, dataset="ml-1m", held_out=10, runs=5) is whole
    assert flags("ml-100k", 2, None) == ["--dataset", "ml-100k", "--held-out", "2"]


def test_what_makes_no_experiment_is_refused_in_the_words_of_the_command_line(
    whole: ExperimentConfig,
) -> None:
    with pytest.raises(DpmfError, match=r"friedman_fig3a with --held-out 11: only 10 folds can be held out"):
        reduced(whole, held_out=11)
    with pytest.raises(DpmfError, match=r"--dataset ml-100x.*did you mean"):
        reduced(whole, dataset="ml-100x")


def test_without_its_data_a_config_is_skipped_only_where_that_is_asked_for(tmp_path: Path) -> None:
    places = ["--data", str(tmp_path), "--results", str(tmp_path)]
    arguments = ["run", str(OF_REPOSITORY["friedman_fig3a"]), *places]
    skipped = CliRunner().invoke(app, [*arguments, "--if-present"])
    assert skipped.exit_code == 0
    why = "MovieLens 1M is not present; get it with `dpmf datasets fetch ml-1m`"
    assert f"friedman_fig3a: skipped: {why}" in skipped.stderr
    assert not list(tmp_path.iterdir())
    with pytest.raises(DpmfError, match="ml-1m"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
