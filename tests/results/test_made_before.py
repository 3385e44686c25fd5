"""Results that an earlier version made are read, and never computed again.

`made_before/` holds two configs, with the task results, manifests and tables of curves that an earlier commit made
from them. A change that is meant to change results raises the `revision` of an algorithm. The files of that algorithm
here must then be made anew.
"""

import hashlib
import shutil
from pathlib import Path

import pytest

from dpmf_cli.algorithms.friedman2016.matrix_factorization import InputPerturbationSGD
from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.experiment.results.manifest import read_manifest, what_ran
from dpmf_cli.studies.experiment import Finished, run

MADE_BEFORE = Path(__file__).parent / "made_before"
CONFIGS = ("grown", "personal")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copytree(MADE_BEFORE, tmp_path / "results")
    return tmp_path / "results"


def resume(results: Path, session_cache: Path, name: str) -> Finished:
    config = load_config(MADE_BEFORE / f"{name}.yaml")
    return run(config, Folders(results, session_cache, MADE_BEFORE, results))


@pytest.mark.parametrize("name", CONFIGS)
def test_nothing_is_computed_anew(results: Path, session_cache: Path, name: str) -> None:
    tasks = {path: path.read_bytes() for path in results.glob("tasks/**/*.json")}
    tables = {path: path.read_bytes() for path in (results / name).glob("*.csv")}
    manifest = read_manifest(results / name)
    finished = resume(results, session_cache, name)
    assert (finished.computed, finished.missing, finished.failures) == (0, 0, [])
    assert {path: path.read_bytes() for path in results.glob("tasks/**/*") if path.is_file()} == tasks
    assert {path: path.read_bytes() for path in tables} == tables
    hashes = {path.name: hashlib.sha256(content).hexdigest() for path, content in tables.items()}
    now = read_manifest(results / name)
    assert now.pop("files").items() >= hashes.items()
    assert now == manifest


@pytest.mark.parametrize("name", CONFIGS)
def test_the_manifest_tells_what_ran(name: str) -> None:
    manifest, ran = read_manifest(MADE_BEFORE / name), what_ran(MADE_BEFORE / name)
    assert ran.config == load_config(MADE_BEFORE / f"{name}.yaml")
    assert ran.config.hash == manifest["config_sha256"]
    assert ran.data.key == "synthetic-ml-100k"
    assert ran.data.title == "synthetic, shaped like MovieLens 100K (500 ratings of 30 items by 40 users)"
    assert ran.data.checksums == ("122b1e9154fd89de1035bec2d305b047ffa1d87669abbef4eb7ea3f163c2932d",)
    assert [part.ratings for part in ran.portions] == ([250, 500] if name == "grown" else [])
    experiment = collect_folder(MADE_BEFORE / name).experiment
    assert {each.missing for each in experiment.measured()} == {0}


def test_what_personalised_privacy_cost_the_records_is_read() -> None:
    (curve,) = collect_folder(MADE_BEFORE / "personal").experiment.curves
    assert curve.records["threshold"].tolist() == [0.5, 1.0]
    assert curve.records["kept"].tolist() == [0.544, 0.336]


def test_other_settings_are_other_results(
    results: Path, session_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InputPerturbationSGD, "revision", 99)  # the base of a personalised algorithm
    assert resume(results, session_cache, "personal").computed == 1
