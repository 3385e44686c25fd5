"""The distribution of errors, as a metric that a config asks for: from the key to the files and figures."""

from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import DataIdentity, Folders, open_cached
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.experiment.running.cutting import cut_ratings
from dpmf_cli.studies.experiment import Finished, run
from tests.runs.tiny import rows

CONFIG = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 900}
folds: 3
runs: 2
seed: 5
twins: true
epsilons: [0.5, 4]
baselines: [ga, {algorithm: als, factors: 1, iterations: 2, sweep: {regularization: [0.1, 0.3]}}]
algorithms:
  - {algorithm: pge, clip_predictions: true}
  - {algorithm: isgd, label: one, factors: 1, epochs: 2, sweep: {regularization: [0.1, 0.3]}}
  - {algorithm: isgd, label: two, factors: 2, epochs: 2, sweep: {regularization: [0.1, 0.3]}}
"""
DATA = DataIdentity("d", "", "c")
LIMITS = [0.5, 1.0, 2.0, 4.0]


def execute(folder: Path, text: str, name: str = "x") -> Finished:
    (folder / f"{name}.yaml").write_text(text)
    config = load_config(folder / f"{name}.yaml")
    cache = folder / "cache"
    return run(config, Folders(folder, cache, folder, folder / "results"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return execute(tmp_path_factory.mktemp("cdf"), f"{CONFIG}error_cdf: {LIMITS}\n")


def test_the_fractions_are_those_of_the_test_ratings(finished: Finished) -> None:
    """The global average predicts one number, whose errors are counted here by hand."""
    (path,) = finished.folder.parent.glob("../cache/ratings/*")
    ratings, fractions = open_cached(path.name, path.parents[1]), []
    config = load_config(finished.folder.parents[1] / "x.yaml")
    for task in tasks_of(config, config.baselines[0], DataIdentity(config.dataset.key, "", path.name)):
        train, test = cut_ratings(ratings, task.cut, dataset=task.data.key, seed=task.seed)
        errors = np.abs(test.values - train.values.mean(dtype=np.float64))
        fractions.append([(errors <= x).mean() for x in LIMITS])
    found = [row for row in rows(finished.folder / "error_cdf.csv") if row["label"] == "GA"]
    assert [float(row["x"]) for row in found] == LIMITS
    assert [float(row["mean"]) for row in found] == pytest.approx(np.mean(fractions, axis=0))
    assert [float(row["sd"]) for row in found] == pytest.approx(np.std(fractions, axis=0, ddof=1))
    assert {row["epsilon"] for row in found} == {"inf"}


def test_all_that_was_measured_is_in_the_table_twins_too(finished: Finished) -> None:
    found = [row["epsilon"] for row in rows(finished.folder / "error_cdf.csv") if row["label"] == "PGE"]
    assert found == ["0.5"] * 4 + ["4.0"] * 4 + ["inf"] * 4
    pge = finished.collected.experiment.curves[0]
    assert pge.error_cdf is not None
    assert pge.error_cdf.shape == (3, 2, 2, 4)
    assert (pge.error_cdf[..., -1] == 1).all()  # clipped to the scale of 1 to 5
    assert (np.diff(pge.error_cdf, axis=-1) >= 0).all()
    assert pge.twin is not None
    assert (pge.twin["error_cdf"][:, 0, 0, 1] > pge.error_cdf[:, :, 0, 1].mean(axis=1)).all()


def test_sweeps_have_their_own_table_and_figures(finished: Finished) -> None:
    found = rows(finished.folder / "error_cdf-regularization.csv")
    lines = list(dict.fromkeys((row["line"], row["epsilon"]) for row in found))
    private = [(name, epsilon) for name in ("one", "two") for epsilon in ("0.5", "4.0", "inf")]
    assert lines == [*private, ("Clean MF (ALS)", "inf")]
    for name in ("error_cdf", "error_cdf-regularization", "sweep-regularization"):
        for form, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
            assert (finished.folder / f"{name}.{form}").read_bytes().startswith(magic)


@pytest.mark.slow
def test_without_the_key_results_keep_their_names_and_nothing_is_drawn(finished: Finished) -> None:
    folder = finished.folder.parents[1]
    plain = execute(folder, CONFIG, "plain")
    config = load_config(folder / "plain.yaml")
    tasks = [task for entry in config.entries for task in tasks_of(config, entry, DATA)]
    assert plain.computed == len(tasks)
    assert not any("error_cdf" in task.settings for task in tasks)
    assert not list(plain.folder.glob("error_cdf*"))
    for one, other in zip(
        plain.collected.experiment.curves, finished.collected.experiment.curves, strict=True
    ):
        assert np.array_equal(one.rmse, other.rmse)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("[1, 0.5]", "ascend"),
        ("[1, 1]", "ascend"),
        ("[0, 1]", "greater than 0"),
        ("[]", "at least 1"),
        ("1", "list"),
    ],
)
def test_limits_that_make_no_sense_are_refused(tmp_path: Path, limits: str, message: str) -> None:
    (tmp_path / "x.yaml").write_text(f"{CONFIG}error_cdf: {limits}\n")
    with pytest.raises(DpmfError, match=rf"x\.yaml:12:\d+: error_cdf.*{message}"):
        load_config(tmp_path / "x.yaml")
