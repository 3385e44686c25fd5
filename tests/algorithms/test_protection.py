"""What each algorithm's ε protects, and the paper that the algorithm comes from."""

import re
from pathlib import Path
from typing import get_args

import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm
from dpmf_cli.algorithms.zhang2018.private_pmf import PrivateBase
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.papers.printed import papers
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import GUARANTEES, PROMISES, Guarantee, Protection, protection_of


def entry(**fields: object) -> PrivateAlgorithm:
    config = {"name": "x", "dataset": "ml-100k", "epsilons": [1], "algorithms": [fields]}
    return ExperimentConfig.model_validate(config).algorithms[0]


OF_THE_FIELD = ("abadi2016", "chien2021", "hua2015", "liu2015")
"""Papers whose methods are here but whose figures are not."""


def test_papers_are_those_whose_figures_are_here_this_project_and_plugins() -> None:
    cited = {paper.value.lower().replace(" ", "") for paper in Paper}
    assert cited == {*papers(), *OF_THE_FIELD, "dpmf", "plugin"}


def test_what_is_personalised_is_as_joint_as_its_base() -> None:
    """The contract of algorithms checks what each says of itself against its fits."""
    for key, mode in ((of.key(), mode) for of in get_args(PrivateBase) for mode in Mode):
        if (Neighbours.UNBOUNDED, mode) in PRIVATE[key].variants:
            around = entry(algorithm="personalized", mode=mode, base={"algorithm": key})
            assert around.joint == (key == "dp_pmf" and mode is Mode.PUBLISHED)


def test_what_is_personalised_is_a_kind_of_its_own_and_named_after_both_papers() -> None:
    own = entry(algorithm="personalized", base={"algorithm": "dp_pmf"})
    other = entry(algorithm="personalized", base={"algorithm": "pbgd"})
    assert own.protects is other.protects is Protection.PERSONALISED
    of_value = entry(algorithm="personalized", base={"algorithm": "dp_pmf"}, neighbours="bounded")
    assert of_value.protects is Protection.PERSONALISED_VALUE
    assert own.source == "Zhang 2018"
    assert other.source == "Zhang 2018 around dpmf"


def test_every_kind_says_what_its_epsilon_is_about_and_from_whom_it_protects() -> None:
    for of in (lambda kind: kind.statement, str, lambda kind: kind.key):
        assert len(set(map(of, GUARANTEES))) == len(GUARANTEES) == 2 * len(Protection)
    for kind in GUARANTEES:
        assert kind.statement.startswith("ε ")
        assert kind.statement.endswith(".")
        # If predictions are made from clean ratings, ε does not bound what their readers learn.
        assert (
            "what anybody can learn" in kind.statement or "anybody, the agg" in kind.statement
        ) != kind.joint
        assert ("user's own clean ratings" in kind.statement) == ("(joint DP)" in str(kind)) == kind.joint
        assert ("against everybody" in str(kind)) != kind.joint


def test_every_place_makes_the_same_promise() -> None:
    """Releases and headings, advice, and docs/privacy.md take what ε bounds, and what of the rest, from one table."""
    page = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text()
    for kind in GUARANTEES:
        promise = PROMISES[kind.protects]
        assert f"{promise.hides}; {promise.besides}" in kind.statement
        assert f"{promise.hides} ({promise.besides}" in kind.in_words
    for neighbours in Neighbours:
        promise = PROMISES[protection_of(neighbours)]
        (row,) = (line for line in page.splitlines() if f"`{neighbours}` |" in line.partition("|")[2][:40])
        assert promise.neighbours is neighbours
        assert f"| {promise.hides} |" in row
        assert promise.besides in row


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        (Guarantee(Protection.VALUE), "rating value, against everybody"),
        (Guarantee(Protection.VALUE, joint=True), "rating value, against other users (joint DP)"),
        (Guarantee(Protection.LOCAL, joint=True), "local, against all others (joint DP)"),
    ],
)
def test_headings(kind: Guarantee, heading: str) -> None:
    assert str(kind) == heading


def test_what_one_guarantee_implies_of_another() -> None:
    pure, loose, joint = (Guarantee(Protection.VALUE, *more) for more in ((), (False, 1e-6), (True,)))
    assert loose.at_any_delta == pure
    assert pure.implies(loose)
    assert pure.implies(joint)
    assert not loose.implies(pure)
    assert not joint.implies(loose)
    assert not pure.implies(Guarantee(Protection.USER))


@pytest.mark.parametrize(
    ("protects", "delta", "users", "ratings", "said"),
    [
        (Protection.USER, 0.01, 1508, 10**6, "number of users, 1,508, .* `delta: 1e-05`"),
        (Protection.USER, 1e-6, 1508, 10**6, None),
        (Protection.PRESENCE, 1e-6, 1508, 10**6, "number of ratings, 1,000,000, .* `delta: 1e-07`"),
        (Protection.VALUE, 1e-6, 1508, 10**6 - 1, None),
        (Protection.VALUE, 0.0, 1508, 10**9, None),
    ],
)
def test_a_delta_that_is_not_below_one_over_what_it_protects_is_told(
    protects: Protection, delta: float, users: int, ratings: int, said: str | None
) -> None:
    warning = Guarantee(protects, delta=delta).warning(users, ratings)
    assert re.search(said, warning) if said else not warning
