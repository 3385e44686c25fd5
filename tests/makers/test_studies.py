"""Each mechanism of a benchmark study costs more than is claimed, and in its right form no more than that form allows."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from docs.makers import studies
from docs.makers.pages import with_tables
from docs.makers.studies import (
    STUDIES,
    Release,
    Statistic,
    StudyMechanism,
    chances_of_stars,
    least_epsilon,
)

PREDICTED, FACTORS, LIKES, ANSWERS, GRADIENTS, STARS = STUDIES
PAGE = Path(__file__).resolve().parents[2] / "docs" / "generated" / "benchmark_studies.md"
LONGEST = math.sqrt(studies.RANK * 4 * 25 / studies.PENALTY)
"""The largest 1-norm of a row: λ·‖row‖² is at most the sum of its squared ratings."""


@pytest.mark.parametrize("study", STUDIES, ids=lambda each: each.text.mechanism)
def test_a_study_costs_more_than_is_claimed_and_no_more_than_its_formula(study: StudyMechanism) -> None:
    most = studies.CEILING if math.isnan(study.by_formula) else min(studies.CEILING, study.by_formula)
    assert 2 * study.text.claimed < study.least < most
    if study is not GRADIENTS and study is not STARS:  # whose costliest event is too rare
        assert study.least > 0.8 * most


@pytest.mark.parametrize(
    ("study", "release", "seen", "allowed", "least"),
    [
        (PREDICTED, PREDICTED.release, lambda noisy: noisy[:, 0, 0], 1.0, 0.4),
        (FACTORS, partial(studies.noisy_factors, sensitivity=2 * 7 * LONGEST), FACTORS.seen, 1.0, 0.0),
        (LIKES, partial(studies.reported_likes, sampled=200), LIKES.seen, 1.0, 0.9),
        (ANSWERS, partial(studies.deniable_answers, stars=True), ANSWERS.seen, math.log(16), 2.5),
        (GRADIENTS, partial(studies.noisy_gradients, scale=2 * studies.CLIP * 8), GRADIENTS.seen, 1.0, 0.0),
        (STARS, partial(studies.perturbed_stars, height=0.28 * math.expm1(1 / 20)), STARS.seen, 1.0, 0.0),
    ],
)
def test_the_right_form_is_not_accused(
    study: StudyMechanism, release: Release, seen: Statistic, allowed: float, least: float
) -> None:
    assert least <= least_epsilon(release, seen, study.pair) <= allowed


def test_stars_have_the_chances_that_the_functions_of_comdprs_gave() -> None:
    """Its functions were run once, with the constants of the code and with those of its main program."""
    for rating in (1.0, 4.0):
        assert chances_of_stars(rating).round(3).tolist() == [0.127, 0.249, 0.249, 0.249, 0.127]
    assert chances_of_stars(5.0).round(3).tolist() == [0.234, 0.341, 0.17, 0.17, 0.086]
    same = [chances_of_stars(rating, 0.0236, 0.938, 0.3093).tolist() for rating in (1.0, 3.0, 5.0)]
    assert same[0] == same[1] == same[2]


def test_factors_solve_the_least_squares_of_the_last_half_step() -> None:
    ratings = np.random.default_rng(0).integers(1, 6, (3, 4, 3)).astype(float)
    users, items = studies._least_squares(ratings, np.random.default_rng(1))
    inner = users.swapaxes(1, 2) @ users + studies.PENALTY * np.eye(studies.RANK)
    assert items @ inner == pytest.approx(ratings.swapaxes(1, 2) @ users)


def test_the_page_shows_the_table() -> None:
    assert with_tables(PAGE) == PAGE.read_text(), f"write it anew: python -m docs.makers.pages {PAGE}"
