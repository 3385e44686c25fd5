"""nDCG and recall of the items that are put first: known answers, plain references, ranx, ties and blocks."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.evaluation.metrics import TopItems, top_items

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]
ASKED = TopItems(threshold=4, ndcg=3, recall=4)


def rated(pairs: list[tuple[int, int, float]], users: int, items: int) -> Ratings:
    """Ratings from (user, item, value)."""
    found = sorted(pairs)
    return Ratings(
        np.array([user for user, *_ in found], np.int32),
        np.array([item for _, item, _ in found], np.int32),
        np.array([value for *_, value in found], np.float32),
        users,
        items,
        Scale(1, 5),
    )


def predicting(scores: ArrayLike) -> Callable[[Numbers, Numbers], Array]:
    """A model that predicts scores (n_users, n_items, E), or (n_users, n_items) of one lane."""
    table = np.asarray(scores, dtype=float)
    table = table[:, :, None] if table.ndim == 2 else table
    return lambda users, items: table[users, items]


def measured(scores: ArrayLike, train: Ratings, test: Ratings, asked: TopItems = ASKED) -> list[float]:
    (of_lane,) = top_items(predicting(scores), train, test, asked, lanes=1)
    return [float(value) for value in of_lane]


def made(
    seed: int, *, users: int = 25, items: int = 60, lanes: int = 5, values: int = 0
) -> tuple[Array, Ratings, Ratings]:
    """Scores (n_users, n_items, lanes) with that many different `values` (0: any), and a training and a test set."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(users, items, lanes))
    if values:
        scores = rng.integers(values, size=scores.shape).astype(float)
    pairs = [
        (u, int(i), float(rng.integers(1, 6))) for u in range(users) for i in rng.permutation(items)[:20]
    ]
    which = rng.random(len(pairs)) < 0.6
    train = [pair for pair, known in zip(pairs, which, strict=True) if known]
    test = [pair for pair, known in zip(pairs, which, strict=True) if not known]
    return scores, rated(train, users, items), rated(test, users, items)


def plain(scores: Array, train: Ratings, test: Ratings, asked: TopItems) -> tuple[float, float]:
    """One lane (n_users, n_items) without equal scores, computed directly from the definitions."""
    ndcg, recall = [], []
    for user in range(train.n_users):
        relevant = set(test.items[(test.users == user) & (test.values >= asked.threshold)].tolist())
        if not relevant:
            continue
        candidates = set(range(train.n_items)) - set(train.items[train.users == user].tolist())
        order = sorted(candidates, key=lambda item: -scores[user, item])
        gains = [1 / math.log2(rank + 2) for rank in range(asked.ndcg)]
        got = sum(gain for gain, item in zip(gains, order, strict=False) if item in relevant)
        ndcg.append(got / sum(gains[: len(relevant)]))
        recall.append(len(relevant & set(order[: asked.recall])) / min(asked.recall, len(relevant)))
    return float(np.mean(ndcg)), float(np.mean(recall))


def test_a_known_answer_by_hand() -> None:
    """Item 0 was rated in training. The others are in the order 3, 1, 4, 2, 5. Items 1 and 5 are relevant; 4
    was held out and is not."""
    train = rated([(0, 0, 5)], 1, 6)
    test = rated([(0, 1, 4), (0, 4, 3), (0, 5, 5)], 1, 6)
    scores = [[9.0, 4.0, 2.0, 5.0, 3.0, 1.0]]
    best = 1 + 1 / math.log2(3)
    assert measured(scores, train, test) == pytest.approx([1 / math.log2(3) / best, 0.5])
    longer = TopItems(threshold=4, ndcg=5, recall=1)
    assert measured(scores, train, test, longer) == pytest.approx(
        [(1 / math.log2(3) + 1 / math.log2(6)) / best, 0]
    )


def test_users_without_a_relevant_rating_are_left_out() -> None:
    train = rated([(0, 3, 5), (1, 3, 5), (2, 3, 5)], 3, 4)
    test = rated([(0, 0, 5), (1, 0, 3)], 3, 4)
    assert measured(np.tile([3.0, 2, 1, 0], (3, 1)), train, test) == [1, 1]
    with pytest.raises(DpmfError, match=r"no held-out rating is 5\.5 or more; lower `threshold`"):
        measured(np.zeros((3, 4)), train, test, TopItems(threshold=5.5))


