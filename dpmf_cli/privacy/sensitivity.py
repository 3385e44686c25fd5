"""Sensitivities: how far a measurement can move between neighbours, each with its derivation.

Every noisy step names one of these functions. tests/privacy/test_sensitivity.py searches, through all fits, for
neighbours that exceed them. Where only one coordinate of a vector moves, its L1 and L2 moves are the same number,
and `norm` says which one the mechanism needs. Item-item covariances are in `covariance_sensitivity`.

*Sums of clamped residuals.* A residual x = r − r̂ is a rating minus the prediction of a model whose numbers are all
released or public, so that r̂ is the same number on both sides. The residual is clamped to [−B, B] and measured in
units of B, so that B may differ with ε. Sums are in double precision, and x/B is within [−1, 1] to the last bit.

*The items' normal equations and earlier measurements*, Chien et al. 2021, section 3. User u's rating of item i has
the weight w_ui ≥ 0, with Σ_i w_ui² ≤ k. Either at most k ratings of a user have weight 1 each, or the weights of a
user have an L2 norm of √k at most. A user's contribution is a function of that user's ratings, of random choices
that do not depend on other users' ratings, and of released numbers. So one user more or less moves a sum by that
contribution.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.ratings import Scale
from dpmf_cli.privacy.accounting import moves
from dpmf_cli.privacy.neighbours import RECORDS_APART, Neighbours


@dataclass(frozen=True)
class Sensitivity:
    """The largest move of a measurement between `neighbours`.

    `norm` 1 or 2 means the L1 or L2 norm; `norm` inf means the move of each number alone. `source` names the paper
    and its theorem or equation. `ordered_pairs` is set if the sensitivity is stated for a complete symmetric matrix
    of which only the upper triangle is measured. Elements off the diagonal then count twice. `calibrated_to` is what
    the noise is scaled to, if a paper assumes another sensitivity than the true one.
    """

    value: float
    norm: float
    neighbours: Neighbours
    source: str
    ordered_pairs: bool = False
    calibrated_to: "Sensitivity | None" = None

    @property
    def of_noise(self) -> "Sensitivity":
        """The sensitivity that the noise is scaled to."""
        return self.calibrated_to or self


def rating_sums(scale: Scale, norm: int = 1) -> Sensitivity:
    """Sums of ratings over disjoint groups (all ratings; by item; by user), taken as one vector. Bounded.

    Changing the value of rating (u, i) moves one sum, that of the group which holds (u, i), by
    |r − r'| ≤ r_max − r_min. Friedman et al. 2016, section 4.1 and algorithm 1, lines 1 and 4.
    """
    return Sensitivity(scale.width, norm, Neighbours.BOUNDED, "Friedman et al. 2016, algorithm 1: Δr")


def residual_sums(scale: Scale) -> Sensitivity:
    """Sums over disjoint groups of ratings minus *released* item averages. Bounded.

    The item averages are outputs of an earlier step, hence the same numbers on both sides. The residual of rating
    (u, i) moves as far as the rating does, by at most r_max − r_min. Friedman et al. 2016, algorithm 2.
    """
    return Sensitivity(scale.width, 1, Neighbours.BOUNDED, "Friedman et al. 2016, algorithm 2: Δr")


def clamped_residuals(clamp: float, scale: Scale) -> Sensitivity:
    """All residuals r − IAvg(i) − UAvg(u) clamped to [−B, B], as one vector, averages released. Bounded.

    One coordinate moves: by at most 2B, because it stays in [−B, B], and by at most r_max − r_min, because clamping
    is 1-Lipschitz. Friedman et al. 2016, section 4.2 and algorithm 3, state 2B, which is the smaller of the two
    wherever 2B ≤ Δr (all their data sets).
    """
    value = min(2 * clamp, scale.width)
    return Sensitivity(value, 1, Neighbours.BOUNDED, "Friedman et al. 2016, algorithm 3: Δr = 2B")


def raw_rating_sums_unbounded(scale: Scale, norm: int = 1) -> Sensitivity:
    """Sums of raw ratings over disjoint groups. Unbounded.

    Adding rating (u, i) moves one sum by |r| ≤ max(|r_min|, |r_max|). Wherever r_min > 0 this is more than the
    r_max − r_min that Friedman et al. 2016 take over from the bounded case (section 4.1).
    """
    value = max(abs(scale.minimum), abs(scale.maximum))
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, "|r| ≤ max(|r_min|, |r_max|)")


def published_rating_sums_unbounded(scale: Scale) -> Sensitivity:
    """The sensitivity that Friedman et al. 2016, section 4.1, assume for unbounded sums: Δr = r_max − r_min."""
    return Sensitivity(scale.width, 1, Neighbours.UNBOUNDED, "Friedman et al. 2016, section 4.1: Δr")


def centred_rating_sums_unbounded(scale: Scale, norm: int = 1) -> Sensitivity:
    """Sums of ratings minus the middle of the scale, over disjoint groups. Unbounded.

    Adding rating (u, i) moves one sum by |r − (r_min + r_max)/2| ≤ (r_max − r_min)/2.
    """
    return Sensitivity(scale.width / 2, norm, Neighbours.UNBOUNDED, "|r − middle| ≤ Δr/2")


def rating_counts_unbounded(norm: int = 1) -> Sensitivity:
    """Numbers of ratings in disjoint groups. Unbounded: adding a rating moves one count by 1."""
    return Sensitivity(1.0, norm, Neighbours.UNBOUNDED, "Friedman et al. 2016, section 3.3: count")


def residual_sums_unbounded(scale: Scale, norm: int = 1) -> Sensitivity:
    """Sums over disjoint groups of ratings minus *released* item averages. Unbounded.

    The averages are the same released numbers on both sides. Because they are clamped to the scale, the added rating
    moves one sum by |r − IAvg(i)| ≤ r_max − r_min at most.
    """
    return Sensitivity(scale.width, norm, Neighbours.UNBOUNDED, "|r − IAvg(i)| ≤ Δr")


def residual_cells_unbounded(clamp: float) -> Sensitivity:
    """The complete users × items matrix of clamped residuals, 0 where there is no rating. Unbounded.

    Adding a rating moves one cell from 0 to a value in [−B, B]. Friedman et al. 2016, section 4.2.
    """
    return Sensitivity(clamp, 1, Neighbours.UNBOUNDED, "Friedman et al. 2016, section 4.2: B")


def sgd_pass_unbounded(
    learning_rate: float, regularization: float, error_bound: float, own_bound: float, other_bound: float
) -> Sensitivity:
    """The sensitivity that Friedman et al. 2016, equations 10 and 11, assume for one side's vectors after a pass.

    s = γ(e_max·‖other‖_max + λ·‖own‖_max) is the move of *one* update. It is no bound on a pass: the added rating
    changes every later update of its user and item, and through them the updates of other users and items.
    """
    value = learning_rate * (error_bound * other_bound + regularization * own_bound)
    return Sensitivity(value, 2, Neighbours.UNBOUNDED, "Friedman et al. 2016, equations 10, 11: one update")


def no_bound_known(
    norm: int, neighbours: Neighbours, reason: str, calibrated_to: Sensitivity | None = None
) -> Sensitivity:
    """The sensitivity of a measurement for which no finite bound is known: inf."""
    return Sensitivity(math.inf, norm, neighbours, reason, calibrated_to=calibrated_to)


def least_squares_row(other_bound: float, clamp: float, scale: Scale) -> Sensitivity:
    """n·λ times the move of one row of ALS, as the sum of the rows' L2 moves. Bounded.

    p = A⁻¹Σ r̃·q with A = Σ q·qᵀ + n·λ·I. Because A does not depend on the value of a rating, the value moves p by
    ‖A⁻¹q‖·|r̃ − r̃′| ≤ q_max·Δr/(n·λ), and moves no other row. Friedman et al. 2016, theorem 6; Δr as in
    `clamped_residuals`. The noise of a row with n ratings is scaled by 1/(n·λ), and n is public.
    """
    value = other_bound * clamped_residuals(clamp, scale).value
    source = "Friedman et al. 2016, theorem 6: q_max·Δr/(n·λ), times n·λ"
    return Sensitivity(value, 2, Neighbours.BOUNDED, source)


def least_squares_right_hand_side(other_bound: float, clamp: float, scale: Scale) -> Sensitivity:
    """The vectors Σ r̃·q of one side's normal equations, as the sum of the rows' L2 moves. Bounded.

    The value of one rating moves one vector by |r̃ − r̃′|·‖q‖ ≤ Δr·q_max. Noise b/2 on the vector is objective
    perturbation: the minimiser of J(p) + b·p is A⁻¹(Σ r̃·q − b/2). The map b ↦ p is one-to-one and affine, with a
    slope that does not depend on values of ratings. So no Jacobian enters. Chaudhuri et al. 2011, section 3.3.
    """
    value = other_bound * clamped_residuals(clamp, scale).value
    return Sensitivity(value, 2, Neighbours.BOUNDED, "Chaudhuri et al. 2011, section 3.3: q_max·Δr")


def published_least_squares_row_unbounded(
    regularization: float, own_bound: float, other_bound: float, clamp: float
) -> Sensitivity:
    """n·λ times the sensitivity that Friedman et al. 2016, table 1, assume for one row of ALS. Unbounded.

    They have (2·q_max(B + q_max·p_max) + 2λ·p_max)/(2·n·λ). It is no bound, for two reasons: n itself is private, so
    the scale of the noise leaks it, and ‖p‖ ≤ p_max is used before anything enforces it.
    """
    value = other_bound * (clamp + own_bound * other_bound) + regularization * own_bound
    return Sensitivity(value, 2, Neighbours.UNBOUNDED, "Friedman et al. 2016, table 1, times n·λ")


def constrained_ridge_row_unbounded(
    ridge: float, own_bound: float, other_bound: float, clamp: float
) -> Sensitivity:
    """One row of ridge regression within a ball, as the L2 move of the one row that moves. Unbounded.

    p = argmin over ‖p‖ ≤ p_max of f(p) = Σ (r̃ − p·q)² + μ‖p‖², where μ is fixed and public. So f is 2μ-strongly
    convex. Adding a rating adds g(p) = (r̃ − p·q)², whose gradient on the ball is at most 2·q_max(B + p_max·q_max).
    The minimisers of f and f + g on a convex set are at most max‖∇g‖/(2μ) apart (Chaudhuri et al. 2011, lemma 7,
    which holds for a constrained minimum by its variational inequality).
    """
    value = other_bound * (clamp + own_bound * other_bound) / ridge
    return Sensitivity(value, 2, Neighbours.UNBOUNDED, "Chaudhuri et al. 2011, lemma 7, on a ball")


def clipped_gradients(clip: float, neighbours: Neighbours) -> Sensitivity:
    """All rows of both sides' batch gradients Σ e·q and Σ e·p, as the sum of the rows' L2 moves.

    One rating contributes e·q_i to row p_u and e·p_u to row q_i, clipped jointly so that ‖e·q_i‖ + ‖e·p_u‖ ≤ C. The
    pass before has released the factors. Unbounded: adding the rating moves the two rows by C at most, in sum.
    Bounded: changing its value changes e within [−c, c], where c = C/(‖q_i‖ + ‖p_u‖), so that the two rows move by 2C
    at most.
    """
    value = clip if neighbours is Neighbours.UNBOUNDED else 2 * clip
    return Sensitivity(value, 2, neighbours, "joint clipping to C")


def clipped_error_of_users(scale: Scale, neighbours: Neighbours) -> Sensitivity:
    """Σ_u (the mean of u's squared errors, each at most (Δr/2)²), for one predictor that is released.

    A user's predictions depend only on released numbers and on the user's own ratings. So if one user's ratings
    change, or one user comes or goes, only that user's term moves, within [0, (Δr/2)²].
    """
    return Sensitivity((scale.width / 2) ** 2, math.inf, neighbours, "one user's term is at most (Δr/2)²")


def published_objective(scale: Scale, neighbours: Neighbours, centre: float = 0.0) -> Sensitivity:
    """The sensitivity that Zhang et al. 2018 assume for DP-PMF: r_max (theorem 4); Δr for changed values (remark 7).

    If a public `centre` c is subtracted from ratings, r − c stands for r. So theorem 4 has max |r − c|, which is Δr/2
    for the middle of the scale. Remark 7 still has Δr, since |(r − c) − (r′ − c)| = |r − r′|.

    It bounds nothing that DP-PMF measures. U is fitted on the same ratings, but treated as a constant. The presence
    of a rating moves the gradient of its item by (r − c − u·v)u, not by (r − c)u, and by −λv too if λ enters once per
    rating. Where ‖u‖ ≤ 1 is enforced, that is at most max |r − c| + (1 + λ)‖v‖, and ‖v‖ has no bound. Presence also
    changes the density of V by a Jacobian (`hessian_unbounded`).
    """
    if neighbours is Neighbours.UNBOUNDED:
        largest = max(abs(scale.minimum - centre), abs(scale.maximum - centre))
        named = "max |r − c|" if centre else "r_max"
        return Sensitivity(largest, 2, neighbours, f"Zhang et al. 2018, theorem 4: {named}")
    return Sensitivity(scale.width, 2, neighbours, "Zhang et al. 2018, remark 7: Δr")


def moved_by_presence(of: Sensitivity, neighbours: Neighbours) -> Sensitivity:
    """The sensitivity between `neighbours` of a measurement with the unbounded sensitivity `of`.

    It is the same if one rating is added or removed, and twice that if the value of one rating changes. Dwork et al.
    2006, groups of two; Zhang et al. 2018, remark 7.
    """
    times = RECORDS_APART[neighbours]
    source = of.source if times == 1 else f"{of.source}; twice, for another value"
    of_noise = of.calibrated_to and moved_by_presence(of.calibrated_to, neighbours)
    moved = replace(of, value=times * of.value, calibrated_to=of_noise)
    return replace(moved, neighbours=neighbours, source=source)


def ridge_objective_unbounded(own_bound: float, other_bound: float, clamp: float) -> Sensitivity:
    """The noise η of p = argmin over ‖p‖ ≤ R of ½Σ(r̃ − p·q)² + ½w‖p‖² + η·p, with public q's and w. Unbounded.

    It is how far η must move to give the same p when a rating is added, as the sum of the rows' L2 moves. Only the
    row of that rating has to move. Inside the ball, η(p) = Σ(r̃ − p·q)q − wp moves by (r̃ − p·q)q, whose norm is at
    most q_max(B + R·q_max), since ‖p‖ ≤ R. On the boundary of the ball, η(p, ν) = Σ(r̃ − p·q)q − (w + ν)p has a
    multiplier ν ≥ 0, and moves likewise at equal (p, ν). The density of p changes by a determinant too:
    `hessian_unbounded`. Chaudhuri et al. 2011, theorem 9, prove this for an unconstrained p. Kifer, Smith and
    Thakurta 2012, theorem 2, treat constraints by a limit.
    """
    value = other_bound * (clamp + own_bound * other_bound)
    source = "Chaudhuri et al. 2011, theorem 9, on a ball; but for a δ of solving in floats (privacy.grid)"
    return Sensitivity(value, 2, Neighbours.UNBOUNDED, source)


def hessian_unbounded(other_bound: float) -> Sensitivity:
    """The Hessian A = Σ q·qᵀ + wI of one row's ridge regression, as the eigenvalue that a rating adds. Unbounded.

    The density of p is that of η(p) times |det ∂η/∂p| = det A. Adding a rating turns this determinant into
    det(A + q·qᵀ) = det A·(1 + qᵀA⁻¹q), between det A and det A·(1 + q_max²/w). On the boundary of the ball, with
    outward normal n and tangent basis T, |det ∂η/∂(p, ν)| = R·det Tᵀ(A + νI)T. The same bound holds there, with Tᵀq
    in place of q. ν is not released.
    """
    return Sensitivity(other_bound**2, 2, Neighbours.UNBOUNDED, "det(A + qqᵀ)/det A ≤ 1 + q_max²/w")


def jacobian_epsilon(hessian: Sensitivity, ridge: Doubles) -> Doubles:
    """(E,) the ε that the determinant costs beside noise: ln(1 + q_max²/w), w = `ridge`. Chaudhuri et al. 2011."""
    return np.asarray(np.log1p(hessian.value / ridge))


def ridge_for_jacobian(hessian: Sensitivity, epsilon: Doubles) -> Doubles:
    """(E,) the least w whose determinant costs no more than ε: the inverse of `jacobian_epsilon`."""
    return np.asarray(hessian.value / np.expm1(np.minimum(epsilon, 700.0)))


def clamped_sums() -> Sensitivity:
    """Σ clamp(x)/B over disjoint groups of ratings, as one vector. Bounded.

    The value of rating (u, i) enters the sum of one group. Its term stays within [−1, 1], so it moves by 2 at most.
    """
    return Sensitivity(2.0, 1, Neighbours.BOUNDED, "clamped residuals in units of B: 2")


def clamped_vectors() -> Sensitivity:
    """The vectors Σ clamp(x)/B·z over disjoint groups of ratings, as the sum of their L2 moves. Bounded.

    z is a public vector with ‖z‖ ≤ 1: of the rating's user, of its item, or of both. Of both, z is the outer product,
    whose norm is the product of the two norms. One group's vector moves, by |clamp(x) − clamp(x′)|/B·‖z‖ ≤ 2.
    """
    return Sensitivity(2.0, 2, Neighbours.BOUNDED, "clamped residuals in units of B, times ‖z‖ ≤ 1: 2")


def weights_of_signs_unbounded() -> Sensitivity:
    """Σ (1 + x′)/2 and Σ (1 − x′)/2 over disjoint groups of ratings, all as one vector. Unbounded.

    x′ is clamp(x)/B, or a rating scaled to [−1, 1]. Adding a rating moves the two sums of one group, by (1 + x′)/2
    and (1 − x′)/2. Neither move is negative, and together they are 1 for every x′. The sum of the two sums is the
    number of ratings, and their difference is Σ x′. Noise on both sums costs as much as noise on one of them: the two
    sums span the hull of all moves ±(x′, 1), and the norm of their noise fits that hull (Hardt and Talwar 2010).
    """
    return Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "(1 + x′)/2 + (1 − x′)/2 = 1")


PAPER = "Chien et al. 2021"
CODE = "the public code of Chien et al. 2021"


def sampled_counts(most: int, norm: int = 2) -> Sensitivity:
    """Numbers of ratings by item, with at most k = `most` ratings of each user. A user moves k numbers by 1: by √k in
    L2, which is in the paper, and by k in L1."""
    value, words = (most, "k") if norm == 1 else (math.sqrt(most), "√k")
    return Sensitivity(value, norm, Neighbours.USER, f"{PAPER}: {words}, k items of a user")


def sampled_total(most: int, largest: float) -> Sensitivity:
    """Σ x over at most k = `most` ratings of each user, |x| ≤ `largest`: one number, which a user moves by k·largest.
    With x = 1 it is the number of ratings."""
    return Sensitivity(most * largest, 2, Neighbours.USER, f"k·|x|, k = {most} ratings of a user in one sum")


def published_sampled_total(assumed: float) -> Sensitivity:
    """The sensitivity that the public code assumes for a global sum, √k·r_max, or for a count, 1.

    The true one is `sampled_total`: k times the largest rating for a sum, k for a count.
    """
    return Sensitivity(assumed, 2, Neighbours.USER, f"{CODE}, centring")


def item_grams(most: float, longest: float) -> Sensitivity:
    """A_i = Σ_u w_ui·p_u·p_uᵀ for all items, ‖p_u‖ ≤ Γ = `longest`: lower triangles, with the elements off the
    diagonal multiplied by √2.

    The norm of such a triangle is the Frobenius norm of the complete matrix: ‖p·pᵀ‖ = ‖p‖² ≤ Γ². Over all items of a
    user this is √(Σ_i w_ui²)·Γ² ≤ √k·Γ², which every p of length Γ attains.

    Noise of standard deviation s on the triangle is symmetric noise on A_i, with variance s² on the diagonal and s²/2
    off it. The triangle without the √2 has the squared norm (‖p‖⁴ + Σ_f p_f⁴)/2, and p = Γ·e_f brings this to Γ⁴ as
    well. So its sensitivity would be the same, and the variance off the diagonal would be twice as large for nothing.
    """
    value = math.sqrt(most) * longest**2
    return Sensitivity(value, 2, Neighbours.USER, f"{PAPER}, algorithm 1: √k·Γ², whole matrices")


def item_right_sides(most: float, longest: float, largest: float) -> Sensitivity:
    """b_i = Σ_u w_ui·x_ui·p_u for all items, |x_ui| ≤ Γ_M = `largest` and ‖p_u‖ ≤ Γ = `longest`.

    √(Σ_i w_ui²·x_ui²)·‖p_u‖ ≤ √k·Γ_M·Γ.
    """
    value = math.sqrt(most) * longest * largest
    return Sensitivity(value, 2, Neighbours.USER, f"{PAPER}, algorithm 1: √k·Γ·Γ_M")


def centred_right_sides(most: float, longest: float, scale: Scale) -> Sensitivity:
    """`item_right_sides` where x is not clipped: x = r − c with c within the scale, so |x| ≤ r_max − r_min.

    c is the released centre, which is clamped to the scale, or the user's own mean, which lies within the scale.
    """
    return item_right_sides(most, longest, scale.width)


def published_right_sides(most: float, longest: float) -> Sensitivity:
    """The sensitivity that the public code assumes for the right sides: √k·Γ. Nothing enforces its |x| ≤ 1."""
    value = math.sqrt(most) * longest
    return Sensitivity(value, 2, Neighbours.USER, f"{CODE}: √k·Γ, no Γ_M")


def clipped_contributions(contribution: float, norm: int, neighbours: Neighbours) -> Sensitivity:
    """A sum over users of vectors whose norm is at most c = `contribution`, whatever the user's ratings.

    A user's vector, and how much it is clipped, are functions of that user's ratings and of released numbers.

    *User.* One vector more moves the sum by c. *Bounded, unbounded.* The value or presence of one rating turns its
    user's vector into another one within the same ball, which moves the sum by 2c. It also changes every prediction
    for that user, hence every part of the vector, so the complete vector has to be clipped.
    """
    times = moves(neighbours)
    return Sensitivity(times * contribution, norm, neighbours, f"{'2' if times == 2 else ''}c, ‖g_u‖ ≤ c")


def user_rows(longest: float) -> Sensitivity:
    """A table with a row v_u for each user, ‖v_u‖ ≤ Γ = `longest`; the row of somebody who took no part is 0.

    Because v_u is a function of user u's ratings and of released numbers, one user more or less moves one row, by Γ.
    """
    return Sensitivity(longest, 2, Neighbours.USER, "Γ, one row, ‖v_u‖ ≤ Γ")


def pooled_products(longest: float, neighbours: Neighbours) -> Sensitivity:
    """Σ_u p_u·p_uᵀ over users, where ‖p_u‖ ≤ Γ = `longest` whatever the user's ratings.

    It is a lower triangle, with the elements off the diagonal multiplied by √2, so that its norm is the Frobenius
    norm of the complete matrix.

    *User.* One product more moves it by ‖p·pᵀ‖ = ‖p‖² ≤ Γ². *Bounded, unbounded.* One rating turns its user's p into
    another vector q, and ‖p·pᵀ − q·qᵀ‖² = ‖p‖⁴ + ‖q‖⁴ − 2(p·q)² ≤ 2Γ⁴. Two orthogonal vectors attain this.
    """
    times = math.sqrt(moves(neighbours))
    return Sensitivity(times * longest**2, 2, neighbours, f"{'√2·' if times > 1 else ''}Γ², ‖p_u‖ ≤ Γ")


def root_counts() -> Sensitivity:
    """Σ_u √n_u for users with n_u ratings. Unbounded: one rating more adds √(n + 1) − √n ≤ 1, which it attains for a
    user who had no rating."""
    return Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "√(n + 1) − √n ≤ 1")


def published_similarity_gradients(scale: Scale, error_bound: float, floor: float) -> Sensitivity:
    """The sensitivity that Wang and Tang 2017, section 3, assume for the gradient of the similarities:
    2·e_max·(r_max − r_min)/C.

    It bounds the move of *one coordinate* of the gradient of *one rating*, where Σ|s_ij| ≥ C. But the value of a
    rating r_ui enters the gradients of all its user's ratings, and in its own item's row those of all the neighbours.
    """
    value = 2 * error_bound * scale.width / floor
    return Sensitivity(value, 1, Neighbours.BOUNDED, "Wang and Tang 2017, section 3: one coordinate")
