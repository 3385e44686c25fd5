"""Parameters that vary with ε: one curve, joined from the results of several settings."""

from pathlib import Path

import numpy as np

from dpmf_cli.datasets import DataIdentity
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.experiment.config import ExperimentConfig, config_of, load_config
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.releasing.publishing import FittedRatings, fitted
from tests.command import run_config
from tests.conftest import make_ratings

CONFIG = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 900}
folds: 3
held_out: 2
runs: 1
epsilons: [0.3, 1, 3, 10]
baselines: [ia]
algorithms:
  - {algorithm: isgd, factors: 3, epochs: 4MORE}
"""
PIECES = ", by_epsilon: [{up_to: 0.5, factors: 2}, {up_to: 3, epochs: 2, factors: 4}]"


def config(folder: Path, more: str) -> ExperimentConfig:
    path = folder / "x.yaml"
    path.write_text(CONFIG.replace("MORE", more))
    return load_config(path)


def test_a_curve_is_pieced_together_from_the_results_of_plain_entries(tmp_path: Path) -> None:
    def measured(text: str) -> Measured:
        (curve,) = run_config(tmp_path, "x", text).collected.experiment.curves
        return curve

    whole, plain = measured(CONFIG.replace("MORE", PIECES)), CONFIG.replace("MORE", "")
    high = measured(plain).mean()
    low = measured(plain.replace("factors: 3", "factors: 2")).mean()
    middle = measured(plain.replace("factors: 3, epochs: 4", "factors: 4, epochs: 2")).mean()
    assert whole.missing == 0
    assert whole.mean().tolist() == [low[0], middle[1], middle[2], high[3]]
    assert len(set(whole.mean())) == 4


def test_a_noise_free_run_is_beyond_the_last_piece_and_a_resolved_config_is_the_same(tmp_path: Path) -> None:
    whole = config(tmp_path, PIECES)
    data = DataIdentity("d", "", "c")
    (entry,) = whole.algorithms
    assert config_of(whole.resolved()) == whole
    clean = [
        task
        for task in tasks_of(whole.model_copy(update={"twins": True}), entry, data)
        if task.epsilons[0] > 99
    ]
    assert [(task.algorithm.parameters()["factors"], task.epsilons) for task in clean] == [(3, (np.inf,))] * 2
    plain = config(tmp_path, "")
    assert "by_epsilon" not in str(plain.resolved())


def test_a_release_has_the_parameters_of_its_epsilon(tmp_path: Path) -> None:
    (entry,) = config(tmp_path, PIECES).algorithms
    ratings = make_ratings()
    source = FittedRatings("shop", ratings, np.arange(ratings.n_users), np.arange(ratings.n_items))
    found = [fitted(entry, source, epsilon).statement.algorithm["factors"] for epsilon in (0.5, 0.6, 4.0)]
    assert found == [2, 4, 3]
