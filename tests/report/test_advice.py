"""Advice in words: what it says of each crossing, what it never recommends, and what it never compares."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.config import load_config
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.experiment import run
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.advice import advice
from dpmf_cli.report.untried import untried
from dpmf_cli.results_folders import collect_folder
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]
GRID = np.array([0.5, 2.0, 8.0])
INFINITE = np.array([np.inf])


def crossed(label: str, epsilon: float, **changed: Any) -> Crossing:
    """A crossing with GE, whose ε is provable and whose interval is ± 10 %."""
    given: dict[str, Any] = {
        "dataset": "shop",
        "neighbours": "bounded",
        "mode": "published",
        "algorithm": label.lower(),
        "label": label,
        "baseline": "GE",
        "status": Status.CROSSED,
        "reproduced": epsilon,
        "low": 0.9 * epsilon,
        "high": 1.1 * epsilon,
        "claimed": epsilon,
        "provable": epsilon,
        "over": "folds",
        "folds": 10,
        "runs": 5,
        "grid_low": 0.5,
        "grid_high": 8.0,
        "experiment": "shop",
    }
    return Crossing(**{**given, **changed})


def experiment(**changed: Any) -> Experiment:
    baselines = tuple(
        Measured(key, key.upper(), INFINITE, np.full((10, 1, 1), level), INFINITE, INFINITE)
        for key, level in (("ia", 1.0), ("ge", 0.9))
    )
    return replace(Experiment("shop", "shop", "My shop", 10, 10, 5, 1, (), baselines), **changed)


def curve(label: str, twin: float | None = None, provable: float = 1.0, **changed: Any) -> Measured:
    made = Measured(
        label.lower(), label, GRID, np.ones((10, 5, 3)), GRID, provable * GRID, "bounded", "published"
    )
    return replace(made, twin=None if twin is None else np.full(10, twin), **changed)


def said(*crossings: Crossing, of: Experiment | None = None) -> str:
    """The advice in one line."""
    return " ".join(advice([of or experiment()], crossings).split())


def test_a_crossing_with_its_interval_and_its_proof() -> None:
    text = said(crossed("PGE", 2.0))
    assert "the item average (IA) 1.0000, item and user averages together (GE) 0.9000" in text
    assert "Measured on 10 folds, 5 runs each; intervals are 95 %." in text
    assert "To hide the value of one rating, not that it exists (neighbours: bounded), by pure ε:" in text
    assert "- PGE is as good as GE from ε = 2.00 on (1.80 to 2.20). This ε can be proved." in text
    assert (
        "- For GE, take PGE: a provable ε of 2.00. No other gets there with the ε it claims proved." in text
    )


def test_the_least_provable_epsilon_is_recommended_and_overlap_is_said() -> None:
    clear = said(crossed("ISGD", 4.0), crossed("PGE", 2.0))
    assert "For GE, take PGE: a provable ε of 2.00. The intervals of ISGD lie above its own." in clear
    close = said(crossed("ISGD", 2.3), crossed("PGE", 2.0), crossed("PSGD", 6.0))
    assert (
        "take PGE: a provable ε of 2.00. It is not surely better than ISGD: the intervals overlap." in close
    )


NO_INTERVAL: dict[str, Any] = {"over": "none", "low": None, "high": None, "folds": 1, "runs": 1}


def test_without_intervals_nothing_is_said_of_them() -> None:
    alone = experiment(folds=1, runs=1)
    text = said(crossed("ISGD", 2.3, **NO_INTERVAL), crossed("PGE", 2.0, **NO_INTERVAL), of=alone)
    assert "a provable ε of 2.00. Whether it is better than ISGD nobody can tell without intervals." in text
    assert "overlap" not in text
    with_interval: dict[str, Any] = {}
    for ours, theirs in ((NO_INTERVAL, with_interval), (with_interval, NO_INTERVAL)):
        text = said(crossed("ISGD", 4.0, **theirs), crossed("PGE", 2.0, **ours))
        assert "Whether it is better than ISGD nobody can tell without intervals." in text
        assert "lie above" not in text
    both = said(crossed("ISGD", 2.1), crossed("PSGD", 6.0, **NO_INTERVAL), crossed("PGE", 2.0))
    assert "Whether it is better than PSGD nobody can tell without intervals." in both
    assert "not surely better than ISGD: the intervals overlap." in both


def test_a_method_with_a_provable_epsilon_above_its_claim_is_not_denied() -> None:
    """PALS gets there with a provable ε of 5; what fails is the ε that it claims."""
    text = said(crossed("PALS", 1.0, provable=5.0), crossed("PGE", 2.0))
    assert "what can be proved is ε = 5.00" in text
    assert "No other gets there with the ε it claims proved." in text


@pytest.mark.parametrize(
    ("label", "called"),
    [
        ("PGE", "PGE (corrected)"),
        ("PGE, bounded, corrected", "PGE, bounded, corrected"),
        ("PGE Corrected", "PGE Corrected"),
        ("PGE, uncorrected", "PGE, uncorrected (corrected)"),
    ],
)
def test_the_mode_is_named_once(label: str, called: str) -> None:
    assert f"- {called} is as good as GE" in said(crossed(label, 2.0, mode="corrected"))


@pytest.mark.parametrize(
    ("provable", "words"),
    [
        (float("inf"), "This ε is claimed only: for what was run none can be proved."),
        (5.0, "This ε is claimed only: what can be proved is ε = 5.00."),
    ],
)
def test_an_epsilon_that_cannot_be_proved_is_mentioned_and_never_recommended(
    provable: float, words: str
) -> None:
    text = said(crossed("PALS", 1.0, provable=provable), crossed("PGE", 2.0))
    assert f"PALS is as good as GE from ε = 1.00 on (0.900 to 1.10). {words}" in text
    assert "For GE, take PGE" in text
    assert "take PALS" not in text
    alone = said(crossed("PALS", 1.0, provable=provable))
    assert (
        "For GE, there is none to recommend. None of these gets there with the ε it claims proved." in alone
    )


def test_what_is_proved_may_be_less_than_what_is_claimed_and_ranks() -> None:
    text = said(crossed("MM", 2.2, provable=1.5), crossed("PGE", 2.0))
    assert "MM is as good as GE from ε = 2.20 on (1.98 to 2.42). Less can be proved: ε = 1.50." in text
    assert "take MM: a provable ε of 1.50. The intervals of PGE lie above its own." in text


@pytest.mark.parametrize(
    ("changed", "heading"),
    [
        (
            {"neighbours": "unbounded"},
            "To hide whether one rating exists (neighbours: unbounded), by pure ε:",
        ),
        (
            {"neighbours": "user"},
            "To hide whether a user took part at all, with all ratings (neighbours: user)",
        ),
        (
            {"neighbours": "local"},
            "To hide the value of one rating from the service itself, not that it exists",
        ),
        ({"joint": True}, "from everybody but the user who gets the prediction (joint), by pure ε:"),
        ({"delta": 1e-6}, "(neighbours: bounded), by (ε, δ) with δ = 1e-06:"),
        (
            {"neighbours": "unbounded"},
            "each by its own ε, of which the one given is the largest (neighbours: unbounded), by pure ε:",
        ),
    ],
)
def test_epsilon_is_never_compared_across_what_it_protects(changed: dict[str, Any], heading: str) -> None:
    other = (
        replace(curve("OTHER"), protects=Protection.PERSONALISED)
        if "each by its own" in heading
        else curve("OTHER")
    )
    text = said(crossed("PGE", 2.0), crossed("OTHER", 1.0, **changed), of=experiment(curves=(other,)))
    assert heading in text
    assert "take PGE: a provable ε of 2.00. No other" in text
    assert "take OTHER: a provable ε of 1.00. No other" in text
    assert "An ε of one says nothing about an ε of another." in text
    assert "overlap" not in text
    assert "lie above" not in text


def test_what_lies_outside_the_grid() -> None:
    below = crossed("PGE", 1.0, status=Status.BELOW_GRID, reproduced=None, claimed=None, provable=None,
                    low=Status.BELOW_GRID, high=0.7)  # fmt: skip
    never = crossed("PSGD", 1.0, status=Status.NOT_REACHED, reproduced=None, low=6.0, high=Status.NOT_REACHED)
    text = said(below, never, of=experiment(curves=(curve("PGE"), curve("PSGD", twin=0.95))))
    assert (
        "PGE is as good as GE at ε = 0.5 already, the least that was tried (but the interval reaches to ε = 0.700)."
        in text
    )
    assert "For GE, take PGE: a provable ε of at most 0.500." in text
    assert (
        "PSGD is worse than GE at every ε up to 8, the largest that was tried (but the interval reaches to ε = 6.00)."
        in text
    )
    assert "Without noise its error is 0.9500: with these parameters no ε is enough." in text
    unproved = said(below, of=experiment(curves=(curve("PGE", provable=3.0),)))
    assert (
        "already, the least that was tried (but the interval reaches to ε = 0.700). This ε is claimed only"
        in unproved
    )
    assert "none to recommend" in unproved


@pytest.mark.parametrize(
    ("twin", "words"),
    [
        (0.8, "its error is 0.8000: a larger ε can be enough"),
        (0.9, "it is GE itself: with noise it can come near"),
    ],
)
def test_whether_a_larger_epsilon_can_help(twin: float, words: str) -> None:
    never = crossed(
        "PSGD",
        1.0,
        status=Status.NOT_REACHED,
        reproduced=None,
        low=Status.NOT_REACHED,
        high=Status.NOT_REACHED,
    )
    assert words in said(never, of=experiment(curves=(curve("PSGD", twin=twin),)))
    assert "Without noise" not in said(never, of=experiment(curves=(curve("PSGD"),)))


def test_a_curve_that_rises_again_an_interval_over_nothing_and_what_is_missing() -> None:
    text = said(
        crossed("PGE", 2.0, recrosses=True, over="none", low=None, high=None),
        crossed("ISGD", 2.0, status=Status.INCOMPLETE, reproduced=None, claimed=None, provable=None),
        crossed("PSGD", 3.0, mode="corrected", low=Status.BELOW_GRID, high=Status.NOT_REACHED),
    )
    assert "PGE is as good as GE first at ε = 2.00 (no interval), but is worse again at a larger ε." in text
    assert "ISGD lacks results for GE: run its config to the end." in text
    assert "PSGD (corrected) is as good as GE from ε = 3.00 on (below 0.5 to beyond 8)." in text


def test_printed_references_are_no_baselines_of_advice() -> None:
    assert "Cinematch" not in said(crossed("PGE", 2.0, baseline="Cinematch probe", reference=True))


def test_no_results_no_advice() -> None:
    assert advice([], []) == "There are no results to draw advice from.\n"


def left(*experiments: Experiment) -> str:
    return "\n".join(untried(experiments))


def test_what_was_not_tried() -> None:
    made = curve("PALS", provable=np.inf)
    text = left(experiment(curves=(curve("PGE"), made), folds=3, runs=1, baselines=()))
    assert text.startswith(
        f"{len(PRIVATE) - 2} of the {len(PRIVATE)} private methods of dpmf: isgd, psgd, pals_obj"
    )
    assert "`neighbours: unbounded`, to hide whether one rating exists (pge, isgd," in text
    assert "`neighbours: user`, to hide whether a user took part at all, with all ratings (mm_knn," in text
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


def test_lines_are_short_and_epsilon_stays_with_its_number(made: Make) -> None:
    whole = of_theta(made())
    text = advice([whole], find_crossings(whole, replicates=50))
    assert max(map(len, text.splitlines())) <= 92
    assert not any(line.endswith(("ε", "=")) for line in text.splitlines())
    assert "\u00a0" not in text


SHOP = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 200, items: 60, ratings: 5000}
folds: 4
runs: 2
epsilons: [0.2, 2, 20]
twins: true
algorithms:
  - algorithm: pge
  - {algorithm: mm_averages, noise: laplace}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a small run."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(SHOP)
    config = load_config(folder / "shop.yaml")
    run(config, base=folder, results=folder, data=folder, cache=folder / "cache", jobs=1)
    return folder / "shop"


def test_a_real_run(shop: Path) -> None:
    whole = collect_folder(shop).experiment
    crossings = find_crossings(whole)
    text = " ".join(advice([whole], crossings).split())
    pge, mm = (
        next(c for c in crossings if c.algorithm == key and c.baseline == "IA")
        for key in ("pge", "mm_averages")
    )
    assert pge.status == mm.status == Status.CROSSED
    assert f"For IA, take PGE: a provable ε of {pge.provable:.3g}" in text
    assert "(neighbours: bounded), by pure ε:" in text
    assert (
        "(neighbours: unbounded), from everybody but the user who gets the prediction (joint), by pure ε:"
        in text
    )
    assert "An ε of one says nothing" in text
    assert "Without noise it is GE itself" in text


def test_the_command_answers_in_words_alone(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dpmf_cli import cli

    cli.app(["crossings", "--advise", str(shop)], standalone_mode=False)
    assert "For IA, take PGE" in capsys.readouterr().out
    with pytest.raises(DpmfError, match="--advise answers in words; leave --format and --printed out"):
        cli.app(["crossings", "--advise", "--format", "md"], standalone_mode=False)
