"""Rules decide from figures: on made curves where a claim holds, where it fails, and where results are missing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Stage
from dpmf_cli.evaluation.portions import Portion
from dpmf_cli.papers.rules import RULES, compute
from tests.papers.made import GRID, curve, evidence, experiment, verdict


@pytest.mark.parametrize("key", RULES)
def test_without_results_no_rule_decides(key: str) -> None:
    for claim in RULES[key]:
        assert compute(key, claim, evidence()) is None
        assert compute(key, "unknown", evidence()) is None


def test_incomplete_results_decide_nothing() -> None:
    waiting = curve("blp_mog_mf", 1.0)
    waiting = replace(waiting, rmse=np.full_like(waiting.rmse, np.nan), missing=1)
    mixed = experiment("neera_fig4_ml100k", waiting, curve("local_mf", 1.0, label="MF, BLP"))
    assert verdict("neera2020", "mixture-helps", mixed) is None
    assert verdict("neera2020", "error-falls-with-epsilon", mixed) is None


@pytest.mark.parametrize(
    ("losses", "expected"),
    [((0.3, 0.2, 0.1), "confirmed"), ((0.3, 0.1, 0.2), "in part"), ((0.1, 0.2, 0.3), "refuted")],
)
def test_loss_that_shrinks(losses: tuple[float, ...], expected: str) -> None:
    stages = tuple(
        Stage(
            Portion(share, 100, 10, None), (curve("mm_knn", values=[0.9 + loss], twin=np.array([0.9])),), ()
        )
        for share, loss in zip((0.2, 0.5, 1.0), losses, strict=True)
    )
    growing = experiment("mcsherry_fig2_ml1m", *stages[-1].curves, growth=Growth("random", stages))
    assert verdict("mcsherry2009", "loss-shrinks-with-data", growing) == expected


@pytest.mark.parametrize(("user", "expected"), [(10.0, "confirmed"), (0.5, "refuted")])
def test_privacy_of_users(user: float, expected: str) -> None:
    curves = [
        curve("mm_knn", at, label=f"kNN, per {what}, {noise}")
        for noise in ("Gaussian", "Laplace")
        for what, at in (("user", user), ("rating", 1.0))
    ]
    assert (
        verdict("mcsherry2009", "per-user-costs-more", experiment("mcsherry_user_ml1m", *curves)) == expected
    )


@pytest.mark.parametrize(
    ("cleaned", "expected"), [((1.0, 0.9), "confirmed"), ((1.0, 0.7), "in part"), ((1.2, 0.7), "refuted")]
)
def test_cleaning(cleaned: tuple[float, float], expected: str) -> None:
    curves = [
        curve(key, label=label + more, values=values)
        for key, label in (("mm_knn", "kNN"), ("mm_svd", "SVD"))
        for more, values in (("", (1.1, 0.8)), (", cleaned", cleaned))
    ]
    assert (
        verdict("mcsherry2009", "cleaning-helps-under-noise", experiment("mcsherry_fig1_ml1m", *curves))
        == expected
    )


def swept(label: str, parameter: str, rmse: dict[float, float], **more: Any) -> list[Measured]:
    return [
        curve(
            "personalized",
            label=f"{label}, {value}",
            line=label,
            swept=(parameter, value),
            values=[1.5, level],
            **more,
        )
        for value, level in rmse.items()
    ]


def test_levels_of_zhangs_figures() -> None:
    near = swept("PDP-PMF", "conservative", {0.1: 0.95, 0.6: 1.05})
    far = swept("PDP-PMF", "conservative", {0.1: 0.95, 0.6: 1.3})
    assert verdict("zhang2018", "figure2-level", experiment("zhang_fig2_ml1m", *near)) == "confirmed"
    assert verdict("zhang2018", "figure2-level", experiment("zhang_fig2_ml1m", *far)) == "in part"
    for end, expected in ((0.95, "confirmed"), (1.05, "refuted")):
        lines = [
            each for k in (1, 2, 3) for each in swept(f"PDP-PMF{k}", "epsilon_moderate", {0.1: 1.2, 0.9: end})
        ]
        assert verdict("zhang2018", "figure4-right-end", experiment("zhang_fig4_ml1m", *lines)) == expected
    for part, expected in ((0.7, "confirmed"), (0.5, "refuted")):
        cdf = np.array([[[[0.1, 0.2], [0.3, part]]]])
        curves = [
            curve("personalized", label=f"PDP-PMF{k}", values=[1.5, 1.0], limits=(0.5, 1.0), error_cdf=cdf)
            for k in (1, 2, 3)
        ]
        assert verdict("zhang2018", "errors-at-most-one", experiment("zhang_fig3_ml1m", *curves)) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((0.60, 0.642, 0.62), "confirmed"),
        ((0.643, 0.642, 0.62), "in part"),
        ((0.66, 0.642, 0.60), "in part"),
        ((0.60, 0.61, 0.70), "refuted"),
    ],
)
def test_best_threshold(parts: tuple[float, ...], expected: str) -> None:
    points = [
        curve("personalized", label=f"PDP-PMF, {t}", line="PDP-PMF", swept=("threshold", t), values=[1.5, 1.0], limits=(1.0,),
              error_cdf=np.array([[[[0.5], [part]]]]))
        for t, part in zip((0.6, 0.7, 1.0), parts, strict=True)
    ]  # fmt: skip
    assert verdict("zhang2018", "best-threshold", experiment("zhang_fig5_ml100k", *points)) == expected


def test_the_local_model() -> None:
    def found(claim: str, *curves: Measured, name: str = "neera_fig4_ml100k") -> str | None:
        return verdict("neera2020", claim, experiment(name, *curves))

    ours = curve("blp_mog_mf", values=[1.2, 1.1])
    for level, expected in ((1.3, "confirmed"), (1.15, "in part"), (1.0, "refuted")):
        isgd = [
            curve("isgd_local", label=f"ISGD, {x}", values=[level, level])
            for x in ("unregularised", "regularised")
        ]
        assert found("beats-isgd-everywhere", ours, *isgd) == expected
        assert (
            found("beats-pg-mf", ours, curve("pg_mf", values=[level, level]), name="neera_fig3_ml100k")
            == expected
        )
        assert (
            found("mixture-helps", ours, curve("local_mf", label="MF, BLP", values=[level, level]))
            == expected
        )
    for mean, expected in ((1.3, "confirmed"), (1.15, "refuted")):  # only ε = 1 is strong privacy
        assert (
            found(
                "accurate-under-strong-privacy", ours, curve("local_mean", label="mean", values=[mean, mean])
            )
            == expected
        )
    rising = curve("isgd_local", values=[1.0, 1.1])
    assert found("error-falls-with-epsilon", ours) == "confirmed"
    assert found("error-falls-with-epsilon", ours, rising) == "in part"
    assert found("error-falls-with-epsilon", rising) == "refuted"
