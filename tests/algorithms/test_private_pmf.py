"""DP-PMF against its listing, and its corrected mode against dense solutions, written out in NumPy, noise included."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike
from pydantic import ValidationError
from scipy.optimize import brentq

from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.zhang2018.private_pmf import Personalized, PrivatePMF, private_global_average
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN, grid_of, on_grid
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace
from tests.algorithms.fitted import fitted
from tests.conftest import make_ratings
from tests.recorders import Noting

RATINGS = make_ratings(9, n_users=12, n_items=9)
N, D, GAMMA, RIDGE = len(RATINGS), 3, 2.0, 0.1
STREAMS = Streams(4, "d", "dp_pmf", 0, 0)
PAIRS = np.divmod(np.arange(12 * 9, dtype=np.int32), 9)


def predicted(algorithm: PrivatePMF, epsilon: float) -> np.ndarray:
    """(108,) the predictions for all pairs."""
    model, _ = fitted(algorithm, RATINGS, [epsilon], STREAMS)
    return np.asarray(model.predict(*PAIRS))[:, 0]


def of(**parameters: object) -> PrivatePMF:
    ridge = {} if parameters.get("mode") == "corrected" else {"regularization": RIDGE}
    given = {"algorithm": "dp_pmf", "neighbours": "unbounded", "factors": D, **ridge, **parameters}
    return PrivatePMF.model_validate(given)


def gradients(
    part: np.ndarray, u: np.ndarray, v: np.ndarray, centre: float, of_ratings: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Equations 4 and 5 with their signs reversed, over a batch of ratings less a centre; λ once for each rating, if
    it is `of_ratings`."""
    of_row, of_rating = (0, RIDGE) if of_ratings else (RIDGE, 0)
    to_u, to_v = -of_row * u, -of_row * v
    for i, j, r in zip(RATINGS.users[part], RATINGS.items[part], RATINGS.values[part], strict=True):
        error = r - centre - u[i] @ v[j]
        to_u[i] += error * v[j] - of_rating * u[i]
        to_v[j] += error * u[i] - of_rating * v[j]
    return to_u, to_v


OPEN: list[dict[str, object]] = [{"regularized": "ratings"}, {"unit_users": True}, {"centred": True}]
EVERY = {key: value for each in OPEN for key, value in each.items()}
"""The choices that were added later, each alone and all together."""


@pytest.mark.parametrize(("neighbours", "delta"), [("unbounded", 5.0), ("bounded", 4.0)])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("keys", [{}, *OPEN, EVERY])
def test_published_is_algorithm_2_by_batches(
    neighbours: str, delta: float, momentum: float, keys: dict[str, object]
) -> None:
    """Momentum applies only to the first half, without noise. Less 3, no rating is further from 0 than 2."""
    epsilon, centre = 40.0, 3.0 if "centred" in keys else 0.0
    own = centre, "regularized" in keys
    delta = 2.0 if centre and neighbours == "unbounded" else delta
    u, v = initial_factors(RATINGS, InitialFactors(distribution="sphere", scale=1.0), D, STREAMS)
    assert np.linalg.norm(u, axis=1) == pytest.approx(1)
    order = STREAMS.generator("batches").permutation(N)
    middle = int(np.round(np.linspace(0, N, 17))[8])
    batches = [(7, order[:middle]), (15, order[middle:])]
    speed_u, speed_v = np.zeros_like(u), np.zeros_like(v)
    for _ in range(6):
        for _, part in batches:
            to_u, to_v = gradients(part, u, v, *own)
            speed_u = momentum * speed_u + GAMMA / len(part) * to_u
            speed_v = momentum * speed_v + GAMMA / len(part) * to_v
            u, v = u + speed_u, v + speed_v
            if "unit_users" in keys:
                u /= np.maximum(1, np.linalg.norm(u, axis=1, keepdims=True))
    for epoch in range(4):
        for place, part in batches:
            noise = unit_k_norm((9, D), STREAMS.noise(f"objective {epoch} {place}"))
            noise *= (1 + MARGIN) * delta / epsilon
            v = v + GAMMA / len(part) * (gradients(part, u, v, *own)[1] - noise)
    given = {"learning_rate": GAMMA, "batches": 2, "epochs": 6, "noisy_epochs": 4, "momentum": momentum}
    algorithm, (users, items) = of(neighbours=neighbours, **given, **keys), PAIRS
    expected = centre + np.sum(u[users] * v[items], axis=1)
    assert predicted(algorithm, epsilon) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("keys", OPEN)
def test_a_choice_that_was_added_later_leaves_the_names_of_results(keys: dict[str, object]) -> None:
    ((key, value),) = keys.items()
    default = PrivatePMF.model_fields[key].default
    around = {"algorithm": "personalized", "base": {"algorithm": "dp_pmf", key: default}}
    assert key not in {**of(**{key: default}).parameters(), **Personalized(**around).parameters()["base"]}
    assert of(**keys).parameters()[key] == value
    with pytest.raises(ValidationError, match="would ignore it"):
        of(mode="corrected", **keys)


@pytest.mark.parametrize("neighbours", [Neighbours.BOUNDED, Neighbours.UNBOUNDED])
def test_a_noisy_average_is_within_the_scale(neighbours: Neighbours) -> None:
    """At a small ε it would be far outside the interval. In some runs it is at either end."""
    epsilon, runs = np.array([0.01, 0.02]), [replace(STREAMS, run=run) for run in range(20)]
    averages = [
        private_global_average(RATINGS, epsilon, neighbours, curator=Curator(Ledger(epsilon), run))
        for run in runs
    ]
    assert [float(np.min(averages)), float(np.max(averages))] == [1, 5]


