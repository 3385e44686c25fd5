"""A folder of results of made-up ratings: curves, a sweep, errors, growth, a reduced experiment, names that need care."""

from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.config.loading import reduced
from dpmf_cli.studies.experiment import run

HOSTILE = '<script>alert("x")</script> & "name"'

DATASET = {"kind": "synthetic", "like": "ml-100k", "seed": 3, "users": 60, "items": 40, "ratings": 1200}
_COMMON: dict[str, Any] = {"dataset": DATASET, "folds": 3, "runs": 2, "epsilons": [0.5, 2, 8, 30]}
_ISGD = {"algorithm": "isgd", "factors": 2, "epochs": 5}
CONFIGS: list[dict[str, Any]] = [
    {
        "name": "ml100k_bounded",
        "baselines": ["ga", "ia", "ge"],
        "algorithms": ["pge", {**_ISGD, "label": HOSTILE}],
    },
    {
        "name": "friedman_fig6",
        "error_cdf": [1, 2],
        "baselines": ["ga"],
        "algorithms": ["pge", {**_ISGD, "sweep": {"epochs": [2, 4]}}],
    },
    {
        "name": "mine",
        "twins": True,
        "growth": {"portions": [0.4, 1], "order": "random"},
        "baselines": ["ia"],
        "algorithms": ["pge"],
    },
]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with four experiments. Tests may write only reports to it."""
    folder = tmp_path_factory.mktemp("report")
    for changes in CONFIGS:
        config = ExperimentConfig.model_validate({**_COMMON, **changes})
        _run(config, folder)
        if config.name == "mine":
            _run(reduced(config, held_out=1), folder)
    return folder / "results"


def _run(config: ExperimentConfig, folder: Path) -> None:
    run(
        config,
        Folders(folder / "no-data", folder / "cache", folder, folder / "results"),
        command=f"dpmf run {config.name}.yaml",
    )
