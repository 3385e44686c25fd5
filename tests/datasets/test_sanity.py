"""What is reported about a set of ratings, and about its faults."""

import math
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.algorithms.baselines import clean_averages
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.datasets.soundness import BETAS, Sanity, look_at
from tests.command import dpmf

STARS = Scale(1.0, 5.0, 1.0)


def made(triples: list[tuple[int, int, float]], scale: Scale = STARS) -> Ratings:
    users, items, values = zip(*sorted(triples), strict=True)
    return Ratings(
        np.array(users, np.int32),
        np.array(items, np.int32),
        np.array(values, np.float32),
        max(users) + 1,
        max(items) + 1,
        scale,
    )


def many(n_users: int, n_items: int, scale: Scale = STARS, spread: float = 1.0) -> Ratings:
    """Everybody's rating of every item: the item's own degree, give or take one."""
    rng = np.random.default_rng(1)
    users, items = (each.ravel().astype(np.int32) for each in np.indices((n_users, n_items)))
    values = np.clip(np.rint(3 + spread * (items % 3 - 1) + rng.integers(-1, 2, len(users))), 1, 5)
    return Ratings(users, items, values.astype(np.float32), n_users, n_items, scale)


def test_known_answer() -> None:
    alone = look_at(made([(0, 0, 5)]))
    assert math.isnan(alone.ga)
    assert len(alone.lines) == 1
    found = look_at(made([(0, 0, 5), (0, 1, 1), (1, 0, 3), (2, 2, 3)]), merged=1, duplicates="mean")
    # Of all: 5, 1, 3, 3 from the averages of the other three, 7/3, 11/3, 3, 3.
    assert found.ga == pytest.approx(math.sqrt(2 * (8 / 3) ** 2 / 4))
    # Best with β = 2: of item 0, from (2·7/3 + 3)/3 and (2·3 + 5)/3.
    ia = [5 - (2 * 7 / 3 + 3) / 3, 3 - (2 * 3 + 5) / 3, 1 - 11 / 3, 0]
    assert found.ia == pytest.approx(math.sqrt(np.mean(np.square(ia))))
    assert found.lines == [
        "4 ratings by 3 users of 3 items, 44.44% of all pairs; median 1 a user, 1 an item; 1 to 5 on the scale from 1 to "
        "5 in steps of 1",
        "1 of 5 rows repeats a (user, item) pair; each pair averages its ratings (`duplicates: mean`), and 4 ratings "
        "remain",
        "RMSE where each rating is predicted from all others: GA 1.886, tuned IA 1.839",
    ]


def test_leaving_one_out_is_what_it_says() -> None:
    ratings = many(7, 5)
    values = ratings.values.astype(float)
    everything = []
    items: list[list[float]] = []
    for row, item in enumerate(ratings.items):
        others = np.arange(len(values)) != row
        everything.append(values[row] - values[others].mean())
        same = values[others & (ratings.items == item)]
        items.append(values[row] - (same.sum() + BETAS * values[others].mean()) / (len(same) + BETAS))
    found = look_at(ratings)
    assert found.ga == pytest.approx(math.sqrt(np.mean(np.square(everything))))
    assert found.ia == pytest.approx(math.sqrt(np.square(items).mean(axis=0).min()))
    assert BETAS.tolist() == clean_averages.BETAS.tolist()


def sparse(gain: float) -> Ratings:
    """Two or three ratings of each of 1000 items, whose degrees differ by about `gain`."""
    rng = np.random.default_rng(2)
    users, items = (each.astype(np.int32) for each in np.nonzero(rng.random((300, 1000)) < 2.5 / 300))
    values = 3 + gain * rng.standard_normal(1000)[items] + rng.standard_normal(len(items))
    return Ratings(users, items, values.astype(np.float32), 300, 1000, Scale(-3, 9, 0))


