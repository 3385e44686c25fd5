"""Shipped configs are as their papers print, or say why not."""

from pathlib import Path
from typing import Any

import pytest

from docs.makers.departures import unexplained, values_at
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.papers.claims import all_papers, paper

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize("key", all_papers())
def test_configs_are_as_printed_or_say_why_not(key: str) -> None:
    found = all_papers()[key]
    assert unexplained(found, [load_config(CONFIGS / f"{name}.yaml") for name in found.configs]) == []


MADE = ExperimentConfig.model_validate(
    {
        "name": "made",
        "dataset": "ml-100k",
        "epsilons": [1],
        "baselines": ["ia", {"algorithm": "als", "sweep": {"factors": [3, 5]}}],
        "algorithms": [
            {"algorithm": "isgd", "factors": 3, "learning_rate": 0.02},
            {"algorithm": "psgd", "factors": 3, "learning_rate": 0.02, "item_norm": 0.5, "label": "small"},
            {"algorithm": "psgd", "factors": 3, "learning_rate": 0.02, "item_norm": 1, "label": "large"},
        ],
    }
)


def faults(*settings: dict[str, Any], departures: tuple[dict[str, Any], ...] = ()) -> list[str]:
    """The parameters that differ from print in `MADE`, if print states each of `settings` in turn."""
    said = {
        "settings": tuple({"source": "table 3", "configs": ["ma*"], "are": each} for each in settings),
        "departures": tuple({"configs": ["made"], "reason": "why", **each} for each in departures),
    }
    return unexplained(paper("friedman2016").model_copy(update=said), [MADE])


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("config.folds", [10]),
        ("isgd|psgd.factors", [3, 3, 3]),
        ("*.factors", [3, 5, 3, 3, 3]),
        ("psgd[large].item_norm", [1.0]),
        ("psgd.item_norm", [0.5, 1.0]),
        ("isgd.effects.beta_u", [100.0]),
        ("isgd.item_norm", []),
        ("pals.factors", []),
    ],
)
def test_a_path_means_values(path: str, values: list[float]) -> None:
    assert [value for _, value in values_at(MADE, path)] == values


def test_what_is_as_printed_is_no_fault_and_the_later_line_counts() -> None:
    as_it_is = {"config.folds": 10, "isgd|psgd.factors": 3, "psgd.item_norm": [0.5, 1]}
    assert faults(as_it_is) == []
    assert faults({"psgd.item_norm": 0.4}, as_it_is) == []
    assert faults(as_it_is, {"psgd.item_norm": 0.4}) == [
        "made: small.item_norm is 0.5, but the paper prints 0.4",
        "made: large.item_norm is 1.0, but the paper prints 0.4",
    ]


def test_a_value_that_is_swept_is_held_against_a_list_alone() -> None:
    assert faults({"als.factors": 4}) == []
    assert faults({"als.factors": [3, 5]}) == []
    assert faults({"als.factors": [3, 5, 7]}) == [
        "made: no entry has factors [7], but the paper prints [3, 5, 7]"
    ]
    assert faults({"als.factors": [3]}) == ["made: als, factors 5.factors is 5, but the paper prints [3]"]


RATE = {"isgd|psgd.learning_rate": 0.01}


def test_a_departure_excuses_what_it_names_and_nothing_else() -> None:
    named = {"key": "isgd.learning_rate", "printed": 0.01, "shipped": 0.02}
    assert faults(RATE, departures=(named,)) == [
        "made: small.learning_rate is 0.02, but the paper prints 0.01",
        "made: large.learning_rate is 0.02, but the paper prints 0.01",
    ]
    whole = {**named, "key": "*.learning_rate"}
    assert faults(RATE, departures=(whole,)) == []
    for wrong in ({"printed": 0.03}, {"shipped": 0.03}, {"key": "pals.learning_rate"}):
        told = faults(RATE, departures=({**whole, **wrong},))
        assert len(told) == 4
        assert told[0].endswith("a departure that excuses nothing")


def test_settings_and_departures_of_nothing_are_faults() -> None:
    assert faults({"pals.factors": 3}) == ["table 3: pals.factors matches no entry of ma*"]
    met = ({"key": "isgd.factors", "printed": 3, "shipped": 3},)
    assert faults({"isgd.factors": 3}, departures=met) == [
        "made: isgd.factors: a departure that excuses nothing"
    ]
    with pytest.raises(ValueError, match="is no path"):
        faults({"folds": 10})
