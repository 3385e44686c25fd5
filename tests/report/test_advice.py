"""Advice in words: what it says about each crossing, what it never recommends, and what it never compares."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.advice import advice, untried
from dpmf_cli.studies.experiment import run
from tests.report.advised import crossed, curve, experiment
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def said(*crossings: Crossing, of: Experiment | None = None) -> str:
    """The advice in one line."""
    return " ".join(advice([of or experiment()], crossings).split())


def test_a_crossing_with_its_interval_and_its_proof() -> None:
    text = said(crossed("PGE", 2.0))
    assert "the item average (IA) 1.0000, item and user averages together (GE) 0.9000" in text
    assert "Measured on 10 folds, 5 runs each; intervals are 95 %." in text
    public = "who rated what is public; neighbours: bounded"
    assert f"To hide the value of one rating ({public}), by pure ε-DP:" in text
    assert "- PGE is as good as GE from ε = 2.00 on (1.80 to 2.20). This ε can be proved." in text
    assert (
        "- For GE, take PGE: a provable ε of 2.00. No other gets there with an ε both claimed and proved."
        in text
    )


def test_the_least_provable_epsilon_is_recommended_and_overlap_is_said() -> None:
    clear = said(crossed("ISGD", 4.0), crossed("PGE", 2.0))
    assert "For GE, take PGE: a provable ε of 2.00. The intervals of ISGD lie above its own." in clear
    close = said(crossed("ISGD", 2.3), crossed("PGE", 2.0), crossed("PSGD", 6.0))
    assert (
        "take PGE: a provable ε of 2.00. It is not surely better than ISGD: the intervals overlap." in close
    )


def test_of_very_many_methods_a_sentence_names_the_first() -> None:
    others = [crossed(f"method {rank}", 6.0 + rank) for rank in range(13)]
    names = " and ".join(f"method {rank}" for rank in range(10))
    assert f"The intervals of {names} and 3 more lie above its own." in said(crossed("PGE", 2.0), *others)
    assert "method 9 and method 10" not in said(crossed("PGE", 2.0), *others)


NO_INTERVAL: dict[str, Any] = {"over": "none", "low": None, "high": None, "folds": 1, "runs": 1}


def test_without_intervals_nothing_is_said_of_them() -> None:
    alone = experiment(folds=1, runs=1)
    text = said(crossed("ISGD", 2.3, **NO_INTERVAL), crossed("PGE", 2.0, **NO_INTERVAL), of=alone)
    assert "a provable ε of 2.00. Without intervals nobody can tell whether it is better than ISGD." in text
    assert "overlap" not in text
    with_interval: dict[str, Any] = {}
    for ours, theirs in ((NO_INTERVAL, with_interval), (with_interval, NO_INTERVAL)):
        text = said(crossed("ISGD", 4.0, **theirs), crossed("PGE", 2.0, **ours))
        assert "Without intervals nobody can tell whether it is better than ISGD." in text
        assert "lie above" not in text
    both = said(crossed("ISGD", 2.1), crossed("PSGD", 6.0, **NO_INTERVAL), crossed("PGE", 2.0))
    assert "Without intervals nobody can tell whether it is better than PSGD." in both
    assert "not surely better than ISGD: the intervals overlap." in both


def test_a_method_with_a_provable_epsilon_above_its_claim_is_not_denied() -> None:
    """PALS meets the baseline at a provable ε of 5; only its claimed ε fails."""
    text = said(crossed("PALS", 1.0, provable=5.0), crossed("PGE", 2.0))
    assert "ε = 5.00" in text
    assert "No other gets there with an ε both claimed and proved." in text


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
        (float("inf"), "This ε is only claimed: no ε can be proved for what was run."),
        (5.0, "This ε is only claimed: the provable one is ε = 5.00."),
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
    assert "For GE, no method can be recommended: none gets there with an ε both claimed and proved." in alone


def test_what_is_proved_may_be_less_than_what_is_claimed_and_ranks() -> None:
    text = said(crossed("MM", 2.2, provable=1.5), crossed("PGE", 2.0))
    assert "MM is as good as GE from ε = 2.20 on (1.98 to 2.42). A smaller ε can be proved: ε = 1.50." in text
    assert "take MM: a provable ε of 1.50. The intervals of PGE lie above its own." in text


CANNOT = "An ε under one heading cannot be compared with an ε under another."
RANKED = "Each heading above makes a different promise. An ε under one heading is not ranked against an ε under another."
BY_DELTA = "Pure ε implies (ε, δ) at the same ε. A δ implies every larger δ. The converses are false."
TOWARDS = "Protection towards everybody implies joint protection at the same ε; the converse is false."
ACROSS = {
    frozenset({"neighbours"}): f"Each heading above makes a different promise. {CANNOT}",
    frozenset({"joint"}): f"{RANKED} {TOWARDS}",
    frozenset({"delta"}): f"{RANKED} {BY_DELTA}",
}


@pytest.mark.parametrize(
    ("changed", "heading"),
    [
        (
            {"neighbours": "unbounded"},
            "To hide whether one rating exists (for its value the bound is 2ε; neighbours: unbounded), by pure ε-DP:",
        ),
        (
            {"neighbours": "user"},
            "To hide whether one user, with all ratings, took part at all (for the ratings of somebody who did the bound "
            "is 2ε; neighbours: user)",
        ),
        (
            {"neighbours": "local"},
            "To hide the value of one rating in all messages of its user (who rated what is public",
        ),
        ({"joint": True}, "from everybody but the user who gets the prediction (joint), by pure ε-DP:"),
        ({"delta": 1e-6}, "neighbours: bounded), by (ε, δ)-DP with δ = 1e-06:"),
        (
            {"neighbours": "unbounded"},
            "each rating has an ε of its own, often a smaller one; neighbours: unbounded), by pure ε-DP:",
        ),
    ],
)
def test_epsilon_is_never_ranked_across_what_it_protects(changed: dict[str, Any], heading: str) -> None:
    other = (
        replace(curve("OTHER"), protects=Protection.PERSONALISED)
        if "an ε of its own" in heading
        else curve("OTHER")
    )
    text = said(crossed("PGE", 2.0), crossed("OTHER", 1.0, **changed), of=experiment(curves=(other,)))
    assert heading in text
    assert "take PGE: a provable ε of 2.00. No other" in text
    assert "take OTHER: a provable ε of 1.00. No other" in text
    assert ACROSS[frozenset(changed)] in text
    assert (CANNOT in text) == ("neighbours" in changed)
    assert "overlap" not in text
    assert "lie above" not in text


@pytest.mark.parametrize(
    ("one", "other", "both", "said_of_them"),
    [
        ({"delta": 1e-6}, {"delta": 1e-9}, RANKED, [BY_DELTA]),
        ({}, {"delta": 1e-9, "joint": True}, RANKED, [BY_DELTA, TOWARDS]),
        # Neither implies the other.
        ({"delta": 1e-9}, {"joint": True}, RANKED, []),
    ],
)
def test_what_an_epsilon_implies_of_others(
    one: dict[str, Any], other: dict[str, Any], both: str, said_of_them: list[str]
) -> None:
    text = said(crossed("PGE", 2.0, **one), crossed("OTHER", 1.0, **other))
    assert both in text
    assert [each for each in (BY_DELTA, TOWARDS) if each in text] == said_of_them
    assert CANNOT not in text


def test_several_kinds_of_which_some_protect_the_same() -> None:
    text = said(
        crossed("PGE", 2.0),
        crossed("MM", 2.0, delta=1e-6),
        crossed("OTHER", 1.0, neighbours="unbounded", joint=True),
    )
    assert "not ranked against an ε under another, and cannot even be compared with it if they hide" in text
    assert BY_DELTA in text
    assert TOWARDS not in text


def test_what_lies_outside_the_grid() -> None:
    below = crossed("PGE", 1.0, status=Status.BELOW_GRID, reproduced=None, claimed=None, provable=None,
                    low=Status.BELOW_GRID, high=0.7)  # fmt: skip
    never = crossed("PSGD", 1.0, status=Status.NOT_REACHED, reproduced=None, low=6.0, high=Status.NOT_REACHED)
    text = said(below, never, of=experiment(curves=(curve("PGE"), curve("PSGD", twin=0.95))))
    assert (
        "PGE is as good as GE already at ε = 0.5, the smallest that was tried (but the interval reaches to ε = 0.700)."
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
        "the smallest that was tried (but the interval reaches to ε = 0.700). This ε is only claimed"
        in unproved
    )
    assert "no method can be recommended" in unproved


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


def test_lines_are_short_and_epsilon_stays_with_its_number(made: Make) -> None:
    whole = of_theta(made())
    text = advice([whole], find_crossings(whole, replicates=50))
    assert max(map(len, text.splitlines())) <= 92
    assert not any(line.endswith(("ε", "=")) for line in text.splitlines())
    assert "\u00a0" not in text


@pytest.mark.parametrize(
    ("ua", "spread", "weak"),
    [
        (0.89, 0.0, "GE is weak here. UA knows less and has an error of 0.8900."),
        (0.89, 0.05, ""),  # the folds differ by more
        (0.91, 0.0, ""),
    ],
)
def test_a_target_that_a_simpler_baseline_surely_beats_is_called_weak(
    ua: float, spread: float, weak: str
) -> None:
    made = experiment()
    errors = ua + spread * np.array([1, -1] * 5).reshape(10, 1, 1)
    simpler = replace(made.baselines[0], algorithm="ua", label="UA", rmse=errors)
    words = said(crossed("PGE", 2.0), of=replace(made, baselines=(*made.baselines, simpler)))
    assert weak in words
    assert words.count("Beware") == bool(weak)


def test_all_targets_that_one_number_beats_share_a_warning() -> None:
    made = experiment()
    simpler = [
        replace(made.baselines[0], algorithm=key, label=key.upper(), rmse=np.full((10, 1, 1), error))
        for key, error in (("ua", 0.85), ("ga", 0.8))
    ]
    words = said(crossed("PGE", 2.0), of=replace(made, baselines=(*made.baselines, *simpler)))
    assert words.count("Beware") == 1
    assert "Beware: IA and GE are weak here. GA knows less and has an error of 0.8000." in words


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
    run(config, Folders(folder, folder / "cache", folder, folder))
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
    assert "; neighbours: bounded), by pure ε-DP:" in text
    assert (
        "; neighbours: unbounded), from everybody but the user who gets the prediction (joint), by pure ε-DP:"
        in text
    )
    assert "An ε under one heading cannot be compared with an ε under another." in text
    assert "Without noise it is GE itself" in text


def test_the_command_answers_in_words_alone(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dpmf_cli.cli import main as cli

    cli.app(["explain", str(shop)], standalone_mode=False)
    assert "For IA, take PGE" in capsys.readouterr().out
