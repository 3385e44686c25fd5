"""McSherry and Mironov 2009 against dense NumPy, by hand, and what its options promise."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.algorithms.effects import Effects
from dpmf_cli.algorithms.own_mean_predictors import AveragesAndOwnMean, OwnMeanFixedCovariance
from dpmf_cli.algorithms.private_covariance import CovarianceKNN, CovarianceSVD, PrivateCovariance
from dpmf_cli.algorithms.refitting import CANDIDATES, Factors, Refitting
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
from tests.conftest import make_ratings

STREAMS = Streams(1, "data", "mm", 0, 0)
KINDS = {"knn": CovarianceKNN, "svd": CovarianceSVD}
USER = Neighbours.USER


def entry(kind: str, **fields: Any) -> PrivateCovariance:
    return KINDS[kind].model_validate({"algorithm": f"mm_{kind}", **fields})


def fit(algorithm: Any, ratings: Ratings, theta: float) -> tuple[Any, Ledger]:
    ledger = Ledger([algorithm.epsilon_of(theta)], algorithm.mode, algorithm.spends_delta)
    return algorithm.fit(ratings, streams=STREAMS, ledger=ledger), ledger


def every_pair(ratings: Ratings) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    users, items = np.divmod(np.arange(ratings.n_users * ratings.n_items), ratings.n_items)
    return users.astype(np.int32), items.astype(np.int32)


def drawn(algorithm: PrivateCovariance, step: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """The unit noise of a step, as the mechanisms draw it."""
    rng = STREAMS.generator(step)
    if algorithm.noise.norm == 2:
        return rng.standard_normal(shape, dtype=dtype)
    size = int(np.prod(shape))
    exponential = rng.standard_exponential(size, dtype=dtype)
    signs = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8), count=size)
    return np.where(signs, -exponential, exponential).reshape(shape)


def predicted_densely(algorithm: PrivateCovariance, ratings: Ratings, theta: float) -> NDArray[np.float64]:
    """(n_users, n_items) section 4 line by line, on dense matrices, with the same draws."""
    n_users, n = ratings.n_users, ratings.n_items
    known, r = np.zeros((n_users, n)), np.zeros((n_users, n))
    known[ratings.users, ratings.items] = 1
    r[ratings.users, ratings.items] = ratings.values
    laplace, by_user = algorithm.noise.norm == 1, algorithm.neighbours is USER
    corrected, scale = algorithm.mode is Mode.CORRECTED, ratings.scale
    origin = scale.middle if corrected else 0.0
    largest = scale.width / 2 if corrected else scale.maximum
    count = known.sum(axis=1)
    w = 1 / (count if laplace else np.sqrt(count))
    item_weight = w if by_user else np.ones(n_users)
    unit = (1 / 100 if laplace else 1 / 10) if by_user else 1.0
    overall_weight = 1 / count if by_user else np.ones(n_users)

    def noise(
        step: str, shape: tuple[int, ...], share: float, parts: int, delta: float, dtype: Any = float
    ) -> Any:
        each = share * theta / (parts if laplace else np.sqrt(parts))
        return drawn(algorithm, step, shape, dtype) * (delta / each)

    g_sum = overall_weight @ (known * (r - origin)).sum(axis=1) + noise("global sum", (), 0.02, 4, largest)
    g_count = overall_weight @ count + noise("global count", (), 0.02, 4, 1)
    g = g_sum / max(g_count, 1)
    m_sum = item_weight @ (known * (r - origin)) + noise("item sums", (n,), 0.19, 2, largest)
    m_count = np.maximum(item_weight @ known + noise("item counts", (n,), 0.19, 2, 1), 0)
    beta_m, beta_p, bound = 15.0 * unit, 20.0, 1.0
    m_avg = np.clip(origin + (m_sum + beta_m * g) / (m_count + beta_m), scale.minimum, scale.maximum)
    x = known * (r - m_avg)
    rest = overall_weight @ x.sum(axis=1) + noise("global sum of residuals", (), 0.02, 4, scale.width)
    rest /= max(overall_weight @ count + noise("global count of residuals", (), 0.02, 4, 1), 1)
    mean = (x.sum(axis=1) + beta_p * np.clip(rest, -scale.width, scale.width)) / (count + beta_p)
    residuals = known * (x - mean[:, None])
    clamped = np.clip(residuals, -bound, bound)

    product_weight = w**2 if by_user else w
    upper = np.triu_indices(n)

    def symmetric(step: str, delta: float) -> NDArray[np.float64]:
        matrix = np.zeros((n, n))
        matrix[upper] = noise(step, (n * (n + 1) // 2,), 0.79, 2, delta, np.float32)
        return matrix + np.triu(matrix, 1).T

    if by_user:
        deltas = (1.0, 1.0)
    elif corrected:
        deltas = (9.5, 1.5) if laplace else (1.6504261832821159, np.sqrt(2.5 - np.sqrt(2)))
    else:
        deltas = (11.0, 3.0) if laplace else (1 + 2 * np.sqrt(2), np.sqrt(2))
    cov = clamped.T @ (product_weight[:, None] * clamped) + symmetric("covariance", deltas[0])
    wgt = np.maximum(known.T @ (product_weight[:, None] * known) + symmetric("weights", deltas[1]), 0)
    typical = (1 / 100 if laplace else 1 / 10) ** (2 if by_user else 1)
    cov_scale = deltas[0] / (0.79 * theta / (2 if laplace else np.sqrt(2)))
    on, off = np.eye(n, dtype=bool), np.triu(np.ones((n, n), bool), 1)
    variance = np.clip((cov[on] @ wgt[on]) / (wgt[on] @ wgt[on]), 0.25, 1.0)
    common = np.clip((cov[off] @ wgt[off]) / (wgt[off] @ wgt[off]), 0.02, 0.1)
    s = algorithm.shrinkage * typical
    s_on = s + algorithm.diagonal_noise_shrinkage * cov_scale
    s_off = s + algorithm.noise_shrinkage * cov_scale
    avg = np.where(on, (cov + s_on * variance) / (wgt + s_on), (cov + s_off * common) / (wgt + s_off))

    factor = np.sqrt(np.maximum(m_count / unit, 1))
    if algorithm.cleaning:
        avg = best_approximation(avg * np.outer(factor, factor), algorithm.k) / np.outer(factor, factor)
    rest_of = by_neighbours if isinstance(algorithm, CovarianceKNN) else by_subspace
    return np.asarray(m_avg + mean[:, None] + rest_of(algorithm, avg, wgt, known, residuals))


def best_approximation(matrix: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    kept = np.argsort(-np.abs(values))[:rank]
    return np.asarray((vectors[:, kept] * values[kept]) @ vectors[:, kept].T)


def by_neighbours(algorithm: Any, avg: Any, wgt: Any, known: Any, residuals: Any) -> NDArray[np.float64]:
    out = np.zeros_like(known)
    for user, item in np.ndindex(*known.shape):
        others = [j for j in np.flatnonzero(known[user]) if j != item]
        ranked = sorted(others, key=lambda j: -wgt[item, j])
        of, cut = ranked[: algorithm.k], wgt[item, ranked[algorithm.k - 1 : algorithm.k + 1]]
        if len(cut) == 2 and cut[0] > 0 and cut[0] - cut[1] < 1e-5:  # rounding decides which of two is nearer
            out[user, item] = np.nan
            continue
        system = avg[np.ix_(of, of)] + algorithm.ridge * np.eye(len(of))
        if np.linalg.eigvalsh(system)[0] < 0.15:  # else a neighbour is left out, which test_neighbours covers
            out[user, item] = np.nan
            continue
        out[user, item] = np.linalg.solve(system, avg[of, item]) @ residuals[user, of]
    return out


def by_subspace(algorithm: Any, avg: Any, wgt: Any, known: Any, residuals: Any) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(avg)
    kept = np.argsort(-values)[: algorithm.k]
    kept = kept[values[kept] > 1e-9]
    ridge = np.full(len(kept), algorithm.ridge) if algorithm.flat_ridge else algorithm.ridge / values[kept]
    out = np.zeros_like(known)
    for user in range(len(known)):
        of = np.flatnonzero(known[user])
        v = vectors[np.ix_(of, kept)]
        out[user] = vectors[:, kept] @ np.linalg.solve(v.T @ v + np.diag(ridge), v.T @ residuals[user, of])
    return out


@pytest.mark.parametrize("theta", [0.7, 20.0, np.inf])
@pytest.mark.parametrize("cleaning", [False, True])
@pytest.mark.parametrize("neighbours", ["unbounded", "user"])
@pytest.mark.parametrize(("mode", "noise"), [("published", "laplace"), ("corrected", "gaussian")])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_paper_on_dense_matrices(
    kind: str, mode: str, noise: str, neighbours: str, cleaning: bool, theta: float
) -> None:
    ratings = make_ratings(3, n_users=30, n_items=12, density=0.6)
    algorithm = entry(kind, mode=mode, noise=noise, neighbours=neighbours, cleaning=cleaning, k=4)
    found = fit(algorithm, ratings, theta)[0].predict(*every_pair(ratings))[:, 0].reshape(30, 12)
    wanted = predicted_densely(algorithm, ratings, theta)
    defined = np.isfinite(wanted)
    assert defined.mean() > 0.8
    assert found[defined] == pytest.approx(wanted[defined], abs=2e-3)


def test_three_users_and_three_items_by_hand() -> None:
    """No shrinkage and no stabilisation to speak of: MAvg is the items' mean, r̄_u nearly 0, Wgt's rows are by 1/√c_u.

    Users 0 and 1 rate items 0 and 1 as (4, 4) and (2, 2), user 2 rates item 0 as 4 and item 2 as 3. Item means 10/3,
    3, 3; with β_p = 10⁹ own means are G = 0, so residuals are (2/3, 1), (−4/3 → −1, −1), (2/3, 0). All w_u are 1/√2.
    Cov_00 = (4/9 + 1 + 4/9)/√2 over Wgt_00 = 3/√2: 17/27; Cov_01 = (2/3 + 1)/√2 over 2/√2: 5/6. The only neighbour
    that users 0 and 2 have for item 1 is item 0 (user 2's other item shares no rater with it and has Cov 0): with
    ridge 10/27 its weight is (5/6)/(17/27 + 10/27) = 5/6. User 2: MAvg_1 + 5/6·2/3 = 3 + 5/9.
    """
    ratings = Ratings(
        np.array([0, 0, 1, 1, 2, 2], np.int32),
        np.array([0, 1, 0, 1, 0, 2], np.int32),
        np.array([4, 4, 2, 2, 4, 3], np.float32),
        3,
        3,
        Scale(1, 5, 1),
    )
    algorithm = entry(
        "knn",
        cleaning=False,
        k=1,
        ridge=10 / 27,
        shrinkage=1e-6,
        effects={"beta_m": 0, "beta_u": 1e9, "residual_clamp": 1},
    )
    model, _ = fit(algorithm, ratings, np.inf)
    found = model.predict(np.array([2, 0], np.int32), np.array([1, 2], np.int32))[:, 0]
    # Item 2's only rater is user 2, so that item 0 is the nearest that user 0 has: Cov_02 = 0 there.
    assert found == pytest.approx([3 + 5 / 9, 3.0], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_cleaning_at_full_rank_is_the_identity(kind: str) -> None:
    ratings = make_ratings(4, n_users=40, n_items=12, density=0.5)
    one, other = (
        fit(entry(kind, k=12, cleaning=cleaning, mode="corrected"), ratings, 30.0)[0].predict(
            *every_pair(ratings)
        )
        for cleaning in (True, False)
    )
    assert one == pytest.approx(other, abs=1e-3)


def test_knn_over_all_items_and_the_subspace_of_all_directions_are_one_predictor() -> None:
    """Ridge 1/λ in every direction is kriging with the covariance itself, where that has no negative direction.

    They differ on what a user has rated already: kNN leaves the item itself out.
    """
    ratings = make_ratings(5, n_users=80, n_items=8, density=0.6)
    shared = {"k": 8, "cleaning": False, "ridge": 0.4, "shrinkage": 2000.0}
    users, items = every_pair(ratings)
    knn, svd = (fit(entry(kind, **shared), ratings, np.inf)[0].predict(users, items)[:, 0] for kind in KINDS)
    rated = set(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    asked = np.array([pair not in rated for pair in zip(users.tolist(), items.tolist(), strict=True)])
    assert knn[asked] == pytest.approx(svd[asked], abs=1e-4)


def test_alpha_clamps_in_corrected_mode_and_needs_less_noise() -> None:
    ratings = make_ratings(6, n_users=40, n_items=12)
    wide, narrow = (
        fit(entry("knn", mode="corrected", noise="laplace", alpha=alpha), ratings, 1.0)[0]
        for alpha in (None, 2.0)
    )
    assert wide.covariance_noise.scale[0] / narrow.covariance_noise.scale[0] == pytest.approx(9.5 / 3.5)
    assert not np.array_equal(wide.effects.users, narrow.effects.users)
    with pytest.raises(ValidationError, match="published mode takes α"):
        entry("knn", alpha=2.0)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_published_mode_claims_what_the_paper_claims(noise: str) -> None:
    ratings = make_ratings(7, n_users=30, n_items=10)
    algorithm = entry("knn", noise=noise, delta=1e-5)
    _, ledger = fit(algorithm, ratings, 0.5)
    if noise == "laplace":
        assert ledger.claimed == pytest.approx([0.5])
        # The global and item averages prove what they claim; half of the rest is 9.5/11 and half 1.5/3 of it.
        assert ledger.provable == pytest.approx([0.5 * (0.21 + 0.395 * (9.5 / 11) + 0.395 / 2)])
    else:
        # Theorem 3 by three measurements of δ/3 each: θ·√(2·ln(6/δ)).
        assert ledger.claimed == pytest.approx([0.5 * np.sqrt(2 * np.log(6 / 1e-5))])
        assert 0 < ledger.provable[0] < ledger.claimed[0]


def test_what_stands_beside_a_covariance_is_averages_and_a_constant() -> None:
    ratings = make_ratings(8, n_users=30, n_items=10)
    averages, _ = fit(AveragesAndOwnMean(algorithm="mm_averages"), ratings, np.inf)
    fixed, _ = fit(OwnMeanFixedCovariance(algorithm="mm_public", covariance=0.0), ratings, np.inf)
    assert fixed.predict(*every_pair(ratings)) == pytest.approx(averages.predict(*every_pair(ratings)))
    model, _ = fit(entry("knn", covariance_limits=(0, 0), shrinkage=1e12), ratings, np.inf)
    assert model.predict(*every_pair(ratings)) == pytest.approx(
        averages.predict(*every_pair(ratings)), abs=1e-6
    )


def refitting(mode: Mode, epsilon: float) -> Refitting:
    ratings = make_ratings(9, n_users=60, n_items=30)
    nothing = np.zeros(1)
    return Refitting.of(
        ratings,
        0.3,
        lambda seen: Effects(nothing, np.zeros((30, 1)), np.zeros((60, 1))),
        fraction=0.5,
        neighbours=Neighbours.UNBOUNDED,
        mode=mode,
        streams=STREAMS,
        ledger=Ledger([epsilon], mode),
    )


def test_refitting_chooses_the_candidate_that_errs_least() -> None:
    chooser = refitting(Mode.PUBLISHED, 1.0)
    best = Factors(4.0, 1 / 3)
    assert best in CANDIDATES
    assert len(chooser.asked) + len(chooser.seen) == len(make_ratings(9, n_users=60, n_items=30))

    def predict(factors: Factors) -> NDArray[np.float64]:
        return chooser.asked.values + (0.0 if factors == best else 0.5)

    assert chooser.choose(0, predict) == best


def test_the_noise_of_a_corrected_choice_is_that_of_the_exponential_mechanism() -> None:
    chooser = refitting(Mode.CORRECTED, 2.0)
    assert chooser.noise is not None
    # 2Δ/ε with Δ = (Δr/2)² = 4 and half of ε = 2.
    assert chooser.noise.scale == pytest.approx([8.0])
    assert chooser.noise.unit.shape == (len(CANDIDATES),)


def test_a_users_loss_is_at_most_the_sensitivity_of_the_choice() -> None:
    """Whatever one user's ratings are: the loss is a sum over users of terms within [0, (Δr/2)²]."""
    chooser = refitting(Mode.PUBLISHED, 1.0)
    users = len(np.unique(chooser.asked.users))
    assert chooser._loss(chooser.asked.values + 100.0) == pytest.approx(users * 4.0)
    assert chooser._loss(chooser.asked.values + 1.0) == pytest.approx(users * 1.0)
    assert chooser._loss(chooser.asked.values) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_chosen_factors_are_what_predictions_are_made_with(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings = make_ratings(10, n_users=40, n_items=15)
    default = entry(kind, k=5)
    by_hand = {
        "ridge": 3 * default.ridge,
        "shrinkage": 4 * default.shrinkage,
        "noise_shrinkage": 4 * default.noise_shrinkage,
        "diagonal_noise_shrinkage": 4 * default.diagonal_noise_shrinkage,
    }
    fixed = fit(entry(kind, k=5, **by_hand), ratings, 5.0)[0].predict(*every_pair(ratings))
    monkeypatch.setattr(Refitting, "choose", lambda self, lane, predict: Factors(4.0, 3.0))
    refitted = fit(entry(kind, k=5, tuning="refitted"), ratings, 5.0)[0].predict(*every_pair(ratings))
    assert refitted == pytest.approx(fixed, abs=1e-9)
    assert not np.allclose(refitted, fit(default, ratings, 5.0)[0].predict(*every_pair(ratings)))


def test_validation_ratings_are_predicted_from_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither as neighbours nor in their user's mean: what predicts them does not know them."""
    ratings = make_ratings(11, n_users=40, n_items=15)
    algorithm = entry("knn", tuning="refitted", validation=0.3, k=5, effects={"beta_u": 0})
    model, _ = fit(algorithm, ratings, np.inf)
    asked, seen = model.refitting.asked, model.refitting.seen
    assert 0 < len(asked) < len(seen) < len(ratings) == len(asked) + len(seen)
    sums = np.bincount(seen.users, seen.values - model.effects.items[seen.items, 0], 40)
    has_some = seen.user_counts > 0
    found = model.refitting.effects.users[has_some, 0]
    assert found == pytest.approx(sums[has_some] / seen.user_counts[has_some])

    used = []
    ordinary = CovarianceKNN.predictor

    def spied(self: Any, train: Ratings, users: Any, items: Any) -> Any:
        used.append((len(train), len(users)))
        return ordinary(self, train, users, items)

    monkeypatch.setattr(CovarianceKNN, "predictor", spied)
    model.predict(*every_pair(ratings))
    assert sorted(used) == [(len(seen), len(asked)), (len(ratings), 40 * 15)]


def test_alpha_is_refused_where_it_saves_nothing() -> None:
    with pytest.raises(ValidationError, match="remove `alpha`"):
        entry("knn", mode="corrected", neighbours="user", alpha=4)
    with pytest.raises(ValidationError, match="mode: corrected"):
        entry("svd", alpha=4)


def test_what_effects_leaves_out_is_the_methods_own() -> None:
    assert entry("knn", effects={"residual_clamp": 2}).effects.model_dump() == {
        "beta_m": 15.0,
        "beta_u": 20.0,
        "user_clamp": 2.0,
        "residual_clamp": 2.0,
    }


def test_delta_is_no_part_of_a_pure_result() -> None:
    pure, other = (entry("knn", noise="laplace", delta=delta).parameters() for delta in (1e-6, 1e-8))
    assert pure == other
    gaussian, other = (entry("knn", delta=delta).parameters() for delta in (1e-6, 1e-8))
    assert gaussian != other
