"""Pairs: exact neighbours of their relation, on their scale, of every shape, and the same for one seed."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.audit.pairs import (
    SHAPES,
    KeptPair,
    Pair,
    hovering_pair,
    larger_pairs,
    pair_csv,
    pairs_of,
    tiny_pairs,
)
from dpmf_cli.core.ratings import Ratings, Scale, with_ratings
from dpmf_cli.privacy.neighbours import HIDE_IDS, Neighbours

COUNT = 10 * len(SHAPES)
Cell = tuple[int, int]


def cells(ratings: Ratings) -> dict[Cell, float]:
    """The value of each (user, item) pair."""
    pairs = list(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs), "a pair twice"
    assert pairs == sorted(pairs), "not in user-major order"
    return dict(zip(pairs, ratings.values.tolist(), strict=True))


def assert_neighbours(pair: Pair, neighbours: Neighbours) -> None:
    """The two data sets differ in what the relation says, by at least one rating, and in nothing else."""
    here, there = pair.here, pair.there
    assert_within_scale(here)
    assert_within_scale(there)
    assert (here.n_users, here.n_items, here.scale) == (there.n_users, there.n_items, there.scale)
    ours, theirs = cells(here), cells(there)
    moved = {cell for cell in ours.keys() & theirs.keys() if ours[cell] != theirs[cell]}
    apart = ours.keys() ^ theirs.keys()
    assert {user for user, _ in moved | apart} == {pair.changed}
    match neighbours:
        case Neighbours.BOUNDED | Neighbours.LOCAL:
            assert (len(apart), len(moved)) == (0, 1)
            assert all(abs(ours[cell] - theirs[cell]) <= here.scale.width for cell in moved)
        case Neighbours.UNBOUNDED:
            assert (len(apart), len(moved)) == (1, 0)
            assert apart <= theirs.keys()
        case Neighbours.USER:
            assert not moved
            assert apart <= theirs.keys()
            assert not any(user == pair.changed for user, _ in ours)


def assert_within_scale(ratings: Ratings) -> None:
    values = ratings.values.astype(np.float64)
    assert np.all(np.isfinite(values))
    assert np.all((values >= ratings.scale.minimum) & (values <= ratings.scale.maximum))
    assert np.all((ratings.users >= 0) & (ratings.users < ratings.n_users))
    assert np.all((ratings.items >= 0) & (ratings.items < ratings.n_items))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("seed", [0, 7])
def test_tiny_pairs_are_neighbours(neighbours: Neighbours, seed: int) -> None:
    for pair in tiny_pairs(neighbours, COUNT, seed):
        assert_neighbours(pair, neighbours)
        assert len(pair.there) <= 200


@pytest.mark.parametrize("neighbours", Neighbours)
def test_larger_pairs_have_a_user_of_many_ratings_and_many_users(neighbours: Neighbours) -> None:
    busy, crowd = larger_pairs(neighbours)
    for pair in (busy, crowd):
        assert_neighbours(pair, neighbours)
    assert busy.there.user_counts[busy.changed] > 100
    here, there = (np.count_nonzero(each.user_counts) for each in (crowd.here, crowd.there))
    assert there > here > 1000 if neighbours in HIDE_IDS else there == here > 1000


@pytest.mark.parametrize("neighbours", Neighbours)
def test_pairs_are_those_of_their_seed(neighbours: Neighbours) -> None:
    first, same, other = (list(tiny_pairs(neighbours, 20, seed)) for seed in (3, 3, 4))
    texts = [
        [pair_csv(KeptPair(pair, neighbours, 1.0, 0)) for pair in pairs] for pairs in (first, same, other)
    ]
    assert texts[0] == texts[1]
    assert all(one != another for one, another in zip(texts[0], texts[2], strict=True))


def made() -> Ratings:
    """A data set on a continuous scale, whose values identify their pair of user and item."""
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((40, 30)) < 0.3)
    none = np.zeros(0, np.int32)
    empty = Ratings(none, none, none.astype(np.float32), 40, 30, Scale(0, 2))
    return with_ratings(empty, users, items, 0.25 + (users * 30 + items) / 1024)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_parts_of_data_keep_its_values(neighbours: Neighbours) -> None:
    """Every rating except the changed ones comes from the data set, beside ratings of the same user and item."""
    data = made()
    nothing = data.select(np.zeros(len(data), np.bool_))
    for pair in pairs_of(nothing, neighbours, 3) if neighbours in HIDE_IDS else ():
        assert_neighbours(pair, neighbours)
    for pair in pairs_of(data, neighbours, 30, 1):
        assert_neighbours(pair, neighbours)
        assert pair.here.n_users <= 13
        assert pair.here.n_items <= 13
        known = {value: cell for cell, value in cells(data).items()}
        kept = {cell: value for cell, value in cells(pair.here).items() if cell[0] != pair.changed}
        came_from = {cell: known[value] for cell, value in kept.items()}
        for side in (0, 1):  # one user of the part is one of the data set, and so for items
            both = {(cell[side], of[side]) for cell, of in came_from.items()}
            assert len(both) == len({cell[side] for cell in came_from})


def running_sum(row: NDArray[np.floating], kind: type[np.floating]) -> float:
    return float(np.cumsum(row.astype(kind), dtype=kind)[-1])


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("power", [15, 17])
def test_large_pairs_hover_at_powers_of_two(neighbours: Neighbours, power: int) -> None:
    """A float64 sum moves by the one rating. A float32 sum moves by a last digit for each of many later ratings."""
    pair = hovering_pair(neighbours, power)
    assert f"2^{power}" in pair.name
    assert_neighbours(pair, neighbours)
    rows = [
        0.9
        * np.clip(side.values.astype(np.float64) - side.values.mean(dtype=np.float64), -2, 2)[side.items == 0]
        for side in (pair.here, pair.there)
    ]
    assert min(map(len, rows)) > 2**power
    exactly, roughly = (
        abs(running_sum(rows[0], kind) - running_sum(rows[1], kind)) for kind in (np.float64, np.float32)
    )
    assert 0.9 < exactly < 3.7
    assert roughly > 2**power / 2 * 2.0 ** (power - 24)
