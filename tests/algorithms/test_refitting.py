"""Shrinkage and ridge chosen on ratings that are set aside: the choice, its loss and noise, and its ratings."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.mcsherry2009.mm_knn import CovarianceKNN
from dpmf_cli.algorithms.shared import item_products
from dpmf_cli.algorithms.shared.averages import Effects
from dpmf_cli.algorithms.shared.item_covariance import (
    CANDIDATES,
    ByExponentialMechanism,
    Charge,
    Multipliers,
    Refitting,
    Uncharged,
)
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.symmetric import leading_eigenpairs
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release, Witness
from tests.algorithms.covariance_entries import KINDS, STREAMS, entry, every_pair, fit
from tests.conftest import make_ratings


class Kept(Witness):
    """A witness that records what it sees, and changes nothing."""

    def __init__(self) -> None:
        self.lanes: list[slice] = []
        self.clean: list[NDArray[np.floating]] = []

    def published(
        self,
        release: Release,
        lanes: slice,
        first: int,
        clean: NDArray[np.floating],
        noisy: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        self.lanes.append(lanes)
        self.clean.append(clean)
        return noisy


def refitting(
    charge: Charge, *epsilons: float, mode: Mode = Mode.PUBLISHED, witness: Witness | None = None
) -> Refitting:
    grid = np.array(epsilons)
    ratings = make_ratings(9, n_users=60, n_items=30)
    return Refitting.of(
        ratings,
        0.3,
        lambda seen: Effects(np.zeros((30, len(grid))), np.zeros((60, len(grid))), np.zeros_like(grid)),
        charge,
        neighbours=Neighbours.UNBOUNDED,
        epsilons=grid,
        streams=STREAMS,
        curator=Curator(Ledger(epsilons, mode), STREAMS, witness),
    )


def test_refitting_chooses_the_candidate_that_errs_least() -> None:
    chooser = refitting(Uncharged(), 1.0)
    best = Multipliers(4.0, 1 / 3)
    assert best in CANDIDATES
    assert len(chooser.asked) + len(chooser.seen) == len(make_ratings(9, n_users=60, n_items=30))

    def predict(candidate: Multipliers) -> NDArray[np.floating]:
        return chooser.asked.values + (0.0 if candidate == best else 0.5)

    assert chooser.choose(0, predict) == best


def test_the_noise_of_a_corrected_choice_is_that_of_the_exponential_mechanism() -> None:
    chooser = refitting(ByExponentialMechanism(0.5), 2.0, mode=Mode.CORRECTED)
    # 2Δ/ε with Δ = (Δr/2)² = 4 and half of ε = 2.
    scale = 8.0 * (1 + MARGIN)
    assert chooser.losses.scale == pytest.approx([scale])
    drawn = -STREAMS.noise("post-processing parameters").gumbel(size=len(CANDIDATES))
    assert chooser.losses.added_to(np.zeros(len(CANDIDATES)))[:, 0] == pytest.approx(scale * drawn)


def test_the_losses_of_an_epsilon_are_published_as_that_epsilons() -> None:
    """Each ε has its own losses, from its own noisy covariance."""
    witness = Kept()
    chooser = refitting(ByExponentialMechanism(0.5), 1.0, 2.0, 4.0, mode=Mode.CORRECTED, witness=witness)
    predicted = {0: chooser.asked.values, 2: chooser.asked.values + 2}
    for lane, values in predicted.items():
        chooser.choose(lane, partial(lambda values, _: values, values))
    users = len(np.unique(chooser.asked.users))
    assert witness.lanes == [slice(0, 1), slice(2, 3)]
    assert [clean.shape for clean in witness.clean] == [(len(CANDIDATES), 1)] * 2
    assert [clean.max() for clean in witness.clean] == pytest.approx([0.0, users * 4.0])


@pytest.mark.parametrize(("mode", "charged"), [("published", 0.0), ("corrected", 0.25)])
def test_published_refitting_charges_nothing_and_corrected_its_part_of_the_total(
    mode: str, charged: float
) -> None:
    algorithm = entry("knn", tuning="refitted", tuning_fraction=0.25, mode=mode, noise="laplace")
    _, ledger = fit(algorithm, make_ratings(9, n_users=30, n_items=10), 3.0)
    (step,) = (each for each in ledger.entries if each.step == "post-processing parameters")
    assert ledger.limit == pytest.approx([3.0 / (1 - charged)])
    assert step.claimed == pytest.approx(charged * ledger.limit)
    assert np.isinf(step.provable[0]) == (charged == 0)


def test_a_users_loss_is_at_most_the_sensitivity_of_the_choice() -> None:
    """For any ratings of one user: the loss is a sum over users of terms within [0, (Δr/2)²]."""
    chooser = refitting(Uncharged(), 1.0)
    users = len(np.unique(chooser.asked.users))
    assert chooser._loss(chooser.asked.values + 100.0) == pytest.approx(users * 4.0)
    assert chooser._loss(chooser.asked.values + 1.0) == pytest.approx(users * 1.0)
    assert chooser._loss(chooser.asked.values) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_multipliers_are_what_predictions_are_made_with(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings = make_ratings(10, n_users=40, n_items=15)
    default = entry(kind, k=5)
    by_hand = {
        "ridge": 3 * default.ridge,
        "shrinkage": 4 * default.shrinkage,
        "noise_shrinkage": 4 * default.noise_shrinkage,
        "diagonal_noise_shrinkage": 4 * default.diagonal_noise_shrinkage,
    }
    fixed = fit(entry(kind, k=5, **by_hand), ratings, 5.0)[0].predict(*every_pair(ratings))
    monkeypatch.setattr(Refitting, "choose", lambda self, lane, predict: Multipliers(4.0, 3.0))
    refitted = fit(entry(kind, k=5, tuning="refitted"), ratings, 5.0)[0].predict(*every_pair(ratings))
    assert refitted == pytest.approx(fixed, abs=1e-9)
    assert not np.allclose(refitted, fit(default, ratings, 5.0)[0].predict(*every_pair(ratings)))


@pytest.mark.parametrize("kind", KINDS)
def test_eigenpairs_are_found_once_for_each_shrinkage(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates also differ in the ridge, and the chosen one predicts again. Neither needs new eigenpairs."""
    asked: list[int] = []

    def counting(*arguments: Any, **parameters: Any) -> Any:
        asked.append(1)
        return leading_eigenpairs(*arguments, **parameters)

    monkeypatch.setattr(item_products, "leading_eigenpairs", counting)
    algorithm = entry(kind, k=5, tuning="refitted")
    model, _ = fit(algorithm, make_ratings(10, n_users=40, n_items=15), 5.0, 50.0)
    model.predict(np.array([0], np.int32), np.array([1], np.int32))
    assert len(asked) == 2 * algorithm.shrinkages == 6


def test_validation_ratings_are_predicted_from_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratings that are set aside are used neither as neighbours nor in their user's mean: what predicts them
    does not know them."""
    ratings = make_ratings(11, n_users=40, n_items=15)
    algorithm = entry("knn", tuning="refitted", validation=0.3, k=5, effects={"beta_u": 0})
    model, _ = fit(algorithm, ratings, np.inf)
    asked, seen = model.refitting.asked, model.refitting.seen
    assert 0 < len(asked) < len(seen) < len(ratings) == len(asked) + len(seen)
    sums = np.bincount(seen.users, seen.values - model.effects.items[seen.items, 0], 40)
    has_some = seen.user_counts > 0
    found = model.refitting.effects.users[has_some, 0]
    assert found == pytest.approx(sums[has_some] / seen.user_counts[has_some])

    used = []
    ordinary = CovarianceKNN.predictor

    def spied(self: Any, train: Ratings, users: Any, items: Any) -> Any:
        used.append((len(train), len(users)))
        return ordinary(self, train, users, items)

    monkeypatch.setattr(CovarianceKNN, "predictor", spied)
    model.predict(*every_pair(ratings))
    assert sorted(used) == [(len(seen), len(asked)), (len(ratings), 40 * 15)]
