"""Whole outputs of made-up results, word for word as in the files of `expected/`.

After a change on purpose, `DPMF_EXPECTED=write pytest tests/report/test_expected.py` writes the files anew. Their
difference is what users will see.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import matplotlib.style
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings, levels_at
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.evaluation.ranking import compare
from dpmf_cli.experiment.results.collect import Compared, Setting
from dpmf_cli.papers.beside_print import beside_print, with_printed_values
from dpmf_cli.privacy.accounting import SampledSteps
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.report.advice import advice, answer, odds, untried
from dpmf_cli.report.figures.charts import Chart, Level, charts_of, curves_chart, growth_lines, sweep_charts
from dpmf_cli.report.figures.drawings import (
    curves_figure,
    draw_combined,
    frontier_panel,
    growth_figure,
    sweep_figure,
)
from dpmf_cli.report.figures.style import _STYLE
from dpmf_cli.report.html.page import Drawn, _environment
from dpmf_cli.report.html.views import Row, baseline_row, crossing_row
from dpmf_cli.report.outputs import curves_csv, folds_csv, growth_csv
from dpmf_cli.report.tables.crossings import (
    BaselineRow,
    baseline_rows,
    baselines_table,
    crossings_table,
    figure_macros,
    levels_table,
    noise_free_table,
)
from dpmf_cli.report.tables.layout import FORMATS, Group, TextTable, draw
from dpmf_cli.report.tables.ledgers import ledger_csv, ledger_table
from dpmf_cli.report.tables.papers import Sent, improvements_table, learned_nothing_table, traffic_table
from dpmf_cli.report.tables.ranked import (
    combined_table,
    comparisons_text,
    found_in,
    frontier_table,
    settings_table,
)
from tests.conftest import make_ratings
from tests.evaluation.made_curves import noise_free_of
from tests.report.advised import GRID, INFINITE, crossed, curve, experiment
from tests.report.conftest import make, of_theta
from tests.report.figures.made import cut, grown, many, picture, values_of, xs, ys
from tests.report.ranked import mixed, provable, with_zero

FOLDER = Path(__file__).parent / "expected"
Texts = Iterable[tuple[str, str]]
NONE: dict[str, Any] = {"reproduced": None, "claimed": None, "provable": None}
NO_INTERVAL: dict[str, Any] = {"over": "none", "low": None, "high": None, "folds": 1, "runs": 1}
BELOW, NEVER = Status.BELOW_GRID, Status.NOT_REACHED


def in_all_forms(table: TextTable) -> Texts:
    for form in FORMATS:
        text = rounded(draw(table, form))
        yield form, json_lines(text) if form == "json" else text


def json_lines(text: str) -> str:
    found = ends(json.loads(text))
    return "\n".join(map(str, found.items() if isinstance(found, dict) else found))


def ends(value: Any) -> Any:
    """What JSON holds; of its lists only their lengths, and their first and last values."""
    if isinstance(value, dict):
        return {key: ends(each) for key, each in value.items()}
    return [len(value), *map(ends, value[:: max(len(value) - 1, 1)])] if isinstance(value, list) else value


def layout() -> Texts:
    """A sentence below a title, wide letters, a bracket that LaTeX must not read as space, and no rows."""
    rows = (("[a]", "1.5"), ("x" * 30, "∞"), ("中文", "22"))
    table = TextTable(("名", "ε"), "lr", (Group("first", rows, "ε ≤ 1_a."), Group("none", ())), ("n",))
    for form in ("table", "md", "latex"):
        yield form, draw(table, form)
        yield f"turned, {form}", draw(replace(table, alignment="rl"), form)
        yield f"of none, {form}", draw(TextTable(("name",), "l", ()), form)


def crossings() -> Texts:
    first = crossed(
        "isgd",
        2.4,
        printed=2.7,
        gap=-0.004,
        off=1.2,
        low=2.1,
        high=NEVER,
        recrosses=True,
        provable=np.inf,
        over="runs",
    )
    other = replace(first, printed=None, gap=None, off=None, experiment="other")
    quiz = replace(first, baseline="Cinematch quiz", reference=True, comparable=False)
    alone = {
        "printed": [first],
        "not printed, θ": [replace(other, theta=0.153), replace(other, label="x")],
        "several experiments": [first, other],
        "δ": [replace(first, delta=1e-6), replace(first, label="pure")],
        "two δ, joint": [replace(first, delta=1e-6), replace(first, label="b", delta=1e-5, joint=True)],
        "references": [replace(quiz, baseline="Cinematch probe", comparable=True), quiz],
        "statuses": [
            replace(first, status=each, recrosses=False, **NONE | NO_INTERVAL)
            for each in Status
            if each != "crossed"
        ],
        "outside of the grid": [
            replace(first, status=NEVER, low=15.2, over="folds", recrosses=False, **NONE),
            replace(first, status=BELOW, low=BELOW, high=0.3, over="folds", **NONE),
            replace(first, status=BELOW, low=BELOW, high=BELOW, over="folds", **NONE),
            replace(first, status=Status.NO_EPSILON, low=Status.NO_EPSILON, high=BELOW, over="folds", **NONE),
        ],
        "coarse, partial": [replace(first, coarse=True, partial="3 of 10 folds")],
        "more is better": [replace(first, metric=Metric("ndcg@10", "nDCG@10", larger_is_better=True))],
    }
    for name, rows in alone.items():
        yield name, draw(crossings_table(rows))
    yield from in_all_forms(crossings_table([row for rows in alone.values() for row in rows]))
    made = replace(of_theta(make(3)), name="ml1m_bounded")
    yield "with printed values", draw(crossings_table(with_printed_values(beside_print(made))))
    found = [*find_crossings(make(2)), *find_crossings(made)]
    labels = ("λ #1", "λ %1", r"\input{x}", "a_b", "ε", "ε")
    odd = [replace(cell, label=label) for cell, label in zip(found, labels, strict=False)]
    refined = replace(make(2), refines=True)
    yield "refined", draw(crossings_table(find_crossings(refined)))
    yield "macros", figure_macros(make(3), [*find_crossings(make(3)), *odd])


def levels() -> Texts:
    """On and between points of a grid, incomplete, diverged, with another error beside, over runs only."""
    whole = make(3, incomplete="psgd")
    first, second, third = whole.curves
    curves = (
        replace(first, others={"mae": first.rmse - 0.2}),
        replace(second, rmse=np.full_like(second.rmse, np.inf), joint=True, delta=1e-6),
        third,
    )
    for at in (0.1, 1.3):
        yield from in_all_forms(levels_table(levels_at(replace(whole, curves=curves), at), at))
    yield "over runs", draw(levels_table(levels_at(make(1, folds=1), 1.3), 1.3))
    yield "of none", draw(levels_table([], 1.0))


def baselines() -> Texts:
    whole = replace(make(), name="ml1m_bounded")
    shifted = replace(whole.baselines[1], rmse=np.array([[[0.97]], [[0.98]]]))
    waiting = replace(whole.baselines[2], missing=1)
    other = replace(shifted, algorithm="constant_s", label="constant_s")
    twice = replace(whole.baselines[0], label="again")
    odd = replace(whole, baselines=(other, waiting, shifted, whole.baselines[0], twice))
    rows = [*baseline_rows(odd), *baseline_rows(make(folds=1))]
    yield from in_all_forms(baselines_table(rows))
    yield "not printed", draw(baselines_table(baseline_rows(make(folds=2))))
    first, second = of_theta(make(2)).curves
    curves = (
        replace(first, label="a", noise_free=noise_free_of([0.9, 0.92])),
        replace(second, noise_free=noise_free_of([0.9, np.nan]), missing=1),
        replace(first, label="b", noise_free=None),
    )
    yield "without noise", draw(noise_free_table(replace(make(2), folds=2, curves=curves)))
    alone = replace(first, noise_free=noise_free_of([0.9]))
    yield "without noise, one fold", draw(noise_free_table(replace(make(2), folds=1, curves=(alone,))))


def combined() -> Texts:
    whole = mixed()
    first, second, third, *_ = whole.curves
    swept = replace(first, swept=("factors", 3.0), label="pge, factors 3")
    deltas = [replace(each, delta={2: 1e-6, 4: 1e-9}.get(at, 1e-3)) for at, each in enumerate(whole.curves)]
    yield from in_all_forms(combined_table([whole]))
    for name, changed in {
        "without any δ": {"curves": tuple(replace(each, delta=0.0) for each in whole.curves)},
        "several δ": {"curves": tuple(deltas)},
        "points of a sweep": {"curves": (swept, second, third)},
        "no baselines": {"baselines": ()},
        "below the grid, diverged": {
            "curves": (
                replace(third, rmse=third.rmse - 0.5),
                replace(second, rmse=np.full_like(second.rmse, np.inf)),
            )
        },
    }.items():
        yield name, draw(combined_table([replace(whole, **cast(Any, changed))]))
    yield "several experiments", draw(combined_table([whole, replace(whole, name="again")], bar="ge"))
    half = make(2, incomplete="isgd")
    ga, *others = half.baselines
    gap = replace(ga, rmse=np.full_like(ga.rmse, np.nan), missing=1)
    curves = tuple(replace(each, protects=Protection.VALUE, source="x") for each in half.curves)
    incomplete = replace(half, curves=curves, baselines=(gap, *others))
    yield "incomplete", draw(combined_table([incomplete], notes=["run it"]))
    yield "ε → 0", draw(combined_table([with_zero(provable(), 0.9, 0.96, 1.5, 0.9)], bar="ge"))


def frontier() -> Texts:
    whole = provable()
    pge = whole.curves[0]
    noise = np.random.default_rng(1).normal(0, 0.01, (5, *pge.rmse.shape))
    others = [
        replace(pge, label=f"m{at}", rmse=pge.rmse + each - each.mean(axis=(0, 1)) + 1e-5)
        for at, each in enumerate(noise)
    ]
    twice = replace(others[0], label="pge, bounded, published", mode="published")
    yield from in_all_forms(frontier_table([whole], notes=["run it"]))
    for name, changed in {
        "best at a smaller ε": {"curves": (replace(pge, rmse=pge.rmse[:, :, ::-1]),)},
        "ties": {"curves": (pge, *others)},
        "a tie with its own published mode": {"curves": (pge, twice)},
        "few baselines": {"baselines": whole.baselines[:1], "curves": (pge,)},
    }.items():
        yield name, draw(frontier_table([replace(whole, **cast(Any, changed))]))
    elsewhere = replace(whole, name="other", seed=8)
    yield "on other folds", draw(frontier_table([whole, elsewhere]))
    yield from in_all_forms(frontier_table([with_zero(provable(), 1.5, 0.96, 0.93, 0.9)]))
    yield "no interval", draw(frontier_table([provable(folds=1, runs=1)]))
    yield "over runs", draw(frontier_table([provable(folds=1, runs=5)]))


def compared() -> Texts:
    """Worse, better, the same, diverged, with another provable ε, and left out for each reason."""
    first, second, third, fourth, fifth, sixth = (cut(each, slice(4)) for each in make(6).curves)
    whole = replace(make(1), curves=(first, second, third, fourth, fifth, sixth))
    diverged = third.rmse.copy()
    diverged[0, 0, 0] = np.inf
    changed = (
        replace(
            first, rmse=first.rmse + np.linspace(0.01, -0.01, 4), label="PGE", provable=2 * first.provable
        ),
        second,
        replace(third, rmse=diverged),
        replace(fourth, joint=True),
        replace(fifth, delta=1e-6),
        replace(sixth, epsilons=sixth.epsilons + 0.01),
        replace(sixth, algorithm="x", label="new"),
    )
    for name, a, b in (
        ("whole", whole, replace(whole, name="b", curves=changed)),
        (
            "one fold",
            make(1, folds=1),
            replace(make(1, folds=1), curves=(replace(first, rmse=first.rmse[:1] + 1),)),
        ),
        ("one run", make(1, folds=1, runs=1), make(1, folds=1, runs=1)),
    ):
        settings = (
            () if name == "one run" else (Setting("folds", 10, None), Setting("epsilons", [*range(9)], "x"))
        )
        both = Compared((a.name, f"{b.name}2"), a.title, settings, compare(a, b), (a, b))
        for form in ("table", "md", "csv", "json"):
            text = rounded(comparisons_text([both], form))
            yield f"{name}, {form}", json_lines(text) if form == "json" else text
        yield f"{name}, three", draw(settings_table([both, replace(both, settings=())]))
    yield "twice, json", json_lines(rounded(comparisons_text([both, both], "json")))


def ledgers() -> Texts:
    l1, l2 = (Sensitivity(2.0, norm, Neighbours.UNBOUNDED, "test") for norm in (1, 2))
    less = replace(l1, calibrated_to=replace(l1, value=1.0))
    pure, gaussian, sampled = Ledger([1.0, 4.0]), *(Ledger([10.0], delta=1e-6) for _ in range(2))
    pure.spend("a", "Laplace", l1, 0.25 * pure.limit)
    pure.spend("b", "Laplace", less, 0.75 * pure.limit, provable=np.full(2, np.inf))
    gaussian.spend("charged", "Gaussian", l2, theta=np.array([0.3]), claimed=np.array([2.0]))
    gaussian.spend("composed", "Gaussian", l2, theta=np.array([0.4]))
    first, second = (SampledSteps(np.array([noise]), 0.1, 5) for noise in (4.0, 8.0))
    sampled.spend("composed", first.mechanism, l2, sampled=first)
    sampled.spend("charged", second.mechanism, l2, sampled=second, claimed=np.array([2.0]))
    of = {"pure": pure, "gaussian": gaussian, "sampled": sampled}
    steps: dict[str, list[dict[str, Any]]] = {
        name: [{**entry.record(), "epsilons": each.limit.tolist()} for entry in each.entries]
        for name, each in of.items()
    }
    curves = [
        Measured(
            name, name, each.limit, np.ones((1, 1, len(each.limit))), each.claimed, each.provable, "unbounded",
            "published", delta=each.delta, joint=name == "sampled",
        )
        for name, each in of.items()
    ]  # fmt: skip
    shown = Experiment("d", "d", "D", 1, 1, 1, 1, tuple(curves), (), counted=True)
    yield "shares", draw(ledger_table(steps, replace(shown, counted=False)))
    unproved = {"gaussian": [{**steps["gaussian"][0], "mu": [np.inf], "provable": [np.inf]}]}
    yield "nothing proved", draw(ledger_table(unproved, shown))
    rows = ledger_csv(steps).splitlines()
    yield "csv", "\n".join(rounded(row, 4 if row.startswith("sampled") else 6) for row in rows)


def local() -> Texts:
    def of(algorithm: str, label: str, low: float, high: float, **more: Any) -> Measured:
        rmse, grid = np.array([[[low, 1.0]], [[high, 1.0]]]), np.array([0.1, 2.0])
        return replace(Measured(algorithm, label, grid, rmse, grid, grid, "local", "published"), **more)

    curves = (
        of("local_mean", "mean", 1.19, 1.19),
        of("blp_mog_mf", "ours", 1.2, 1.2),
        of("isgd_local", "theirs", 1.5, 1.6),
        of("local_means", "better", 1.1, 1.1, joint=True),
        of("isgd", "left", 1.1, 1.1, missing=1),
        of("isgd", "diverged", np.inf, np.inf),
        of("isgd", "another kind", 2, 2, neighbours="bounded"),
    )
    whole = Experiment("x", "ml-100k", "MovieLens 100K", 2, 2, 1, 0, curves, ())
    nothing = learned_nothing_table(whole)
    assert nothing is not None
    yield "nothing learned", draw(nothing)
    yield from in_all_forms(improvements_table([replace(whole, curves=curves[:4])]))
    yield "traffic.csv", draw(traffic_table([Sent("a", 1, 5, 12345.6, 0)], make_ratings(), "t"), "csv")
    yield "traffic", draw(traffic_table([Sent("a", 1, 5, 12345.6, 0)], make_ratings(), "t"))
    assert learned_nothing_table(replace(whole, curves=curves[1:])) is None


def words() -> Texts:
    """Advice: each status, proof, interval, guarantee and number of methods."""
    joint, δ = {"joint": True}, {"delta": 1e-6}
    outside: dict[str, Any] = {"status": NEVER, "low": NEVER, "high": NEVER, **NONE}
    cases: dict[str, tuple[list[Crossing], dict[str, Any]]] = {
        "alone": ([crossed("PGE", 2.0)], {}),
        "clear": ([crossed("ISGD", 4.0), crossed("PGE", 2.0)], {}),
        "close": ([crossed("ISGD", 2.3), crossed("PGE", 2.0), crossed("PSGD", 6.0)], {}),
        "many": ([crossed("PGE", 2.0), *(crossed(f"method {k}", 6.0 + k) for k in range(13))], {}),
        "no interval": (
            [crossed("ISGD", 2.3, **NO_INTERVAL), crossed("PGE", 2.0, **NO_INTERVAL)],
            {"folds": 1, "runs": 1},
        ),
        "no interval of some": (
            [crossed("ISGD", 2.1), crossed("PSGD", 6.0, **NO_INTERVAL), crossed("PGE", 2.0)],
            {"folds": 1},
        ),
        "proofs": (
            [
                crossed("PALS", 1.0, provable=5.0),
                crossed("PKNN", 1.0, provable=np.inf),
                crossed("MM", 2.2, provable=1.5),
                crossed("PGE", 2.0),
            ],
            {"folds": 3},
        ),
        "nothing proved": ([crossed("PALS", 1.0, provable=np.inf)], {}),
        "modes": (
            [
                crossed(label, 2.0, mode="corrected")
                for label in ("PGE", "PGE, bounded, corrected", "PGE Corrected", "PGE, uncorrected")
            ],
            {},
        ),
        "neighbours": ([crossed("A", 2.0), *(crossed(each, 1.0, neighbours=each) for each in Neighbours)], {}),
        "personalised": (
            [crossed("PGE", 2.0), crossed("OTHER", 1.0, neighbours="unbounded")],
            {"curves": (replace(curve("OTHER"), protects=Protection.PERSONALISED),)},
        ),
        "joint": ([crossed("PGE", 2.0), crossed("OTHER", 1.0, **joint)], {}),
        "δ": ([crossed("PGE", 2.0), crossed("OTHER", 1.0, **δ), crossed("C", 1.0, delta=1e-9)], {}),
        "δ and joint": ([crossed("PGE", 2.0), crossed("OTHER", 1.0, **joint, **δ)], {}),
        "neither implies the other": ([crossed("PGE", 2.0, **δ), crossed("OTHER", 1.0, **joint)], {}),
        "some protect the same": (
            [crossed("PGE", 2.0), crossed("MM", 2.0, **δ), crossed("O", 1.0, neighbours="unbounded", joint=True)],
            {},
        ),
        "outside of the grid": (
            [
                crossed("PGE", 1.0, **{**outside, "status": BELOW, "low": BELOW, "high": 0.7}),
                crossed("CLAIMS", 1.0, **{**outside, "status": BELOW, "low": BELOW, "high": BELOW}),
                *(crossed(each, 1.0, **outside) for each in ("BAD", "GOOD", "SAME", "PLAIN")),
                crossed("NEAR", 1.0, **{**outside, "low": 6.0}),
                crossed("NONE", 1.0, **{**outside, "status": Status.NO_EPSILON, "low": BELOW, "high": 0.7}),
            ],
            {
                "curves": (
                    curve("PGE"), curve("CLAIMS", provable=3.0), curve("BAD", 0.95), curve("GOOD", 0.8),
                    curve("SAME", 0.9), curve("PLAIN"), curve("NEAR", 0.95), curve("NONE"),
                )
            },
        ),
        "again, incomplete, beyond": (
            [
                crossed("PGE", 2.0, recrosses=True, **{**NO_INTERVAL, "folds": 10}),
                crossed("ISGD", 2.0, status=Status.INCOMPLETE, **NONE),
                crossed("PSGD", 3.0, mode="corrected", low=BELOW, high=NEVER),
                crossed("PGE", 2.0, baseline="Cinematch probe", reference=True),
            ],
            {},
        ),
    }  # fmt: skip
    for name, (cells, changed) in cases.items():
        yield name, told_of([experiment(**changed)], cells)
    plain = experiment()
    for name, errors in (
        ("ua", {"ua": 0.89}),
        ("ua and ga", {"ua": 0.85, "ga": 0.8}),
        ("none", {"ua": 0.91}),
        ("unsure", {"ua": 0.89}),
    ):
        spread = 0.05 * (name == "unsure") * np.array([1, -1] * 5).reshape(10, 1, 1)
        more = (
            replace(plain.baselines[0], algorithm=key, label=key.upper(), rmse=error + spread)
            for key, error in errors.items()
        )
        yield (
            f"weak: {name}",
            told_of([replace(plain, baselines=(*plain.baselines, *more))], [crossed("PGE", 2.0)]),
        )
    whole = of_theta(make())
    yield (
        "of two",
        told_of([whole, make(1)], [*find_crossings(whole, replicates=50), *find_crossings(make(1))]),
    )
    yield "of nothing", advice([], [])
    swept = replace(curve("PGE"), swept=("beta", 2.0), epsilons=np.array([0.01, 99.0]))
    wider = replace(curve("PGE"), epsilons=np.array([0.1, 20.0]), neighbours="user")
    for name, curves in {
        "untried": (curve("PGE"), curve("PALS", provable=np.inf)),
        "tried elsewhere": (
            curve("PALS", provable=2),
            curve("PALS", mode="corrected", neighbours="bounded"),
            wider,
        ),
        "swept": (swept, curve("ISGD")),
    }.items():
        some = experiment(
            curves=curves, folds=3, runs=1, baselines=() if name == "untried" else plain.baselines
        )
        lists = re.compile(r"\((\w+(, )?)+\)|\d+ of the.*")  # of methods, to which every new one is added
        yield name, "\n".join(lists.sub("…", line) for line in untried([some]))


def told_of(experiments: list[Experiment], crossings: list[Crossing]) -> str:
    text = advice(experiments, crossings)
    assert max(len(line) for line in text.splitlines() if not line.startswith("  `")) <= 80
    assert not re.search(r"\n *=|=\n", text)  # ε = 1 stays on a line
    return text.partition("\nNot tried on")[0]


def answers() -> Texts:
    noise = np.random.default_rng(5).normal(0, 1e-4, (5, 2, 1))
    wide = np.linspace(-0.05, 0.05, 5)[:, None, None]

    def of(label: str, *rmse: float, spread: Any = noise, **changed: Any) -> Measured:
        values = np.array(rmse) + np.broadcast_to(spread, (5, 2, 1))
        made = Measured("pge", label, GRID, values, GRID, GRID, "bounded", "corrected", line=label)
        return replace(made, **changed)

    levels = {"ga": 1.2, "ua": 1.1, "ia": 1.0, "ge": 0.9, "als": 0.8}
    baselines = tuple(
        Measured(
            key, {"als": "Clean MF"}.get(key, key.upper()), INFINITE, level + noise[:, :1], INFINITE, INFINITE
        )
        for key, level in levels.items()
    )
    cases: dict[str, tuple[tuple[Measured, ...], float]] = {
        "two": ((of("Early", 0.95, 0.94, 0.93), of("Late", 1.3, 0.92, 0.5)), 2.0),
        "at another ε": ((of("Early", 0.95, 0.94, 0.93), of("Late", 1.3, 0.92, 0.5)), 0.5),
        "some averages": ((of("kNN, private", 1.1, 0.9501, 0.9),), 8.0),
        "always": ((of("A", 0.7, 0.6, 0.5, delta=1e-6),), 1.3),
        "joint": ((of("A", 1.1, 0.95, 0.9), of("B", 1.0, 0.9, 0.8, joint=True)), 2.0),
        "overlapping": ((of("A", *[0.95] * 3, spread=wide), of("B", *[0.96] * 3, spread=wide)), 2.0),
        "diverged": ((of("A", *[np.inf] * 3), of("B", 1.1, 1.0, 0.9)), 2.0),
        "all diverged": ((of("A", *[np.inf] * 3),), 2.0),
        "no better than a constant": ((of("A", 1.4, 1.3, 1.1),), 2.0),
        "incomplete": ((of("A", 1.4, 1.3, 1.1, missing=1), of("B", 1.1, 1.0, 0.9)), 2.0),
        **{each: ((of("A", 1, 1, 1, neighbours=each.value),), 8.0) for each in Neighbours},
        "a noise-free run": ((of("A", 0.95, 0.9, 0.85, noise_free=noise_free_of([0.82] * 5)),), 2.0),
        "no cost": ((of("A", 0.8, 0.7, 0.6, noise_free=noise_free_of([0.82] * 5)),), 2.0),
        "counts users": ((of("A", 1, 1, 1, neighbours="user", algorithm="own_regression"),), 2.0),
    }
    for name, (curves, epsilon) in cases.items():
        shop = Experiment("shop", "shop", "My shop", 5, 5, 2, 1, curves, baselines)
        yield (
            name,
            answer(shop, epsilon, "my shop.yaml", by_errors=name != "two", guessed_scale=name == "two"),
        )

    yield "odds", ", ".join(map(odds, (0.5, 14, 1000.0, 1e4)))


def charts() -> Texts:
    theta, whole = of_theta(make(3)), make(4, incomplete="psgd")
    (alone,) = make(1).curves
    corrected = tuple(replace(each, mode="corrected", label=f"{each.label} c") for each in make(2).curves)
    above = replace(alone, rmse=alone.rmse + 5)
    high = replace(alone, rmse=alone.rmse * 1.7, neighbours="local")
    (ga, _, _, als) = make(1).baselines
    named = (replace(als, algorithm="mf_sgd", label="x"), ga, replace(ga, label="other"))
    cases: dict[str, Experiment] = {
        "curves": whole,
        "over θ": theta,
        "over ε": replace(theta, axis="epsilon"),
        "one fold": make(1, folds=1),
        "one fold and run": make(1, folds=1, runs=1),
        "both modes": replace(make(2), curves=(*make(2).curves, *corrected)),
        "above": replace(make(2), curves=(above, make(2).curves[1])),
        "ε → 0": with_zero(make(2), 0.9, 1.5),
        "local": replace(make(2), curves=(high,)),
        "joint": replace(make(1), curves=(replace(alone, joint=True),)),
        "names of baselines": replace(make(1), baselines=named),
        "no baselines": replace(make(1), baselines=()),
        "more is better": replace(
            make(1),
            curves=(
                replace(alone, others={"n": 2 - alone.rmse}, metric=Metric("n", "N", larger_is_better=True)),
            ),
            baselines=(),
            metric=Metric("n", "N", larger_is_better=True),
        ),
    }
    for name, each in cases.items():
        yield name, told(curves_chart(each))
    for axis in ("epsilon", "theta"):
        first = values_of(alone, cast(Any, axis), "PGE")
        second = values_of(alone, cast(Any, axis), "second", 0.5)
        few = cut(make(2).curves[1], slice(2), line="DP", noise_free=noise_free_of(np.ones(10)))
        beside = (few, replace(make(2).curves[1], label="x"), cut(alone, slice(4, 6), line="PGE"))
        for curves in (first, (*first, *second), (*first, *beside)):
            (chart,) = sweep_charts(replace(make(1), curves=curves, axis=cast(Any, axis)), "k")
            yield f"{len(curves)} over {axis}", told(chart)
    for order in ("timestamp", "random"):
        yield f"growth, {order}", "\n".join(map(told, charts_of(grown(make(3), cast(Any, order)))))
    assert growth_lines(make(2)) == []
    small, middle, large = grown(make(1)).growth
    waiting = replace(middle, curves=(replace(middle.curves[0], missing=1),))
    gap = replace(grown(make(1)), growth=(small, waiting, large))
    yield "growth with a gap", told(charts_of(gap)[-1])
    kinds = (Protection.VALUE, Protection.PRESENCE, Protection.USER, Protection.USER)
    several = [replace(each, protects=kind) for each, kind in zip(make(4).curves, kinds, strict=True)]
    several[3] = replace(several[3], joint=True)
    yield "several guarantees", "\n".join(map(told, charts_of(replace(make(4), curves=tuple(several)))))
    yield "too many", "\n".join(map(told, charts_of(many(make(1)))))[:900]


def told(chart: Chart) -> str:
    """All that a chart says, in words."""

    def numbers(values: Any) -> str:
        return "none" if values is None else " ".join(f"{value:.4g}" for value in values)

    lines = [
        f"{chart.key} | {chart.title} | {chart.x_name} | {chart.y_name} | {numbers(chart.limits)} | {chart.log}"
    ]
    lines += [chart.heading] * bool(chart.heading)
    for each in chart.series:
        look = f"{each.name} | {each.dash.name} | {each.look.colour} {each.look.marker}"
        if isinstance(each, Level):
            lines.append(f"level {look} | {each.y:.4g} | {each.labelled}")
        else:
            marks = [numbers(mark) for mark in each.marks]
            lines += [
                f"line {look} | {'; '.join(marks)}",
                *(f"  {numbers(a)}" for a in (each.x, each.y, each.low)),
            ]
    return "\n".join([*lines, *chart.notes])


def pictures() -> Texts:
    for name, chart in (
        ("curves", curves_chart(make(2))),
        ("over θ", curves_chart(of_theta(make(2)))),
        ("a point", curves_chart(replace(make(1), curves=(cut(make(1).curves[0], slice(1)),)))),
        ("growth", charts_of(grown(make(2)))[-1]),
    ):
        yield name, picture(Drawn(chart)) + "\n" + "\n".join(map(str, Drawn(chart).rows))


def figures() -> Texts:
    """What matplotlib draws of a chart, and of several experiments."""
    theta, (first,) = of_theta(make(2)), make(1).curves
    swept = replace(make(1), curves=values_of(first, "epsilon", "PGE"))
    diverged = replace(first, rmse=np.where(np.arange(16) < 3, np.inf, first.rmse))
    for name, figure in {
        "curves": curves_figure("title", curves_chart(make(2))),
        "over θ": curves_figure("title", curves_chart(theta)),
        "above": curves_figure("title", curves_chart(replace(make(1), curves=(above(make(1)),)))),
        "sweep": sweep_figure("title", *sweep_charts(swept, "k")),
        "growth": growth_figure(grown(make(2)), "title", charts_of(grown(make(2)))[-1]),
        "growth, random": growth_figure((grow := grown(make(2), "random")), "title", charts_of(grow)[-1]),
        "a point": curves_figure("title", curves_chart(replace(make(1), curves=(cut(first, slice(1)),)))),
        "diverged": curves_figure("title", curves_chart(replace(make(1), curves=(diverged,), baselines=()))),
        "combined": draw_combined([mixed()]),
        "combined, over θ": draw_combined([of_theta(mixed())]),
        "too many": draw_combined([too_many()]),
    }.items():
        yield (name, "\n".join([*map(drawn, figure.axes), *(text.get_text() for text in figure.texts)]))
    for each in found_in([provable(), replace(with_zero(provable(), 0.9, 0.96, 1.5, 0.9), title="0")]):
        axes = Figure().add_subplot()
        ends = frontier_panel(each)[1](axes)
        yield f"frontier, {each.guarantee}", f"{drawn(axes)}\n{'; '.join(end.text for end in ends)}"


def above(whole: Experiment) -> Measured:
    return replace(whole.curves[0], rmse=whole.curves[0].rmse + 5)


def too_many() -> Experiment:
    whole = many(make(1), 52)
    return replace(whole, curves=tuple(replace(each, protects=Protection.VALUE) for each in whole.curves))


def drawn(axes: Axes) -> str:
    """What stands in axes, and where; not where labels are, which depends on the widths of letters."""
    lines = [
        f"band {np.round(cast(Any, each.get_facecolor()), 3).tolist()}{points(*path.get_extents().get_points().T)}"
        for each in axes.collections
        for path in each.get_paths()
    ]
    for line in axes.lines:
        colour = line.get_markeredgecolor() if line.get_linestyle() == "None" else line.get_color()
        look = f"{line.get_linestyle()} {line.get_linewidth():.3g} {colour} {line.get_marker()}"
        lines.append(look + (line.get_transform() != axes.transAxes) * points(xs(line), ys(line)))
    counted = [f"{count} × {line}" for line, count in Counter(lines).items()]
    legend = axes.get_legend()
    words = [text.get_text() for text in (*axes.texts, *(legend.get_texts() if legend else ()))]
    ends = [f"{end:.4g}" for end in (*axes.get_xlim(), *axes.get_ylim())]
    about = [axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale(), " ".join(ends)]
    return "\n".join([" | ".join(about), *counted, "; ".join(words)])


def points(x: Any, y: Any) -> str:
    return "".join(f" ({each:.4g}, {other:.4g})" for each, other in zip(x, y, strict=True))


def printed() -> Texts:
    """Rows of the page that set print beside results: each verdict, and columns that would be empty."""

    def of(**changed: Any) -> Crossing:
        return crossed("PGE", 2.0, dataset="ml-100k", baseline="IA", **changed)

    psgd = replace(of(neighbours="unbounded", printed=60.0), algorithm="psgd", label="PSGD", baseline="GE")
    ia = BaselineRow("ml-1m", "MovieLens 1M", "x", "IA", 0.9795, 0.9799, 0.001, 10, 1)
    tables: dict[str, list[Row]] = {
        "plain": [crossing_row(of())],
        "crossings": [
            crossing_row(each)
            for each in (
                of(printed=2.1, provable=np.inf, joint=True, delta=1e-6),
                of(printed=2.8),
                of(printed=9.0),
                of(theta=0.5),
                *(of(status=status, printed=2.0, **NONE) for status in Status if status != "crossed"),
                psgd,
                replace(psgd, experiment="ml100k_unbounded.held-out-1"),
                replace(psgd, baseline="IA", experiment="x"),
                replace(psgd, baseline="IA", printed=2.7),
            )
        ],
        "baselines": [
            baseline_row(each)
            for each in (
                ia,
                replace(ia, reproduced=0.99),
                replace(ia, reproduced=1.1, sd_folds=None),
                replace(ia, reproduced=None),
                replace(ia, printed=None),
            )
        ],
        "a baseline": [baseline_row(replace(ia, printed=None))],
    }
    parts = cast(Any, _environment().get_template("parts.html.j2").module)
    for name, rows in tables.items():
        yield name, str(parts.rows_table(rows, "a caption"))
        yield f"{name}, in the paper's layout", str(parts.paper_table(rows, "a caption"))
    yield "legend", _environment().get_template("agreement.html.j2").render(level=2, parts=parts)


def files() -> Texts:
    theta = of_theta(make(2))
    first, second = theta.curves
    odd = cut(first, slice(3), label="odd")
    odd.rmse[2, 1, 0], odd.rmse[3, 1, 1] = np.inf, np.nan
    diverged = cut(first, slice(3), label="diverged", others={"mae": first.rmse[:, :, :3] - 0.2})
    diverged.rmse[2, 1, 0] = np.inf
    curves = (replace(odd, missing=1), diverged, cut(second, slice(2)))
    whole = replace(theta, curves=curves)
    halves = replace(second, noise_free=noise_free_of(np.where(np.arange(10) == 3, np.nan, 0.9)), missing=1)
    whole = replace(whole, curves=(*curves, cut(halves, slice(1), label="half a noise-free run")))
    yield "curves.csv", rounded(curves_csv(whole))
    yield "curves.csv, one fold", rounded(curves_csv(replace(make(1, folds=1), baselines=())))
    yield "curves.csv, one fold and run", rounded(curves_csv(replace(make(1, folds=1, runs=1), baselines=())))
    few = whole.of_folds([2, 3])
    yield "folds.csv", rounded(folds_csv(replace(few, curves=few.curves[:2])))
    for order in ("timestamp", "random"):
        yield f"growth.csv, {order}", rounded(growth_csv(grown(make(2), cast(Any, order))))


def rounded(text: str, digits: int = 6) -> str:
    """The same with long numbers rounded: their last digits are the machine's."""
    return re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):.{digits}g}", text)


CASES: tuple[Callable[[], Texts], ...] = (
    layout, crossings, levels, baselines, combined, frontier, compared, ledgers, local, words, answers, charts, pictures,
    figures, printed, files,
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@matplotlib.style.context(["default", _STYLE])
def test_it_is_as_expected(case: Callable[[], Texts]) -> None:
    path = FOLDER / f"{case.__name__}.txt"
    found = "".join(f"━━ {name}\n{text.rstrip()}\n\n" for name, text in case())
    if os.environ.get("DPMF_EXPECTED") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
