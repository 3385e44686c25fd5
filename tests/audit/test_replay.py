"""Replays of registered algorithms: what a change costs. The table of flaws in docs/audit.md is the one that the audit prints.

Low bits: every mechanism passes cleanly, and low bits tell of a release that is not rounded.
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.distinguish import BitTest, low_bits
from dpmf_cli.audit.entries import KNOWN, registered
from dpmf_cli.audit.judge import SLACK, OnSamples, Spent, on_a_sample, replay
from dpmf_cli.audit.pairs import Pair, tiny_pairs
from dpmf_cli.cli.main import app
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.privacy.accounting import _composed_epsilon, amplified, epsilon_of_mu
from dpmf_cli.privacy.grid import on_grid
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.mechanisms import keyed_laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.noise import KeyedNoise, unit_of_cells
from dpmf_cli.privacy.protection import PROMISES, protection_of
from dpmf_cli.privacy.release import Publish, noisy_kernel
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.audit.planted import Biases, Fit, Numbers, Toy


def one(key: str, neighbours: Neighbours, mode: Mode, **parameters: object) -> PrivateAlgorithm:
    made: PrivateAlgorithm = PRIVATE[key].model_validate(
        {"algorithm": key, "neighbours": neighbours, "mode": mode, **parameters}
    )
    return made


def test_another_value_moves_what_hides_presence_twice() -> None:
    """Personalised PGE moves by all that its ledger says for a changed value: twice as much as its base."""
    entry = one("personalized", Neighbours.BOUNDED, Mode.CORRECTED, base={"algorithm": "pge"}, threshold=1)
    seen = [replay(entry, pair, 4.0) for pair in tiny_pairs(Neighbours.BOUNDED, 21)]
    assert all(each.findings == [] for each in seen)
    assert max(each.steps["global sum"].of_sensitivity for each in seen) == pytest.approx(1, abs=SLACK)


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


def _reference(group: Biases, publish: Publish, clean: Numbers) -> None:
    group.values += publish(clean)


@noisy_kernel(_reference)
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


def test_losses_that_do_not_leave_are_not_tested() -> None:
    (refitted,) = (
        each for each in registered("mm_knn") if each.name == "mm_knn, laplace, refitted, user, corrected"
    )
    steps = {test.step for test in bits_of(refitted, 3)}
    assert "item sums" in steps
    assert "post-processing parameters" not in steps


PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


@pytest.mark.slow
def test_every_known_flaw_is_found_and_the_page_shows_it(tmp_path: Path) -> None:
    arguments = ["audit", "--flaws", "--format", "md", "--results", str(tmp_path), "-j", "2"]
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0
    assert "not found" not in printed.stdout
    table = re.search(r"<!-- flaws -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert table
    assert printed.stdout.split() == table[1].split()
    assert all(flaw.entry.replace("_", r"\_") in printed.stdout for flaw in KNOWN)


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
@pytest.mark.parametrize("mu", [1e-3, 0.5, 20.0, 1e5])
def test_gaussian_steps_cost_what_balle_and_wang_say(mu: float, delta: float) -> None:
    """Also where pure steps are added, and where one step is four of half the size."""
    expected = epsilon_of_mu(mu, delta)
    assert Spent(squares=mu**2).epsilon(delta) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    four = Spent.of(Spent(0.25, (mu / 2) ** 2) for _ in range(4))
    assert four.epsilon(delta) == pytest.approx(1 + expected, rel=1e-6)


@pytest.mark.parametrize("neighbours", [Neighbours.USER, Neighbours.BOUNDED])
@pytest.mark.parametrize(
    ("multiplier", "rate", "times", "mu"), [(1.0, 0.3, 6, 0.5), (0.1, 0.3, 6, 0.0), (30.0, 0.01, 36, 0.0)]
)
def test_steps_on_samples_cost_little_less_than_is_certified(
    multiplier: float, rate: float, times: int, mu: float, neighbours: Neighbours
) -> None:
    """One accountant rounds losses down, the other up."""
    certified = _composed_epsilon(((multiplier, rate, times),), mu, 1e-6, neighbours)
    step = OnSamples(1 / multiplier, rate, neighbours is not Neighbours.USER, times)
    assert 0.99 < Spent(0.0, mu**2, (step,)).epsilon(1e-6) / certified < 1


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 3.0, 1e4])
def test_pure_steps_on_samples(epsilon: float) -> None:
    assert on_a_sample(epsilon, 0.3) == pytest.approx(float(amplified(epsilon, 0.3)), rel=1e-6)
    assert on_a_sample(epsilon, 1.0) == epsilon


def test_gaussian_noise_without_delta_costs_everything() -> None:
    assert Spent(squares=1.0).epsilon(0.0) == math.inf
    assert Spent(1.5).epsilon(0.0) == 1.5
