"""One run: a lower bound on ε from a single fit with many canaries, for what is too slow to repeat.

Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run". Every canary is a record that a coin
puts in or leaves out; where neighbours differ in a value, the coin chooses between the ends of the scale. The audit
sees the predictions that privacy covers and guesses the coins of the canaries it is surest of. How many of so many
guesses are right bounds ε (`bounds.epsilon_of_guesses`).
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit import bounds
from dpmf_cli.audit.distinguish import LowerBound
from dpmf_cli.audit.fits import fitted, predictions
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings, with_ratings
from dpmf_cli.streams import named_generator

OBSERVERS = 20
"""Users without canaries, by whose predictions an item is looked at where those of its own user are not covered."""

GUESSED = 0.2
"""The part of the canaries that is guessed: half of them those that look most like being there."""


def one_run(
    algorithm: PrivateAlgorithm, ratings: Ratings, epsilon: float, *, confidence: float = 0.95, run: int = 0
) -> LowerBound:
    """The lower bound of one fit, with one canary at every item.

    A canary's user has no rating of its item otherwise. Where neighbours are users, it is a user of its own. Raises
    DpmfError where the ratings have no place for two.
    """
    rng = named_generator("audit", "canaries", run)
    scale = ratings.scale
    items = np.arange(ratings.n_items, dtype=np.int32)
    sums = np.bincount(ratings.items, ratings.values, ratings.n_items)
    averages = (sums + scale.middle) / (ratings.item_counts + 1)
    whole_users = algorithm.neighbours is Neighbours.USER
    if whole_users:
        users = (ratings.n_users + items).astype(np.int32)
        more = ratings.n_users + ratings.n_items
        ratings = Ratings(ratings.users, ratings.items, ratings.values, more, ratings.n_items, scale)
    else:
        users = _users_without(ratings, rng)
        items, users = items[users >= 0], users[users >= 0]  # an item that all have rated has no canary
    n_items, averages = len(items), averages[items]
    others = np.setdiff1d(np.arange(ratings.n_users), users)[:OBSERVERS].astype(np.int32)
    if n_items < 2 or not len(others):
        raise DpmfError("canaries need two items or more, and users beside those who have one")
    coins = rng.random(n_items) < 0.5
    high = averages < scale.middle
    values = np.where(high, scale.maximum, scale.minimum)
    if algorithm.neighbours in (Neighbours.BOUNDED, Neighbours.LOCAL):
        added = np.where(coins, scale.maximum, scale.minimum)
        data, sign = with_ratings(ratings, users, items, added), np.ones(n_items)
    else:
        data = with_ratings(ratings, users[coins], items[coins], values[coins])
        sign = np.where(high, 1.0, -1.0)
    model, _ = fitted(algorithm, data, epsilon, run=run)
    seen = np.zeros(n_items)
    if algorithm.joint or whole_users:
        for user in others:
            seen += predictions(model, np.full(n_items, user, np.int32), items)
        seen /= len(others)
    else:
        seen += predictions(model, users, items)
    score = sign * np.nan_to_num(seen - averages)
    each = min(max(1, round(GUESSED * n_items / 2)), n_items // 2)
    order = np.argsort(score, kind="stable")
    correct = int(coins[order[n_items - each :]].sum() + (~coins[order[:each]]).sum())
    delta = algorithm.spends_delta
    return LowerBound(
        f"{correct} of {2 * each} guesses right, of {n_items} canaries in one run",
        bounds.epsilon_of_guesses(correct, 2 * each, n_items, delta, confidence),
        bounds.ceiling_of_guesses(2 * each, n_items, delta, confidence),
        1,
        confidence,
    )


def _users_without(ratings: Ratings, rng: np.random.Generator) -> NDArray[np.int32]:
    """(n_items,) for each item a user who has not rated it, none of the first users, who observe; −1 for none."""
    first = min(OBSERVERS, ratings.n_users // 2)
    rated = set(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    users = np.zeros(ratings.n_items, np.int32)
    for item in range(ratings.n_items):
        free = [u for u in range(first, ratings.n_users) if (u, item) not in rated]
        users[item] = rng.choice(free) if free else -1
    return users
