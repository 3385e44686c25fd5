"""A verdict follows by one rule from the margins in the settings that were tried."""

import math
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.papers.record import UNBOUNDED, PrintedValue, Proved, Record, path_of, read_record, text_of
from dpmf_cli.papers.space import Setting
from dpmf_cli.papers.verdicts import (
    Judged,
    judged,
    limit_of,
    moved_by,
    of_theorem,
    word_of,
)
from tests.papers.explored import ATOM, OPEN, SETTINGS, explored


def small_steps(setting: Setting) -> float:
    return 1.0 if setting[1] == 0 else -1.0


def verdict(*args: object, **more: object) -> Judged:
    (found,) = judged(explored(*args, **more), "it")  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("margin", "word", "counts", "by"),
    [
        (lambda _: 1.0, "holds", {1: 24}, ""),
        (lambda _: -1.0, "fails", {-1: 24}, ""),
        (lambda _: UNBOUNDED, "holds", {1: 24}, ""),
        (lambda setting: -1.0 if setting == (0, 0, 0) else 1.0, "holds", {1: 23, -1: 1}, ""),
        (
            small_steps,
            "depends",
            {1: 8, -1: 16},
            "step (holds with small: 8 of 8; middle: 0 of 8; large: 0 of 8)",
        ),
        (lambda setting: 1.0 if setting[0] else 0.0, "too close", {1: 12, 0: 12}, ""),
        (lambda setting: 1.0 if setting[2] else 0.0, "holds", {1: 18, 0: 6}, ""),
        (lambda setting: None if setting[0] else 1.0, "holds", {1: 12, 2: 12}, ""),
        (lambda setting: None if setting[1] else 1.0, "no data", {1: 8, 2: 16}, ""),
    ],
)
def test_a_verdict_counts_settings(margin: object, word: str, counts: dict[int, int], by: str) -> None:
    found = verdict(margin)
    assert (found.word, found.counts, found.by) == (word, counts, by)
    assert (found.text, found.unit, found.said) == ("a < b", "RMSE", "this and that")


def test_within_its_tolerance_or_the_noise_of_folds_a_setting_decides_nothing() -> None:
    assert verdict(lambda _: 0.0019).word == "too close"
    quiet = ATOM.model_copy(update={"shipped": (1.0, 1.0, 1.0)})
    assert verdict(lambda _: 0.0021, atoms=[quiet]).word == "holds"
    assert verdict(lambda _: 0.1, noise=1.0).word == "too close"
    loud = ATOM.model_copy(update={"shipped": (1.0, -1.0, 2.0, UNBOUNDED, None)})
    assert verdict(lambda _: 1.0, atoms=[loud]).word == "too close"


def test_the_noise_joins_both_variances_and_is_widened_for_overlapping_training_sets() -> None:
    """Four degrees of freedom of the shipped variance and one of two folds: t of five, at 97.5 %."""
    shipped = (-2.0, 2.0, 2.0, -2.0, 0.0)  # a variance of 4
    (limit,) = limit_of(np.array([[1.0, 3.0]]), 0.002, 10, shipped)
    joint = (4 * 4.0 + 1 * 2.0) / 5
    assert limit == pytest.approx(2.5706 * math.sqrt(joint / 2 * (1 + 2 / 9)), rel=1e-4)
    (single,) = limit_of(np.array([[1.0]]), 0.002, 10, shipped)
    assert single == pytest.approx(2.7764 * math.sqrt(4.0 * (1 + 1 / 9)), rel=1e-4)
    assert limit_of(np.array([[1.0, 1.0]]), 0.002, 10, (0.0,) * 5) == 0.002
    assert limit_of(np.array([[1.0, 3.0]]), 0.002, 10, shipped * 2) == pytest.approx(
        2.5706 * math.sqrt((4 * np.var(shipped * 2, ddof=1) + 2.0) / 5 / 2 * (1 + 2 / 9)), rel=1e-4
    ), "more folds count no more"
    (few,) = limit_of(np.array([[1.0, 3.0]]), 0.002, 2, (1.0, 3.0))
    assert few == pytest.approx(12.7062 * math.sqrt(2.0 / 2 * (1 + 2)), rel=1e-4), (
        "of two folds there is one degree"
    )
    (more,) = limit_of(np.array([[1.0, 3.0]]), 0.002, 9, (-1.0, 1.0))
    assert more == pytest.approx(4.3027 * math.sqrt(2.0 / 2 * (1 + 2 / 8)), rel=1e-4), (
        "two shipped folds count one"
    )


def test_more_than_one_in_twenty_against_a_verdict_turns_it() -> None:
    states = np.repeat([1, -1], [95, 5])
    assert word_of(states) == "holds"
    assert word_of(-states) == "fails"
    assert word_of(np.append(states, -1)) == "depends"
    assert word_of(np.array([], int)) == "no data"


