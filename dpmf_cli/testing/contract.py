"""The contract of every algorithm: tests to inherit, which run over the algorithms that the subclass lists."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.shared.cost import Shape
from dpmf_cli.audit.job import Job, Settings, audit
from dpmf_cli.audit.pairs import SHAPES
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Numbers, Perturbed, Recorder, Release

LARGE = 1e9
"""A θ at which noise no longer matters, though the code still draws it."""
LARGE_GAUSSIAN = 1e5
"""A θ at which Gaussian noise no longer matters; ε grows with its square."""


def make_ratings(
    seed: int = 0, n_users: int = 60, n_items: int = 40, density: float = 0.3, scale: Scale | None = None
) -> Ratings:
    """Ratings with user effects, item effects and one latent factor, in which every user and item has a rating."""
    scale = scale or Scale(1, 5, 1)
    rng = np.random.default_rng(seed)
    rated = rng.random((n_users, n_items)) < density
    rated[np.arange(n_users), rng.integers(n_items, size=n_users)] = True
    rated[rng.integers(n_users, size=n_items), np.arange(n_items)] = True
    users, items = np.nonzero(rated)
    signal = rng.normal(0, 0.4, n_users)[users] + rng.normal(0, 0.6, n_items)[items]
    signal += rng.normal(0, 0.7, n_users)[users] * rng.normal(0, 0.7, n_items)[items]
    raw = scale.middle + 0.1 * scale.width + scale.width / 4 * (signal + rng.normal(0, 0.4, len(users)))
    values = np.clip(
        raw if not scale.step else np.round(raw / scale.step) * scale.step, scale.minimum, scale.maximum
    )
    pairs, halves = (users.astype(np.int32), items.astype(np.int32)), {"odd": np.arange(n_items) % 2.0}
    return Ratings(*pairs, values.astype(np.float32), n_users, n_items, scale, item_columns=halves)


def variants_of(algorithm: type[PrivateAlgorithm], **parameters: Any) -> dict[str, PrivateAlgorithm]:
    """The algorithm with these parameters for all neighbours and modes that it offers, each by a name."""
    return {
        f"{algorithm.key()}-{neighbours}-{mode}": algorithm.model_validate(
            {"algorithm": algorithm.key(), "neighbours": neighbours, "mode": mode, **parameters}
        )
        for neighbours, mode in sorted(algorithm.variants)
    }


def fit(
    algorithm: Algorithm,
    train: Ratings,
    thetas: list[float],
    run: int = 0,
    *,
    recorder: Recorder | None = None,
    noise_of_run: int | None = None,
) -> tuple[Any, Ledger]:
    """The model and ledger of an algorithm for the ε of each θ, which are equal unless the noise is Gaussian.

    recorder       sees every release
    noise_of_run  the run whose noise is drawn; everything else is drawn as in `run`
    """
    if isinstance(algorithm, PrivateAlgorithm):
        ledger = Ledger(map(algorithm.epsilon_of, thetas), algorithm.mode, algorithm.spends_delta)
    else:
        ledger = Ledger([np.inf])
    streams = Streams(1, "data", algorithm.algorithm, 0, run)
    curator = Curator(
        ledger, streams if noise_of_run is None else replace(streams, run=noise_of_run), recorder
    )
    return algorithm.fit(train, ledger.limit, streams=streams, curator=curator), ledger


class Silencing(Recorder):
    """A recorder that publishes all numbers as they were measured, without their noise."""

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.asarray(clean, dtype=np.float64)

    def solved(
        self, release: Release, lanes: slice, problems: Perturbed, drawn: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        silence = np.zeros_like(drawn)
        return problems.solve(silence), silence


def predict_all(model: Any, ratings: Ratings) -> NDArray[np.floating]:
    """(n_users·n_items, E) predictions of every pair."""
    users, items = np.divmod(np.arange(ratings.n_users * ratings.n_items), ratings.n_items)
    return np.asarray(model.predict(users.astype(np.int32), items.astype(np.int32)))


class AlgorithmContract:
    """The contract of any algorithm, private or not. `entries` are the algorithms to test, each by a name.

    learns   the largest RMSE on held-out ratings, as a fraction of their standard deviation, that counts as learning
    """

    entries: ClassVar[Mapping[str, Algorithm]] = {}

    def learns(self, algorithm: Algorithm) -> float:
        return 0.9

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Runs a test of `algorithm` for each entry, and one of `predictor` for each that predicts ratings."""
        predictors = {name: entry for name, entry in self.entries.items() if not entry.scores_only}
        for argument, entries in (("algorithm", self.entries), ("predictor", predictors)):
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, list(entries.values()), ids=list(entries))

    @pytest.fixture
    def ratings(self) -> Ratings:
        return make_ratings()

    def test_predictions_are_finite_for_every_epsilon_and_follow_from_the_streams(
        self, algorithm: Algorithm, ratings: Ratings
    ) -> None:
        """The same streams give the same bytes, and another run differs exactly where it is said to."""
        one, again, other = (
            predict_all(fit(algorithm, ratings, [0.1, 1.0, 10.0], run)[0], ratings) for run in (0, 0, 1)
        )
        assert one.shape == (60 * 40, 3 if algorithm.private else 1)
        assert np.isfinite(one).all()
        assert one.tobytes() == again.tobytes()
        assert np.array_equal(one, other) != algorithm.stochastic

    def test_cold_users_and_items_are_predicted_near_the_average(
        self, predictor: Algorithm, ratings: Ratings
    ) -> None:
        known = ratings.select((ratings.users != 7) & (ratings.items != 5))
        model, _ = fit(predictor, known, [1000.0])
        others = np.arange(6, 40, dtype=np.int32)
        average = known.values.mean()
        cold_item = model.predict(np.arange(8, 60, dtype=np.int32), np.full(52, 5, np.int32))
        cold_user = model.predict(np.full(len(others), 7, np.int32), others)
        assert np.isfinite(cold_user).all()
        assert np.abs(cold_item - average).max() < 2
        both = model.predict(np.array([7], np.int32), np.array([5], np.int32))[0]
        assert both == pytest.approx(average, abs=0.3)

    @pytest.mark.parametrize(("n_users", "n_items"), [(1, 1), (2, 2), (1, 3), (3, 1)])
    @pytest.mark.parametrize("count", [0, 1])
    def test_no_rating_at_all_is_enough_to_fit(
        self, algorithm: Algorithm, count: int, n_users: int, n_items: int
    ) -> None:
        """A fit that fails without ratings reveals that there are none; the numbers of users and items are public."""
        first = np.zeros(count, np.int32)
        rated = first, first, np.full(count, 4, np.float32)
        few = Ratings(
            *rated, n_users, n_items, Scale(1, 5, 1), item_columns={"odd": np.arange(n_items) % 2.0}
        )
        assert np.isfinite(predict_all(fit(algorithm, few, [1.0, np.inf])[0], few)).all()

    def test_constant_ratings_are_predicted_as_they_are(self, predictor: Algorithm, ratings: Ratings) -> None:
        constant = replace(ratings, values=np.full_like(ratings.values, 3.0))
        predictions = fit(predictor, constant, [LARGE_GAUSSIAN])[0].predict(constant.users, constant.items)
        assert np.sqrt(np.mean((predictions - 3.0) ** 2)) < 0.15

    def test_it_learns_what_it_is_for(self, predictor: Algorithm) -> None:
        """Each algorithm beats the global average on held-out ratings with effects and a latent factor."""
        ratings = make_ratings(8, n_users=300, n_items=80, density=0.4)
        held_out = np.random.default_rng(0).random(len(ratings)) < 0.1
        model, _ = fit(predictor, ratings.select(~held_out), [1000.0])
        test = ratings.select(held_out)
        error = np.sqrt(np.mean((model.predict(test.users, test.items)[:, 0] - test.values) ** 2))
        assert error < test.values.std() * self.learns(predictor)

    def test_cost_grows_with_the_ratings(self, algorithm: Algorithm) -> None:
        small, large = (algorithm.cost(Shape(1000, 500, n), 16) for n in (10_000, 1_000_000))
        assert 0 < small.seconds < large.seconds
        assert 0 < small.bytes <= large.bytes

    def test_it_reaches_another_process_as_it_is(self, algorithm: Algorithm) -> None:
        there = pickle.loads(pickle.dumps(algorithm))
        assert type(there) is type(algorithm)
        assert there.parameters() == algorithm.parameters()


