"""What each algorithm's ε protects, and the paper that it comes from."""

import pytest

from dpmf_cli.algorithms.base import PrivateAlgorithm
from dpmf_cli.algorithms.papers import Paper
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee, Protection
from dpmf_cli.published import papers


def entry(**fields: object) -> PrivateAlgorithm:
    config = {"name": "x", "dataset": "ml-100k", "epsilons": [1], "algorithms": [fields]}
    return ExperimentConfig.model_validate(config).algorithms[0]


@pytest.mark.parametrize("key", PRIVATE)
def test_every_private_algorithm_names_its_paper(key: str) -> None:
    assert isinstance(PRIVATE[key].paper, Paper)


def test_papers_are_those_whose_figures_are_here_this_project_and_plugins() -> None:
    cited = {paper.value.lower().replace(" ", "") for paper in Paper}
    assert cited == {*papers(), "dpmf", "plugin"}


@pytest.mark.parametrize(
    ("algorithm", "neighbours", "protects"),
    [
        ("pge", "bounded", Protection.VALUE),
        ("pge", "unbounded", Protection.PRESENCE),
        ("mm_knn", "user", Protection.USER),
        ("local_mean", "local", Protection.LOCAL),
    ],
)
def test_what_is_protected_follows_from_the_neighbours(
    algorithm: str, neighbours: str, protects: Protection
) -> None:
    assert entry(algorithm=algorithm, neighbours=neighbours).protects is protects


def test_what_is_personalised_is_a_kind_of_its_own_and_named_after_both_papers() -> None:
    own = entry(algorithm="personalized", base={"algorithm": "dp_pmf"})
    other = entry(algorithm="personalized", base={"algorithm": "pbgd"})
    assert own.protects is other.protects is Protection.PERSONALISED
    assert own.source == "Zhang 2018"
    assert other.source == "Zhang 2018 around dpmf"


def test_every_kind_says_what_its_epsilon_is_about_and_from_whom_it_protects() -> None:
    for of in (lambda kind: kind.statement, str, lambda kind: kind.key):
        assert len(set(map(of, GUARANTEES))) == len(GUARANTEES) == 2 * len(Protection)
    for kind in GUARANTEES:
        assert kind.statement.startswith("ε ")
        assert kind.statement.endswith(".")
        # Of what somebody sees who gets predictions made from clean ratings, ε bounds nothing.
        assert (
            "what anybody can learn" in kind.statement or "anybody, the agg" in kind.statement
        ) != kind.joint
        assert ("user's own clean ratings" in kind.statement) == ("(joint DP)" in str(kind)) == kind.joint
        assert ("towards everybody" in str(kind)) != kind.joint


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        (Guarantee(Protection.VALUE), "rating value, towards everybody"),
        (Guarantee(Protection.VALUE, joint=True), "rating value, towards other users (joint DP)"),
        (Guarantee(Protection.LOCAL, joint=True), "local, towards all others (joint DP)"),
    ],
)
def test_headings(kind: Guarantee, heading: str) -> None:
    assert str(kind) == heading
