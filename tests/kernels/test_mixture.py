"""Least squares weighted by a mixture, over lanes, against NumPy in float64."""

import numpy as np
import pytest

from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.kernels.factors import FactorModel, Side, UserFactors, factor_model, move_factors, set_effects
from dpmf_cli.kernels.mixture import (
    Mixture,
    SideMessages,
    by_item,
    by_user,
    mixture_sums,
    residual_variances,
    solve_mixture,
)
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)
MESSAGES: dict[Side, SideMessages] = {"users": by_user(RATINGS), "items": by_item(RATINGS)}
SIDES: tuple[Side, Side] = ("users", "items")
LANES, FACTORS, RIDGE = 3, 2, 0.07
MIXTURES = {
    "one component": Mixture(np.ones((1, LANES)), np.array([[0.02, 1 / 12, 3.0]])),
    "three components": Mixture(
        np.array([[0.2, 0.5, 1 / 3], [0.3, 0.5, 1 / 3], [0.5, 0.0, 1 / 3]]),
        np.array([[0.01, 0.02, 0.3], [0.1, 0.5, 0.3], [1.0, 2.0, 0.3]]),
    ),
}


def start() -> tuple[FactorModel, np.ndarray, np.ndarray, np.ndarray]:
    """A model, the same factors as arrays, and values (n, LANES)."""
    rng = np.random.default_rng(1)
    p, q = rng.uniform(0, 1, (15, FACTORS)), rng.uniform(0, 1, (11, FACTORS))
    model = factor_model(p, q, np.zeros((15, LANES)), np.zeros((11, LANES)))
    return model, p, q, rng.uniform(0, 1, (len(RATINGS), LANES)).astype(np.float32)


def solve(
    model: FactorModel,
    side: Side,
    values: np.ndarray,
    mixture: Mixture,
    active: np.ndarray,
    ridge: float = RIDGE,
) -> None:
    messages = LaneValues.of_grid(values)
    solve_mixture(model, MESSAGES[side], messages, mixture, regularization=ridge, active=active)


def posterior(errors: np.ndarray, mixture: Mixture, lane: int) -> np.ndarray:
    """(K, n) equation 10."""
    variances = mixture.variances[:, lane, None]
    heights = mixture.proportions[:, lane, None] * np.exp(-(errors**2) / (2 * variances)) / np.sqrt(variances)
    return np.asarray(heights / heights.sum(axis=0))


def weights(errors: np.ndarray, mixture: Mixture, lane: int) -> np.ndarray:
    return np.asarray(
        (posterior(errors, mixture, lane) / (12 * mixture.variances[:, lane, None])).sum(axis=0)
    )


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", MIXTURES)
def test_each_row_minimises_its_weighted_ridge_regression(kind: str, side: Side) -> None:
    model, p, q, values = start()
    mixture, active = MIXTURES[kind], np.array([True, True, False])
    solve(model, side, values, mixture, active)
    found = model.groups[0].rows(side)
    if side == "users":
        own, other, rows, others = p, q, RATINGS.users, RATINGS.items
    else:
        own, other, rows, others = q, p, RATINGS.items, RATINGS.users
    for lane in range(LANES):
        for row in range(len(own)):
            mine = rows == row
            factors, targets = other[others[mine]], values[mine, lane].astype(float)
            weight = weights(targets - factors @ own[row], mixture, lane)
            gram = (factors.T * weight) @ factors + RIDGE * mine.sum() * np.eye(FACTORS)
            expected = np.linalg.solve(gram, (factors.T * weight) @ targets) if active[lane] else own[row]
            assert found[row, :, lane] == pytest.approx(expected, abs=2e-4)


def test_sums_of_the_mixture() -> None:
    model, p, q, values = start()
    mixture, everything = MIXTURES["three components"], np.ones(LANES, np.bool_)
    counts, squares = mixture_sums(model, MESSAGES["users"], LaneValues.of_grid(values), mixture, everything)
    for lane in range(LANES):
        errors = values[:, lane] - (p[RATINGS.users] * q[RATINGS.items]).sum(axis=1)
        gamma = posterior(errors, mixture, lane)
        assert counts[:, lane] == pytest.approx(gamma.sum(axis=1), rel=1e-4)
        assert squares[:, lane] == pytest.approx((gamma * errors**2).sum(axis=1), rel=1e-4)


def test_a_row_without_ratings_stays() -> None:
    model, p, _, values = start()
    nobody = SideMessages("users", MESSAGES["users"].rows._replace(starts=np.zeros(16, np.int64)))
    solve_mixture(
        model,
        nobody,
        LaneValues.of_grid(values),
        MIXTURES["one component"],
        regularization=RIDGE,
        active=np.ones(LANES, np.bool_),
    )
    assert model.groups[0].rows("users")[..., 0] == pytest.approx(p, abs=1e-6)


