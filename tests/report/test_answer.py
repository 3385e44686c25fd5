"""The page of `dpmf advise`, from made-up curves."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.privacy.neighbours import HIDE_IDS, Neighbours
from dpmf_cli.report.answer import answer, odds
from tests.report.advised import GRID, INFINITE

LEVELS = {"ga": 1.2, "ua": 1.1, "ia": 1.0, "ge": 0.9, "als": 0.8}
NOISE = np.random.default_rng(5).normal(0, 1e-4, (5, 2, 1))


def baseline(key: str, level: float) -> Measured:
    title = {"als": "Clean MF"}.get(key, key.upper())
    return Measured(key, title, INFINITE, level + NOISE[:, :1], INFINITE, INFINITE)


def method(label: str, *rmse: float, **changed: Any) -> Measured:
    """A curve with `rmse` (3,) at ε = ½, 2 and 8."""
    return Measured(
        "pge", label, GRID, np.array(rmse) + NOISE, GRID, GRID, "bounded", "corrected", line=label, **changed
    )


def page(*curves: Measured, epsilon: float = 2.0, **said: bool) -> str:
    baselines = tuple(baseline(key, level) for key, level in LEVELS.items())
    experiment = Experiment("shop", "shop", "My shop", 5, 5, 2, 1, curves, baselines)
    return re.sub(r"\s+", " ", answer(experiment, epsilon, "my shop.yaml", **said))


def test_the_least_error_at_the_asked_epsilon_is_taken() -> None:
    curves = method("Early", 0.95, 0.94, 0.93), method("Late", 1.3, 0.92, 0.5)
    assert "At ε = 2 take Late" in page(*curves)
    assert ". - PGE: private global effects. Friedman, Berkovsky, Kaafar 2016" in page(*curves)
    assert "At ε = 0.5 take Early" in page(*curves, epsilon=0.5)
    assert "The next best is Early: 0.940" in page(*curves)


def test_a_guessed_scale_is_to_be_written_before_a_release() -> None:
    said = "write the scale that your site allows in my shop.yaml, and remove `guessed`."
    assert said in page(method("A", 1, 1, 1), guessed_scale=True)
    assert said not in page(method("A", 1, 1, 1))


def test_what_privacy_costs_is_against_the_best_without_it() -> None:
    assert "Privacy raises the error by 15.0%: without it, Clean MF has 0.800" in page(
        method("A", 1, 0.92, 0.9)
    )


def test_averages_that_are_beaten_and_that_are_not() -> None:
    said = page(method("A", 1.1, 0.95, 0.9))
    assert (
        "It is better than one number for everything, the average of each user or the average of each item"
        " without privacy." in said
    )
    assert "It is no better than item and user averages together without privacy." in said


def test_from_which_epsilon_on_it_pays() -> None:
    said = page(method("A", 1.1, 0.9501, 0.94))
    assert re.search(
        r"as good as the average of each item \(IA\) from ε = 1\.\d+ on \(1\.\d+ to 1\.\d+\)", said
    )
    assert "as good as item and user averages together (GE) at no ε that was tried, up to 8." in said
    assert "at every ε that was tried, from 0.5 on" in page(method("A", 0.7, 0.6, 0.5))


def test_joint_privacy_has_an_answer_of_its_own() -> None:
    said = page(method("A", 1.1, 0.95, 0.9), method("B", 1.0, 0.9, 0.8, joint=True))
    everybody, others = said.split("Other users may not learn what ε hides")
    assert "take A" in everybody
    assert "take B" in others
    assert "does not bound what somebody who sees these predictions learns about that user" in others


def test_intervals_that_overlap_leave_it_open() -> None:
    wide = np.linspace(-0.05, 0.05, 5)[:, None, None]
    one, other = (
        Measured(
            "pge",
            label,
            GRID,
            level + wide + np.zeros((5, 2, 3)),
            GRID,
            GRID,
            "bounded",
            "corrected",
            line=label,
        )
        for label, level in (("A", 0.95), ("B", 0.96))
    )
    said = page(one, other)
    assert "Not surely worse, because the intervals overlap: B (0.960" in said
    assert "It looks better than the average of each item without privacy, but the intervals overlap." in said


def test_a_method_that_diverged_is_not_taken() -> None:
    assert "take B" in page(method("A", np.inf, np.inf, np.inf), method("B", 1.1, 1.0, 0.9))
    assert "No method that was tried has a finite error" in page(method("A", np.inf, np.inf, np.inf))


def test_what_is_no_better_than_a_constant_is_not_taken() -> None:
    said = page(method("A", 1.4, 1.3, 1.1))
    assert "no method is better than one number for everything. The best is A: typical error 1.300" in said
    assert "take A" not in said
    assert "At ε = 8 take A" in page(method("A", 1.4, 1.3, 1.1), epsilon=8.0)


def test_a_promise_with_delta_says_so() -> None:
    assert "plus a probability of at most δ" in page(method("A", 1, 1, 1, delta=1e-6))
    assert "plus a probability of at most δ" not in page(method("A", 1, 1, 1))


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_where_ids_are_hidden_the_page_says_what_a_release_asks_for(neighbours: Neighbours) -> None:
    curve = replace(method("A", 1, 1, 1), neighbours=neighbours.value)
    assert ("--ids-are-public" in page(curve)) == (neighbours in HIDE_IDS)
    counts = replace(curve, algorithm="own_regression")
    assert ("the number of users, which must be public" in page(counts)) == (neighbours in HIDE_IDS)
    assert "number of users" not in page(curve)


@pytest.mark.parametrize(("epsilon", "times"), [(0.5, "1.6"), (2.0, "7.4"), (8.0, "2,981.0")])
def test_what_an_epsilon_promises_in_odds(epsilon: float, times: str) -> None:
    assert f"at most {times} times as likely" in page(method("A", 1, 1, 1), epsilon=epsilon)


def test_odds_may_be_larger_than_a_float() -> None:
    assert (odds(14), odds(1000.0), odds(1e4)) == ("1.2e+06", "2.0e+434", "8.8e+4342")


def test_the_commands_that_go_on_can_be_pasted() -> None:
    said = page(method("kNN, private", 1, 1, 1))
    assert "`dpmf release 'my shop.yaml' --method 'kNN, private' --epsilon 2`" in said
    assert "`dpmf levels 'my shop.yaml' --at 2`" in said