def test_each_draw_of_the_published_noise_is_a_measurement_of_its_own() -> None:
    """Four epochs of three batches, of two groups of models. A recorder does not change a fit."""
    algorithm, recorder = of(learning_rate=GAMMA, batches=3, epochs=2, noisy_epochs=4), Noting()
    epsilons = [5.0 * 1.3**k for k in range(19)]
    watched, ledger = fitted(algorithm, RATINGS, epsilons, STREAMS, recorder)
    plain, _ = fitted(algorithm, RATINGS, epsilons, STREAMS)
    assert watched.predict(*PAIRS) == pytest.approx(plain.predict(*PAIRS), abs=1e-3)
    assert recorder.seen.keys() == {("objective", draw, 0, lane) for draw in range(12) for lane in (0, 16)}
    assert [entry.step for entry in ledger.entries] == ["objective"]


def row(gram: np.ndarray, right: np.ndarray, limit: float) -> np.ndarray:
    """argmin within ‖p‖ ≤ limit of ½pᵀAp − right·p."""

    def solution(extra: float) -> np.ndarray:
        return np.asarray(np.linalg.solve(gram + extra * np.eye(D), right))

    if np.linalg.norm(solution(0)) <= limit:
        return solution(0)
    return solution(float(brentq(lambda x: np.linalg.norm(solution(x)) - limit, 0, 1e6, xtol=1e-12)))


@pytest.mark.parametrize("epsilon", [2.0, 60.0])
@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize("passes", [1, 2])
def test_corrected_is_its_docstring(passes: int, neighbours: str, epsilon: float) -> None:
    share, jacobian, clamp, radius = 0.05, 0.3, 1.8, 1.2
    given = {"jacobian_share": jacobian, "residual_clamp": clamp, "item_norm": radius}
    algorithm = of(neighbours=neighbours, mode="corrected", passes=passes, **given)
    unbounded = neighbours == "unbounded"
    part = share * epsilon / (2 if unbounded else 1)

    def noisy(clean: ArrayLike, unit: np.ndarray, scale: float) -> np.ndarray:
        scale *= 1 + MARGIN
        return on_grid(np.asarray(clean) + unit * scale, grid_of(np.array([scale])))

    total = (RATINGS.values.astype(float) - 3).sum()
    total = noisy(total, unit_laplace((), STREAMS.noise("global sum")), (2 if unbounded else 4) / part)
    count = noisy(N, unit_laplace((), STREAMS.noise("global count")), 1 / part) if unbounded else N
    average = 3 + total / count
    each = (1 - share) * epsilon / (2 * passes - 1)
    draws = {side: STREAMS.noise(f"objective, {side} factors") for side in ("user", "item")}
    targets, rated = np.zeros((12, 9)), np.zeros((12, 9), bool)
    rated[RATINGS.users, RATINGS.items] = True
    targets[RATINGS.users, RATINGS.items] = np.clip(RATINGS.values - average, -clamp, clamp)

    def solved(side: str, values: np.ndarray, known: np.ndarray, other: np.ndarray) -> np.ndarray:
        limit, bound = (radius, 1.0) if side == "item" else (1.0, radius)
        ridge = max(1.0, bound**2 / np.expm1(jacobian * each))
        if unbounded:
            scale = bound * (clamp + limit * bound) / (each - np.log1p(bound**2 / ridge))
        else:
            scale = bound * min(2 * clamp, 4) / each
        right = np.array([other[k].T @ x[k] for x, k in zip(values, known, strict=True)])
        unit = unit_k_norm((len(values), D), draws[side])
        right = right - unit * scale * (1 + MARGIN) if unbounded else -noisy(-right, unit, scale)
        grams = [other[k].T @ other[k] + ridge * np.eye(D) for k in known]
        found = np.array([row(gram, b, limit) for gram, b in zip(grams, right, strict=True)])
        found = np.rint(found * 2**10) / 2**10
        return np.asarray(found * np.minimum(1, limit / np.linalg.norm(found, axis=1, keepdims=True)))

    u = algorithm.public_rows(12, D, STREAMS.start("public user factors"))
    assert np.linalg.norm(u, axis=1) == pytest.approx(1)
    v = solved("item", targets.T, rated.T, u)
    if passes == 2:
        u = solved("user", targets, rated, v)
        v = solved("item", targets.T, rated.T, u)
    users, items = PAIRS
    assert predicted(algorithm, epsilon) == pytest.approx(
        average + np.sum(u[users] * v[items], axis=1), abs=1e-4
    )


def test_a_corrected_rating_costs_its_epsilon_whole() -> None:
    """At a large ε the smallest ridge costs less than its share, and the noise gets the rest."""
    _, ledger = fitted(of(mode="corrected"), RATINGS, [0.1, 1.0, 300.0], STREAMS)
    assert ledger.claimed == pytest.approx([0.1, 1.0, 300.0])
    assert ledger.provable == pytest.approx([0.1, 1.0, 300.0])
    determinants = next(entry for entry in ledger.entries if entry.step.startswith("determinants"))
    assert determinants.provable == pytest.approx([0.1 * 0.095, 0.1 * 0.95, np.log(2)])
