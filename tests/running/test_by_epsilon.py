"""Parameters that vary with ε: one curve, joined from the results of several settings."""

import re
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import DataIdentity, Folders
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.experiment.config import ExperimentConfig, config_of, load_config
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.releasing.publishing import FittedRatings, fitted
from dpmf_cli.studies.experiment import run
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


def measured(folder: Path, text: str) -> Measured:
    """The only curve of a config."""
    (folder / "x.yaml").write_text(text)
    folders = Folders(folder, folder / "cache", folder, folder / "results")
    (curve,) = run(load_config(folder / "x.yaml"), folders).collected.experiment.curves
    return curve


def test_a_curve_is_pieced_together_from_the_results_of_plain_entries(tmp_path: Path) -> None:
    whole = measured(tmp_path, CONFIG.replace("MORE", PIECES))
    plain = CONFIG.replace("MORE", "")
    high = measured(tmp_path, plain).mean()
    low = measured(tmp_path, plain.replace("factors: 3", "factors: 2")).mean()
    middle = measured(tmp_path, plain.replace("factors: 3, epochs: 4", "factors: 4, epochs: 2")).mean()
    assert whole.missing == 0
    assert whole.mean().tolist() == [low[0], middle[1], middle[2], high[3]]
    assert len(set(whole.mean())) == 4


def test_twins_have_what_is_beyond_the_last_piece_and_a_resolved_config_is_the_same(tmp_path: Path) -> None:
    whole = config(tmp_path, PIECES)
    data = DataIdentity("d", "", "c")
    (entry,) = whole.algorithms
    assert config_of(whole.resolved()) == whole
    twin = [
        task
        for task in tasks_of(whole.model_copy(update={"twins": True}), entry, data)
        if task.epsilons[0] > 99
    ]
    assert [(task.algorithm.parameters()["factors"], task.epsilons) for task in twin] == [(3, (np.inf,))] * 2
    plain = config(tmp_path, "")
    assert "by_epsilon" not in str(plain.resolved())


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ("[{up_to: 1, factors: 2}, {up_to: 1, factors: 4}]", "[1]: `up_to` must be an ε above"),
        ("[{factors: 2}]", "[0]: `up_to` must be an ε above"),
        ("[{up_to: 1}]", "[0]: it sets nothing"),
        ("[{up_to: 1, mode: corrected}]", "[0]: `mode` is the same for all ε"),
        ("[{up_to: 1, factor: 2}]", '[0]: factor: unknown key; did you mean "factors"?'),
        ("[{up_to: 1, factors: 0}]", "[0]: factors: Input should be greater than or equal to 1"),
        ("[{up_to: 1, epochs: 2}], sweep: {epochs: [1, 2]}", "[0]: `epochs` is the same for all ε"),
    ],
)
def test_pieces_that_make_no_curve_are_refused(tmp_path: Path, pieces: str, message: str) -> None:
    with pytest.raises(DpmfError, match=re.escape("by_epsilon" + message)):
        config(tmp_path, f", by_epsilon: {pieces}")


def test_a_base_has_no_pieces(tmp_path: Path) -> None:
    text = CONFIG[: CONFIG.index("  - {algorithm: isgd")]
    base = "{algorithm: dp_pmf, by_epsilon: [{up_to: 1, factors: 2}]}"
    (tmp_path / "x.yaml").write_text(
        f"{text}  - {{algorithm: personalized, neighbours: unbounded, base: {base}}}\n"
    )
    with pytest.raises(DpmfError, match="set `by_epsilon` on the entry, not on its `base`"):
        load_config(tmp_path / "x.yaml")


def test_a_release_has_the_parameters_of_its_epsilon(tmp_path: Path) -> None:
    (entry,) = config(tmp_path, PIECES).algorithms
    ratings = make_ratings()
    source = FittedRatings("shop", ratings, np.arange(ratings.n_users), np.arange(ratings.n_items))
    found = [fitted(entry, source, epsilon).statement.algorithm["factors"] for epsilon in (0.5, 0.6, 4.0)]
    assert found == [2, 4, 3]