class PrivateAlgorithmContract(AlgorithmContract):
    """The contract of an algorithm that spends ε.

    least_harm   the least factor by which noise at ε = 0.01 raises the error on the training ratings
    """

    entries: ClassVar[Mapping[str, PrivateAlgorithm]] = {}

    def least_harm(self, algorithm: PrivateAlgorithm) -> float:
        return 1.2

    def tied(self, algorithm: PrivateAlgorithm, ratings: Ratings) -> NDArray[np.bool_]:
        """(n_users·n_items,) for which pairs, user after user, several answers are equally good without noise.

        Because an exact mechanism chooses one of these answers, and even a little noise may choose another, the
        predictions of such a pair need not equal those of the noise-free run. By default there are no such pairs.
        """
        return np.zeros(ratings.n_users * ratings.n_items, np.bool_)

    def test_with_large_epsilon_it_meets_its_noise_free_run(
        self, algorithm: PrivateAlgorithm, ratings: Ratings
    ) -> None:
        large, tolerance = (LARGE_GAUSSIAN, 5e-3) if algorithm.spends_delta else (LARGE, 1e-4)
        private = predict_all(fit(algorithm, ratings, [large])[0], ratings)
        clean = predict_all(fit(algorithm, ratings, [np.inf])[0], ratings)
        tied = self.tied(algorithm, ratings)
        assert not tied.all(), "every pair is tied, so nothing is left to compare"
        assert np.abs(private - clean)[~tied].max() < tolerance

    def test_noise_hurts_at_small_epsilon(self, algorithm: PrivateAlgorithm, ratings: Ratings) -> None:
        model, _ = fit(algorithm, ratings, [0.01, 1000.0])
        errors = model.predict(ratings.users, ratings.items) - ratings.values[:, None]
        noisy, clean = np.sqrt(np.mean(np.square(errors), axis=0))
        assert noisy > self.least_harm(algorithm) * clean

    def test_a_users_own_ratings_are_in_their_predictions_without_noise_exactly_where_it_is_joint(
        self, algorithm: PrivateAlgorithm, ratings: Ratings
    ) -> None:
        """The noise drowns all ratings and is the same for both data sets, so what still moves predictions has no
        noise.

        The test predicts items that the user has not rated: their averages, noisy or not, contain nothing of the
        user.
        """
        own, scale = ratings.users == 0, ratings.scale
        turned = np.where(own, scale.minimum + scale.maximum - ratings.values, ratings.values)
        asked = np.setdiff1d(np.arange(ratings.n_items, dtype=np.int32), ratings.items[own])
        one, other = (
            fit(algorithm, data, [1e-5])[0].predict(np.zeros_like(asked), asked)
            for data in (ratings, replace(ratings, values=turned.astype(np.float32)))
        )
        moved = np.abs(one - other).max() / np.maximum(np.abs(one), np.abs(other)).max()
        assert (moved > 1e-3) == algorithm.joint

    def test_every_kernel_that_adds_noise_does_what_its_python_reference_does(
        self, algorithm: PrivateAlgorithm, ratings: Ratings
    ) -> None:
        """With a recorder, Python references run instead of kernels; both predict the same, except for rounding."""
        compiled, plain = (
            predict_all(fit(algorithm, ratings, [3.0], recorder=recorder)[0], ratings)
            for recorder in (None, Recorder())
        )
        assert np.abs(compiled - plain).max() < 1e-3 * max(1, np.abs(compiled).max())

    def test_all_noise_comes_from_the_curator(
        self, algorithm: PrivateAlgorithm, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If a recorder silences every release, no noise is left, so the noise of another run changes nothing."""

        def refuse(*_: Any, **__: Any) -> Any:
            raise AssertionError("noise is drawn past the curator")

        for name in ("default_rng", "RandomState", "seed", "rand", "randn", "normal", "laplace"):
            monkeypatch.setattr(np.random, name, refuse)
        one, other = (
            predict_all(fit(algorithm, ratings, [3.0], recorder=Silencing(), noise_of_run=run)[0], ratings)
            for run in (0, 1)
        )
        assert one.tobytes() == other.tobytes()

    def test_an_epsilon_does_not_depend_on_the_rest_of_the_grid(
        self, algorithm: PrivateAlgorithm, ratings: Ratings
    ) -> None:
        grid = np.geomspace(0.1, 20, 21).tolist()
        together = predict_all(fit(algorithm, ratings, grid)[0], ratings)
        for index in (0, 9, 16, 20):
            alone = predict_all(fit(algorithm, ratings, [grid[index]])[0], ratings)
            assert np.array_equal(alone[:, 0], together[:, index])

    def test_the_whole_budget_is_claimed_and_no_more(
        self, algorithm: PrivateAlgorithm, ratings: Ratings
    ) -> None:
        _, ledger = fit(algorithm, ratings, [0.3, 3.0])
        assert ledger.claimed == pytest.approx(ledger.limit)
        if algorithm.mode == "corrected":
            assert ledger.provable == pytest.approx(ledger.limit)
        assert {entry.sensitivity.neighbours for entry in ledger.entries} == {algorithm.neighbours}

    def test_a_replay_on_neighbours_refutes_nothing_that_is_provable(
        self, algorithm: PrivateAlgorithm
    ) -> None:
        """The first tier of `dpmf audit`, on a pair of each kind. A finding may refute a published claim only."""
        job = Job(algorithm, Settings(pairs=len(SHAPES), larger=False, epsilons=(1.0,)))
        found = [f"{each.step}: {each.flaw} ({each.size:.4g}, {each.pair})" for each in audit(job).refuted]
        assert not found
