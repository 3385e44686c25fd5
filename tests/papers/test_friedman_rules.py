"""Rules on the claims of Friedman, Berkovsky and Kaafar (2016): which parts hold, and which cells are measured."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules import cells, compute
from dpmf_cli.papers.rules.friedman import HALVES
from tests.papers.made import GRID, INFINITE, baseline, curve, evidence, experiment, held

KEY = "friedman2016"
FACTORIZED = ("isgd", "psgd", "pals")


def crossing(key: str, ia: float, ge: float, label: str = "") -> Measured:
    """A curve that meets IA (1.0) and GE (0.9) at these ε."""
    rmse = np.interp(np.log(GRID), np.log([ia / 2, ia, ge, 2 * ge]), [1.2, 1.0, 0.9, 0.8])
    return replace(curve(key, label=label), rmse=rmse[None, None, :])


def table(name: str, ia: Mapping[str, float], ge: Mapping[str, float]) -> Experiment:
    return experiment(
        name,
        curve("pge", ia.get("pge", 0.5), level=0.95),
        *(crossing(key, ia[key], ge[key]) for key in FACTORIZED),
    )


def both(data: str, factor: float, unbounded: float) -> list[Experiment]:
    """Tables 4 and 5, all crossings times `factor`, and unbounded times `unbounded`."""
    ia, ge = {"pge": 0.5, "isgd": 1.0, "psgd": 0.9, "pals": 0.9}, {"isgd": 3.0, "psgd": 8.0, "pals": 8.0}
    return [
        table(
            f"{data}_{kind}",
            {key: value * factor * more for key, value in ia.items()},
            {key: value * factor * more for key, value in ge.items()},
        )
        for kind, more in (("bounded", 1.0), ("unbounded", unbounded))
    ]


def of_data(**experiments: list[Experiment]) -> dict[str, dict[str, object]]:
    return {
        data.replace("_", "-"): {each.name: (each, find_crossings(each, replicates=10)) for each in found}
        for data, found in experiments.items()
    }


def test_larger_data_cross_earlier_than_the_next_smaller_set() -> None:
    def parts(larger: float, smaller: float) -> tuple[bool, ...]:
        found = of_data(ml_1m=both("ml1m", larger, 2), ml_100k=both("ml100k", smaller, 2))
        computed = compute(KEY, "larger-data-crosses-earlier", Evidence(found, "ml-1m"))  # type: ignore[arg-type]
        assert computed is not None
        return computed.held

    assert parts(1, 2) == (True,) * 4
    assert parts(2, 1) == (False,) * 4
    alone = of_data(ml_1m=both("ml1m", 1, 2))
    assert compute(KEY, "larger-data-crosses-earlier", Evidence(alone, "ml-1m")) is None  # type: ignore[arg-type]


def test_netflix_is_an_anomaly_where_some_crossing_is_not_below_that_of_the_smaller_set() -> None:
    for larger, expected in ((0.5, (False,)), (2.0, (True,))):
        found = of_data(netflix=both("netflix", larger, 2), ml_10m=both("ml10m", 1, 2))
        computed = compute(KEY, "netflix-does-not-cross-earlier", Evidence(found, "netflix"))  # type: ignore[arg-type]
        assert computed is not None
        assert computed.held == expected


@pytest.mark.parametrize(("factor", "whole"), [(2.0, True), (0.5, False)])
def test_density_matters_where_more_ratings_do_not_cross_earlier(factor: float, whole: bool) -> None:
    found = of_data(netflix_sample=both("netflix_sample", factor, 2), ml_100k=both("ml100k", 1, 2))
    computed = compute(KEY, "density-matters-more", Evidence(found, "netflix-sample"))  # type: ignore[arg-type]
    assert computed is not None
    assert computed.held == (whole, whole)


@pytest.mark.parametrize(("unbounded", "whole"), [(2.0, True), (0.5, False)])
def test_unbounded_costs_more_at_crossings_and_at_any_epsilon(unbounded: float, whole: bool) -> None:
    made = both("ml100k", 1, unbounded)
    assert held(KEY, "unbounded-costs-more", *made, data="ml-100k") == (whole, whole)
    assert held(KEY, "bounded-better-at-any-epsilon", *made, data="ml-100k") == (whole,) * 4
    made[1] = table("ml100k_unbounded", {"isgd": 2, "psgd": 2, "pals": 2}, {"isgd": 6, "psgd": 7, "pals": 16})
    assert held(KEY, "unbounded-costs-more", *made, data="ml-100k") == (False, False)  # PGE, and PSGD's GE


def test_a_pair_that_is_not_reached_at_all_says_nothing() -> None:
    far = {"isgd": 3.0, "psgd": 1e6, "pals": 8.0}
    ia = {"pge": 0.5, "isgd": 1.0, "psgd": 0.9, "pals": 0.9}
    more = ({key: 2 * value for key, value in each.items()} for each in (ia, far))
    made = table("ml100k_bounded", ia, far), table("ml100k_unbounded", *more)
    assert held(KEY, "unbounded-costs-more", *made, data="ml-100k") == (True, True)


@pytest.mark.parametrize(
    ("items", "effects", "expected"),
    [
        ((0.9, 0.9, 1.0), (8.0, 8.0, 2.0), (True, True, True)),
        ((0.9, 0.5, 1.0), (8.0, 8.0, 2.0), (False, True, True)),
        ((1.1, 1.1, 1.0), (8.0, 8.0, 2.0), (True, False, True)),
        ((0.9, 0.9, 1.0), (8.0, 8.0, 7.0), (True, True, False)),
    ],
)
def test_order_bounded(
    items: tuple[float, ...], effects: tuple[float, ...], expected: tuple[bool, ...]
) -> None:
    keys = ("psgd", "pals", "isgd")
    made = table("ml1m_bounded", dict(zip(keys, items, strict=True)), dict(zip(keys, effects, strict=True)))
    assert held(KEY, "bounded-crossings-order", made, data="ml-1m") == expected


@pytest.mark.parametrize(
    ("items", "effects", "expected"),
    [
        ((2.0, 2.0, 2.05), (8.0, 8.2, 5.0), (True, True, True)),
        ((2.0, 2.0, 3.0), (8.0, 8.2, 5.0), (False, True, True)),
        ((2.0, 2.0, 2.0), (8.0, 20.0, 9.0), (True, False, False)),
    ],
)
def test_order_unbounded(
    items: tuple[float, ...], effects: tuple[float, ...], expected: tuple[bool, ...]
) -> None:
    keys = ("psgd", "pals", "isgd")
    made = table("ml1m_unbounded", dict(zip(keys, items, strict=True)), dict(zip(keys, effects, strict=True)))
    assert held(KEY, "unbounded-order", made, data="ml-1m") == expected


def test_input_perturbation_is_best_where_it_is_first_of_all() -> None:
    made = both("ml1m", 1, 2)
    assert held(KEY, "input-perturbation-best", *made, data="ml-1m") == (False, True, True) * 2
    early = table(
        "ml1m_bounded", {"pge": 3.0, "isgd": 0.4, "psgd": 1, "pals": 1}, dict.fromkeys(FACTORIZED, 5.0)
    )
    found = held(KEY, "input-perturbation-best", early, made[1], data="ml-1m")
    assert found is not None
    assert (found[0], found[3]) == (True, False)


def test_ia_comes_before_ge() -> None:
    made = both("ml1m", 1, 2)
    assert held(KEY, "ia-before-ge", *made, data="ml-1m") == (True, True)
    wrong = replace(made[0], baselines=(baseline("ia", 0.9), baseline("ge", 1.0)))
    assert held(KEY, "ia-before-ge", wrong, made[1], data="ml-1m") == (False, True)


@pytest.mark.parametrize(
    ("other", "expected"), [(0.795, (True,)), (0.81, (False,)), (0.7, (True,))]
)  # "not much better" holds of any split that does not help, so it is no part
def test_a_split_that_helps_slightly(other: float, expected: tuple[bool, ...]) -> None:
    labels = {HALVES: 0.8, "PALS, P 0.7": other, **{f"PALS, P {share}": 0.85 for share in (0.3, 0.4, 0.6)}}
    made = [
        curve("pals", label=label, values=[1.2 - 0.1 * (label != HALVES), rmse])
        for label, rmse in labels.items()
    ]  # above IA, a gain does not count
    found = held(KEY, "split-helps-slightly", experiment("friedman_noise_ml1m", *made), data="ml-1m")
    assert found == expected


def test_norm_bounds_that_cross_earlier() -> None:
    made = [
        curve(key.lower(), at, label=label)
        for key, bounded, wide in (("PSGD", "PSGD", 1.05), ("PALS", HALVES, 2.0))
        for label, at in ((bounded, 1.0), (f"{key}, q_max 2", wide))
    ]
    found = held(KEY, "norm-bounds-cross-earlier", experiment("friedman_noise_ml100k", *made), data="ml-100k")
    assert found == (True, True, True, False)


def test_preprocessing() -> None:
    raw = {"PSGD": "no preprocessing, norms lifted", "ISGD": "ISGD, no preprocessing"}
    raw["PALS"] = "PALS, no preprocessing, norms lifted"
    later = {"PSGD": 10.0, "ISGD": 1.5, "PALS": 1e6}
    made = [curve(key.lower(), label=key) for key in raw]
    made += [curve(key.lower(), later[key], label=label) for key, label in raw.items()]
    drawn = experiment("friedman_fig3a", *made)
    assert held(KEY, "preprocessing-helps", drawn, data="ml-1m") == (True, False, True)
    assert held(KEY, "preprocessing-outweighs", drawn, data="ml-1m") == (True,)
    same = [curve(key.lower(), {"PSGD": 1.0, "ISGD": 3.0, "PALS": 1.0}[key], label=key) for key in raw]
    same += [curve(key.lower(), 1.0, label=label) for key, label in raw.items()]
    outweighed = experiment("friedman_fig3a_ml100k", *same)
    assert held(KEY, "preprocessing-outweighs", outweighed, data="ml-100k") == (False,)


@pytest.mark.parametrize(
    ("least", "middles", "steps", "expected"),
    [
        ((1.2, 1.3, 1.4), (0.9999,) * 3, (0.88, 0.85, 0.6), (True, True, True, True)),
        ((1.2, 1.2, 1.2), (0.9999,) * 3, (0.85, 0.85, 0.85), (True, False, False, False)),
        ((1.4, 1.3, 1.2), (1.2, 1.1, 0.7), (0.70, 0.85, 0.89), (False, True, False, False)),
    ],
)
def test_norm_bounds(
    least: tuple[float, ...], middles: tuple[float, ...], steps: tuple[float, ...], expected: tuple[bool, ...]
) -> None:
    curves = [
        curve("psgd", label=label, values=[low, middle, level])
        for label, low, middle, level in zip(
            ("q_max 0.5", "q_max 1", "q_max 2"), least, middles, steps, strict=True
        )
    ]
    assert held(KEY, "q-max-moves-ge", experiment("friedman_fig3b", *curves), data="ml-1m") == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.9, 0.8, (True, True)), (0.9, 0.99, (True, False)), (1.2, 0.99, (False, False))],
)
def test_simple_methods_win_at_low_epsilon(low: float, high: float, expected: tuple[bool, ...]) -> None:
    simple = [curve(key, values=[low, 0.95]) for key in ("pge", "pknn")]
    factorized = [curve(key, values=[1.1, high]) for key in FACTORIZED]
    for name, data in (
        ("friedman_fig5a", "ml-1m"),
        ("friedman_fig5a_ml100k", "ml-100k"),
        ("friedman_fig5b", "netflix-sample"),
    ):
        made = experiment(name, *simple, *factorized)
        assert held(KEY, "simple-wins-at-low-epsilon", made, data=data) == expected


@pytest.mark.parametrize(
    ("knn", "fixed", "pge", "resilient", "order"),
    [
        (0.2, 0.3, 0.25, (True, True), (True, True)),
        (0.2, 0.1, 0.15, (True, False), (False, True)),
        (2.0, 3.0, 5.0, (False, True), (True, False)),
    ],
)
def test_neighbours(
    knn: float, fixed: float, pge: float, resilient: tuple[bool, ...], order: tuple[bool, ...]
) -> None:
    at = {"pknn": knn, "public_knn": fixed, "pge": pge, **dict.fromkeys(FACTORIZED, 1.0)}
    made = experiment("friedman_fig5b", *(curve(key, epsilon) for key, epsilon in at.items()))
    assert held(KEY, "neighbours-resilient", made, data="netflix-sample") == resilient
    assert held(KEY, "netflix-neighbours-first", made, data="netflix-sample") == order


def swept(key: str, line: str, parameter: str, rmse: Mapping[float, list[float]]) -> list[Measured]:
    return [
        replace(each, epsilons=INFINITE) if key == "als" else each
        for value, values in rmse.items()
        for each in [curve(key, label=f"{line}, {value}", line=line, swept=(parameter, value), values=values)]
    ]


def test_the_best_pair_and_where_iterations_settle() -> None:
    made, clean = [], []
    for d in (1, 3, 5, 10):
        level = 0.9 + 0.01 * abs(d - 3)
        clean += swept("als", f"ALS, d {d}", "regularization", {0.06: [level + 0.01], 0.08: [level]})
        noisy = {0.06: [level, level - 0.01], 0.08: [level + 0.0005, level]}  # a tie at the first ε
        made += swept("isgd", f"ISGD, d {d}", "regularization", noisy)
    clean += swept("als", "ALS, k", "iterations", {1: [1.0], 5: [0.95], 7: [0.901], 10: [0.9], 15: [0.9]})
    made += swept("isgd", "ISGD, k", "epochs", {1: [1.0], 7: [0.95], 10: [0.9], 15: [0.9]})
    drawn = replace(experiment("friedman_fig6_pairs", *made), baselines=tuple(clean))
    assert held(KEY, "best-pair", drawn, data="ml-100k") == (True, True, False)
    assert held(KEY, "stable-after", drawn, data="ml-100k") == (True, False)


def test_cells_are_the_printed_ones_each_once() -> None:
    made = [*both("ml1m", 1, 2), replace(both("ml1m", 1, 2)[1], name="ml1m_unbounded_table3")]
    made[0] = replace(made[0], baselines=(*made[0].baselines, baseline("ga", 1.1)))
    found = {cell.name: cell for cell in cells(KEY, evidence(*made, data="ml-1m"))}
    assert found["table 3, GA"].printed == 1.1171
    assert found["table 4, ISGD, GE"].printed == 2.7
    assert found["table 4, ISGD, GE"].measured == pytest.approx(3.0, rel=0.1)
    assert found["table 5, PALS, IA"].printed == 2.0
    assert "table 4, PGE, GE" not in found
    assert "table 3, ALS" not in found
    assert len(found) == 3 + 14
    assert list(cells(KEY, evidence(data="ml-1m"))) == []


def test_section_5_4_has_cells_of_its_own() -> None:
    drawn = experiment("friedman_fig5a", curve("pknn", 0.2), curve("pge", 0.3))
    section = {cell.name: cell for cell in cells(KEY, evidence(drawn, data="ml-1m"))}
    assert {name: cell.printed for name, cell in section.items()} == {
        "section 5.4, PKNN, IA": 0.18,
        "section 5.4, PGE, IA": 0.18,
    }
