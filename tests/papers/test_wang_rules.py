"""Rules on the claims of Wang and Tang (2017): where the parts of a claim hold, and where it cannot be decided."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpmf_cli.audit.entries import registered
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.rules import RULES, compute, wang
from dpmf_cli.papers.rules.base import Theorem
from tests.papers.made import GRID, baseline, curve, evidence, experiment
from tests.papers.made import held as held_on

USERS = np.geomspace(2, 20000, 9)
LEVELS = {"ge": 0.93, "constant_nbm": 0.94, "als": 0.8, "pnbm": 0.85, "pcc": 0.9, "cos": 0.9}
"""PCC and COS have RMSE 0.90 with the most similar items as neighbours, 0.95 with common raters."""

Level = float | tuple[float, float] | Sequence[float]


def held(claim: str, *made: Experiment) -> tuple[bool, ...] | None:
    return held_on("wang2017", claim, *made, data="ml-100k")


def figure(name: str, curves: dict[str, Level], *, split: float = 1.0, **levels: float) -> Experiment:
    """A curve is flat, or has one RMSE below `split` and another from there on, or each value as it is given;
    `algorithm, …` is another of it."""
    grid = GRID if name.startswith("wang_fig1") else USERS
    made = []
    for label, level in curves.items():
        low_high = level if isinstance(level, tuple) else None
        made_of = np.where(grid < split * (1 - 1e-9), *low_high) if low_high else np.asarray(level, float)
        values = np.broadcast_to(made_of, grid.shape)
        key = label.partition(",")[0]
        made.append(
            curve(key, label=label, values=values.tolist(), epsilons=grid, claimed=grid, provable=grid)
        )
    common = {"pcc": "PCC, common raters", "cos": "COS, co-raters, common raters"}
    baselines = [baseline(key, rmse) for key, rmse in {**LEVELS, **levels}.items()]
    baselines += [replace(baseline(key, 0.95), label=label) for key, label in common.items()]
    return replace(experiment(name, *made), baselines=tuple(baselines))


def of_ratings(pnbm: Level = 1.2, mf: Level = 1.2, *, split: float = 1.0, **more: Level) -> Experiment:
    others = {f"dpsgd_pnbm, {key}": each for key, each in more.items()}
    return figure("wang_fig1_ml100k", {"dpsgd_pnbm": pnbm, "psgd": mf, **others}, split=split)


def of_users(pnbm: Level = 1.2, mf: Level = 1.2, *, split: float = 20.0) -> Experiment:
    return figure("wang_fig2_ml100k", {"dpps_pnbm": pnbm, "dpps_mf": mf}, split=split)


AGAINST = [
    (0.85, (True,) * 4),
    ((2.0, 0.85), (True,) * 4),  # below the ε that the claim names nothing is said
    ((0.85, 0.92), (False, False, True, True)),  # better with one choice of neighbours
    ((0.85, 0.97), (False,) * 4),
]


@pytest.mark.parametrize(("level", "parts"), AGAINST)
def test_methods_against_neighbourhoods_without_privacy(level: Level, parts: tuple[bool, ...]) -> None:
    assert held("sgd-pnbm-beats-neighbours", of_ratings(level)) == parts
    assert held("sgd-mf-beats-neighbours", of_ratings(mf=level, split=20)) == parts
    both = held("posterior-sampling-beats-neighbours", of_users(level, 0.92))
    assert both == (*parts, False, False, True, True)


def test_the_least_epsilon_that_a_claim_names_counts() -> None:
    above = (0.97, 0.85)
    assert held("sgd-pnbm-beats-neighbours", of_ratings(above, split=1.5)) == (False,) * 4
    assert held("sgd-mf-beats-neighbours", of_ratings(mf=above, split=32)) == (False,) * 4
    assert held("posterior-sampling-accurate", of_users(above, above, split=21)) == (False, False)
    assert held("posterior-sampling-accurate", of_users(above, (0.85, 0.97))) == (True, False)


def test_a_method_is_its_best_curve_at_each_epsilon() -> None:
    few, many = (0.85, 0.97), (0.97, 0.85)
    both = of_ratings(few, split=10, many=many)
    assert held("sgd-pnbm-beats-neighbours", both) == (True,) * 4
    waiting = replace(both, curves=(*both.curves[:-1], replace(both.curves[-1], missing=1)))
    assert held("sgd-pnbm-beats-neighbours", waiting) is None


def test_throughout_has_a_part_for_each_method_and_choice_of_neighbours() -> None:
    claim = "pnbm-beats-neighbours-throughout"
    assert held(claim, of_ratings(0.92), of_users(0.85)) == (False, True, True, True)
    assert held(claim, of_ratings(0.85), of_users((0.97, 0.85), split=21)) == (True, True, False, False)
    assert held(claim, of_ratings(0.85)) is None


def test_accuracy_is_kept_where_less_is_lost() -> None:
    claim = "sgd-pnbm-keeps-accuracy"
    falling, flat = [1.0 if e < 2 else 0.85 for e in GRID], [0.9] * len(GRID)
    assert held(claim, of_ratings(flat, falling)) == (True,)
    assert held(claim, of_ratings(falling, flat)) == (False,)


def test_both_at_one_are_held_against_averages_at_one_alone() -> None:
    at_one = [0.9 if np.isclose(e, 1) else 2.0 for e in GRID]
    at_200 = [0.9 if np.isclose(e, 200) else 2.0 for e in USERS]
    claim = "both-accurate-at-one"
    assert held(claim, of_ratings(at_one), of_users(at_200)) == (True, True)
    assert held(claim, of_ratings(0.97), of_users(at_200)) == (False, True)


def test_posterior_sampling_is_compared_at_a_200th_of_its_epsilon() -> None:
    claim = "posterior-sampling-more-accurate"
    assert held(claim, of_ratings(0.9), of_users(0.8)) == (True, True)
    from_one = [0.8 if e >= 199 else 1.0 for e in USERS]
    assert held(claim, of_ratings(0.9), of_users(from_one)) == (True, False)
    beyond = [0.8 if 19 <= e <= 2001 else 1.0 for e in USERS]
    assert held(claim, of_ratings(0.9), of_users(beyond)) == (True, True)
    assert held(claim, of_ratings(0.9), of_users([1.0 if np.isclose(e, 200) else 0.8 for e in USERS])) == (
        False,
        False,
    )


@pytest.mark.parametrize(
    ("mf", "posterior_mf", "parts"),
    [
        ((1.1, 0.8), (1.1, 0.8), (True, True, True, True)),
        ((1.1, 0.8), 1.1, (True, True, True, False)),
        ((0.8, 1.1), (0.8, 1.1), (False, False, False, False)),
    ],
)
def test_neighbourhoods_at_low_epsilon_and_factorizations_at_high(
    mf: Level, posterior_mf: Level, parts: tuple[bool, ...]
) -> None:
    assert held("pnbm-then-mf", of_ratings(0.9, mf), of_users(0.9, posterior_mf)) == parts


@pytest.mark.parametrize(
    ("pnbm", "mf", "passes"),
    [
        ([0.9] * 9, [0.99, 0.99, 0.95, 0.85, *[np.inf] * 5], True),  # diverges after it was better
        ([0.9] * 9, [0.99, 0.85, 0.95, 0.95, *[np.inf] * 5], False),  # better below 0.1 × 200 only
        ([0.9] * 9, [0.99, 0.99, *[np.inf] * 7], False),
        ([0.9, 0.9, 0.9, *[np.inf] * 6], [0.95] * 9, False),  # what has diverged is beaten by nobody
    ],
)
def test_a_factorization_passes_where_both_are_finite(pnbm: Level, mf: Level, passes: bool) -> None:
    found = held("pnbm-then-mf", of_ratings(0.9), of_users(pnbm, mf))
    assert found is not None
    assert found[3] == passes


def test_methods_without_privacy() -> None:
    assert held("mf-better-without-privacy", of_ratings()) == (True,)
    assert held("pnbm-better-without-privacy", of_ratings()) == (True, True, True, True, False)
    other = figure("wang_fig1_ml100k", {"psgd": 1.0}, pnbm=0.92, als=0.95)
    assert held("mf-better-without-privacy", other) == (False,)
    assert held("pnbm-better-without-privacy", other) == (False, False, True, True, True)


def test_accuracy_is_lost_below_4b_where_nothing_below_is_better() -> None:
    falling, rising = np.linspace(1, 0.9, 9), np.linspace(0.9, 1, 9)
    assert held("accuracy-lost-below-4b", of_users(falling.tolist(), rising.tolist())) == (True, False)
    best_at_4b = [0.95] * 8 + [0.9]  # of USERS the last is beyond 64 × 200
    assert held("accuracy-lost-below-4b", of_users(best_at_4b, [0.95] * 9)) == (True, True)


def tricks(**levels: float) -> Experiment:
    """`sgd_1`, `sgd_100`, `posterior`: the best K."""
    epsilons = np.array([1.0, 10, 100, 200])
    common: dict[str, Any] = {"epsilons": epsilons, "claimed": epsilons, "provable": epsilons}
    best = {
        "DPSGD-PNBM": [levels.get("sgd_1", 2), 5, levels.get("sgd_100", 20), 5],
        "DPPS-PNBM": [5, 5, 5, levels.get("posterior", 10)],
    }
    made = [
        curve(
            "x",
            label=f"{line}, {k}",
            line=line,
            swept=("iterations", float(k)),
            values=[0.9 + 0.01 * (k != at) for at in best[line]],
            **common,
        )
        for line, k in product(best, (1, 2, 5, 10, 20))
    ]
    own = {"PCC": 0.90, "PCC, users": levels.get("pcc", 0.94), "COS": 0.91, "COS, users": 0.95}
    own |= {"PNBM": 0.92, "PNBM, errors clamped": levels.get("clamped", 0.9215)}
    return replace(
        experiment("wang_tricks_ml100k", *made),
        baselines=tuple(replace(baseline("x", rmse), label=label) for label, rmse in own.items()),
    )


@pytest.mark.parametrize(
    ("claim", "levels", "parts"),
    [
        ("items-rather-than-users", {}, (True, True)),
        ("items-rather-than-users", {"pcc": 0.89}, (False, True)),
        ("clamp-is-trivial", {}, (True,)),
        ("clamp-is-trivial", {"clamped": 0.9225}, (False,)),
        ("clamp-is-trivial", {"clamped": 0.9175}, (False,)),
        ("fewer-iterations-for-small-epsilon", {}, (True,)),
        ("fewer-iterations-for-small-epsilon", {"sgd_100": 2}, (False,)),
        ("posterior-sampling-costs-more", {}, (True,)),
        ("posterior-sampling-costs-more", {"posterior": 2}, (False,)),
    ],
)
def test_single_steps(claim: str, levels: dict[str, float], parts: tuple[bool, ...]) -> None:
    assert held(claim, tricks(**levels)) == parts
    assert held(claim) is None


def test_h_as_printed_is_not_how_often_a_mini_batch_has_both_items() -> None:
    rng, size = np.random.default_rng(0), 30
    drawn = rng.choice(3, (20_000, size), p=[0.02, 0.05, 0.93])
    both = np.mean((drawn == 0).any(axis=1) & (drawn == 1).any(axis=1))
    assert wang.in_a_sample(0.02, 0.05, size) == pytest.approx(both, abs=5 * np.sqrt(0.25 / 20_000))
    assert wang.printed_h(0.02, 0.05, size) > 0.99
    assert held("h-makes-it-unbiased") == (False,)


@pytest.mark.parametrize("claim", [key for key, rule in RULES["wang2017"].items() if "posterior" in key])
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

    made = [of_ratings(0.85, 0.85), of_users(0.85, 0.85)]
    if claim != "posterior-sampling-costs-more":
        assert held(claim, *made) is not None
        assert held(claim, *map(cut, made)) is None


def test_figures_stand_beside_the_parts() -> None:
    found = compute("wang2017", "sgd-pnbm-beats-neighbours", evidence(of_ratings(0.92), data="ml-100k"))
    assert found is not None
    assert found.measured.startswith(
        "DPSGD-PNBM 0.9200 at ε = 1, 0.9200 at best, at 9 ε below: PCC (0.9000) 0, "
    )


def test_theorems_are_about_registered_algorithms() -> None:
    entries = {rule.entry for rule in RULES["wang2017"].values() if isinstance(rule, Theorem)}
    assert len(entries) == 3
    assert entries <= {each.name for key in ("dpsgd_pnbm", "dpps_pnbm") for each in registered(key)}
