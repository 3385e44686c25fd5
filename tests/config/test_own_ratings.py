"""Defaults of a config on a user's own ratings, for which no paper chose anything."""

import re
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.experiment.config.loading import config_of
from tests.configs import GOOD, load

OWN = """\
dataset:
  kind: csv
  name: shop
  path: ratings.csv
  columns: {user: u, item: i, rating: r}
  scale: {minimum: 1, maximum: 5, step: 1}
epsilons: [0.1, 1, 10]
algorithms: [pge, {algorithm: mm_averages, neighbours: unbounded, mode: corrected}]
"""


def tuned(config: Any) -> list[str]:
    return [entry.algorithm for entry in config.baselines if getattr(entry, "tuned", False)]


def test_baselines_of_own_ratings_choose_their_parameters(tmp_path: Path) -> None:
    config = load(tmp_path, OWN)
    assert [entry.algorithm for entry in config.baselines] == ["ga", "ua", "ia", "ge", "als"]
    assert tuned(config) == ["ua", "ia", "ge", "als"]


def test_baselines_of_the_catalog_have_the_parameters_of_papers(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD + "baselines: [ia, ge, als]\n")
    assert tuned(config) == []
    assert config.algorithms[0].effects.shrinkage == "fixed"


@pytest.mark.parametrize("given", ["{algorithm: ge, effects: {beta_u: 3}}", "{algorithm: ge, tuned: false}"])
def test_a_parameter_that_is_given_is_kept(tmp_path: Path, given: str) -> None:
    assert tuned(load(tmp_path, OWN + f"baselines: [ia, {given}]\n")) == ["ia"]


def test_a_label_is_no_parameter(tmp_path: Path) -> None:
    assert tuned(load(tmp_path, OWN + "baselines: [{algorithm: ge, label: averages}]\n")) == ["ge"]


def test_averages_of_private_methods_follow_the_public_rule(tmp_path: Path) -> None:
    for entry in load(tmp_path, OWN).algorithms:
        assert (entry.effects.shrinkage, entry.effects.beta_m, entry.effects.beta_u) == ("noise", 5, 5)


@pytest.mark.parametrize("where", ["effects: {beta_u: 30}\n", "parameters: {pge: {effects: {beta_u: 30}}}\n"])
def test_effects_that_are_given_are_kept(tmp_path: Path, where: str) -> None:
    effects = load(tmp_path, OWN + where).algorithms[0].effects
    assert (effects.shrinkage, effects.beta_u) == ("fixed", 30)


@pytest.mark.parametrize("more", ["", "baselines: [{algorithm: ge, tuned: false}, ia]\n"])
def test_a_manifest_gives_the_same_config_again(tmp_path: Path, more: str) -> None:
    config = load(tmp_path, OWN + more)
    assert config_of(config.resolved()) == config
    assert config_of(config.resolved()).hash == config.hash


def test_a_manifest_of_before_there_was_a_choice_is_read_without_one(tmp_path: Path) -> None:
    resolved = load(tmp_path, OWN + "baselines: [{algorithm: ge, effects: {beta_u: 100}}]\n").resolved()
    (entry,) = resolved["baselines"]
    assert "tuned" not in entry
    assert tuned(config_of(resolved)) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "",
            [r"not stated, .*: PGE \(neighbours: bounded, mode: published\)$", "^warning: PGE: as published"],
        ),
        ("mode: corrected\n", [r"not stated, .*: PGE \(neighbours: bounded\)$"]),
        ("mode: published\nneighbours: bounded\n", []),
    ],
)
def test_what_a_config_leaves_to_defaults_is_said(tmp_path: Path, more: str, said: list[str]) -> None:
    """PGE hides a value by default, and another method a user, so one config may mix them unseen."""
    found = load(tmp_path, OWN + more).left_to_defaults
    assert len(found) == len(said)
    assert all(re.search(pattern, line) for pattern, line in zip(said, found, strict=True))


def test_on_ratings_of_the_catalog_published_is_no_warning(tmp_path: Path) -> None:
    (line,) = load(tmp_path, GOOD + "  - own_regression\n").left_to_defaults
    assert "(neighbours: user, mode: corrected)" in line
