"""The distribution of errors, as a metric that a config asks for: from the key to the files and figures."""

import numpy as np
import pytest

from dpmf_cli.datasets import DataIdentity, open_cached
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.experiment.running.batches import cut_ratings
from tests.runs.tiny import Place

LIMITS = [0.5, 1.0, 2.0, 4.0]
CONFIG = f"""\
dataset: {{kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 900}}
folds: 3
runs: 2
seed: 5
twins: true
epsilons: [0.5, 4]
error_cdf: {LIMITS}
baselines: [ga, {{algorithm: als, factors: 1, iterations: 2, sweep: {{regularization: [0.1, 0.3]}}}}]
algorithms:
  - {{algorithm: pge, clip_predictions: true}}
  - {{algorithm: isgd, label: one, factors: 1, epochs: 2, sweep: {{regularization: [0.1, 0.3]}}}}
  - {{algorithm: isgd, label: two, factors: 2, epochs: 2, sweep: {{regularization: [0.1, 0.3]}}}}
"""


@pytest.fixture(scope="module")
def measured(undisturbed: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("cdf"), undisturbed.cache)
    place.run(CONFIG)
    return place


def test_the_fractions_are_those_of_the_test_ratings(measured: Place) -> None:
    """The global average predicts one number, whose errors are counted here by hand."""
    checksum = measured.manifest["dataset"]["checksum"]
    ratings, fractions = open_cached(checksum, measured.cache), []
    config = load_config(measured.folder / "tiny.yaml")
    for task in tasks_of(config, config.baselines[0], DataIdentity(config.dataset.key, "", checksum)):
        train, test = cut_ratings(ratings, task.cut, dataset=task.data.key, seed=task.seed)
        errors = np.abs(test.values - train.values.mean(dtype=np.float64))
        fractions.append([(errors <= x).mean() for x in LIMITS])
    found = [row for row in measured.rows("error_cdf.csv") if row["label"] == "GA"]
    assert [float(row["x"]) for row in found] == LIMITS
    assert [float(row["mean"]) for row in found] == pytest.approx(np.mean(fractions, axis=0))
    assert [float(row["sd"]) for row in found] == pytest.approx(np.std(fractions, axis=0, ddof=1))
    assert {row["epsilon"] for row in found} == {"inf"}


def test_all_that_was_measured_is_in_the_table_twins_too(measured: Place) -> None:
    found = [row["epsilon"] for row in measured.rows("error_cdf.csv") if row["label"] == "PGE"]
    assert found == ["0.5"] * 4 + ["4.0"] * 4 + ["inf"] * 4
    pge = collect_folder(measured.path("")).experiment.curves[0]
    assert pge.error_cdf is not None
    assert pge.error_cdf.shape == (3, 2, 2, 4)
    assert (pge.error_cdf[..., -1] == 1).all()  # clipped to the scale of 1 to 5
    assert (np.diff(pge.error_cdf, axis=-1) >= 0).all()
    assert pge.twin is not None
    assert (pge.twin["error_cdf"][:, 0, 0, 1] > pge.error_cdf[:, :, 0, 1].mean(axis=1)).all()


def test_sweeps_have_their_own_table_and_figures(measured: Place) -> None:
    found = measured.rows("error_cdf-regularization.csv")
    lines = list(dict.fromkeys((row["line"], row["epsilon"]) for row in found))
    private = [(name, epsilon) for name in ("one", "two") for epsilon in ("0.5", "4.0", "inf")]
    assert lines == [*private, ("Clean MF (ALS)", "inf")]
    for name in ("error_cdf", "error_cdf-regularization", "sweep-regularization"):
        for form, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
            assert measured.path(f"{name}.{form}").read_bytes().startswith(magic)


@pytest.mark.slow
def test_without_the_key_results_keep_their_names_and_nothing_is_drawn(measured: Place) -> None:
    before = measured.tasks
    measured.run(CONFIG.replace(f"error_cdf: {LIMITS}\n", ""), "plain")
    assert len(measured.tasks) == 2 * len(before)
    assert not list(measured.path("", "plain").glob("error_cdf*"))
    assert measured.rows("curves.csv", "plain") == [
        {**row, "name": "plain"} if "name" in row else row for row in measured.rows("curves.csv")
    ]
