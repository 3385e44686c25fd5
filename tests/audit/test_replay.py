"""Replays of registered algorithms: clean passes, and the known flaws of publications.

Low bits: every mechanism passes cleanly, and low bits tell of a release that is not rounded.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.judge import SLACK, Finding, Flaw, StepMoves
from dpmf_cli.audit.pairs import Pair, contrary_to_all, tiny_pairs
from dpmf_cli.audit.replay import BitTest, low_bits, replay
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.privacy.grid import on_grid
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.mechanisms import exponential_choice, keyed_laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.noise import KeyedNoise, Law, unit_laplace, unit_normal, unit_of_cells
from dpmf_cli.privacy.protection import PROMISES, protection_of
from dpmf_cli.privacy.release import Publish, noisy_kernel
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.audit.planted import Biases, Fit, NotOnAGrid, Numbers, Toy, fit_with, own_noise

PAIRS = 21


def replayed(
    algorithm: PrivateAlgorithm, pairs: Iterable[Pair] | None = None, epsilon: float = 1.0
) -> tuple[list[Finding], Mapping[str, StepMoves]]:
    """The findings on all pairs, and the largest move of each step."""
    found, steps = [], {}  # type: list[Finding], dict[str, StepMoves]
    for pair in tiny_pairs(algorithm.neighbours, PAIRS) if pairs is None else pairs:
        seen = replay(algorithm, pair, epsilon)
        found += seen.findings
        for step, measured in seen.steps.items():
            steps[step] = measured.worst(steps.get(step, measured))
    return found, steps


def one(key: str, neighbours: Neighbours, mode: Mode, **parameters: object) -> PrivateAlgorithm:
    made: PrivateAlgorithm = PRIVATE[key].model_validate(
        {"algorithm": key, "neighbours": neighbours, "mode": mode, **parameters}
    )
    return made


@pytest.mark.parametrize("neighbours", [Neighbours.BOUNDED, Neighbours.UNBOUNDED])
def test_sensitivities_of_pge_are_tight(neighbours: Neighbours) -> None:
    """Every step moves by its full sensitivity in some pair, so no sensitivity is larger than needed."""
    algorithm = one("pge", neighbours, Mode.CORRECTED)
    found, steps = replayed(algorithm)
    assert found == []
    assert len(steps) == (4 if neighbours is Neighbours.BOUNDED else 8)
    for step, measured in steps.items():
        assert measured.of_sensitivity == pytest.approx(1, abs=SLACK), step
        assert measured.of_noise == pytest.approx(1, abs=SLACK), step
    losses = [replay(algorithm, pair, 1.0).loss for pair in tiny_pairs(neighbours, PAIRS)]
    assert max(losses) <= 1 + SLACK
    assert neighbours is not Neighbours.BOUNDED or max(losses) == pytest.approx(1, abs=2 * SLACK)


def test_another_value_moves_what_hides_presence_twice() -> None:
    """Personalised PGE moves by all that its ledger says for a changed value: twice as much as its base."""
    entry = one("personalized", Neighbours.BOUNDED, Mode.CORRECTED, base={"algorithm": "pge"}, threshold=1)
    found, steps = replayed(entry, epsilon=4.0)
    assert found == []
    assert steps["global sum"].of_sensitivity == pytest.approx(1, abs=SLACK)


def test_a_replay_is_the_same_again() -> None:
    pair = next(tiny_pairs(Neighbours.UNBOUNDED, 1))
    algorithm = one("pge", Neighbours.UNBOUNDED, Mode.PUBLISHED)
    first, again = (replay(algorithm, pair, 1.0) for _ in range(2))
    assert (first.findings, first.steps, first.loss) == (again.findings, again.steps, again.loss)
    assert all(np.array_equal(first.directions[place], again.directions[place]) for place in first.directions)


def test_neighbours_that_do_not_differ_cost_nothing() -> None:
    pair = next(tiny_pairs(Neighbours.BOUNDED, 1))
    same = Pair("the same", pair.here, pair.here, pair.changed)
    seen = replay(one("pge", Neighbours.BOUNDED, Mode.CORRECTED), same, 1.0)
    assert (seen.findings, seen.loss) == ([], 0)
    assert all(each.of_sensitivity == 0 for each in seen.steps.values())


# --- what publications claim ---


def test_unbounded_pge_as_published_forgets_the_least_rating() -> None:
    """Friedman et al. 2016, section 4.1, use r_max − r_min where a rating of r_max is added in full: 5/4 of that."""
    found, steps = replayed(one("pge", Neighbours.UNBOUNDED, Mode.PUBLISHED))
    assert {(each.flaw, each.step) for each in found} == {
        (Flaw.CLAIM, "item sums"),
        (Flaw.CLAIM, "global sum"),
    }
    assert max(each.size for each in found if each.step == "item sums") == pytest.approx(1.25, abs=1e-3)
    assert steps["item sums"].of_noise == pytest.approx(1.25, abs=1e-3)
    assert steps["item sums"].of_sensitivity == pytest.approx(1, abs=SLACK)
    assert steps["user sums"].of_noise <= 1 + SLACK


def test_the_alpha_of_covariances_as_published_is_exceeded() -> None:
    """M09: α is 8, not 4, on stars. Tiny pairs reach 0.4 of the claim; exceeding it takes a user with 67 ratings."""
    published, corrected = (one("mm_knn", Neighbours.UNBOUNDED, mode, noise="laplace", k=2) for mode in Mode)
    seen = replay(published, contrary_to_all(), 300.0)
    (claim,) = (each for each in seen.findings if each.step == "covariance")
    assert claim.flaw is Flaw.CLAIM
    assert 1.005 < claim.size < 1.19
    assert replay(corrected, contrary_to_all(), 300.0).steps["covariance"].of_sensitivity < 0.7


def test_pg_mf_as_published_reports_a_rating_as_often_as_its_user_has_ratings() -> None:
    """The claim is exceeded by at most a factor n, the number of the user's ratings. The corrected mode reports
    one rating."""
    published, corrected = (one("pg_mf", Neighbours.LOCAL, mode, iterations=3) for mode in Mode)
    times = []
    for pair in tiny_pairs(Neighbours.LOCAL, PAIRS):
        own = int((pair.here.users == pair.changed).sum())
        seen = replay(published, pair, 1.0)
        assert {each.flaw for each in seen.findings} <= {Flaw.CLAIM}
        assert seen.steps["gradients"].of_sensitivity <= 1 + SLACK
        assert seen.steps["gradients"].of_noise <= own * (1 + SLACK)
        times.append(seen.steps["gradients"].of_noise)
    assert max(times) > 8
    assert replayed(corrected)[0] == []


def test_pg_mf_with_epsilon_for_a_user_moves_one_report_by_half_of_what_is_paid() -> None:
    """A user without ratings reports 0, the middle. The full range is charged: any two users may be exchanged."""
    found, steps = replayed(one("pg_mf", Neighbours.USER, Mode.PUBLISHED, iterations=3))
    assert found == []
    assert steps["mean of ratings"].of_sensitivity == pytest.approx(0.5, abs=SLACK)
    assert 0.3 < steps["gradients"].of_sensitivity <= 0.5 + SLACK


def test_sampled_steps_of_one_rating_more_or_less_are_not_overcharged() -> None:
    """One more rating exchanges its user's clipped contribution, which therefore moves by twice its bound."""
    algorithm = one("dpsgd_pnbm", Neighbours.UNBOUNDED, Mode.CORRECTED, noise="gaussian", sampling_rate=0.3)
    assert replayed(algorithm, tiny_pairs(Neighbours.UNBOUNDED, 7))[0] == []


