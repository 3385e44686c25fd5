"""What a device does to a rating has the required law, and leaks no more than ε."""

import numpy as np
import pytest
from scipy import integrate

from dpmf_cli.core.ratings import Scale
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.local_mechanisms import (
    BoundedLaplace,
    ClampedLaplace,
    Duchi,
    LocalMechanism,
    Mechanism,
    Piecewise,
    RandomisedResponse,
    UnaryEncoding,
    mechanism_on,
)

EPSILONS = np.array([0.1, 1.0, 3.0])
CONTINUOUS = [BoundedLaplace(), ClampedLaplace(), Piecewise()]
ALL: list[LocalMechanism] = [*CONTINUOUS, RandomisedResponse(5), UnaryEncoding(5), Duchi()]
DRAWS = 200_000
LEVEL = 1e-5


def name(mechanism: LocalMechanism) -> str:
    return type(mechanism).__name__


def sent(mechanism: LocalMechanism, value: float, epsilons: np.ndarray, seed: int = 0) -> np.ndarray:
    """(DRAWS, E) decoded messages for one value."""
    uniforms = np.random.default_rng(seed).random((DRAWS, mechanism.uniforms))
    return mechanism.decoded(np.full(DRAWS, value), uniforms, epsilons)


def bounded_laplace_density(outputs: np.ndarray, value: float, b: float) -> np.ndarray:
    """f(r*|r) of equation 2 at outputs (n,) in [0, 1], by equation 3's C_r(b)."""
    mass = 1 - (np.exp(-value / b) + np.exp(-(1 - value) / b)) / 2
    return np.asarray(np.exp(-np.abs(outputs - value) / b) / (2 * b * mass))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_bounded_laplace_density_is_normalised_and_is_the_law_of_what_is_sent(
    epsilon: float, value: float
) -> None:
    def density(x: float) -> float:
        return float(bounded_laplace_density(np.array([x]), value, 1 / epsilon)[0])

    def up_to(x: float) -> float:
        return float(integrate.quad(density, 0, x, points=[min(value, x)])[0])

    assert up_to(1.0) == pytest.approx(1, abs=1e-9)
    uniforms = np.linspace(0.001, 0.999, 25)
    quantiles = BoundedLaplace().decoded(np.full(25, value), uniforms[:, None], np.array([epsilon]))[:, 0]
    step = 2.0**-10 / max(1, epsilon)
    steepest = bounded_laplace_density(np.array([value]), value, 1 / epsilon)[0]
    assert [up_to(x) for x in quantiles] == pytest.approx(uniforms, abs=steepest * step / 2)
    mean = integrate.quad(lambda x: x * density(x), 0, 1, points=[value])[0]
    assert BoundedLaplace().expected(np.array([value]), np.array([epsilon])) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("mechanism", [RandomisedResponse(5), UnaryEncoding(3), Duchi()], ids=name)
def test_discrete_losses_reach_epsilon_and_do_not_exceed_it(
    mechanism: LocalMechanism, epsilon: float
) -> None:
    outputs = [sent(mechanism, value, np.array([epsilon]))[:, 0].round(9) for value in (0.0, 0.5, 1.0)]
    events = np.unique(np.concatenate(outputs))
    masses = np.array([[(output == event).sum() for event in events] for output in outputs], float)
    sure = masses.min(axis=0) > 50
    noise = 6 * np.sqrt(2 / masses[:, sure].min(axis=0))
    worst = np.log(masses[:, sure].max(axis=0) / masses[:, sure].min(axis=0))
    assert (worst <= epsilon + noise).all()
    assert (worst + noise).max() > epsilon