def test_factors_that_a_ridge_removes_end_at_zero() -> None:
    """Numbers below the smallest normal number would make every later sweep a hundred times slower."""
    model, _, _, values = start()
    (group,) = model.groups
    for _ in range(12):
        for side in SIDES:
            solve(model, side, values, MIXTURES["one component"], np.ones(LANES, np.bool_), ridge=1e3)
            for factors in (group.users, group.items):
                assert (np.abs(factors[factors != 0]) >= 0.99e-12).all()
    assert not group.users.any()


def grid_of(count: int) -> tuple[FactorModel, np.ndarray, Mixture]:
    """Models, each with its own averages, values and mixture."""
    rng = np.random.default_rng(2)
    p, q = rng.uniform(0, 1, (15, FACTORS)), rng.uniform(0, 1, (11, FACTORS))
    effects = rng.normal(0, 0.3, (15, count)), rng.normal(0.5, 0.3, (11, count))
    variances = np.stack([rng.uniform(0.01, 0.1, count), rng.uniform(0.3, 1, count)])
    mixture = Mixture(np.full((2, count), 0.5), variances)
    return factor_model(p, q, *effects), rng.uniform(0, 1, (len(RATINGS), count)), mixture


def test_averages_are_taken_off_the_values_first() -> None:
    model, values, mixture = grid_of(20)
    effects = np.concatenate(
        [group.effects(RATINGS.users, RATINGS.items)[:, : group.lanes] for group in model.groups], axis=1
    )
    assert np.ptp(effects) > 0.5
    variances = residual_variances(model, RATINGS, LaneValues.of_grid(values))
    assert variances == pytest.approx((values - effects).var(axis=0), rel=1e-4)
    p, q = (model.groups[0].rows(side)[..., 0].astype(float) for side in SIDES)
    bare = factor_model(p, q, np.zeros((15, 20)), np.zeros((11, 20)))
    everything = np.ones(20, np.bool_)
    for side in SIDES:
        solve(model, side, values, mixture, everything)
        solve(bare, side, values - effects, mixture, everything)
        for one, other in zip(model.groups, bare.groups, strict=True):
            assert one.rows(side) == pytest.approx(other.rows(side), abs=1e-4)
    sums, expected = (
        mixture_sums(each, MESSAGES["users"], LaneValues.of_grid(of), mixture, everything)
        for each, of in ((model, values), (bare, values - effects))
    )
    assert np.array(sums) == pytest.approx(np.array(expected), rel=1e-4)


@pytest.mark.parametrize("stopped", [slice(0, 16), slice(16, 20), slice(3, 5)])
def test_a_model_that_is_not_active_stays_and_has_no_say(stopped: slice) -> None:
    """Whether all models of the group have stopped, or some."""
    (alone, values, mixture), (together, *_) = grid_of(20), grid_of(20)
    active = np.ones(20, np.bool_)
    active[stopped] = False
    before = np.concatenate([group.rows("users") for group in together.groups], axis=2)
    solve(together, "users", values, mixture, active)
    solve(alone, "users", values, mixture, np.ones(20, np.bool_))
    after, solved = (
        np.concatenate([group.rows("users") for group in each.groups], axis=2) for each in (together, alone)
    )
    assert np.array_equal(after[..., ~active], before[..., ~active])
    assert np.array_equal(after[..., active], solved[..., active])
    of_all, of_active = (
        mixture_sums(together, MESSAGES["users"], LaneValues.of_grid(values), mixture, each)
        for each in (np.ones(20, np.bool_), active)
    )
    assert np.array_equal(np.array(of_all)[..., active], np.array(of_active)[..., active])


def test_how_far_users_move_is_told_of_each_model_without_their_averages() -> None:
    model, *_ = grid_of(20)
    before, then = UserFactors.of(model), np.concatenate([g.rows("users") for g in model.groups], axis=2)
    moves = np.random.default_rng(5).normal(0, 1, then.shape) * np.linspace(0, 1, 20)
    move_factors(model, "users", slice(None), moves)
    set_effects(model, "users", np.full((15, 20), 9.0))
    now = np.concatenate([g.rows("users") for g in model.groups], axis=2).astype(np.float64)
    expected = np.sqrt(((now - then) ** 2).sum(axis=(0, 1)) / (now**2).sum(axis=(0, 1)))
    assert before.moved(model) == pytest.approx(expected, rel=1e-5)
    assert before.moved(model)[0] == 0