def test_a_value_costs_twice_what_presence_costs() -> None:
    """The promise of `unbounded`: ε for the presence of a rating, and 2ε for its value, which some pair reaches."""
    sums_alone = {
        "budget": {"global_averages": 1e-4, "item_averages": 1 - 2e-4, "user_averages": 1e-4},
        "effects": {"sum_share": 0.9999},
    }
    entry = one("pge", Neighbours.UNBOUNDED, Mode.CORRECTED, **sums_alone)
    users, items = np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 1, 0, 1, 0], np.int32)
    low, high = (
        Ratings(users, items, np.array([1, 5, 1, 5, last], np.float32), 3, 2, Scale(1, 5, 1))
        for last in (1, 5)
    )
    absent = low.select(np.arange(len(low)) < 4)
    assert 1.999 < replay(entry, Pair("value", low, high, 2), 1.0).loss <= 2
    for present in (low, high):
        assert replay(entry, Pair("presence", absent, present, 2), 1.0).loss <= 1
    promise = PROMISES[protection_of(Neighbours.UNBOUNDED)]
    assert "whether one rating exists" in promise.hides
    assert promise.besides == "for its value the bound is 2ε"


DRAWS = 20_000
EPSILON = 0.1


def bits_of(algorithm: PrivateAlgorithm, pairs: int = 7) -> list[BitTest]:
    return [
        test
        for pair in tiny_pairs(algorithm.neighbours, pairs)
        for test in low_bits(algorithm, pair, EPSILON, DRAWS)
    ]


