"""McSherry and Mironov 2009 against dense NumPy and figures by hand, and the promises of its options."""

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.algorithms.beyond.comparisons import AveragesAndOwnMean, OwnMeanFixedCovariance
from tests.algorithms.covariance_entries import KINDS, entry, every_pair, fit, predicted_densely
from tests.conftest import make_ratings

RATINGS = make_ratings(3, n_users=30, n_items=12, density=0.6)


@pytest.mark.parametrize("theta", [0.7, 20.0, np.inf])
@pytest.mark.parametrize("cleaning", [False, True])
@pytest.mark.parametrize("neighbours", ["unbounded", "user"])
@pytest.mark.parametrize(("mode", "noise"), [("published", "laplace"), ("corrected", "gaussian")])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_paper_on_dense_matrices(
    kind: str, mode: str, noise: str, neighbours: str, cleaning: bool, theta: float
) -> None:
    algorithm = entry(kind, mode=mode, noise=noise, neighbours=neighbours, cleaning=cleaning, k=4)
    found = fit(algorithm, RATINGS, theta)[0].predict(*every_pair(RATINGS))[:, 0].reshape(30, 12)
    wanted = predicted_densely(algorithm, RATINGS, theta)
    defined = np.isfinite(wanted)
    assert defined.mean() > 0.8
    assert found[defined] == pytest.approx(wanted[defined], abs=2e-3)


def test_alpha_clamps_in_corrected_mode_and_needs_less_noise() -> None:
    wide, narrow = (
        fit(entry("knn", mode="corrected", noise="laplace", alpha=alpha), RATINGS, 1.0)[0]
        for alpha in (None, 2.0)
    )
    scales = wide.released.of_covariance.scale / narrow.released.of_covariance.scale
    assert scales == pytest.approx(9.5 / 3.5)
    assert not np.array_equal(wide.effects.users, narrow.effects.users)


def test_published_mode_claims_what_the_paper_claims() -> None:
    """Laplace: the global and item averages prove what they claim; of the rest, half proves 9.5/11 of it and half
    1.5/3. Gaussian: theorem 3 by three measurements of δ/3 each, θ·√(2·ln(6/δ))."""
    laplace, gaussian = (
        fit(entry("knn", noise=each, delta=1e-5), RATINGS, 0.5)[1] for each in ("laplace", "gaussian")
    )
    assert laplace.claimed == pytest.approx([0.5])
    assert laplace.provable == pytest.approx([0.5 * (0.21 + 0.395 * (9.5 / 11) + 0.395 / 2)])
    assert gaussian.claimed == pytest.approx([0.5 * np.sqrt(2 * np.log(6 / 1e-5))])
    assert 0 < gaussian.provable[0] < gaussian.claimed[0]


def test_what_stands_beside_a_covariance_is_averages_and_a_constant() -> None:
    averages = fit(AveragesAndOwnMean(algorithm="mm_averages"), RATINGS, np.inf)[0].predict(
        *every_pair(RATINGS)
    )
    fixed = OwnMeanFixedCovariance(algorithm="mm_public", covariance=0.0)
    for other in (fixed, entry("knn", covariance_limits=(0, 0), shrinkage=1e12)):
        assert fit(other, RATINGS, np.inf)[0].predict(*every_pair(RATINGS)) == pytest.approx(
            averages, abs=1e-6
        )


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({"mode": "corrected", "neighbours": "user"}, "does not depend on α; remove `alpha`"),
        ({}, "published mode uses α .*; set `mode: corrected`"),
    ],
)
def test_alpha_is_refused_where_it_saves_nothing(keys: dict[str, str], fix: str) -> None:
    with pytest.raises(ValidationError, match=fix):
        entry("svd", alpha=4, **keys)


def test_what_effects_leaves_out_is_the_methods_own() -> None:
    effects = entry("knn", effects={"residual_clamp": 2}).effects
    assert (effects.beta_m, effects.beta_u, effects.residual_clamp) == (15.0, 20.0, 2.0)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_delta_is_no_part_of_a_pure_result(noise: str) -> None:
    one, other = (entry("knn", noise=noise, delta=delta).parameters() for delta in (1e-6, 1e-8))
    assert (one == other) == (noise == "laplace")
