"""Rules decide from figures: on made curves where a claim holds, where it fails, and where results are missing."""

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Growth, Stage
from dpmf_cli.evaluation.portions import Portion
from dpmf_cli.papers.rules import RULES, compute
from tests.papers.made import curve, evidence, experiment, verdict


@pytest.mark.parametrize("key", RULES)
def test_without_results_no_rule_decides(key: str) -> None:
    for claim in RULES[key]:
        assert compute(key, claim, evidence()) is None
        assert compute(key, "unknown", evidence()) is None


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
