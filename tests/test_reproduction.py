"""Friedman et al. 2016 on real data: the shipped configs with one run a fold, against tables 3 and 4.

`make reproduce-friedman` runs them whole. The tolerances are those within which this project calls a cell
reproduced: 0.005 for averages, 0.01 for clean MF, a factor 1.5 for a crossing.
"""

from pathlib import Path

import pytest

from dpmf_cli.config import ExperimentConfig, load_config
from dpmf_cli.evaluation.crossings import Status
from dpmf_cli.experiment import run
from dpmf_cli.published import printed_baseline

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


@pytest.mark.parametrize("name", ["ml100k_bounded", "ml1m_bounded"])
def test_tables_3_and_4(name: str, tmp_path: Path, real_data: Path, session_cache: Path) -> None:
    config = ExperimentConfig(**{**load_config(CONFIGS / f"{name}.yaml").resolved(), "runs": 1})
    finished = run(config, base=CONFIGS, results=tmp_path, data=real_data, cache=session_cache, jobs=1)
    experiment = finished.collected.experiment
    for baseline in experiment.baselines:
        printed = printed_baseline(experiment.dataset, baseline.algorithm.upper())
        tolerance = 0.01 if baseline.algorithm == "als" else 0.005
        assert baseline.mean()[0] == pytest.approx(printed, abs=tolerance), baseline.label
    printed_cells = [crossing for crossing in finished.crossings if crossing.printed is not None]
    assert len(printed_cells) == 7
    for crossing in printed_cells:
        assert crossing.ratio is not None
        assert 1 / 1.5 < crossing.ratio < 1.5, crossing
        assert isinstance(crossing.low, float)
        assert isinstance(crossing.high, float)
        assert crossing.low < crossing.reproduced < crossing.high
        assert crossing.claimed == pytest.approx(crossing.reproduced)
        swapped_norms = 1 + 0.7 * 0.025 if crossing.algorithm == "pals" else 1
        assert crossing.provable == pytest.approx(swapped_norms * crossing.reproduced)
    private_effects = finished.crossings[1]
    assert (private_effects.algorithm, private_effects.baseline) == ("pge", "GE")
    assert private_effects.status == Status.NOT_REACHED
