"""Results as rules read them: by label or algorithm, and only if they are complete."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.datasets.loading import expected
from dpmf_cli.datasets.spec import CatalogSpec, SampleSpec
from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules import scope

GRID = np.array([1.0, 2.0, 4.0])


def curve(algorithm: str, label: str, *rmse: float, **more: object) -> Measured:
    grid, values = GRID[: len(rmse)], np.array(rmse)[None, None]
    made = Measured(algorithm, label, grid, values, grid, grid, "bounded", "published")
    return replace(made, **more)  # type: ignore[arg-type]


def evidence(*curves: Measured, name: str = "made") -> Evidence:
    infinite = np.array([np.inf])
    levels = [
        Measured(key, key.upper(), infinite, np.full((1, 1, 1), rmse), infinite, infinite)
        for key, rmse in (("ia", 1.0), ("ge", 0.9))
    ]
    made = Experiment(name, "ml-1m", "Made", 1, 10, 1, 1, curves, tuple(levels))
    return Evidence({"ml-1m": {name: made}}, "ml-1m")


LOST = curve("isgd", "lost", math.nan, 1, 1, missing=1)
FIRST, SECOND = curve("isgd", "a", 1.2, 0.95, 0.8), curve("isgd", "b", 0.95, 0.85, 0.95)
HERE = evidence(LOST, FIRST, SECOND)


def test_a_curve_is_the_first_complete_one_of_its_label_or_algorithm() -> None:
    assert [HERE.curve("made", each).label for each in ("isgd", "b")] == ["a", "b"]
    assert evidence(SECOND, FIRST).curve("made", "isgd").label == "b"
    for label in ("lost", "psgd"):
        with pytest.raises(MissingEvidence):
            HERE.curve("made", label)
    with pytest.raises(MissingEvidence):
        replace(HERE, data="ml-100k").curve("made", "isgd")


def test_density_is_that_of_the_training_sets_of_what_ran() -> None:
    sample = CatalogSpec(name="ml-1m", sample=SampleSpec(users=1000, ratings=100_000))
    made = replace(HERE.experiment("made"), density=expected(sample).density)
    here = scope("neera2020", Evidence({"ml-1m": {"made": made}}, "ml-1m"))
    assert here.value("density('made')") == pytest.approx(0.9 * 100 / 3706)


def test_the_best_is_that_of_all_curves_at_each_epsilon() -> None:
    epsilons, best = evidence(FIRST, SECOND).best("made", "isgd")
    assert (epsilons.tolist(), best.tolist()) == (GRID.tolist(), [0.95, 0.85, 0.8])
    for lacking in (HERE, evidence()):
        with pytest.raises(MissingEvidence):
            lacking.best("made", "isgd")
    chosen = evidence(FIRST, SECOND, replace(SECOND, label="best isgd")).best("made", "isgd")[1]
    assert chosen.tolist() == SECOND.mean().tolist()


def test_a_crossing_is_an_epsilon_or_says_where_it_is_not() -> None:
    both = evidence(FIRST, SECOND)
    assert (
        1 < both.crossing_epsilon("made", "isgd", "IA") < 2 < both.crossing_epsilon("made", "isgd", "GE") < 4
    )
    assert HERE.crossing_epsilon("made", "b", "IA") == 0
    assert evidence(curve("isgd", "a", 1.2, 1.1, 0.95)).crossing_epsilon("made", "isgd", "GE") == math.inf
    assert (HERE.baseline("made", "ge"), HERE.baseline("made", "IA")) == (0.9, 1)
    for label, baseline in (("lost", "IA"), ("isgd", "ALS")):
        with pytest.raises(MissingEvidence):
            HERE.crossing_epsilon("made", label, baseline)


def test_a_published_error_is_a_baseline_too() -> None:
    made = replace(HERE.experiment("made"), references=(Reference("Cinematch probe", 0.95, False),))
    found = Evidence({"ml-1m": {"made": made}}, "ml-1m")
    assert found.baseline("made", "Cinematch probe") == 0.95
    assert found.crossing("made", "a", "Cinematch probe").reproduced == 2.0
    assert found.baseline("made", "IA") == 1


def test_a_line_has_its_points_in_the_order_of_what_is_swept() -> None:
    points = [curve("isgd", f"{at}", at, 1, line="ISGD, d", swept=("factors", at)) for at in (3.0, 1.0, 2.0)]
    line = evidence(*points).line("made", "ISGD, d")
    assert [(value, point.label) for value, point in line] == [(1.0, "1.0"), (2.0, "2.0"), (3.0, "3.0")]
    for lacking in (points[:1], [*points[:2], replace(points[2], missing=1)]):
        with pytest.raises(MissingEvidence):
            evidence(*lacking).line("made", "ISGD, d")


@pytest.mark.parametrize(
    ("data", "name"),
    [("ml-1m", "fig_ml1m"), ("jester-1", "fig_jester"), ("netflix-sample", "fig_netflix_sample")],
)
def test_configs_are_named_by_their_data(data: str, name: str) -> None:
    assert replace(HERE, data=data).named("fig_{}") == name


def test_of_several_configs_the_first_that_was_run_counts() -> None:
    for name in ("explore_neera_ml1m", "neera_fig4_ml1m"):
        assert scope("neera2020", evidence(name=name)).value("fig4") == name
    with pytest.raises(MissingEvidence):
        scope("neera2020", evidence()).value("fig4")


def test_a_crossing_in_theta_lies_where_that_in_epsilon_does() -> None:
    of_theta = evidence(replace(FIRST, thetas=GRID / 10))
    found = scope("mcsherry2009", of_theta).value("theta('made', 'isgd', 'IA')")
    assert found == pytest.approx(of_theta.crossing_epsilon("made", "isgd", "IA") / 10)


@pytest.mark.parametrize(
    ("of", "other", "found"),
    [
        ("a", "b", 1.2),  # b is below IA before the grid begins, a is not: the first ε decides
        ("b", "a", 0.87),  # between the first two ε, where a crosses IA
        ("a", "c", 0.8),  # c never crosses it, and a does: the last ε decides
        ("c", "d", math.nan),  # neither does
        ("b", "e", math.nan),  # both do so before the grid begins
    ],
)
def test_which_curve_is_first_is_decided_where_the_other_crosses(of: str, other: str, found: float) -> None:
    flat, early = curve("psgd", "c", 1.2, 1.1, 1.05), curve("psgd", "e", 0.9, 0.9, 0.9)
    here = scope("mcsherry2009", evidence(FIRST, SECOND, flat, replace(flat, label="d"), early))
    value = here.value(f"rmse_where('made', '{of}', 'made', '{other}', 'IA')")
    assert value == pytest.approx(found, abs=1e-3, nan_ok=True)