def test_item_averages_are_not_called_useless_where_damped_ones_are_better() -> None:
    """Without damping they are worse than the global average, although items differ."""
    ratings = sparse(0.5)
    found = look_at(ratings)
    items, counts = ratings.items, ratings.item_counts
    undamped = (np.bincount(items, ratings.values)[items] - ratings.values) / np.maximum(counts[items] - 1, 1)
    raw = np.where(counts[items] > 1, undamped, ratings.values.mean())
    assert math.sqrt(np.mean(np.square(ratings.values - raw))) > 1.01 * found.ga > 1.03 * found.ia
    assert found.warnings == []


def test_a_warning_of_item_averages_takes_more_than_chance() -> None:
    """Of 0.7 % that they are better, two standard errors leave up to 1.4 %; of no difference, they leave 0.1 %."""
    found = look_at(sparse(0.3))
    assert found.ia > 0.99 * found.ga
    assert found.gain == pytest.approx(0.0144, abs=1e-4)
    assert found.warnings == []
    (warning,) = look_at(sparse(0)).warnings
    assert "at most 1 % better than the global average" in warning


MANY = many(60, 20)
ZEROS = np.resize(np.array([0, 0, 3, 5, 8], np.float32), 1200)
WARNINGS = [
    (look_at(many(60, 20, Scale(1.0, 100.0, 1.0))), r"wider than .* 1 to 5, .*`scale: \{minimum: 1, maximum: 5, step: 1\}`"),
    (look_at(many(10, 20)), r"200 ratings are too few to tell methods apart; give 1,000 or more"),
    (look_at(replace(MANY, values=np.ones(1200, np.float32))), r"all ratings are 1: .*; give ratings that differ"),
    (look_at(many(60, 20, spread=0)), r"at most 1 % better than the global average \(median 60 ratings an item\).* add `ga` to `crossings`"),
    (look_at(replace(MANY, values=ZEROS, scale=Scale(0, 10, 1))), r"^40% of the ratings are 0; if 0 means that there is no rating, set `zero_is_missing: true` \(`--zero-is-missing` of `dpmf init` and `dpmf advise`\), and begin the scale above 0$"),
    (look_at(MANY, merged=1200, duplicates="last"), r"^50% of the rows repeat a \(user, item\) pair; check that `columns` names the users"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "message"), WARNINGS)
def test_each_warning_names_the_fix(found: Sanity, message: str) -> None:
    (warning,) = found.warnings
    assert re.search(message, warning)
    assert found.report()[-1] == f"warning: {warning}"
    assert look_at(MANY, merged=100, duplicates="last").warnings == []


def test_it_is_quick() -> None:
    ratings = many(10_000, 90)
    begin = time.process_time()
    assert isinstance(look_at(ratings), Sanity)
    assert time.process_time() - begin < 1


CONFIG = """\
dataset:
  {kind: csv, name: shop, path: r.csv, columns: {user: u, item: i, rating: r}, duplicates: last,
  scale: {minimum: 1, maximum: 100, step: 1}}
folds: 2
runs: 1
epsilons: [1]
algorithms: [pge]
"""


@pytest.mark.usefixtures("undrawn")
def test_plan_and_run_say_it_of_own_ratings(tmp_path: Path) -> None:
    rows = "".join(f"{u},{i},{1 + (u + i * i) % 5}\n" for u in range(60) for i in range(20))
    (tmp_path / "r.csv").write_text(f"u,i,r\n{rows}0,0,3\n1,0,3\n")
    (tmp_path / "x.yaml").write_text(CONFIG)
    planned = dpmf(tmp_path, tmp_path / "cache", "plan", "x.yaml").stdout
    ran = dpmf(tmp_path, tmp_path / "cache", "run", "x.yaml", "-j", "1").stderr
    for text in (planned, ran):
        assert "1,200 ratings by 60 users of 20 items, 100.00% of all pairs" in text
        assert "2 of 1,202 rows repeat a (user, item) pair; each pair keeps its last rating" in text
        assert "warning: the scale from 1 to 100 is much wider than the ratings, 1 to 5" in text
