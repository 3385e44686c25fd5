"""Rules on the claims of Wang and Tang (2017): where a claim holds, where it fails, and where it cannot be decided."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.rules import RULES, compute
from tests.papers.made import GRID, baseline, curve, evidence, experiment, verdict

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
                values=values.tolist(),
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
