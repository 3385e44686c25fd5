"""PG-MF: what devices report and receive, what a report reveals of their ratings, and how it moves the items."""

from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.neera2020 import local_factorization
from dpmf_cli.algorithms.neera2020.local_factorization import DevicesOfOneReport, PrivateGradientMF
from dpmf_cli.algorithms.shared.factorization import initial_factors
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import PerturbedSigns, SignChannel, value_seen_by_the_aggregator
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.testing import fit
from tests.algorithms.local_entries import RATINGS, STREAMS


def method_of(**keys: Any) -> PrivateGradientMF:
    return PrivateGradientMF.model_validate({"algorithm": "pg_mf", **keys})


def test_one_report_that_counts_for_all_has_the_mean_of_a_report_of_each() -> None:
    devices = method_of(factors=2, mode=Mode.CORRECTED).devices(RATINGS, STREAMS)
    assert isinstance(devices, DevicesOfOneReport)
    counted = np.zeros(len(RATINGS))
    draws = 4000
    for _ in range(draws):
        rows, weights = devices.reported()
        assert np.array_equal(weights, RATINGS.user_counts[RATINGS.users[rows]])
        assert np.array_equal(RATINGS.users[rows], np.flatnonzero(RATINGS.user_counts))
        counted[rows] += weights
    largest = float(RATINGS.user_counts.max())
    assert counted / draws == pytest.approx(np.ones(len(RATINGS)), abs=5 * np.sqrt(largest / draws))


OF_USERS: dict[str, Any] = {"neighbours": "user", "factors": 2}


@pytest.mark.parametrize(
    ("keys", "ratings", "messages", "provable"),
    [
        ({}, RATINGS, 5 * len(RATINGS), 0.05 + 0.95 * RATINGS.user_counts.max()),
        ({"mode": "corrected"}, RATINGS, len(RATINGS) + 4 * (RATINGS.user_counts > 0).sum(), 1.0),
        (OF_USERS, RATINGS, 5 * RATINGS.n_users, 1.0),
        (OF_USERS, RATINGS.select(RATINGS.users != 3), 5 * RATINGS.n_users, 1.0),
    ],
    ids=["each rating", "one of each user", "whole users", "a user without ratings"],
)
def test_messages_and_bytes_are_those_of_so_many_reports(
    keys: dict[str, Any], ratings: Ratings, messages: int, provable: float
) -> None:
    """Up, a byte each for three parts of a report; down, the items' factors to every user in every iteration."""
    method = method_of(**{"factors": 2, "iterations": 4, **keys})
    model, ledger = fit(method, ratings, [1.0])
    assert model.traffic.messages == messages
    assert model.traffic.up == 3 * messages
    assert model.traffic.down_per_user == 4 * 40 * 2 * 4
    assert ledger.claimed == pytest.approx([1.0])
    assert [step.mechanism for step in ledger.entries] == ["Duchi et al.", "Duchi et al. × 4"]
    assert ledger.entries[0].claimed == pytest.approx([0.05])
    assert ledger.provable == pytest.approx([provable])
    assert {entry.sensitivity.neighbours for entry in ledger.entries} == {method.neighbours}
    assert model.known_items.all()


class Heard:
    """A channel that returns its input unchanged."""

    def send(self, *given: Any) -> Any:
        return given


HEARD: Any = Heard()


def test_a_report_is_of_any_item_and_stands_for_all() -> None:
    """The gradient is 0 where the user has not rated the item: the mean over users is the mean of all gradients."""
    method = method_of(**OF_USERS)
    devices: Any = method.devices(RATINGS, STREAMS)
    starts = initial_factors(RATINGS, method.initial_factors, 2, STREAMS)
    model = factor_model(*starts, np.full((RATINGS.n_users, 2), 0.5), np.zeros((RATINGS.n_items, 2)))
    gradients = np.zeros((RATINGS.n_users, RATINGS.n_items, 2))
    errors = devices.values - model.predict(RATINGS.users, RATINGS.items)[:, 0]
    gradients[RATINGS.users, RATINGS.items] = errors[:, None] * starts[0][RATINGS.users] / 0.05
    asked = np.zeros((RATINGS.n_items, 2))
    for _ in range(400):
        numbers, items, coordinates, weights = devices.report_gradients(model, HEARD)
        expected = gradients[np.arange(RATINGS.n_users), items, coordinates]
        assert numbers == pytest.approx(np.stack([expected, expected], axis=1), abs=1e-4)
        assert set(weights) == {RATINGS.n_items}
        np.add.at(asked, (items, coordinates), 1)
    assert asked / asked.mean() == pytest.approx(np.ones_like(asked), abs=5 / np.sqrt(asked.mean()))


def test_a_device_reports_its_users_mean_and_the_middle_without_ratings() -> None:
    train = RATINGS.select(RATINGS.users != 3)
    devices: Any = method_of(**OF_USERS).devices(train, STREAMS)
    numbers, *_ = devices.report_ratings(HEARD)
    assert len(numbers) == train.n_users
    assert numbers[3] == 0
    assert numbers[5] == pytest.approx((2 * devices.values[train.users == 5] - 1).mean())


def test_the_step_on_items_sees_no_users_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(reports: PerturbedSigns, items: FactorModel, *more: Any) -> None:
        seen.append([group.users.size for group in items.groups])

    monkeypatch.setattr(local_factorization, "move_items_by", watched)
    fit(method_of(factors=2, iterations=2), RATINGS, np.geomspace(0.1, 10, 20).tolist())
    assert seen == [[0, 0], [0, 0]]


def test_items_move_by_the_reports_mean() -> None:
    """γ·d·G times the sum of an item's reports of a coordinate, over its raters."""
    method = method_of(factors=2, learning_rate=0.1, gradient_bound=0.5)
    starts = np.full((3, 2), 0.2), np.full((2, 2), 0.2)
    model = factor_model(*starts, np.zeros((3, 1)), np.zeros((2, 1)))
    channel = SignChannel(
        "test",
        repetitions=1,
        epsilon=np.array([np.inf]),
        sensitivity=value_seen_by_the_aggregator("test", np.array([3])),
        n_items=2,
        curator=Curator(Ledger([np.inf]), STREAMS),
    )
    items, coordinates = np.array([0, 0, 1], np.int32), np.array([1, 1, 0], np.uint8)
    reports = channel.send(np.array([[1.0], [1.0], [-1.0]]), items, coordinates, np.array([1, 2, 1]))
    assert reports.numbers[:, 0].tolist() == [1, 1, -1]
    local_factorization.move_items_by(reports, model.without_users(), np.array([4, 2]), method)
    moved = model.groups[0].rows("items")[..., 0] - 0.2
    assert moved == pytest.approx(np.array([[0, 0.1 * 3 / 4], [-0.1 / 2, 0]]), abs=1e-6)