def test_a_verdict_that_hangs_on_few_settings_is_told() -> None:
    assert verdict(lambda _: 1.0).flips == 0
    assert verdict(lambda setting: -1.0 if setting == (0, 0, 0) else 1.0).flips > 0.2


def test_a_reading_is_a_choice_like_any_other() -> None:
    readings = [ATOM.model_copy(update={"reading": each}) for each in ("one way", "another")]
    made = explored(lambda _: 1.0, atoms=readings)
    against = tuple(
        each.model_copy(update={"margins": (each.margins[0], (-1.0, -1.0, -1.0))}) for each in made.tried
    )
    (found,) = judged(made.model_copy(update={"tried": against}), "it")
    assert (found.word, found.by) == ("depends", "reading (holds with one way: 24 of 24; another: 0 of 24)")
    (limit,) = limit_of(np.array([[1.0, 1.0]]), ATOM.tolerance, made.partition, ATOM.shipped)
    assert found.margins == {"one way": (1, 1, 1, limit), "another": (-1, -1, -1, limit)}


@pytest.mark.parametrize(
    ("chosen", "resampled", "word", "flips"),
    [
        ((0.9, 1.1), (1.0, 1.0, 0.9, -1.0), "holds", 0.25),
        ((-0.9, -1.1), (-1.0,), "fails", 0),
        ((-0.1, 0.1), (0.0, 0.0), "too close", 0),
        ((None, 1.0), (1.0,), "no data", 1),
    ],
)
def test_the_best_setting_for_each_epsilon_decides(
    chosen: tuple[float | None, ...], resampled: tuple[float, ...], word: str, flips: float
) -> None:
    atom = ATOM.model_copy(update={"chosen": chosen, "resampled": resampled})
    found = verdict(lambda _: -1.0, atoms=[atom])
    assert (found.word, found.flips, found.counts) == (word, flips, {})
    other = atom.model_copy(update={"reading": "another", "chosen": (-1.0, -1.0)})
    both = verdict(lambda _: -1.0, atoms=[atom.model_copy(update={"reading": "one"}), other])
    assert both.word == ("fails" if word == "fails" else "depends")
    assert both.by == ("" if word == "fails" else f"one: {word}; another: fails")


def test_a_curve_that_has_diverged_agrees_with_no_print() -> None:
    found = PrintedValue.of(0.2, -math.inf, 0.02)
    assert (found.measured, found.gap, found.off) == (None, None, UNBOUNDED)


def test_theorems_hold_by_proof_and_fail_by_replay() -> None:
    assert of_theorem(None).word == "no data"
    assert of_theorem(Proved(held=True, proved=True, measured="so")).word == "holds"
    assert of_theorem(Proved(held=True, proved=False, measured="so")).word == "undecided"
    assert of_theorem(Proved(held=False, proved=True, measured="so")).word == "fails"
    assert judged(explored(lambda _: 1.0), "another") == []


def test_the_choices_that_move_a_number_are_named_from_the_largest_part_on() -> None:
    assert moved_by(OPEN, [(setting, small_steps(setting)) for setting in SETTINGS]) == ["step"]
    assert moved_by(OPEN, [(setting, 1.0) for setting in SETTINGS]) == []
    both = verdict(
        lambda at: 1.0 if at[:2] in ((0, 0), (0, 1)) else -1.0 if at[:2] in ((1, 1), (1, 2)) else 0.0
    )
    named = "start (holds with zero: 8 of 8; one: 0 of 8)"
    assert both.by == f"{named}, and on step (holds with small: 4 of 4; middle: 4 of 8; large: 0 of 4)"
    assert moved_by(OPEN, [(setting, 1.4 * setting[0] + setting[1]) for setting in SETTINGS]) == [
        "step",
        "start",
    ]


def test_what_moves_nothing_is_not_named() -> None:
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(200):
        named += bool(moved_by(OPEN, [(setting, float(rng.normal())) for setting in SETTINGS]))
    assert named < 20
    uneven = [(setting, float(setting[1] == 2)) for setting in SETTINGS if setting != (1, 2, 3)]
    assert moved_by(OPEN, uneven) == ["step"]


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record(
        paper="made",
        version="1",
        data={"ml-100k": explored(small_steps, lambda setting: 3.0 + setting[0])},
        theorems={"sound": Proved(held=True, proved=True, measured="proved")},
    )
    path = path_of(tmp_path, "made")
    assert read_record(path) is None
    path.write_text(text_of(record))
    assert read_record(path) == record
    assert '"text": "a < b"' in text_of(record)
    assert sum(line.startswith('{"setting"') for line in text_of(record).splitlines()) == 24
    path.write_text("{}")
    with pytest.raises(DpmfError, match=r"made\.json: is not a record of an exploration"):
        read_record(path)
