"""Figure 2, table 1 and the improvements of the local model."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.report.figures.local_noise import noise_figure, noise_samples
from dpmf_cli.report.tables.layout import terminal
from dpmf_cli.report.tables.local import (
    improvements_of,
    improvements_text,
    learned_nothing_table,
    traffic,
    traffic_text,
)
from tests.conftest import make_ratings

RATINGS = make_ratings()


def test_both_noises_have_their_law() -> None:
    laplace, bounded = noise_samples(RATINGS, 2.0, seed=1)
    assert laplace.std() == pytest.approx(np.sqrt(2) / 2, rel=0.02)
    assert abs(laplace.mean()) < 0.01
    assert np.abs(bounded).max() <= 1
    assert bounded.std() < 0.6 * laplace.std()


def test_the_same_figure_has_the_same_bytes() -> None:
    one, other = (noise_figure(RATINGS, "test", "png") for _ in range(2))
    assert one == other
    assert one.startswith(b"\x89PNG")


@pytest.mark.slow
def test_traffic_is_counted_from_one_fit_of_each_local_method() -> None:
    keys = ("local_mean", "pg_mf", "pge")
    entries = [PRIVATE[key].model_validate({"algorithm": key}) for key in keys]
    table = traffic_text(traffic(entries, RATINGS, "test"), RATINGS, "test")
    assert [row[0] for row in table.groups[0].rows] == ["mean of perturbed ratings", "PG-MF"]
    each = len(RATINGS) / RATINGS.n_users
    assert table.groups[0].rows[0][1:] == ("1", "5", f"{5 * each:,.0f}", "0")
    assert table.groups[0].rows[1][1:] == ("11", "3", f"{33 * each:,.0f}", f"{10 * 40 * 5 * 4:,}")
    assert f"{RATINGS.user_counts.max()} ε at most" in terminal(table)


def curve(algorithm: str, label: str, low: float, high: float) -> Measured:
    rmse = np.array([[[low, 1.0]], [[high, 1.0]]])
    epsilons = np.array([0.1, 2.0])
    return Measured(algorithm, label, epsilons, rmse, epsilons, epsilons, "local", "published")


def test_improvements_stand_beside_the_printed_ones() -> None:
    curves = (
        curve("blp_mog_mf", "ours", 1.2, 1.2),
        curve("isgd_local", "theirs", 1.5, 1.6),
        curve("local_mean", "mean", 1.19, 1.19),
    )
    experiment = Experiment("x", "ml-100k", "MovieLens 100K", 2, 2, 1, 0, curves, ())
    (group,) = improvements_text(list(improvements_of([experiment]))).groups
    assert group.title == "x: MovieLens 100K, ε = 0.1"  # ε = 1 is printed too, but not in this grid
    assert group.rows[0] == ("ours", "1.2000", "†", "", "")
    assert group.rows[1] == ("theirs", "1.5500", "†", "22.5 ± 3.5 %", "21 %")
    assert group.rows[2] == ("mean", "1.1900", "", "-0.8 ± 0.0 %", "")


def test_where_a_curve_is_worse_than_the_mean_is_said_for_each_curve() -> None:
    floor = curve("local_mean", "mean", 1.19, 1.19)  # 1.0 at ε = 2
    better = curve("local_means", "means", 1.1, 1.1)
    diverged = replace(better, label="diverged", rmse=np.full((2, 1, 2), np.inf))
    curves = (
        floor,
        curve("blp_mog_mf", "ours", 1.1, 1.3),
        better,
        diverged,
        replace(better, label="left", missing=1),
    )
    experiment = Experiment("x", "ml-100k", "MovieLens 100K", 2, 2, 1, 0, curves, ())
    table = learned_nothing_table(experiment)
    assert table is not None
    assert table.groups[0].rows == (
        ("ours", "0.1"),
        ("means", "nowhere"),
        ("diverged", "everywhere"),
        ("left", "incomplete"),
    )
    assert learned_nothing_table(replace(experiment, curves=curves[1:])) is None
