"""Rules decide from figures: on made curves where a claim holds, where it fails, and where results are missing."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Stage
from dpmf_cli.evaluation.portions import Portion
from dpmf_cli.findings.evidence import Evidence
from dpmf_cli.findings.rules import RULES, compute

GRID = np.geomspace(0.1, 100, 13)
INFINITE = np.array([np.inf])


def curve(
    algorithm: str,
    ia_at: float = 1.0,
    *,
    label: str = "",
    level: float = 0.8,
    values: Sequence[float] = (),
    **more: object,
) -> Measured:
    """RMSE that meets IA = 1 at one ε and falls by 0.2·ln on either side, down to `level`; or `values`."""
    rmse = np.maximum(1 - 0.2 * np.log(GRID / ia_at), level) if not len(values) else np.array(values)
    grid = GRID if not len(values) else np.arange(1.0, len(values) + 1)
    made = Measured(
        algorithm, label or algorithm, grid, rmse[None, None, :], grid, grid, "bounded", "published"
    )
    return replace(made, **more)  # type: ignore[arg-type]


def baseline(key: str, rmse: float) -> Measured:
    return Measured(key, key.upper(), INFINITE, np.full((1, 1, 1), rmse), INFINITE, INFINITE)


def experiment(name: str, *curves: Measured, growth: Growth | None = None) -> Experiment:
    levels = (baseline("ia", 1.0), baseline("ge", 0.9))
    return Experiment(name, "made", "Made", 1, 10, 1, 1, curves, levels, growth=growth)


def evidence(*experiments: Experiment) -> Evidence:
    return Evidence({each.name: (each, find_crossings(each, replicates=10)) for each in experiments})


def verdict(key: str, claim: str, *experiments: Experiment) -> str | None:
    found = compute(key, claim, evidence(*experiments))
    return None if found is None else found.verdict


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


def test_incomplete_results_decide_nothing() -> None:
    waiting = curve("blp_mog_mf", 1.0)
    waiting = replace(waiting, rmse=np.full_like(waiting.rmse, np.nan), missing=1)
    mixed = experiment("neera_fig4_ml100k", waiting, curve("local_mf", 1.0, label="MF, BLP"))
    assert verdict("neera2020", "mixture-helps", mixed) is None
    assert verdict("neera2020", "error-falls-with-epsilon", mixed) is None


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


def swept(label: str, parameter: str, rmse: dict[float, float], **more: object) -> list[Measured]:
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


USERS = np.geomspace(2, 20000, 9)


def neighbourhood(name: str, curves: dict[str, float | tuple[float, float]], *, split: float) -> Experiment:
    """PCC and COS have 0.90 with the most similar items for neighbours, 0.95 with common raters; GE is 0.93.

    A curve is flat, or has one RMSE below `split` and another from there on; `algorithm, …` is another of it.
    """
    grid = GRID if name.startswith("wang_fig1") else USERS
    made = []
    for label, level in curves.items():
        low, high = level if isinstance(level, tuple) else (level, level)
        values = np.where(grid < split * (1 - 1e-9), low, high)
        made.append(
            curve(
                label.partition(",")[0],
                label=label,
                values=values,
                epsilons=grid,
                claimed=grid,
                provable=grid,
            )
        )
    levels = {"ge": 0.93, "ia": 1.0, "constant_nbm": 0.94, "pcc": 0.9, "cos": 0.9}
    common = {"pcc": "PCC, common raters", "cos": "COS, co-raters, common raters"}
    baselines = [baseline(key, rmse) for key, rmse in levels.items()]
    baselines += [replace(baseline(key, 0.95), label=label) for key, label in common.items()]
    return replace(experiment(name, *made), baselines=tuple(baselines))


def wang(
    pnbm: float | tuple[float, float] = 1.2,
    mf: float | tuple[float, float] = 1.2,
    posterior: float | tuple[float, float] = 1.2,
    posterior_mf: float | tuple[float, float] = 1.2,
    *,
    split: tuple[float, float] = (1, 20),
    **more: float | tuple[float, float],
) -> list[Experiment]:
    """The four experiments of figures 1 and 2; `more` is other curves of DPSGD-PNBM."""
    ratings = {"dpsgd_pnbm": pnbm, "psgd": mf, **{f"dpsgd_pnbm, {key}": each for key, each in more.items()}}
    users = {"dpps_pnbm": posterior, "dpps_mf": posterior_mf}
    return [
        each
        for data in ("ml100k", "ml1m")
        for each in (
            neighbourhood(f"wang_fig1_{data}", ratings, split=split[0]),
            neighbourhood(f"wang_fig2_{data}", users, split=split[1]),
        )
    ]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.85, "confirmed"),
        ((2.0, 0.85), "confirmed"),  # below ε = 1 nothing is claimed
        ((0.85, 0.92), "in part"),  # below PCC and COS with one choice of neighbours
        ((0.85, 0.97), "refuted"),
    ],
)
def test_a_private_neighbourhood_against_one_without_privacy(
    level: float | tuple[float, float], expected: str
) -> None:
    assert verdict("wang2017", "sgd-pnbm-beats-neighbours", *wang(level)) == expected
    assert verdict("wang2017", "sgd-pnbm-beats-neighbours", *wang(level)[:2]) is None  # of both data sets


def test_the_least_epsilon_that_a_claim_names_counts() -> None:
    above = (0.97, 0.85)
    made = wang(above, above, above, above, split=(1.5, 21))  # worse at ε = 1, and at 20
    for claim in ("sgd-pnbm-beats-neighbours", "posterior-sampling-accurate"):
        assert verdict("wang2017", claim, *made) == "in part"


def test_a_method_is_its_best_parameters_at_each_epsilon() -> None:
    few, many = (0.85, 0.97), (0.97, 0.85)
    assert verdict("wang2017", "sgd-pnbm-beats-neighbours", *wang(few, split=(10, 20))) == "in part"
    both = wang(few, split=(10, 20), many=many)
    assert verdict("wang2017", "sgd-pnbm-beats-neighbours", *both) == "confirmed"
    waiting = replace(both[0].curves[-1], missing=1)
    both[0] = replace(both[0], curves=(*both[0].curves[:-1], waiting))
    assert verdict("wang2017", "sgd-pnbm-beats-neighbours", *both) is None


@pytest.mark.parametrize(
    ("level", "expected"),
    [((2.0, 0.85), "confirmed"), ((0.85, 0.92), "in part"), ((0.85, 0.97), "refuted")],
)
def test_a_private_factorization_against_neighbourhoods(level: tuple[float, float], expected: str) -> None:
    made = wang(mf=level, split=(20, 20))
    assert verdict("wang2017", "sgd-mf-beats-neighbours", *made) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (((2.0, 0.9), (2.0, 0.9)), "confirmed"),
        ((0.9, 1.0), "in part"),
        (((0.9, 1.0), (0.9, 0.94)), "refuted"),  # better than IA, worse than GE
    ],
)
def test_accuracy_of_posterior_sampling(
    levels: tuple[float | tuple[float, float], ...], expected: str
) -> None:
    made = wang(posterior=levels[0], posterior_mf=levels[1])
    assert verdict("wang2017", "posterior-sampling-accurate", *made) == expected


@pytest.mark.parametrize(
    ("sgd", "posterior", "split", "expected"),
    [
        (0.85, 0.85, (1, 20), "confirmed"),
        (0.92, 0.85, (1, 20), "confirmed"),  # throughout with one choice of neighbours
        ((0.97, 0.85), (0.97, 0.85), (1, 20), "confirmed"),  # below ε = 1 and 0.1 × 200 nothing is claimed
        ((0.97, 0.85), 0.85, (1.5, 20), "refuted"),
        (0.85, (0.97, 0.85), (1, 21), "refuted"),
        ((0.85, 0.97), 0.85, (50, 20), "refuted"),
    ],
)
def test_throughout(
    sgd: float | tuple[float, float],
    posterior: float | tuple[float, float],
    split: tuple[float, float],
    expected: str,
) -> None:
    made = wang(sgd, posterior=posterior, split=split)
    said = compute("wang2017", "pnbm-beats-neighbours-throughout", evidence(*made))
    assert said is not None
    assert said.verdict == expected
    assert "ML-1M, DPSGD-PNBM, ε ≥ 1:" in said.measured
    assert "ML-1M, DPPS-PNBM, ε ≥ 20:" in said.measured
    worse = wang(0.97, posterior=0.97)
    assert verdict("wang2017", "pnbm-beats-neighbours-throughout", *made[:2], *worse[2:]) == "refuted"


@pytest.mark.parametrize(
    ("mf", "posterior_mf", "expected"),
    [
        ((1.1, 0.8), (1.1, 0.8), "confirmed"),
        ((1.1, 0.8), 1.1, "in part"),
        (1.1, 1.1, "in part"),
        ((0.8, 1.1), (0.8, 1.1), "refuted"),
    ],
)
def test_neighbourhoods_at_low_epsilon_and_factorizations_at_high(
    mf: float | tuple[float, float], posterior_mf: float | tuple[float, float], expected: str
) -> None:
    assert verdict("wang2017", "pnbm-then-mf", *wang(0.9, mf, 0.9, posterior_mf)) == expected


def with_curve(
    made: list[Experiment], name: str, algorithm: str, **values: Sequence[float]
) -> list[Experiment]:
    """The experiment of that name with other curves for one of its algorithms, by their labels."""
    changed = []
    for each in made:
        if each.name == name:
            one = next(curve for curve in each.curves if curve.algorithm == algorithm)
            others = tuple(curve for curve in each.curves if curve.algorithm != algorithm)
            given = (
                replace(one, label=label, rmse=np.array(rmse)[None, None, :])
                for label, rmse in values.items()
            )
            each = replace(each, curves=(*others, *given))
        changed.append(each)
    return changed


def test_a_factorization_that_diverges_after_it_was_better() -> None:
    def said(**values: Sequence[float]) -> tuple[str, str]:
        made = with_curve(wang(0.9, 0.99, 0.9, 0.99), "wang_fig2_ml1m", "dpps_mf", **values)
        found = compute("wang2017", "pnbm-then-mf", evidence(*made))
        assert found is not None
        return found.verdict, found.measured.rpartition("DPPS-PNBM and -MF: ")[2]

    start = [0.99] * len(USERS)
    bold = [0.99, 0.99, 0.95, 0.85, *[np.inf] * 5]
    assert said(start=start, bold=bold) == (
        "in part",
        "0.900 and 0.990 at ε = 2; MF better at 1 of 7 ε ≥ 20, furthest with 0.900 and 0.850 (bold) at ε = 63.2456",
    )
    assert said(bold=bold)[1].endswith("furthest with 0.900 and 0.850 (bold) at ε = 63.2456")
    early = [0.99, 0.85, 0.95, 0.95, *[np.inf] * 5]  # better below ε = 20 only
    assert said(start=start, early=early)[1].endswith(
        "MF better at no ε ≥ 20, nearest with 0.900 and 0.950 (early) at ε = 20"
    )
    assert said(lost=[0.99, 0.99, *[np.inf] * 7])[1].endswith("one of them has diverged at every ε ≥ 20")


def test_one_better_middle_of_four_turns_the_verdict() -> None:
    better_first = wang(0.9, (0.8, 0.99), 0.9, (0.8, 0.99), split=(0.2, 3))
    assert verdict("wang2017", "pnbm-then-mf", *better_first) == "refuted"
    middle = [0.8, 0.99, 0.99, 0.85, *[np.inf] * 5]
    made = with_curve(better_first, "wang_fig2_ml1m", "dpps_mf", middle=middle)
    assert verdict("wang2017", "pnbm-then-mf", *made) == "in part"


def test_what_has_diverged_is_beaten_by_nobody() -> None:
    better_first = wang(0.9, (0.8, 0.99), 0.9, (0.8, 0.99), split=(0.2, 3))
    lost = [0.9, 0.9, 0.9, *[np.inf] * 6]
    made = with_curve(better_first, "wang_fig2_ml1m", "dpps_pnbm", lost=lost)
    assert verdict("wang2017", "pnbm-then-mf", *made) == "refuted"


def test_where_posterior_sampling_starts() -> None:
    said = compute(
        "wang2017", "posterior-sampling-accurate", evidence(*wang(posterior=0.9, posterior_mf=0.9))
    )
    assert said is not None
    for told in said.measured.split("; "):
        if "DPPS-PNBM" in told:
            assert told.endswith("having started at 0.940")
        else:  # at plain item means, which IA is not
            assert "DPPS-MF" in told
            assert "started" not in told
            assert "1.000" not in told


@pytest.mark.parametrize("claim", RULES["wang2017"])
def test_a_grid_without_the_epsilons_of_a_claim_decides_nothing(claim: str) -> None:
    def cut(each: Experiment) -> Experiment:
        few = slice(0, 2)
        curves = (
            replace(
                curve,
                epsilons=curve.epsilons[few],
                claimed=curve.claimed[few],
                provable=curve.provable[few],
                rmse=curve.rmse[:, :, few],
            )
            for curve in each.curves
        )
        return replace(each, curves=tuple(curves))

    made = wang(0.85, 0.85, 0.85, 0.85)
    assert verdict("wang2017", claim, *made) is not None
    assert verdict("wang2017", claim, *map(cut, made)) is None