def leaks(tests: Iterable[BitTest]) -> list[BitTest]:
    return [test for test in tests if test.epsilon > test.allowed]


class KNorm(Fit):
    """Each of the users' offsets is twice the same number, released as rows."""

    def users(self, average: Numbers) -> Numbers:
        moves = Sensitivity(2 * self.scale_width, 2, self.neighbours, "a row of two that move alike")
        (release,) = repeated_k_norm(
            "user sums",
            (self.train.n_users, 2),
            repetitions=1,
            sensitivity=moves,
            epsilon=0.2 * self.epsilons,
            curator=self.curator,
        )
        sums = self.user_sums(average)
        return release.added_to(np.stack([sums, sums], 1))[:, 0] / 8


def _twin(group: Biases, publish: Publish, clean: Numbers) -> None:
    group.values += publish(clean)


@noisy_kernel(_twin)
def _keyed(group: Biases, noise: KeyedNoise, clean: Numbers) -> None:
    unit = unit_of_cells(np.uint64(noise.key), 0, len(clean))
    group.values += on_grid(clean + unit[:, None] * noise.scale, noise.grid)


class Keyed(Fit):
    """The users' offsets have keyed noise."""

    def users(self, average: Numbers) -> Numbers:
        release = keyed_laplace(
            "user sums",
            sensitivity=self.moves(self.scale_width),
            epsilon=0.2 * self.epsilons,
            curator=self.curator,
        )
        offsets = Biases(np.zeros((self.train.n_users, len(self.epsilons))))
        release.inside(_keyed, offsets, self.user_sums(average))
        return offsets.values / 8


@pytest.mark.parametrize("neighbours", [Neighbours.BOUNDED, Neighbours.UNBOUNDED])
@pytest.mark.parametrize(
    ("fit", "gaussian"),
    [(Fit, False), (Fit, True), (KNorm, False), (Keyed, False)],
    ids=["Laplace", "Gaussian", "K-norm", "keyed"],
)
def test_on_the_grid_nothing_is_found(fit: type[Fit], gaussian: bool, neighbours: Neighbours) -> None:
    tests = bits_of(Toy(fits=fit, neighbours=neighbours, gaussian=gaussian), 4)
    assert {"user sums", "all ratings", "descent"} <= {test.step for test in tests}
    assert leaks(tests) == []


@pytest.mark.parametrize("mechanism", Mechanism)
def test_messages_of_the_local_model(mechanism: Mechanism) -> None:
    data = {"algorithm": "local_mf", "neighbours": "local", "mechanism": mechanism.value}
    algorithm = PRIVATE["local_mf"].model_validate(data)
    pair = next(each for each in tiny_pairs(Neighbours.LOCAL, 7) if each.name.startswith("nothing else"))
    (test,) = low_bits(algorithm, pair, EPSILON, DRAWS)
    assert (test.draws, test.confidence) == (DRAWS, 0.95)
    assert 0 <= test.epsilon <= test.allowed <= EPSILON < test.ceiling


def not_rounded(law: Law) -> type[Fit]:
    """The users' sums are released as they are added up."""
    return fit_with(
        release=own_noise(
            lambda fit, shape, scale: NotOnAGrid.drawn(law, shape, fit.curator.noise("user sums"), scale)
        )
    )


@pytest.mark.parametrize(("law", "gaussian"), [(unit_laplace, False), (unit_normal, True)])
def test_what_is_not_rounded_leaks(law: Law, gaussian: bool) -> None:
    """The flaw is found for whole ratings too, in the step that has it and in no other."""
    found = leaks(bits_of(Toy(fits=not_rounded(law), neighbours=Neighbours.BOUNDED, gaussian=gaussian)))
    assert {test.step for test in found} == {"user sums"}
    assert max(test.epsilon for test in found) > 1.5


class Chosen(Fit):
    """The user with the largest sum. Only the index of the smallest loss is released."""

    def users(self, average: Numbers) -> Numbers:
        losses = exponential_choice(
            "who",
            self.train.n_users,
            sensitivity=Sensitivity(self.scale_width, np.inf, self.neighbours, "one sum moves"),
            epsilon=0.2 * self.epsilons,
            curator=self.curator,
        ).added_to(-self.user_sums(average))
        return np.where(losses == losses.min(axis=0), 0.5, 0.0)


def test_losses_that_do_not_leave_are_not_tested() -> None:
    tests = bits_of(Toy(fits=Chosen, neighbours=Neighbours.BOUNDED), 3)
    assert "who" not in {test.step for test in tests}
    assert tests
