"""Low bits: every mechanism passes cleanly, and low bits tell of a release that is not rounded."""

from collections.abc import Iterable

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.bits import BitTest, low_bits
from dpmf_cli.audit.pairs import tiny_pairs
from dpmf_cli.privacy.grid import on_grid
from dpmf_cli.privacy.keyed import unit_of_cells
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.mechanisms import exponential_choice, keyed_laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import KeyedNoise, Law, unit_laplace, unit_normal
from dpmf_cli.privacy.release import Publish, noisy_kernel
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.audit.planted import Biases, Fit, NotOnAGrid, Numbers, Toy, fit_with, own_noise

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
