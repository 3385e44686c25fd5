"""Pairs of neighbouring data sets: small adversarial ones, parts of real data, and large ones that test rounding.

They are kept as CSV files. The end of the first line, and the rows:

# … users 6, items 5, scale 1 5 1, user who differs 3
user,item,here,there
0,1,4.0,4.0
3,2,,5.0
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats
from dpmf_cli.core.ratings import Ratings, Scale, with_ratings
from dpmf_cli.core.terminal import csv_text
from dpmf_cli.privacy.neighbours import Neighbours

SCALES = (Scale(1, 5, 1), Scale(0.5, 4, 0.5), Scale(-10, 10), Scale(0, 1))
"""Whole stars, half stars, a negative minimum with fractions, and a scale that begins at 0."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets.

    name     how the pair was made
    here     D
    there    D′, which has one changed value, one more rating, or one more user
    changed  the user whose ratings differ
    """

    name: str
    here: Ratings
    there: Ratings
    changed: int


def tiny_pairs(neighbours: Neighbours, count: int, seed: int = 0) -> Iterator[Pair]:
    """Yields `count` pairs of a few dozen ratings at most: every shape of `SHAPES` on every scale, in turn."""
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        scale = SCALES[number // len(SHAPES) % len(SCALES)]
        shape = SHAPES[number % len(SHAPES)]
        yield neighbour_of(f"{shape} {number}", _shaped(shape, rng, scale), neighbours, rng)


def pairs_of(ratings: Ratings, neighbours: Neighbours, count: int, seed: int = 0) -> Iterator[Pair]:
    """Yields `count` pairs of small parts of given ratings: the ratings of some items by some users."""
    for number in range(count):
        rng = np.random.default_rng((seed, 1, number))
        users = rng.choice(ratings.n_users, min(ratings.n_users, 12), replace=False)
        theirs = ratings.select(np.isin(ratings.users, users))
        liked = np.unique(theirs.items) if len(theirs) else np.zeros(1, np.int32)
        items = np.sort(rng.choice(liked, min(len(liked), 12), replace=False))
        part = theirs.select(np.isin(theirs.items, items))
        own = np.unique(part.users) if len(part) else np.zeros(1, np.int32)
        small = replace(
            part,
            users=np.searchsorted(own, part.users).astype(np.int32),
            items=np.searchsorted(items, part.items).astype(np.int32),
            n_users=len(own) + 1,
            n_items=len(items) + 1,
        )
        yield neighbour_of(f"part of the data {number}", small, neighbours, rng)


def larger_pairs(neighbours: Neighbours) -> Iterator[Pair]:
    """Yields pairs that reach what depends on a large number: a user with 129 or 130 ratings of 140 items differs,
    beside eight others with ten each; and one with one rating or none, beside 1,001 with one each, of three items.
    """
    for number, (others, items, each, own) in enumerate(((8, 140, 10, 130), (1001, 3, 1, 1))):
        rng, scale = np.random.default_rng((0, 3, number)), SCALES[number]
        rated = rng.random((others, items)).argsort(axis=1)[:, :each]
        users = np.repeat(np.arange(others), each)
        ends = rng.choice([scale.minimum, scale.maximum], others * each)
        base = _ratings(users, rated.ravel(), ends, others + 1, items, scale)
        values = np.where(np.arange(own) % 2 == 0, scale.maximum, rng.choice(ends, own))
        whole = with_ratings(base, np.full(own, others), np.arange(own), values)
        name = f"{own} ratings of a user beside {others}"
        if neighbours is Neighbours.USER:
            yield Pair(name, base, whole, others)
        elif neighbours is Neighbours.UNBOUNDED:
            without = whole.select((whole.users != others) | (whole.items != 0))
            yield Pair(name, without, whole, others)
        else:
            yield _changed(name, whole, neighbours, others, 0, scale.maximum, scale.minimum, rng)


def hovering_pair(neighbours: Neighbours, power: int) -> Pair:
    """A pair with a row whose float32 sum is above or below 2^power before many small terms are added.

    One rating decides on which side of 2^power the sum is. The sum is of 0.9·clamp(r − m, ±2), where m is the average
    of all ratings. The first raters of item 0 give the largest rating, and bring the sum to the power of two. Other
    users give item 1 the smallest rating, which sets m. Each later rater of item 0 gives a rating so little below m
    that its term counts as one full last digit on the lower side of the power of two. On the upper side last digits
    are twice as large, and the term counts as nothing. So a sum in float32 moves by the total of all these terms
    (Casacuberta et al. 2022), and a sum in float64 only as far as the one rating moves it. There are 1.6 times as
    many later raters as first raters, so that a row that is fitted to them is not clipped to its norm.
    """
    scale, weight, clamp = Scale(1, 5), 0.9, 2.0
    digit = 2.0 ** (power - 24)
    enough = int(1.02 * 2.0**power / (weight * clamp)) + 2
    sums = np.cumsum(np.full(enough, weight * clamp, np.float32), dtype=np.float32)
    many = int(np.searchsorted(sums, np.float32(2.0**power))) + 1  # this term takes the sum past 2^power
    middle = scale.minimum + 1.5
    others = round(many * (scale.maximum - middle) / (middle - scale.minimum))
    later = round(1.6 * many)
    size = many + later
    little = 0.75 * digit / weight * (size + others) / (many + others)  # m is below the middle, too
    items = np.repeat([0, 1], [size, others])
    values = np.repeat([scale.maximum, middle - little, scale.minimum], [many, later, others])
    base = _ratings(np.arange(size + others), items, values, size + others + 1, 3, scale)
    name = f"{size} raters at 2^{power}"
    if neighbours in (Neighbours.BOUNDED, Neighbours.LOCAL):
        rng = np.random.default_rng((0, 2, power))
        return _changed(name, base, neighbours, 0, 0, scale.minimum, scale.maximum, rng)
    one = np.zeros(1, np.int64)
    without = base.select(base.users != 0)
    return Pair(name, without, with_ratings(without, one, one, np.array([scale.maximum])), 0)


def contrary_to_all() -> Pair:
    """A pair with a user who loves the items that all others hate, and who in D′ also hates an item that all
    others love. Unbounded.

    67 items have the least rating from each of 200 users, and one item has the largest rating from each of 600. The
    user's item-centred ratings are near 4, but the new one is near −4, so that the user's mean moves twice as far as
    with the α of McSherry and Mironov 2009, theorem 4. With β_p = 20, this number of items has residuals that move
    from well within the clamp up to it.
    """
    scale, hated, haters, lovers = Scale(1, 5, 1), 67, 200, 600
    user, loved = lovers, hated
    of_haters, of_hated = np.divmod(np.arange(haters * hated), hated)
    base = _ratings(
        np.concatenate([of_haters, np.arange(lovers), np.full(hated, user)]),
        np.concatenate([of_hated, np.full(lovers, loved), np.arange(hated)]),
        np.repeat([1.0, 5.0], [haters * hated, lovers + hated]),
        lovers + 1,
        hated + 1,
        scale,
    )
    more = with_ratings(base, np.array([user]), np.array([loved]), np.ones(1))
    return Pair("contrary to all", base, more, user)


def neighbour_of(name: str, base: Ratings, neighbours: Neighbours, rng: np.random.Generator) -> Pair:
    """A pair of `base` and a neighbour of it; mostly the change is as large as the scale allows."""
    low, high = base.scale.minimum, base.scale.maximum
    before, after = (low, high) if rng.random() < 0.5 else (high, low)
    if rng.random() < 0.2:
        after = rng.uniform(low, high)
    some = len(base) and rng.random() < 0.8
    user = int(rng.choice(base.users) if some else rng.integers(base.n_users))
    if neighbours in (Neighbours.BOUNDED, Neighbours.LOCAL) and not np.any(base.users == user):
        user = int(rng.choice(base.users)) if len(base) else user
    own = base.items[base.users == user]
    if neighbours is Neighbours.UNBOUNDED:
        free = np.setdiff1d(np.arange(base.n_items), own)
        if not len(free):
            base = base.select((base.users != user) | (base.items != own[0]))
            free = own[:1]
        item = int(rng.choice(free))
    else:
        item = int(rng.choice(own)) if len(own) else 0
    return _changed(name, base, neighbours, user, item, before, after, rng)


def _changed(
    name: str,
    base: Ratings,
    neighbours: Neighbours,
    user: int,
    item: int,
    before: float,
    after: float,
    rng: np.random.Generator,
) -> Pair:
    """The pair that differs at (user, item): by a value, `before` or `after`; by a rating `after`; or by the
    user with all ratings."""
    at, one = (base.users == user) & (base.items == item), (np.array([user]), np.array([item]))
    if neighbours in (Neighbours.BOUNDED, Neighbours.LOCAL):
        if not at.any():
            base = with_ratings(base, *one, np.array([before]))
            at = (base.users == user) & (base.items == item)
        here, there = base.values.copy(), base.values.copy()
        here[at], there[at] = before, after
        return Pair(name, replace(base, values=here), replace(base, values=there), user)
    if neighbours is Neighbours.UNBOUNDED:
        return Pair(name, base, with_ratings(base, *one, np.array([after])), user)
    without = base.select(base.users != user)
    items = np.arange(base.n_items)
    if rng.random() < 0.7:
        items = np.sort(rng.choice(items, int(rng.integers(1, base.n_items + 1)), replace=False))
    low, high = base.scale.minimum, base.scale.maximum
    values = rng.choice([low, high], len(items)) if rng.random() < 0.6 else np.full(len(items), after)
    return Pair(name, without, with_ratings(without, np.full(len(items), user), items, values), user)


def _ratings(
    users: NDArray[np.generic],
    items: NDArray[np.generic],
    values: Floats,
    n_users: int,
    n_items: int,
    scale: Scale,
) -> Ratings:
    none = np.zeros(0, np.int32)
    halves = {"odd": np.arange(n_items) % 2.0}
    empty = Ratings(none, none, none.astype(np.float32), n_users, n_items, scale, item_columns=halves)
    return with_ratings(empty, users.astype(np.int64), items.astype(np.int64), values)


def _values(rng: np.random.Generator, scale: Scale, count: int) -> Doubles:
    """Ratings drawn on the steps of the scale; extremes come twice as often as in a uniform draw."""
    drawn = rng.uniform(scale.minimum, scale.maximum, count)
    if scale.step:
        drawn = scale.minimum + np.round((drawn - scale.minimum) / scale.step) * scale.step
    ends = rng.choice([scale.minimum, scale.maximum], count)
    return np.where(rng.random(count) < 0.3, ends, drawn)


SHAPES = ("mixed", "alike", "extreme", "one each", "contrary user", "busy user", "nothing else")
"""The shapes of small sets of ratings. To nothing else, a change adds the first rating, or changes the only one."""


def _shaped(shape: str, rng: np.random.Generator, scale: Scale) -> Ratings:
    both_ends = [scale.minimum, scale.maximum]
    if shape == "nothing else":
        return _ratings(np.zeros(0), np.zeros(0), np.zeros(0), 3, 3, scale)
    if shape == "one each":  # every user has one rating, and so have most items
        return _ratings(np.arange(5), rng.permutation(5), _values(rng, scale, 5), 6, 6, scale)
    if shape == "busy user":  # has rated nearly all of many items; each other user has rated one
        items = int(rng.integers(8, 24))
        users = np.concatenate([np.zeros(items - 2), np.arange(1, 5)])
        rated = np.concatenate([np.arange(items - 2), rng.integers(items, size=4)])
        return _ratings(users, rated, rng.choice(both_ends, len(users)), 6, items, scale)
    if shape == "contrary user":  # others love half of the items and hate the rest; one rates the other way
        items, others = int(rng.integers(2, 10)), 12
        ends = np.where(np.arange(items) % 2 == 0, scale.maximum, scale.minimum)
        users, rated = np.divmod(np.arange(others * items), items)
        own = np.arange(items - 1)
        return _ratings(
            np.append(users, np.full(len(own), others)),
            np.append(rated, own),
            np.append(ends[rated], (scale.minimum + scale.maximum - ends)[own]),
            others + 1,
            items,
            scale,
        )
    users, rated = np.nonzero(rng.random((6, 5)) < (0.8 if shape == "extreme" else 0.5))
    mixed = _ratings(users, rated, _values(rng, scale, len(users)), 6, 5, scale)
    if shape == "alike":
        return replace(mixed, values=np.full_like(mixed.values, rng.choice([*both_ends, scale.middle])))
    if shape == "extreme":
        return replace(mixed, values=rng.choice(both_ends, len(mixed)).astype(np.float32))
    return mixed


@dataclass(frozen=True)
class KeptPair:
    """A pair, and how it was replayed: the kind of neighbours, the ε, and the run of the noise."""

    pair: Pair
    neighbours: Neighbours
    epsilon: float
    run: int


def pair_csv(kept: KeptPair) -> str:
    """The text of a pair; if one side lacks a rating, its field is empty."""
    pair, scale = kept.pair, kept.pair.here.scale
    here, there = (
        {(user, item): value for user, item, value in zip(*(each.tolist() for each in columns), strict=True)}
        for columns in ((side.users, side.items, side.values) for side in (pair.here, pair.there))
    )
    ends = " ".join(f"{number:g}" for number in (scale.minimum, scale.maximum, scale.step))
    how = f"{kept.neighbours}, epsilon {kept.epsilon!r}, run {kept.run}"
    shape = f"users {pair.here.n_users}, items {pair.here.n_items}"
    keys = sorted(here.keys() | there.keys())
    rows = csv_text(
        [("user", "item", "here", "there"), *((*key, here.get(key, ""), there.get(key, "")) for key in keys)]
    )
    return f"# {how}, {shape}, scale {ends}, user who differs {pair.changed}\n{rows}"
