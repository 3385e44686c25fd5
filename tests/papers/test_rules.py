"""Rules decide from figures: on made curves where a claim holds, where it fails, and where results are missing."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Stage
from dpmf_cli.evaluation.portions import Portion
from dpmf_cli.papers.rules import RULES, compute
from tests.papers.made import GRID, curve, evidence, experiment, verdict


def tables(ml100k: float, ml1m: float, unbounded: float) -> list[Experiment]:
    """The four experiments of tables 4 and 5: crossings of all at those ε, times `unbounded`."""
    return [
        experiment(f"{data}_{kind}", *(curve(each, at * factor) for each in ("pge", "isgd", "psgd", "pals")))
        for data, at in (("ml100k", ml100k), ("ml1m", ml1m))
        for kind, factor in (("bounded", 1.0), ("unbounded", unbounded))
    ]


@pytest.mark.parametrize("key", RULES)
def test_without_results_no_rule_decides(key: str) -> None:
    for claim in RULES[key]:
        assert compute(key, claim, evidence()) is None
        assert compute(key, "unknown", evidence()) is None


def test_larger_data_and_unbounded_privacy() -> None:
    both = ("larger-data-crosses-earlier", "unbounded-costs-more")
    assert [verdict("friedman2016", claim, *tables(2, 1, 2)) for claim in both] == ["confirmed", "confirmed"]
    assert [verdict("friedman2016", claim, *tables(1, 2, 0.5)) for claim in both] == ["refuted", "refuted"]
    mixed = tables(2, 1, 2)
    mixed[2] = experiment("ml1m_bounded", *(curve(each, 3.0) for each in ("pge", "isgd", "psgd", "pals")))
    assert verdict("friedman2016", both[0], *mixed) == "in part"
    assert verdict("friedman2016", both[1], *mixed) == "refuted"  # "every" is refuted by one
    said = compute("friedman2016", both[1], evidence(*mixed))
    assert said is not None
    assert "not PGE IA (ml1m_bounded, ml1m_unbounded): 3.00 and 2.00" in said.measured


@pytest.mark.parametrize(
    ("psgd_ia", "isgd_ge", "expected"), [(0.9, 2, "confirmed"), (1.1, 2, "in part"), (1.1, 50, "refuted")]
)
def test_order_of_bounded_crossings(psgd_ia: float, isgd_ge: float, expected: str) -> None:
    def crossing(key: str, ia: float, ge: float) -> Measured:
        rmse = np.interp(np.log(GRID), np.log([ia / 2, ia, ge, 2 * ge]), [1.2, 1.0, 0.9, 0.8])
        return replace(curve(key), rmse=rmse[None, None, :])

    def of(name: str) -> Experiment:
        return experiment(
            name, crossing("psgd", psgd_ia, 20), crossing("pals", 0.9, 20), crossing("isgd", 1.0, isgd_ge)
        )

    assert (
        verdict("friedman2016", "bounded-crossings-order", of("ml100k_bounded"), of("ml1m_bounded"))
        == expected
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.9, 0.8, "confirmed"), (0.9, 0.99, "in part"), (1.2, 0.99, "refuted")]
)
def test_simple_methods_win_at_low_epsilon(low: float, high: float, expected: str) -> None:
    simple = [curve(key, values=[low, 0.95]) for key in ("pge", "pknn")]
    factorized = [curve(key, values=[1.1, high]) for key in ("isgd", "psgd", "pals")]
    assert (
        verdict(
            "friedman2016", "simple-wins-at-low-epsilon", experiment("friedman_fig5a", *simple, *factorized)
        )
        == expected
    )


@pytest.mark.parametrize(("without", "expected"), [(10.0, "confirmed"), (1.5, "refuted"), (1e6, "confirmed")])
def test_preprocessing(without: float, expected: str) -> None:
    curves = curve("psgd", 1.0, label="PSGD"), curve("psgd", without, label="no preprocessing, norms lifted")
    assert verdict("friedman2016", "preprocessing-helps", experiment("friedman_fig3a", *curves)) == expected


@pytest.mark.parametrize(
    ("steps", "expected"), [((0.8, 0.85, 0.92), "confirmed"), ((0.8, 0.8, 0.8), "in part")]
)
def test_norm_bounds(steps: tuple[float, ...], expected: str) -> None:
    curves = [
        curve("psgd", label=label, values=[1.2, 1.0 - 1e-9, level])
        for label, level in zip(("q_max 0.5", "q_max 1", "q_max 2"), steps, strict=True)
    ]
    assert verdict("friedman2016", "q-max-moves-ge", experiment("friedman_fig3b", *curves)) == expected


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


