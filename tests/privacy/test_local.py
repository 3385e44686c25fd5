"""The boundary between devices and aggregator: who can cross it, which data cross it, and at what cost in ε."""

import gc
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, get_type_hints

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import (
    PerturbedRatings,
    PerturbedSigns,
    SignChannel,
    epsilon_per_user,
    perturb_ratings,
    value_seen_by_the_aggregator,
)
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace, ClampedLaplace, Duchi, RandomisedResponse
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import DeviceNoise
from dpmf_cli.privacy.release import Numbers, Recorder, Release
from tests.conftest import make_ratings

RATINGS = make_ratings(2)
STREAMS = Streams(1, "data", "test", 0, 0)
LOCAL = {key: entry for key, entry in PRIVATE.items() if issubclass(entry, LocalAlgorithm)}


def perturbed(
    epsilons: list[float], debias: bool = False, mechanism: Any = None, recorder: Recorder | None = None
) -> tuple[PerturbedRatings, Ledger]:
    ledger = Ledger(epsilons)
    device, curator = mechanism or BoundedLaplace(), Curator(ledger, STREAMS, recorder)
    return perturb_ratings(RATINGS, device, ledger.limit, debias=debias, curator=curator), ledger


def reachable(root: object) -> list[np.ndarray]:
    """Every array that can be reached from an object, by any attribute, closure or view."""
    seen, arrays, left = set(), [], [root]
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            arrays.append(thing)
            if thing.base is not None:
                left.append(thing.base)
        left.extend(gc.get_referents(thing))
    return arrays


def test_clean_values_cannot_be_reached_from_what_the_aggregator_gets() -> None:
    received, _ = perturbed([1.0])
    assert received.user_counts.sum() == received.item_counts.sum() == len(RATINGS)  # and what it caches
    arrays = reachable(received)
    for array in arrays:
        assert array is not RATINGS.values
        assert not np.shares_memory(array, RATINGS.values)
        if array.shape == RATINGS.values.shape and np.issubdtype(array.dtype, np.floating):
            assert abs(np.corrcoef(array, RATINGS.values)[0, 1]) < 0.9
    received.leak = [RATINGS]  # type: ignore[attr-defined]
    assert any(array is RATINGS.values for array in reachable(received))


@pytest.mark.parametrize("kind", [PerturbedRatings, PerturbedSigns])
def test_only_a_mechanism_makes_messages(kind: type) -> None:
    with pytest.raises(TypeError, match="only a local mechanism can make"):
        kind(seal=object(), **{field.name: None for field in fields(kind)})


@pytest.mark.parametrize("key", LOCAL)
def test_an_aggregator_takes_messages_and_nothing_else(key: str) -> None:
    entry = LOCAL[key]
    assert "fit" not in vars(entry)
    assert get_type_hints(entry.aggregate)["received"] is PerturbedRatings
    assert entry.fit is LocalAlgorithm.fit


def test_the_price_is_in_the_ledger_with_what_it_means_for_a_user() -> None:
    received, ledger = perturbed([0.5, 2.0])
    (entry,) = ledger.entries
    assert entry.sensitivity.neighbours is Neighbours.LOCAL
    assert entry.claimed.tolist() == entry.provable.tolist() == [0.5, 2.0]
    counts = RATINGS.user_counts
    assert (
        f"for a user n·ε: {counts.mean():.1f} ε on average, {counts.max()} ε at most"
        in entry.sensitivity.source
    )
    mean, largest = epsilon_per_user(received.epsilons, counts)
    assert mean == pytest.approx(counts.mean() * received.epsilons)
    assert largest == pytest.approx(counts.max() * received.epsilons)


