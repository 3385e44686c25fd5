"""The papers on real data: small versions of the shipped configs, compared with the printed figures.

Friedman et al. 2016: one run for each fold, compared with tables 3 and 4 (`dpmf reproduce friedman2016` runs them in
full). The tolerances are those within which this project calls a cell reproduced: 0.005 for averages, 0.01 for clean
MF, a factor 1.5 for a crossing. McSherry and Mironov 2009: figure 1 on ML-100K instead of ML-1M, compared with the
claims.
"""

from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import Status
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.papers.printed import printed_baseline
from dpmf_cli.studies.experiment import run

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folds"), [("ml100k_bounded", 10), ("ml1m_bounded", 4)])
def test_tables_3_and_4(name: str, folds: int, tmp_path: Path, real_data: Path, session_cache: Path) -> None:
    few = {"runs": 1, "held_out": folds}
    config = ExperimentConfig(**{**load_config(CONFIGS / f"{name}.yaml").resolved(), **few})
    finished = run(config, Folders(real_data, session_cache, CONFIGS, tmp_path))
    experiment = finished.collected.experiment
    for baseline in experiment.baselines:
        printed = printed_baseline(experiment.dataset, baseline.algorithm.upper())
        tolerance = 0.01 if baseline.algorithm == "als" else 0.005
        assert baseline.mean()[0] == pytest.approx(printed, abs=tolerance), baseline.label
    printed_values = [crossing for crossing in finished.crossings if crossing.printed is not None]
    assert len(printed_values) == 7
    for crossing in printed_values:
        assert crossing.ratio is not None
        assert crossing.reproduced is not None
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


@pytest.mark.slow
def test_figure_1_of_mcsherry_and_mironov(tmp_path: Path, real_data: Path, session_cache: Path) -> None:
    curves = {}
    for name in ("mcsherry_fig1_ml1m", "mcsherry_fig1_ml1m_corrected"):
        one_fold = {"dataset": {"kind": "catalog", "name": "ml-100k"}, "held_out": 1}
        few = {"thetas": [0.15, 1.5, 5.0, 30.0], "epsilons": None}
        config = ExperimentConfig(**{**load_config(CONFIGS / f"{name}.yaml").resolved(), **one_fold, **few})
        finished = run(config, Folders(real_data, session_cache, CONFIGS, tmp_path))
        experiment = finished.collected.experiment
        curves[name] = {curve.label: curve for curve in experiment.curves}
        assert len(curves[name]) == 6
    published, corrected = curves.values()
    ge = experiment.baseline("ge")
    assert ge is not None
    for label in ("kNN", "kNN, cleaned", "SVD", "SVD, cleaned"):
        noisy, better = published[label], corrected[label]
        assert noisy.noise_free is not None
        assert better.noise_free is not None
        without = better.noise_free["rmse"], noisy.noise_free["rmse"]
        assert without[0] == pytest.approx(without[1], abs=1e-4)  # without noise the modes are one method
        assert without[1].mean() < ge.mean()[0] - 0.02  # what a covariance is good for
        assert (better.mean()[:3] < noisy.mean()[:3]).all()
        assert (noisy.mean()[1:] < noisy.mean()[:-1]).all()
        assert noisy.mean()[0] > ge.mean()[0]
        assert (noisy.provable < noisy.claimed)[:3].all()
        assert better.provable == pytest.approx(better.claimed)
    # At 30, cleaning hurts SVD; averages alone are as good as anything at 0.15.
    assert published["SVD, cleaned"].mean()[3] > published["SVD"].mean()[3]
    assert corrected["averages alone"].mean()[0] < corrected["kNN, cleaned"].mean()[0] - 0.05
