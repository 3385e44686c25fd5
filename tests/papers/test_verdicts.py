"""A verdict follows by one rule from the settings that were tried."""

import math
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.papers.record import Printed, Proved, Record, path_of, read_record, text_of
from dpmf_cli.papers.space import Setting
from dpmf_cli.papers.verdicts import Judged, deviation, judged, moved_by, nearest, of_theorem, shares_held
from tests.papers.explored import SETTINGS, Half, explored


def always(_: Setting, __: int) -> tuple[bool, ...]:
    return True, True


def small_steps(setting: Setting, _: int) -> tuple[bool, ...]:
    return True, setting[1] == 0


@pytest.mark.parametrize(
    ("held", "word", "said"),
    [
        (always, "confirmed", "holds in 24 of 24 settings"),
        (lambda _, __: (False, False), "refuted", "holds in none of 24 settings"),
        (small_steps, "in part", 'holds in 8 of 24 settings; only if the choice "step" is small'),
        (lambda _, __: (True, False), "in part", "holds in none of 24 settings, its parts in 24, 0 of them"),
        (
            lambda _, half: (half == 0, half == 0),
            "in part",
            "holds in none of 24 settings, in 24 it turns with the fold",
        ),
        (lambda setting, _: (setting == (0, 0, 0),), "in part", "holds in 1 of 24 settings"),
        (
            lambda setting, half: (setting == (0, 0, 0) or half == 0,),
            "in part",
            "holds in 1 of 24 settings, in 23 it turns with the fold",
        ),
    ],
)
def test_a_verdict_counts_settings(held: Half, word: str, said: str) -> None:
    found = judged(explored(held), "it")
    assert (found.word, found.said.startswith(said)) == (word, True)
    assert ("only if" in found.said) == ("only if" in said)


def test_what_was_not_tried_is_not_tested() -> None:
    assert judged(explored(always), "another").word == "not tested"
    assert of_theorem(None).word == "not tested"
    assert of_theorem(Proved(held=True, proved=True, measured="")).word == "confirmed"
    assert of_theorem(Proved(held=True, proved=False, measured="")).word == "undecided"
    assert of_theorem(Proved(held=False, proved=True, measured="")).word == "refuted"


@pytest.mark.parametrize(
    ("parts", "word", "said"),
    [
        ((True, True), "confirmed", "2 of 2 parts hold"),
        ((True, False), "in part", "1 of 2 parts hold"),
        ((False,), "refuted", "fails"),
    ],
)
def test_parameters_chosen_for_each_epsilon_decide(parts: tuple[bool, ...], word: str, said: str) -> None:
    found = judged(explored(lambda _, __: (False, False), chosen={"it": parts}), "it")
    best = f"with the best setting for each ε, {said}; with one setting for all ε, holds in none of 24"
    assert (found.word, found.said.startswith(best)) == (word, True)


def test_a_choice_that_moves_a_claim_is_named_with_its_part_of_the_variance() -> None:
    found = explored(small_steps)
    ((name, index),) = moved_by(found, shares_held(found, "it"))
    assert (name, round(index, 6)) == ("step", 1.0)
    assert moved_by(explored(always), shares_held(explored(always), "it")) == []
    both = [(setting, 1.4 * setting[0] + setting[1]) for setting, _ in shares_held(found, "it")]
    assert [name for name, _ in moved_by(found, both)] == ["step", "start"]


def test_what_moves_nothing_is_not_named() -> None:
    rng = np.random.default_rng(1)
    found, named = explored(always), 0
    for _ in range(200):
        named += bool(moved_by(found, [(setting, float(rng.normal())) for setting in SETTINGS]))
    assert named < 20
    uneven = [(setting, float(setting[1] == 2)) for setting in SETTINGS if setting != (1, 2, 3)]
    assert [name for name, _ in moved_by(found, uneven)] == ["step"]


def test_a_claim_that_no_setting_moves_is_said_to_be_that() -> None:
    found = judged(explored(lambda _, __: (True, False)).model_copy(update={"fixed": ("it",)}), "it")
    assert found == Judged("in part", "1 of 2 parts hold, with the same figures in all 24 settings")


def test_deviations_count_in_tolerances() -> None:
    factor = Printed(printed=2.0, tolerance=1.5, ratio=True)
    assert deviation(factor, 3.0) == pytest.approx(1)
    assert deviation(factor, 2 / 1.5) == pytest.approx(-1)
    assert deviation(factor, None) == math.inf
    assert deviation(factor, 0.0) == -math.inf
    assert deviation(Printed(printed=1.0, tolerance=0.01, ratio=False), 0.98) == pytest.approx(-2)


def test_the_setting_nearest_to_print_is_found_on_the_folds_to_choose_by() -> None:
    found = nearest(explored(always, lambda setting: None if not setting[0] else 1.0 + setting[1]))
    assert found is not None
    assert found.setting == (1, 1, 0)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record(
        paper="made",
        version="1",
        data={"ml-100k": explored(small_steps, lambda setting: None if setting[0] else 3.0)},
        theorems={"sound": Proved(held=True, proved=True, measured="proved")},
    )
    path = path_of(tmp_path, "made")
    assert read_record(path) is None
    path.write_text(text_of(record))
    assert read_record(path) == record
    assert sum(line.startswith('{"setting"') for line in text_of(record).splitlines()) == 24
    path.write_text("{}")
    with pytest.raises(DpmfError, match=r"made\.json: is not a record of an exploration"):
        read_record(path)
