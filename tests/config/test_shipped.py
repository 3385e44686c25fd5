"""Configs given by name: a file of that name wins over the shipped one, and a message says which was taken."""

from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.documents import _tell, config_file, means_a_config, shipped_names
from dpmf_cli.experiment.results.folders import results_folders
from tests.configs import GOOD, SHIPPED


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and no messages given yet."""
    _tell.cache_clear()
    monkeypatch.chdir(tmp_path)


def test_all_configs_of_the_repository_are_shipped() -> None:
    assert list(shipped_names()) == [path.stem for path in SHIPPED]


@pytest.mark.parametrize("name", ["ml1m_bounded", "ml1m_bounded.yaml"])
def test_a_name_means_the_shipped_config(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (of_repository,) = [path for path in SHIPPED if path.stem == "ml1m_bounded"]
    assert load_config(Path(name)) == load_config(of_repository)
    assert "using the shipped config of that name" in capsys.readouterr().err


def test_a_file_of_that_name_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ml1m_bounded.yaml").write_text(GOOD)
    assert load_config(Path("ml1m_bounded.yaml")).dataset.key == "ml-100k"
    assert capsys.readouterr().err == ""
    assert load_config(Path("ml1m_bounded")).dataset.key == "ml-100k"
    assert "no such file; using ml1m_bounded.yaml" in capsys.readouterr().err


def test_a_folder_of_results_of_that_name_is_no_config(tmp_path: Path) -> None:
    assert means_a_config(Path("ml1m_bounded"))
    (tmp_path / "ml1m_bounded").mkdir()
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
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(DpmfError, match=f"no such file.*{hint}"):
        load_config(Path(name))


def test_results_are_found_by_the_name_of_their_config(tmp_path: Path) -> None:
    assert results_folders(Path("ml1m_bounded"), tmp_path / "results") == [
        tmp_path / "results" / "ml1m_bounded"
    ]
    with pytest.raises(DpmfError, match='neither a config nor a results folder; did you mean "ml1m_bounded"'):
        results_folders(Path("ml1m_boundd"), tmp_path / "results")


def test_an_own_config_may_extend_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("extends: ml1m_bounded.yaml\nfolds: 3\n")
    assert load_config(Path("own.yaml")).dataset.key == "ml-1m"
    (tmp_path / "ml1m_bounded.yaml").write_text(GOOD)
    assert load_config(Path("own.yaml")).dataset.key == "ml-100k"
