"""Figure 2, table 1 and the improvements of the local model."""

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.report.figures.papers import noise_figure, noise_samples
from dpmf_cli.report.tables.layout import terminal
from dpmf_cli.report.tables.papers import traffic, traffic_table
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
    table = traffic_table(traffic(entries, RATINGS, "test"), RATINGS, "test")
    assert [row[0] for row in table.groups[0].rows] == ["mean of perturbed ratings", "PG-MF"]
    each = len(RATINGS) / RATINGS.n_users
    assert table.groups[0].rows[0][1:] == ("1", "5", f"{5 * each:,.0f}", "0")
    assert table.groups[0].rows[1][1:] == ("11", "3", f"{33 * each:,.0f}", f"{10 * 40 * 5 * 4:,}")
    assert f"{RATINGS.user_counts.max()} ε at most" in terminal(table)
