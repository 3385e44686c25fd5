"""Shrinkage and ridge chosen on ratings that are set aside: the choice, its loss and noise, and its ratings."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.mcsherry2009.covariance_methods import CovarianceKNN
from dpmf_cli.algorithms.shared.averages import Effects
from dpmf_cli.algorithms.shared.item_covariance import CANDIDATES, Multipliers, Refitting
from dpmf_cli.kernels import covariance
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from tests.algorithms.covariance_entries import KINDS, STREAMS, entry, every_pair, fit
from tests.conftest import make_ratings
from tests.recorders import Noting

RATINGS = make_ratings(9, n_users=60, n_items=30)


def refitting(*epsilons: float, mode: str = "published", recorder: Noting | None = None) -> Refitting:
    """With all averages 0. Corrected, the choice gets half of ε."""
    grid = len(epsilons)
    averages = Effects(np.zeros((30, grid)), np.zeros((0, grid)), np.zeros(grid), np.zeros(grid))
    algorithm = entry("knn", tuning="refitted", validation=0.3, tuning_fraction=0.5, mode=mode)
    curator = Curator(Ledger(epsilons, algorithm.mode), STREAMS, recorder)
    made = algorithm.refitting(RATINGS, averages, np.array(epsilons), STREAMS, curator)
    assert made is not None
    return made


def test_refitting_chooses_the_candidate_that_errs_least() -> None:
    chooser, best = refitting(1.0), Multipliers(4.0, 1 / 3)
    assert best in CANDIDATES
    assert len(chooser.asked) + len(chooser.seen) == len(RATINGS)

    def predict(candidate: Multipliers) -> NDArray[np.floating]:
        return chooser.asked.values + (0.0 if candidate == best else 0.5)

    assert chooser.choose(0, predict) == best


def test_each_epsilon_has_its_own_losses_with_the_noise_of_the_exponential_mechanism() -> None:
    """2Δ/ε with Δ = (Δr/2)² = 4 and half of ε. A user's loss is at most Δ, whatever the predictions."""
    recorder = Noting()
    chooser = refitting(1.0, 2.0, 4.0, mode="corrected", recorder=recorder)
    scale = np.array([16.0, 8.0, 4.0]) * (1 + MARGIN)
    assert chooser.losses.scale == pytest.approx(scale)
    users = len(np.unique(chooser.asked.users))
    for lane, (error, loss) in {0: (0.0, 0.0), 1: (1.0, 1.0), 2: (100.0, 4.0)}.items():
        chooser.choose(lane, partial(lambda values, _: values, chooser.asked.values + error))
        seen = {key: numbers for key, numbers in recorder.seen.items() if key[-1] == lane}
        (clean,) = (np.asarray(numbers) for numbers in seen.values())
        assert clean == pytest.approx(np.full((len(CANDIDATES), 1), users * loss))
    drawn = -STREAMS.noise("post-processing parameters").gumbel(size=len(CANDIDATES))
    unwatched = refitting(2.0, mode="corrected").losses.added_to(np.zeros(len(CANDIDATES)))
    assert unwatched[:, 0] == pytest.approx(scale[1] * drawn)


@pytest.mark.parametrize(("mode", "charged"), [("published", 0.0), ("corrected", 0.25)])
def test_published_refitting_charges_nothing_and_corrected_its_part_of_the_total(
    mode: str, charged: float
) -> None:
    algorithm = entry("knn", tuning="refitted", tuning_fraction=0.25, mode=mode, noise="laplace")
    _, ledger = fit(algorithm, RATINGS, 3.0)
    (step,) = (each for each in ledger.entries if each.step == "post-processing parameters")
    assert ledger.limit == pytest.approx([3.0 / (1 - charged)])
    assert step.claimed == pytest.approx(charged * ledger.limit)
    assert np.isinf(step.provable[0]) == (charged == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_multipliers_are_what_predictions_are_made_with(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = entry(kind, k=5)
    growth = ("shrinkage", "noise_shrinkage", "diagonal_noise_shrinkage")
    by_hand = {"ridge": 3 * default.ridge, **{name: 4 * getattr(default, name) for name in growth}}
    fixed = fit(entry(kind, k=5, **by_hand), RATINGS, 5.0)[0].predict(*every_pair(RATINGS))
    monkeypatch.setattr(Refitting, "choose", lambda self, lane, predict: Multipliers(4.0, 3.0))
    refitted = fit(entry(kind, k=5, tuning="refitted"), RATINGS, 5.0)[0].predict(*every_pair(RATINGS))
    assert refitted == pytest.approx(fixed, abs=1e-9)
    assert not np.allclose(refitted, fit(default, RATINGS, 5.0)[0].predict(*every_pair(RATINGS)))


@pytest.mark.parametrize("kind", KINDS)
def test_eigenpairs_are_found_once_for_each_shrinkage(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates also differ in the ridge, and the chosen one predicts again. Neither needs new eigenpairs."""
    asked: list[int] = []
    usual = covariance.leading_eigenpairs

    def counting(*arguments: Any, **parameters: Any) -> Any:
        asked.append(1)
        return usual(*arguments, **parameters)

    monkeypatch.setattr(covariance, "leading_eigenpairs", counting)
    model, _ = fit(entry(kind, k=5, tuning="refitted"), RATINGS, 5.0, 50.0)
    model.predict(np.array([0], np.int32), np.array([1], np.int32))
    assert len(asked) == 2 * 3


def test_validation_ratings_are_predicted_from_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratings that are set aside are used neither as neighbours nor in their user's mean: what predicts them
    does not know them."""
    algorithm = entry("knn", tuning="refitted", validation=0.3, k=5, effects={"beta_u": 0})
    model, _ = fit(algorithm, RATINGS, np.inf)
    asked, seen = model.refitting.asked, model.refitting.seen
    assert 0 < len(asked) < len(seen) < len(RATINGS) == len(asked) + len(seen)
    sums = np.bincount(seen.users, seen.values - model.effects.items[seen.items, 0], 60)
    has_some = seen.user_counts > 0
    found = model.refitting.effects.users[has_some, 0]
    assert found == pytest.approx(sums[has_some] / seen.user_counts[has_some])

    used = []
    ordinary = CovarianceKNN.predictor

    def spied(self: Any, train: Any, users: Any, items: Any) -> Any:
        used.append((len(train), len(users)))
        return ordinary(self, train, users, items)

    monkeypatch.setattr(CovarianceKNN, "predictor", spied)
    model.predict(*every_pair(RATINGS))
    assert sorted(used) == [(len(seen), len(asked)), (len(RATINGS), 60 * 30)]
