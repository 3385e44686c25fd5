"""What is tried for Wang and Tang (2017): equally many settings of every method, and those found by hand."""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from dpmf_cli.config import load_config
from dpmf_cli.config.paths import ConfigPath, with_values
from dpmf_cli.papers.space import Choice, Value, space
from tests.committed import ROOT

SPACE = space("wang2017")
METHODS = {
    "dpsgd_pnbm": "DPSGD-PNBM, η as listed",
    "dpps_pnbm": "DPPS-PNBM, η₁ as listed",
    "psgd": "DPSGD-MF, η as listed",
    "dpps_mf": "DPPS-MF, η₁ as listed",
}
"""The label of the curve of a varied method, by its key."""


UNIFORM = {"distribution": "uniform", "scale": 1.0}


def choices_of(method: str) -> Iterator[Choice]:
    """The choices that are open for one method."""
    for choice in SPACE.open:
        paths = [ConfigPath.of(path) for value in choice.values for path in value.set]
        if any(path.algorithms == {method} for path in paths):
            yield choice


def of_method(value: Value, method: str) -> dict[str, Any]:
    """The parameters of a method that a value sets, by the keys after its entry."""
    return {
        path.keys: to
        for text, to in value.set.items()
        if (path := ConfigPath.of(text)).algorithms == {method}
    }


def test_every_method_is_tried_with_as_many_parameters() -> None:
    tried = {method: [len(choice.values) for choice in choices_of(method)] for method in METHODS}
    assert tried["psgd"] == [3, 3, 3, 3, 2, 6]
    assert all(each == tried["psgd"] for each in tried.values())
    for on in SPACE.data.values():  # a sample has each value as often as the other values of its choice
        assert (on.settings - 1) % math.lcm(*tried["psgd"]) == 0


def test_no_two_values_of_a_choice_are_the_same_for_a_method() -> None:
    for method in METHODS:
        for choice in choices_of(method):
            made = [str(of_method(value, method)) for value in choice.values]
            assert len(set(made)) == len(made), choice.name


def tried(method: str) -> list[dict[str, Any]]:
    """For each setting that is tried in addition to the sample: the parameters of the varied curve of a method."""
    figure = {"dpsgd_pnbm": "fig1", "psgd": "fig1"}.get(method, "fig2")
    config = load_config(ROOT / "configs" / f"wang_{figure}_ml100k.yaml")
    found = []
    for setting in SPACE.settings(1)[1:]:
        chosen = (choice.values[at] for choice, at in zip(SPACE.open, setting, strict=True))
        data, _ = with_values(config, {path: to for value in chosen for path, to in value.set.items()})
        found += [each for each in data["algorithms"] if each["label"] == METHODS[method]]
    return found


@pytest.mark.parametrize(
    ("method", "by_hand"),
    [
        ("dpsgd_pnbm", {"initial_similarity": 0.1, "iterations": 1, "learning_rate": 0.1, "floor": 15}),
        ("dpsgd_pnbm", {"initial_similarity": 0.05, "iterations": 3, "learning_rate": 0.02, "floor": 15}),
        ("dpps_pnbm", {"initial_rate": 4, "temperature": 0.001, "iterations": 10}),
        ("dpps_pnbm", {"initial_rate": 4000, "temperature": 1e-6, "iterations": 10}),
        ("dpps_pnbm", {"initial_rate": 8e-6, "temperature": 0.001, "initial_similarity": 5e-4}),
        ("psgd", {"learning_rate": 0.01, "epochs": 50, "initial_factors": UNIFORM}),
        ("psgd", {"learning_rate": 0.03, "epochs": 10}),
        ("dpps_mf", {"initial_rate": 3, "regularization": 10, "iterations": 300}),
        ("dpps_mf", {"initial_rate": 30, "regularization": 10, "iterations": 300}),
    ],
)
def test_what_was_found_by_hand_is_tried(method: str, by_hand: dict[str, Any]) -> None:
    assert any(by_hand.items() <= each.items() for each in tried(method))


def test_as_many_settings_found_by_hand_are_of_every_method() -> None:
    for method in METHODS:
        made = [{key: to for key, to in each.items() if key != "label"} for each in tried(method)]
        assert len(made) == 3
        assert all(one != other for one, other in combinations(made, 2))
