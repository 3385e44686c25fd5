"""Sensitivities of normal equations: searches over users and factors, through the kernel that sums."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf_cli.algorithms.field.dpals import PrivateAlternatingLeastSquares
from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.normal_equations import isometric, item_equations, shorten_users
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.neighbours import Neighbours
from tests.conftest import make_ratings

Array = NDArray[np.float64]

RATINGS = make_ratings(2, n_users=20, n_items=12)
D, K = 3, 5
USER = int(np.argmax(RATINGS.user_counts))
DRAWS = np.random.default_rng(0).random(len(RATINGS))
NORM, CLIP = 0.7, 1.3


def entry(mode: str, **parameters: Any) -> PrivateAlternatingLeastSquares:
    clip = {"rating_clip": CLIP} if mode == "corrected" else {}
    common = {"factors": D, "most_ratings": K, "user_norm": NORM, "effects": {"beta_u": 0}}
    return PrivateAlternatingLeastSquares.model_validate(
        {"algorithm": "dpals", "mode": mode, **common, **clip, **parameters}
    )


def model_of(
    of: PrivateAlternatingLeastSquares, ratings: Ratings, centre: float, users: Array
) -> FactorModel:
    """Any factors within the length limit, because what items learn does not depend on how p_u was found."""
    means = of.own_means(ratings, np.array([centre]))
    model = factor_model(users, np.zeros((12, D)), means, np.full((12, 1), centre))
    shorten_users(model, NORM)
    return model


def moved(
    of: PrivateAlternatingLeastSquares, ratings: Ratings, centre: float, users: Array, counts: Array
) -> dict[str, float]:
    """How far a user moves each of the measurements."""
    kept = at_most(ratings, K, DRAWS)
    sides = []
    for leave in (False, True):
        some, of_kept = (each.select(each.users != USER) if leave else each for each in (ratings, kept))
        model = model_of(of, some, centre, users)
        grams, right = item_equations(model, of.parts(some, of_kept, counts), slice(None))
        middle = of_kept.values.astype(float) - of_kept.scale.middle
        sides.append(
            {
                "grams": isometric(grams, D),
                "sides": right,
                "counts": of_kept.item_counts,
                "total": middle.sum(),
                "number": len(of_kept),
            }
        )
    one, other = sides
    return {name: float(np.linalg.norm(np.ravel(one[name] - other[name]))) for name in one}


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["uniform", "tail", "weighted"]),
    st.sampled_from(["overall", "users"]),
    st.sampled_from([1e-3, 1.0, 1e9]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_a_user_moves_no_measurement_by_more_than_its_bound(
    seed: int, selection: str, centring: str, length: float, exponent: float
) -> None:
    """For any ratings of the user, any length of the factors, and any released counts and centre."""
    rng = np.random.default_rng(seed)
    extreme = RATINGS.scale.minimum + RATINGS.scale.width * rng.integers(0, 2, len(RATINGS))
    ratings = replace(RATINGS, values=extreme.astype(np.float32))
    users, counts = rng.normal(0, length, (20, D)), rng.uniform(1, 30, (12, 1)) ** 3
    centre = float(rng.choice([1, 3, 5]))
    for mode in ("published", "corrected"):
        of = entry(mode, selection=selection, centring=centring, weight_exponent=exponent)
        found = moved(of, ratings, centre, users, counts)
        true, *_ = of.side_moves(ratings.scale)
        bounds = {
            "grams": sensitivity.item_grams(K, NORM),
            "sides": true,
            "counts": sensitivity.sampled_counts(K),
            "total": sensitivity.sampled_total(K, 2.0),
            "number": sensitivity.sampled_total(K, 1.0),
        }
        for name, bound in bounds.items():
            assert bound.neighbours is Neighbours.USER
            assert bound.norm == 2
            assert found[name] <= bound.value * (1 + MARGIN / 100), name


def everything_at(value: float) -> Ratings:
    return replace(RATINGS, values=np.full_like(RATINGS.values, value))


@pytest.mark.parametrize("direction", [[1, 0, 0], [0.6, 0.8, 0], [1, 1, 1]])
@pytest.mark.parametrize("selection", ["uniform", "tail", "weighted"])
def test_every_bound_is_attained(selection: str, direction: list[float]) -> None:
    """By a user of k or more ratings, at the end of the scale that is far from the centre, in any direction."""
    assert RATINGS.user_counts[USER] >= K
    users = np.tile(np.array(direction, float) * 1e3, (20, 1))
    counts = np.linspace(1, 50, 12)[:, None]
    for mode, reached in (("corrected", CLIP), ("published", 4.0)):
        of = entry(mode, selection=selection, centring="overall")
        found = moved(of, everything_at(5.0), 1.0, users, counts)
        assert found["grams"] == pytest.approx(math.sqrt(K) * NORM**2, rel=1e-5)
        assert found["sides"] == pytest.approx(math.sqrt(K) * NORM * reached, rel=1e-5)
        assert found["counts"] == pytest.approx(math.sqrt(K))
        assert (found["total"], found["number"]) == (2 * K, K)


def test_the_public_code_assumes_less_than_a_user_moves() -> None:
    of, users = entry("published", centring="overall"), np.tile([1e3, 0, 0], (20, 1))
    found = moved(of, everything_at(5.0), 1.0, users, np.ones((12, 1)))
    true, assumed = of.side_moves(RATINGS.scale)
    assert found["sides"] == pytest.approx(4 * assumed.value, rel=1e-5)
    assert true.value == pytest.approx(4 * assumed.value)
    (total, total_as), (number, number_as) = of.centre_moves(RATINGS.scale)
    assert total_as is not None
    assert number_as is not None
    assert total.value == pytest.approx(math.sqrt(K) * total_as.value)
    assert number.value == K * number_as.value