def chances(mechanism: LocalMechanism, value: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """(m,) all messages, and (m,) their exact chances: the number of the 2⁵³ uniforms that lead to each. For
    mechanisms that map one uniform to one output monotonically. The steps are found by bisection."""

    def message(at: np.ndarray) -> np.ndarray:
        uniforms = np.maximum(at * 2.0**-53, 2.0**-54)[:, None]
        return mechanism.decoded(np.full(len(at), value), uniforms, np.array([epsilon]))[:, 0]

    lowest, highest = message(np.array([0, 2**53 - 1]))
    step = np.diff(np.unique(sent(mechanism, value, np.array([epsilon])))).min()
    messages = lowest + step * np.arange(round((highest - lowest) / step) + 1)
    low, high = np.zeros(len(messages), np.int64), np.full(len(messages), 2**53)  # the first beyond each
    for _ in range(54):
        middle = (low + high) // 2
        beyond = message(np.minimum(middle, 2**53 - 1)) > messages + step / 4
        low, high = np.where(beyond | (low == high), low, middle + 1), np.where(beyond, middle, high)
    return messages, np.diff(high, prepend=0) * 2.0**-53


@pytest.mark.parametrize("epsilon", [0.02, 3.36, 8.0])
@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=name)
def test_no_message_tells_more_than_epsilon_in_the_arithmetic_of_floats(
    mechanism: LocalMechanism, epsilon: float
) -> None:
    """Every single message, with its exact chance. The margin is by how much less than ε a device spends. At ε = 3.36
    hardly more than half of the piecewise mechanism's last cell would be within ±C."""
    found = [chances(mechanism, value, epsilon) for value in (0.0, 0.25, 1 / 3, 1.0)]
    first, _ = found[0]
    for messages, masses in found:
        assert np.array_equal(messages, first)
        assert masses.sum() == 1
        assert masses.min() > 2.0**-13 * np.exp(-epsilon) * min(1, epsilon)
    logs = np.log([masses for _, masses in found])
    loss = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert 0.98 * epsilon < loss < epsilon * (1 + MARGIN)


@pytest.mark.parametrize("width", [0.25, 0.5, 1.0])
def test_the_scale_of_bounded_laplace_is_enough_only_for_the_full_width(width: float) -> None:
    """The largest log ratio over outputs and inputs that are Δ = `width` apart, with b = Δ/ε at ε = 1."""
    x = np.linspace(0, 1, 101)
    logs = np.log([bounded_laplace_density(x, value, width) for value in x])
    apart = np.abs(x[:, None] - x) <= width + 1e-12
    worst = np.max(np.where(apart[:, :, None], logs[:, None] - logs[None], -np.inf))
    assert worst == pytest.approx(1) if width == 1 else worst > 1.2


@pytest.mark.parametrize("value", [0.0, 0.25, 0.6, 1.0])
@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_messages_have_the_mean_that_they_are_said_to_have(mechanism: LocalMechanism, value: float) -> None:
    messages = sent(mechanism, value, EPSILONS, 7)
    errors = messages.mean(axis=0) - mechanism.expected(np.array([value]), EPSILONS)[0]
    deviations = messages.std(axis=0) / np.sqrt(DRAWS)
    assert (np.abs(errors) < 4.5 * deviations + 1e-12).all()
    if mechanism.unbiased:
        assert mechanism.expected(np.array([value]), EPSILONS)[0] == pytest.approx(value)


BIASES = [(BoundedLaplace(), 0.1), (ClampedLaplace(), 0.032), (RandomisedResponse(5), 0)]


@pytest.mark.parametrize(("mechanism", "largest"), BIASES, ids=str)
def test_debiasing_is_exact_at_the_ends_and_the_middle_and_not_between(
    mechanism: LocalMechanism, largest: float
) -> None:
    epsilons, values = np.geomspace(0.01, 30, 40), np.linspace(0, 1, 101)
    debiased = 0.5 + (mechanism.expected(values, epsilons) - 0.5) / mechanism.slope(epsilons)
    bias = np.abs(debiased - values[:, None])
    assert bias[[0, 50, 100]] == pytest.approx(0, abs=1e-9)
    assert 0.9 * largest <= bias.max() <= largest + 1e-9


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_without_privacy_the_value_is_sent_and_extreme_draws_are_finite(mechanism: LocalMechanism) -> None:
    epsilons = np.array([1e-6, 1.0, 1e6, 1e9, np.inf])
    for uniform in (2.0**-54, 1 - 2.0**-53):
        uniforms = np.full((9, mechanism.uniforms), uniform)
        assert np.isfinite(mechanism.decoded(np.linspace(0, 1, 9), uniforms, epsilons)).all()
    if not isinstance(mechanism, UnaryEncoding | Duchi):
        assert sent(mechanism, 0.25, epsilons[3:]) == pytest.approx(0.25, abs=1e-6)


def test_the_grid_is_the_ratings_own_where_it_is_coarse() -> None:
    assert mechanism_on(Scale(1, 5, 1), Mechanism.GRR) == RandomisedResponse(5)
    assert mechanism_on(Scale(0.5, 5, 0.5), Mechanism.OUE) == UnaryEncoding(10)
    assert mechanism_on(Scale(-10, 10), Mechanism.GRR) == RandomisedResponse(5)
    assert mechanism_on(Scale(-10, 10), Mechanism.GRR, 21) == RandomisedResponse(21)
