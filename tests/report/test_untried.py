"""Settings that were not tried, in words."""

from dataclasses import replace

import numpy as np

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.advice import untried
from tests.report.advised import curve, experiment


def left(*experiments: Experiment) -> str:
    return "\n".join(untried(experiments))


def test_what_was_not_tried() -> None:
    made = curve("PALS", provable=np.inf)
    text = left(experiment(curves=(curve("PGE"), made), folds=3, runs=1, baselines=()))
    assert text.startswith(
        f"{len(PRIVATE) - 2} of the {len(PRIVATE)} private methods of dpmf: isgd, psgd, pals_obj"
    )
    assert "`neighbours: unbounded`, to hide whether one rating exists (pge, isgd," in text
    assert "`neighbours: user`, to hide whether one user, with all ratings, took part at all (mm_knn," in text
    assert "`neighbours: bounded`" not in text
    assert "`mode: corrected`, in which every ε of PALS is provable." in text
    assert "ε below 0.5 or above 8." in text
    assert "The baseline IA: add `ia` to `baselines`." in text
    assert "More than 3 folds" in text
    assert "More than one run" in text


def test_what_another_experiment_tried_is_tried() -> None:
    corrected = curve("PALS", mode="corrected", neighbours="bounded")
    wider = replace(curve("PGE"), epsilons=np.array([0.1, 20.0]), neighbours="user")
    text = left(experiment(curves=(curve("PALS", provable=2),)), experiment(curves=(corrected, wider)))
    assert "mode: corrected" not in text
    assert "ε below 0.1 or above 20." in text
    assert "neighbours: user" not in text
    assert "More than" not in text
    assert "baseline" not in text


def test_points_of_a_sweep_are_left_out_and_said_to_be() -> None:
    swept = replace(curve("PGE"), swept=("beta", 2.0), epsilons=np.array([0.01, 99.0]))
    text = left(experiment(curves=(swept, curve("ISGD"))))
    assert "The points of a sweep" in text
    assert "ε below 0.5 or above 8." in text