@pytest.mark.parametrize("count", [1, 8, 9, 16, 20])
def test_columns_are_the_values_of_their_epsilon(count: int) -> None:
    grid = np.geomspace(0.1, 10, count).tolist()
    received, _ = perturbed(grid)
    assert perturbed([np.inf])[0].values.column(0) == pytest.approx((RATINGS.values - 1) / 4, abs=1e-6)
    for index in (0, count // 2, count - 1):
        alone, _ = perturbed([grid[index]])
        assert np.array_equal(received.values.column(index), alone.values.column(0))
    assert received.means == pytest.approx([received.values.column(e).mean() for e in range(count)], abs=1e-5)


def test_messages_are_counted_in_bytes() -> None:
    for mechanism, each in ((ClampedLaplace(), 1 + 4), (RandomisedResponse(5), 1 + 1), (Duchi(), 1 + 1)):
        traffic = perturbed([1.0], mechanism=mechanism)[0].traffic
        assert (traffic.up, traffic.down, traffic.messages) == (each * len(RATINGS), 0, len(RATINGS))
        assert traffic.up_per_user == pytest.approx(each * RATINGS.user_counts.mean())


def channel(repetitions: int, epsilon: float, recorder: Recorder | None = None) -> tuple[SignChannel, Ledger]:
    ledger = Ledger([epsilon])
    made = SignChannel(
        "step",
        repetitions=repetitions,
        epsilon=ledger.limit,
        sensitivity=value_seen_by_the_aggregator("test", RATINGS.user_counts),
        n_items=40,
        curator=Curator(ledger, STREAMS, recorder),
    )
    return made, ledger


def report(channel: SignChannel, numbers: np.ndarray) -> PerturbedSigns:
    nothing = np.zeros(len(numbers), np.int32)
    return channel.send(numbers, nothing, nothing.astype(np.uint8), np.ones(len(numbers), np.int64))


def test_a_channel_is_paid_for_before_it_is_used_and_closes_after() -> None:
    reports, ledger = channel(2, 1.0)
    assert ledger.claimed.tolist() == [1.0]
    for _ in range(2):
        report(reports, np.zeros((3, 1)))
    with pytest.raises(RuntimeError, match="paid for"):
        report(reports, np.zeros((3, 1)))
    assert (reports.messages, reports.bytes) == (6, 6 * 3)


@pytest.mark.parametrize("number", [-1.0, 0.3, 1.0])
def test_a_report_spends_its_part_and_is_unbiased(number: float) -> None:
    count, epsilon = 100_000, 2.0
    reports, _ = channel(4, epsilon)
    received = report(reports, np.full((count, 1), number)).numbers[:, 0]
    largest = 1 / np.tanh(epsilon / 4 / 2 / (1 + MARGIN))  # a quarter of ε each
    assert np.unique(np.abs(received)) == pytest.approx([largest], rel=1e-6)
    assert abs(received.mean() - number) < 4.5 * largest / np.sqrt(count)
    assert abs(received.mean() - 0.9 * number) > 4.5 * largest / np.sqrt(count) or abs(number) < 0.5


def test_a_uniform_of_zero_is_never_used() -> None:
    zeros: Any = SimpleNamespace(random=np.zeros)
    noise = DeviceNoise(zeros, ClampedLaplace(), np.array([1.0, np.inf]))
    assert np.isfinite(noise.perturbed(np.linspace(0, 1, 11))).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_what_is_sent_has_spent_the_epsilon_of_the_ledger(epsilon: float) -> None:
    """Through the whole path, scaling included: a device that spends twice as much is seen."""
    train = make_ratings(2, n_users=400, n_items=60)
    ledger = Ledger([epsilon])
    received = perturb_ratings(
        train, RandomisedResponse(5), ledger.limit, debias=False, curator=Curator(ledger, STREAMS)
    )
    kept = np.isclose(received.values.column(0), (train.values - 1) / 4, atol=1e-6).mean()
    expected = np.exp(epsilon) / (np.exp(epsilon) + 4)
    deviation = np.sqrt(expected * (1 - expected) / len(train))
    assert abs(kept - expected) < 4.5 * deviation
    assert abs(kept - np.exp(2 * epsilon) / (np.exp(2 * epsilon) + 4)) > 9 * deviation


class TellingDraws(ClampedLaplace):
    """A mechanism that sends the draws themselves."""

    def decoded(self, values: np.ndarray, uniforms: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
        return np.broadcast_to(uniforms, (len(values), len(epsilons)))


class Replacing(Recorder):
    """Records what devices perturb, and delivers `arrives` instead of the message if it is not None."""

    def __init__(self, grid: int, arrives: float | None = None) -> None:
        self.clean = np.full((len(RATINGS), grid), np.nan)
        self.noisy, self.arrives = self.clean.copy(), arrives
        self.draws: list[tuple[str, int]] = []

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: np.ndarray
    ) -> np.ndarray:
        rows = slice(first, first + len(clean))
        if first == 0:
            self.draws.append((release.entry.step, release.draw))
            self.clean[:] = np.nan
        assert np.isnan(self.clean[rows, lanes]).all()  # no number is seen twice
        self.clean[rows, lanes], self.noisy[rows, lanes] = clean, noisy
        return noisy if self.arrives is None else np.full_like(noisy, self.arrives)


def test_a_recorder_sees_every_rating_at_its_place_in_whatever_parts_they_are_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpmf_cli.privacy.local.CHUNK", 64)
    assert len(RATINGS) > 3 * 64
    grid = np.geomspace(0.1, 10, 20).tolist()
    recorder = Replacing(20)
    received, _ = perturbed(grid, recorder=recorder)
    assert np.array_equal(recorder.clean, np.repeat((RATINGS.values.astype(float)[:, None] - 1) / 4, 20, 1))
    arrived = np.stack([received.values.column(e) for e in range(20)], axis=1)
    assert np.array_equal(arrived, recorder.noisy.astype(np.float32))
    assert np.array_equal(arrived, np.concatenate(perturbed(grid)[0].values.groups, axis=1)[:, :20])
    monkeypatch.undo()
    assert np.array_equal(arrived, np.concatenate(perturbed(grid)[0].values.groups, axis=1)[:, :20])
    told = perturbed([1.0], mechanism=TellingDraws())[0]
    assert len(np.unique(told.values.column(0))) == len(RATINGS)  # no draw serves two ratings


def test_an_aggregator_gets_what_a_recorder_returns() -> None:
    received, _ = perturbed([0.5, 2.0], debias=True, recorder=Replacing(2, 0.75))
    slope = BoundedLaplace().slope(np.array([0.5, 2.0]))
    for e in range(2):
        assert received.values.column(e) == pytest.approx(np.full(len(RATINGS), 0.5 + 0.25 / slope[e]))
    reports, _ = channel(1, 1.0, Replacing(1, -3.0))
    assert (report(reports, np.zeros((len(RATINGS), 1))).numbers == -3).all()


def test_a_recorder_sees_each_round_of_reports_as_a_draw_of_its_own() -> None:
    recorder = Replacing(1)
    reports, _ = channel(2, 1.0, recorder)
    for number, clipped in ((0.3, 0.3), (7.0, 1.0)):
        report(reports, np.full((len(RATINGS), 1), number))
        assert (recorder.clean == (clipped + 1) / 2).all()  # on [0, 1]: the ledger's sensitivity is 1
        assert np.unique(np.abs(recorder.noisy)) == pytest.approx([1 / np.tanh(0.25 / (1 + MARGIN))])
    assert recorder.draws == [("step", 0), ("step", 1)]