def test_a_rating_at_the_threshold_is_relevant_though_float32_rounds_it() -> None:
    train, test = rated([(0, 1, 1)], 1, 2), rated([(0, 0, 4.1)], 1, 2)
    assert float(np.float32(4.1)) < 4.1
    assert measured([[1.0, 0.0]], train, test, TopItems(threshold=4.1)) == [1, 1]


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_the_definitions_say(seed: int) -> None:
    scores, train, test = made(seed)
    for asked in (ASKED, TopItems(threshold=3), TopItems(threshold=5, ndcg=1, recall=60)):
        found = top_items(predicting(scores), train, test, asked, lanes=5)
        for lane in range(5):
            assert found[lane].tolist() == pytest.approx(plain(scores[:, :, lane], train, test, asked))


@pytest.mark.slow  # it compiles itself
def test_it_is_what_ranx_measures() -> None:
    """Recall with another denominator: ranx divides by all relevant items, even if the list has no room for them."""
    ranx = pytest.importorskip("ranx")
    scores, train, test = made(7, users=40, items=90)
    asked = TopItems(threshold=3)
    found = top_items(predicting(scores), train, test, asked, lanes=5)
    relevant = test.values >= asked.threshold
    qrels: dict[str, dict[str, int]] = {}
    for user, item in zip(test.users[relevant], test.items[relevant], strict=True):
        qrels.setdefault(f"u{user}", {})[f"i{item}"] = 1
    assert max(map(len, qrels.values())) < asked.recall
    seen = {user: set(train.items[train.users == int(user[1:])].tolist()) for user in qrels}
    for lane in range(5):
        run = {
            user: {f"i{i}": float(scores[int(user[1:]), i, lane]) for i in range(90) if i not in seen[user]}
            for user in qrels
        }
        theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), ["ndcg@10", "recall@20"])
        assert found[lane].tolist() == pytest.approx([theirs["ndcg@10"], theirs["recall@20"]])


@pytest.mark.parametrize("values", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_equal_scores_count_as_the_mean_over_all_their_orders(seed: int, values: int) -> None:
    """All orders of five items; those that are consistent with the scores are equally likely."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(values, size=(1, 5)).astype(float)
    train, test = rated([(0, 4, 5)], 1, 5), rated([(0, 0, 5), (0, 2, 4)], 1, 5)
    asked = TopItems(threshold=4, ndcg=2, recall=3)
    consistent = [
        order
        for order in itertools.permutations(range(4))
        if all(scores[0, a] >= scores[0, b] for a, b in itertools.pairwise(order))
    ]
    each = []
    for order in consistent:
        ranks = np.zeros((1, 5))
        ranks[0, list(order)] = -np.arange(4.0)
        each.append(plain(ranks, train, test, asked))
    assert measured(scores, train, test, asked) == pytest.approx(np.mean(each, axis=0))


@pytest.mark.parametrize("values", [0, 2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neither_blocks_nor_other_lanes_change_a_bit(
    values: int, dtype: type[np.floating], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, train, test = made(5, values=values)
    table = scores.astype(dtype)
    whole = top_items(lambda users, items: table[users, items], train, test, ASKED, lanes=5)
    for at_once in (1, 5 * 60, 7 * 5 * 60, 10**9):
        asked: list[int] = []

        def predict(users: Numbers, items: Numbers, asked: list[int] = asked) -> NDArray[np.floating]:
            asked.append(len(users))
            return table[users, items]

        monkeypatch.setattr("dpmf_cli.evaluation.metrics.SCORES_AT_ONCE", at_once)
        found = top_items(predict, train, test, ASKED, lanes=5)
        assert found.tobytes() == whole.tobytes()
        assert min(asked) >= 60
        assert max(asked) <= max(at_once // 5, 60)
    for lane in range(5):
        own = table[:, :, lane : lane + 1]
        assert np.array_equal(measured(own, train, test), whole[lane])


def test_scores_that_are_no_numbers_are_last_and_infinite_ones_at_their_end() -> None:
    train, test = rated([(0, 5, 5)], 1, 6), rated([(0, 0, 5)], 1, 6)
    asked = TopItems(threshold=4, ndcg=1, recall=2)
    ends = [[math.inf, 1.0, 2.0, -math.inf, math.nan, math.nan]]
    assert measured(ends, train, test, asked) == [1, 1]
    assert measured([[math.nan, 1.0, -math.inf, -math.inf, 0.0, 9.0]], train, test, asked) == [0, 0]
    assert measured(np.full((1, 6), math.nan), train, test, asked) == pytest.approx([1 / 5, 2 / 5])
