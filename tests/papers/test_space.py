"""Spaces of settings that papers leave open: balanced samples, and paths that all mean something."""

import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import catalog
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.loading import ConfigPath, with_values
from dpmf_cli.papers.claims import paper
from dpmf_cli.papers.rules import digest_of
from dpmf_cli.papers.space import Space, Value, explored, halves, space, space_of
from dpmf_cli.studies.explore import exploration, shipped, with_settings
from tests.committed import ROOT
from tests.configs import SHIPPED

CONFIGS = SHIPPED[0].parent


def made(*sizes: int) -> Space:
    choices = [[{"name": str(value), "why": ""} for value in range(size)] for size in sizes]
    named = [{"name": str(at), "what": "", "values": values} for at, values in enumerate(choices)]
    return Space.model_validate({"data": {}, "open": named})


def test_a_small_space_is_run_whole_and_a_large_one_is_sampled_evenly() -> None:
    assert len(made(2, 3).settings(6, "made")) == 6
    settings = made(2, 3, 4, 5).settings(41, "made")
    assert settings[0] == (0, 0, 0, 0)
    assert len(settings) > 35
    for at, size in enumerate((2, 3, 4, 5)):
        counts = Counter(setting[at] for setting in settings)
        assert set(counts) == set(range(size))
        assert max(counts.values()) - min(counts.values()) <= 6
    assert settings == made(2, 3, 4, 5).settings(41, "made")
    assert settings != made(2, 3, 4, 5).settings(41, "another")


def test_settings_that_are_named_are_tried_too() -> None:
    space = made(2, 3).model_copy(update={"also": ({"1": "2"}, {"0": "1", "1": "1"})})
    assert space.settings(3, "made")[:3] == [(0, 0), (0, 2), (1, 1)]


def test_a_choice_can_be_open_on_one_data_set_only() -> None:
    first = {data: space("neera2020").of(data).open[0].name for data in ("jester-1", "ml-100k")}
    assert first == {"jester-1": "Jester's ratings", "ml-100k": "BLP-MoG-MF's ridge"}
    for data, each in exploration("neera2020", "jester-1").configs.items():
        keys = {config.dataset.key for under in each for config in under.values()}
        assert keys == {data} | ({"jester-1-sample-73421-2000000r-seed1"} if data == "jester-1" else set())
    broken = made(2, 3).model_dump()
    broken["open"][0]["only"] = "jester"
    with pytest.raises(DpmfError, match=r'"0" is only of "jester", which is not under data'):
        space_of(broken, "here/x.yaml")


def test_a_space_that_cannot_be_read_is_named_by_its_file() -> None:
    data = made(2, 3).model_dump()
    with pytest.raises(DpmfError, match=r'^here/x\.yaml: also: there is no value "7" of "1" under open$'):
        space_of({**data, "also": [{"1": "7"}]}, "here/x.yaml")
    with pytest.raises(DpmfError, match=r'^here/x\.yaml: .*did you mean "open"'):
        space_of({**data, "opne": []}, "here/x.yaml")
    assert Path(space("wang2017").file).name == "wang2017.yaml"
    broken = made(2, 3).model_dump()
    broken["open"][0]["values"][0]["set"] = {"psgd.learning_rate": -1}
    config = load_config(CONFIGS / "ml100k_bounded.yaml")
    with pytest.raises(
        DpmfError, match=r"^here/x\.yaml: .*: makes config ml100k_bounded invalid: .*learning_rate"
    ):
        with_settings(space_of(broken, "here/x.yaml"), [(0, 0)], {"ml100k_bounded": config})


def test_a_record_is_another_where_a_value_sets_something_else() -> None:
    other, judged = space("wang2017").model_dump(), digest_of("wang2017", space("wang2017"))
    value = next(value for choice in other["open"] for value in choice["values"] if value["set"])
    value["why"] = "for another reason"
    assert digest_of("wang2017", Space.model_validate(other)) == judged
    value["set"] = {"*.clip_predictions": True}
    assert digest_of("wang2017", Space.model_validate(other)) != judged


def test_a_path_passes_over_entries_that_have_no_use_for_its_key() -> None:
    config = load_config(CONFIGS / "ml100k_bounded.yaml")
    assert with_values(config, {"*.effects.sum_share": 0.2})[1] == set()
    assert with_values(config, {"*.effects.noise_on_unrated": True})[1] == {"*.effects.noise_on_unrated"}
    shares = with_values(config, {"psgd|pals.user_share": 0.7})[0]["algorithms"]
    assert {each["algorithm"] for each in shares if "user_share" in each} == {"pals"}


