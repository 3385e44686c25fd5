"""Spaces of settings that papers leave open: balanced samples, and paths that all mean something."""

from collections import Counter
from pathlib import Path

import pytest

from dpmf_cli.config import load_config
from dpmf_cli.config.paths import with_values
from dpmf_cli.datasets import catalog
from dpmf_cli.errors import DpmfError
from dpmf_cli.exploring.explore import shipped, with_settings
from dpmf_cli.papers.claims import paper
from dpmf_cli.papers.space import Space, explored, halves, space, space_of
from tests.configs import SHIPPED

CONFIGS = SHIPPED[0].parent


def made(*sizes: int) -> Space:
    return Space.model_validate(
        {
            "data": {},
            "open": [
                {"name": str(at), "what": "", "values": [{"name": str(v), "why": ""} for v in range(size)]}
                for at, size in enumerate(sizes)
            ],
        }
    )


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


def test_a_space_that_cannot_be_read_is_named_by_its_file() -> None:
    data = made(2, 3).model_dump()
    with pytest.raises(DpmfError, match=r'^here/x\.yaml: also: there is no value "7" of "1" under open$'):
        space_of({**data, "also": [{"1": "7"}]}, "here/x.yaml")
    with pytest.raises(DpmfError, match=r'^here/x\.yaml: .*did you mean "open"'):
        space_of({**data, "opne": []}, "here/x.yaml")
    assert Path(space("wang2017").file).name == "wang2017.yaml"
    wrong = {"set": {"psgd.learning_rate": -1}}
    broken = {
        **data,
        "open": [
            {**choice, "values": [{**each, **wrong} for each in choice["values"]]} for choice in data["open"]
        ],
    }
    config = load_config(CONFIGS / "ml100k_bounded.yaml")
    with pytest.raises(
        DpmfError, match=r"^here/x\.yaml: .*: makes config ml100k_bounded invalid: .*learning_rate"
    ):
        with_settings(space_of(broken, "here/x.yaml"), [(0, 0)], {"ml100k_bounded": config})


def test_a_space_is_another_where_a_value_sets_something_else() -> None:
    before, after = space("wang2017").model_dump(), space("wang2017").model_dump()
    value = next(value for choice in after["open"] for value in choice["values"] if value["set"])
    value["set"] = {"*.clip_predictions": True}
    assert Space.model_validate(before).digest == space("wang2017").digest
    assert Space.model_validate(after).digest != space("wang2017").digest


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
        configs = shipped(CONFIGS, on, data)
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
