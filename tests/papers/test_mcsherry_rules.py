"""Rules of McSherry and Mironov's claims: made-up curves on which each part holds, and on which it fails."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Reference, Stage
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.papers.evidence import Evidence, Proof
from dpmf_cli.papers.rules import compute
from dpmf_cli.papers.rules.mcsherry import RULES, TOLERANCES
from tests.evaluation.made_curves import twin_of
from tests.papers.made import GRID, curve, evidence, experiment, held

KEY, ML = "mcsherry2009", "ml-100k"


def parts(claim: str, *experiments: Experiment) -> tuple[bool, ...] | None:
    return held(KEY, claim, *experiments, data=ML)


def four(values: dict[str, tuple[float, ...]], **more: Any) -> list[Measured]:
    """Curves of figure 1, cleaned and not, each with these RMSE at ε = 1, 2, …; GE is 0.9."""
    return [
        curve(key, label=label + cleaned, values=values[cleaned], **more)
        for key, label in (("mm_knn", "kNN"), ("mm_svd", "SVD"))
        for cleaned in ("", ", cleaned")
    ]


def figure1(plain: tuple[float, ...], cleaned: tuple[float, ...]) -> Experiment:
    return experiment("mcsherry_fig1_ml100k", *four({"": plain, ", cleaned": cleaned}))


@pytest.mark.parametrize(
    ("plain", "cleaned", "expected"),
    [
        ((1.1, 0.95, 0.8), (1.0, 0.85, 0.8), True),
        ((1.0, 0.85, 0.8), (1.1, 0.95, 0.8), False),
        ((1.1, 0.95, 0.91), (1.0, 0.85, 0.8), False),  # it has to pass the baseline too
    ],
)
def test_where_uncleaned_curves_cross(
    plain: tuple[float, ...], cleaned: tuple[float, ...], expected: bool
) -> None:
    assert parts("uncleaned-cross-later", figure1(plain, cleaned)) == (expected, expected)


@pytest.mark.parametrize(
    ("plain", "cleaned", "helps", "hurts"),
    [
        ((1.1, 0.9, 0.7), (1.0, 0.85, 0.75), True, True),
        ((1.0, 0.9, 0.75), (1.05, 0.85, 0.7), False, False),
        ((1.1, 0.8, 0.7), (1.0, 0.88, 0.71), True, True),  # beyond the baseline nothing has to help
    ],
)
def test_cleaning(plain: tuple[float, ...], cleaned: tuple[float, ...], helps: bool, hurts: bool) -> None:
    made = figure1(plain, cleaned)
    assert parts("cleaning-helps-under-noise", made) == (helps, helps)
    assert parts("cleaning-hurts-without", made) == (hurts, hurts)


def test_where_all_of_the_grid_is_better_than_the_baseline_nothing_is_noisy() -> None:
    assert parts("cleaning-helps-under-noise", figure1((0.8, 0.7), (0.8, 0.7))) is None


@pytest.mark.parametrize(("loss", "expected"), [(0.5, True), (1.5, False)])
def test_what_privacy_costs_at_a_small_epsilon(loss: float, expected: bool) -> None:
    def made(provable: tuple[float, float]) -> Experiment:
        values = (0.9 + loss * TOLERANCES["loss"], 0.9)
        more = {"twin": twin_of([0.9]), "provable": np.array(provable)}
        curves = four({"": values, ", cleaned": values}, **more)
        return experiment("mcsherry_fig1_ml100k_corrected", *curves)

    least = TOLERANCES["epsilon"]
    assert parts("matches-non-private", made((least, 10 * least))) == (expected, expected)
    assert parts("matches-non-private", made((2 * least, 10 * least))) is None


def test_noise_on_the_covariance_and_on_the_data() -> None:
    def made(covariance: float, data: float) -> Experiment:
        labels = ("mm_svd", "noise on the covariance", covariance), ("isgd", "noise on the data", data)
        return experiment(
            "mcsherry_noise_ml100k", *(curve(key, at, label=label) for key, label, at in labels)
        )

    assert parts("noise-ordering", made(1, 2)) == (True, True)
    assert parts("noise-ordering", made(2, 1)) == (False, False)
    assert parts("noise-ordering", made(1e6, 1e6)) == (False, False)  # neither is useful


def test_splits_of_theta() -> None:
    def made(**more: tuple[float, float]) -> Experiment:
        labels = {
            "shipped": "shipped",
            "overall": "global averages 0.1",
            "many": "items 0.44",
            "few": "items 0.08",
        }
        values = {key: more.get(key, (1.0, 0.89)) for key in labels}
        return experiment(
            "mcsherry_split_ml100k",
            *(curve("mm_knn", label=labels[key], values=each) for key, each in values.items()),
        )

    assert parts("small-global-part", made(overall=(0.95, 0.89))) == (False, True)
    assert parts("small-global-part", made(overall=(0.999, 0.91))) == (True, True)
    others = ("overall", "many", "few")
    for more, expected in (
        ({}, False),
        ({"many": (0.8, 1.0)}, True),  # away from where the shipped split meets GE
        ({"shipped": (1.2, 0.89), **dict.fromkeys(others, (1.1, 0.889))}, False),  # they gain only above IA
        ({"few": (1.5, 0.8), "many": (0.999, 1.0)}, True),
        ({"shipped": (1.0, 0.95)}, True),
    ):
        assert parts("other-splits", made(**more)) == (expected,)
    assert parts("other-splits", made(**dict.fromkeys(others, (1.1, 1.05)))) is None


@pytest.mark.parametrize(("user", "expected"), [(10.0, True), (0.5, False)])
def test_privacy_of_users(user: float, expected: bool) -> None:
    curves = [
        curve("mm_knn", at, label=f"kNN, per {what}, {noise}")
        for noise in ("Gaussian", "Laplace")
        for what, at in (("user", user), ("rating", 1.0))
    ]
    assert parts("per-user-costs-more", experiment("mcsherry_user_ml100k", *curves)) == (expected, expected)


def test_loss_that_shrinks_is_judged_step_by_step() -> None:
    def made(*losses: float) -> Experiment:
        stages = tuple(
            Stage(
                Portion(share, 100, 10, None),
                (curve("mm_knn", values=[0.9 + loss], twin=twin_of([0.9])),),
                (),
            )
            for share, loss in zip((0.2, 0.5, 1.0), losses, strict=False)
        )
        name = "mcsherry_fig2_recent_ml100k"
        return experiment(name, *stages[-1].curves, growth=Growth("timestamp", stages))

    assert parts("loss-shrinks-with-data", made(0.3, 0.2, 0.1)) == (True, True)
    assert parts("loss-shrinks-with-data", made(0.3, 0.1, 0.2)) == (True, False)
    assert parts("loss-shrinks-with-data", made(0.3)) is None


def netflix(factor: float) -> Evidence:
    """Cleaned curves on Netflix that meet Cinematch at θ = 0.15 times a factor, and ε = 10 times that θ."""
    at = 0.15 * factor * 10
    rmse = np.maximum(1 - 0.2 * np.log(GRID / at), 0.8)
    curves = [
        replace(curve(key, label=f"{label}, cleaned", thetas=GRID / 10), rmse=rmse[None, None, :])
        for key, label in (("mm_knn", "kNN"), ("mm_svd", "SVD"))
    ]
    made = replace(
        experiment("mcsherry_netflix", *curves), references=(Reference("Cinematch probe", 1.0, True),)
    )
    return Evidence({"netflix": {made.name: (made, find_crossings(made, replicates=2))}}, "netflix")


@pytest.mark.parametrize(
    ("factor", "near", "private"), [(1.1, True, True), (2.0, False, True), (20.0, False, False)]
)
def test_netflix_alone_has_cinematch(factor: float, near: bool, private: bool) -> None:
    for claim, expected in (("cleaned-cross-cinematch", near), ("outperforms-cinematch", private)):
        found = compute(KEY, claim, netflix(factor))
        assert found is not None
        assert found.held == (expected, expected)


@pytest.mark.parametrize("claim", [claim for claim in RULES if claim.startswith(("theorem", "section"))])
def test_theorems_are_what_audits_see(claim: str) -> None:
    rule = RULES[claim]
    entry, step = rule.entry, rule.step  # type: ignore[attr-defined]

    def of(proof: Proof) -> bool:
        found = compute(KEY, claim, evidence(proofs={entry: proof}))
        assert found is not None
        return found.held == (True,)

    sound = Proof(1.0, (), {step: 0.99})
    assert of(sound)
    assert of(replace(sound, found=("costs more than is claimed, elsewhere",))) == bool(step)
    for provable, proved in ((1.0, not step), (2.0, False)):
        proofs = {entry: replace(sound, provable=provable)}
        assert rule.is_proved(evidence(proofs=proofs)) == proved  # type: ignore[attr-defined]
    assert of(replace(sound, moves={step: 1.01})) != bool(step)