def test_folds_are_chosen_by_or_tested_by() -> None:
    assert list(map(list, halves(2))) == [[0], [1]]
    assert list(map(list, halves(5))) == [[0, 1], [2, 3, 4]]
    assert list(map(list, halves(1))) == [[0], [0]]


@pytest.mark.parametrize("key", explored())
def test_the_first_values_are_the_shipped_configs(key: str) -> None:
    for choice in space(key).open:
        assert not choice.values[0].set, choice.name
        names = [value.name for value in choice.values]
        assert len(set(names)) == len(names)
        assert all(value.why for value in choice.values)


@pytest.mark.parametrize("key", explored())
def test_every_path_means_an_entry_and_every_value_makes_a_config(key: str) -> None:
    known, met = space(key), set[str]()
    for data, on in known.data.items():
        assert data in catalog.ENTRIES
        configs = shipped(on, data)
        assert set(configs) <= set(paper(key).configs) | {
            each for each in configs if each.startswith("explore_")
        }
        for at, choice in enumerate(known.open):
            for rank, value in enumerate(choice.values):
                setting = tuple(rank if place == at else 0 for place in range(len(known.open)))
                with_settings(known, [setting], configs)
                for config in configs.values():
                    met |= with_values(config, value.set)[1]
        assert data in {each for claim in paper(key).claims for each in claim.data}
    wanted = {path for choice in known.open for value in choice.values for path in value.set}
    assert wanted <= met


SPACE = space("wang2017")
METHODS = {
    "dpsgd_pnbm": ("fig1", "DPSGD-PNBM, η as listed"),
    "dpps_pnbm": ("fig2", "DPPS-PNBM, η₁ as listed"),
    "psgd": ("fig1", "DPSGD-MF, η as listed"),
    "dpps_mf": ("fig2", "DPPS-MF, η₁ as listed"),
}
"""By the key of a varied method: its figure, and the label of its varied curve."""

UNIFORM = {"distribution": "uniform", "scale": 1.0}
BY_HAND: dict[str, list[dict[str, Any]]] = {
    "dpsgd_pnbm": [
        {"initial_similarity": 0.1, "iterations": 1, "learning_rate": 0.1, "floor": 15},
        {"initial_similarity": 0.05, "iterations": 3, "learning_rate": 0.02, "floor": 15},
    ],
    "dpps_pnbm": [
        {"initial_rate": 4, "temperature": 0.001, "iterations": 10},
        {"initial_rate": 4000, "temperature": 1e-6, "iterations": 10},
        {"initial_rate": 8e-6, "temperature": 0.001, "initial_similarity": 5e-4},
    ],
    "psgd": [
        {"learning_rate": 0.01, "epochs": 50, "initial_factors": UNIFORM},
        {"learning_rate": 0.03, "epochs": 10},
    ],
    "dpps_mf": [
        {"initial_rate": 3, "regularization": 10, "iterations": 300},
        {"initial_rate": 30, "regularization": 10, "iterations": 300},
    ],
}
"""What was found by hand, and is tried in addition to the sample."""


def of_method(value: Value, method: str) -> dict[str, Any]:
    """The parameters of a method that a value sets, by the keys after its entry."""
    paths = {ConfigPath.of(text): to for text, to in value.set.items()}
    return {path.keys: to for path, to in paths.items() if path.algorithms == {method}}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_tried_with_as_many_parameters_all_different(method: str) -> None:
    chosen = [[of_method(value, method) for value in choice.values] for choice in SPACE.open]
    chosen = [values for values in chosen if any(values)]
    assert [len(values) for values in chosen] == [3, 3, 3, 3, 2, 6]
    assert all(len({str(value) for value in values}) == len(values) for values in chosen)
    for on in SPACE.data.values():  # a sample has each value as often as the other values of its choice
        assert (on.settings - 1) % math.lcm(3, 2, 6) == 0


@pytest.mark.parametrize("method", METHODS)
def test_what_was_found_by_hand_is_tried(method: str) -> None:
    figure, label = METHODS[method]
    config = load_config(ROOT / "configs" / f"wang_{figure}_ml100k.yaml")
    tried = []
    for setting in SPACE.settings(1)[1:]:
        chosen = (choice.values[at] for choice, at in zip(SPACE.open, setting, strict=True))
        data, _ = with_values(config, {path: to for value in chosen for path, to in value.set.items()})
        tried += [each for each in data["algorithms"] if each["label"] == label]
    assert len(tried) == 3
    assert all(one != other for one, other in combinations(tried, 2))
    for by_hand in BY_HAND[method]:
        assert any(by_hand.items() <= each.items() for each in tried)
