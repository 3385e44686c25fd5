"""Sensitivities of the item-item covariance and of the sums before it: McSherry and Mironov 2009, theorems 4 to 6.

Cov = Σ_u w_u r̂_u r̂_uᵀ and Wgt = Σ_u w_u e_u e_uᵀ. Here c_u is the user's number of ratings, w_u is 1/c_u for L1 and
1/√c_u for L2, and r̂ are residuals clamped to [−B, B]. Both matrices are symmetric and are released as triangles,
with each unordered pair of items once, whereas the paper counts the ordered pairs.
tests/privacy/test_covariance_sensitivity.py searches for neighbours that exceed these sensitivities, and shows
neighbours that exceed the paper's.
"""

import math

from dpmf_cli.core.ratings import Scale
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity, clamped_residuals

PAPER = "McSherry and Mironov 2009"
TRIED = 2000
"""Numbers of ratings up to this one are tried one by one; one bound covers all larger numbers."""


def covariance_triangle(clamp: float, scale: Scale, neighbours: Neighbours) -> Sensitivity:
    """Σ_u w_u r̂_ui r̂_uj for all pairs i ≤ j, each once, as one vector: w_u = 1/c_u, averages released.

    r̂ are residuals clamped to [−B, B], and c_u is the user's number of ratings. All averages, the user's own too,
    are outputs of earlier steps, hence equal on both sides. So only the residual of the rating in question differs,
    and the α of McSherry and Mironov 2009, theorem 4 (how far the other residuals move with the user's mean), is 0.

    Unbounded, from c ≥ 1 to c + 1 ratings: c(c + 1)/2 old products of at most B² change their weight by
    1/c − 1/(c + 1) = 1/(c(c + 1)), which is B²/2 in total. c + 1 new products enter with weight 1/(c + 1), which is
    B². Together this is 3B²/2, which c + 1 residuals of ±B attain. A user's first rating moves one element, by B².

    Bounded, with c ratings and w_u public: r̂_ui moves from a to b with |a − b| ≤ D = min(2B, Δr). c − 1 products
    move by at most D·B each. The square moves by |a − b|·|a + b|, which is ≤ B², and ≤ D(2B − D) where D < B. All
    have the weight 1/c, so the sum is a mean, and at most max(D·B, the square's move) = D·max(B, 2B − D). This is 2B²
    wherever 2B ≤ Δr, approached as c grows.
    """
    if neighbours is Neighbours.UNBOUNDED:
        return Sensitivity(1.5 * clamp**2, 1, neighbours, f"theorem 5 of {PAPER}, i ≤ j, α = 0")
    moved = clamped_residuals(clamp, scale).value
    value = moved * max(clamp, 2 * clamp - moved)
    return Sensitivity(value, 1, neighbours, f"{PAPER}, section 4.4, i ≤ j, one value changed")


def published_covariance_matrix(clamp: float, neighbours: Neighbours) -> Sensitivity:
    """`covariance_triangle` for all ordered pairs (i, j), as McSherry and Mironov 2009, theorem 5, count them.

    Every product of two different items counts twice. Unbounded: with α = 0 their 2Bα + 3B² is 3B². Bounded:
    (2(c − 1)·2B² + B²)/c < 4B². Noise that is scaled to this, on each unordered pair, spends half of its ε.
    """
    value = (3 if neighbours is Neighbours.UNBOUNDED else 4) * clamp**2
    return Sensitivity(value, 1, neighbours, "McSherry and Mironov 2009, theorem 5, all i, j, α = 0", True)


def residual_range(scale: Scale) -> float:
    """α: how far apart two item-centred ratings r − MAvg_i can be, if MAvg is released and within the scale.

    It is (r_max − r_min) + (max MAvg − min MAvg) ≤ 2(r_max − r_min). The paper takes r_max − r_min, which forgets
    that the averages of two items differ (theorem 4: "for the Netflix Prize data set α = 4").
    """
    return 2 * scale.width


def own_centred_triangle(clamp: float, alpha: float, beta_p: float, norm: int) -> Sensitivity:
    """Cov's triangle where the user's mean is subtracted but not released. One rating more or less.

    The mean is r̄_u = (Σ_i x_i + β_p·G)/(c_u + β_p). It is shrunk to G, and the item-centred ratings x_i and G lie in
    an interval of width α. A rating x added to c others moves r̄_u by |x − r̄_u|/(c + 1 + β_p) ≤ d = α/(c + 1 + β_p)
    (theorem 4). Clamping is 1-Lipschitz, so each old residual moves from r_i to s_i = r_i + δ_i by at most min(d,
    2B). w_a and w_b are the weights for c and for c + 1 ratings.

    L1, w = 1/c.   Σ_{i≤j} |w_b·s_i·s_j − w_a·r_i·r_j| ≤ w_b·Σ_{i≤j} B(|δ_i| + |δ_j|) + (w_a − w_b)·B²·c(c + 1)/2
                   = B·d·c + B²/2. The c + 1 products with the new residual are B² at most, together. The total is
                   B·α·c/(c + 1 + β_p) + 3B²/2 < Bα + 3B²/2: half of theorem 5's bound, which counts each pair twice.

    L2, w = 1/√c.  The old block, as a complete matrix, moves by X = w_b·√c·d·2B√c + (w_a − w_b)·cB² at most, since
                   ssᵀ − rrᵀ = δsᵀ + rδᵀ. Its diagonal moves by Y = √c·(w_b·2B·d + (w_a − w_b)·B²) at most. A
                   triangle's squared norm is half the sum of the matrix's and the diagonal's squared norms. The new
                   products add w_b²·B⁴·(c + 1) = B⁴. The total is √((X² + Y²)/2 + B⁴). Its largest value over c is
                   found by trying: where c ≥ β_p + 3 and d ≤ 2B, all terms fall with c.
    """
    if norm == 1:
        value = clamp * alpha + 1.5 * clamp**2
        return Sensitivity(value, 1, Neighbours.UNBOUNDED, f"{PAPER}, theorem 5, i ≤ j, α = {alpha:g}")
    falling = math.ceil(max(beta_p + 3, alpha / (2 * clamp)))
    tried = min(falling, TRIED)
    largest = max(_triangle_l2(clamp, alpha, beta_p, c) for c in range(tried + 1))
    if tried < falling:
        largest = max(largest, _triangle_l2_beyond(clamp, alpha, beta_p, tried))
    source = f"after {PAPER}, theorem 5, i ≤ j, every c, α = {alpha:g}"
    return Sensitivity(largest, 2, Neighbours.UNBOUNDED, source)


def _triangle_l2(clamp: float, alpha: float, beta_p: float, c: int) -> float:
    """The L2 bound of `own_centred_triangle` for a user with c other ratings."""
    if c == 0:
        return clamp**2
    before, after = 1 / math.sqrt(c), 1 / math.sqrt(c + 1)
    moved = min(alpha / (c + 1 + beta_p), 2 * clamp)
    whole = after * moved * 2 * clamp * c + (before - after) * c * clamp**2
    diagonal = math.sqrt(c) * (after * 2 * clamp * moved + (before - after) * clamp**2)
    return math.sqrt((whole**2 + diagonal**2) / 2 + clamp**4)


def _triangle_l2_beyond(clamp: float, alpha: float, beta_p: float, c: int) -> float:
    """A bound for all users with c other ratings or more.

    c/(√(c + 1)·(c + 1 + β_p)) ≤ √c/(c + β_p + 1) ≤ 1/(2√(β_p + 1)), and the rest of X and Y falls with c.
    """
    lighter = (1 / math.sqrt(c) - 1 / math.sqrt(c + 1)) * clamp**2
    whole = clamp * alpha / math.sqrt(beta_p + 1) + lighter * c
    diagonal = 2 * clamp * alpha / (c + 1 + beta_p) + lighter * math.sqrt(c)
    return math.sqrt((whole**2 + diagonal**2) / 2 + clamp**4)


def published_own_centred_matrix(clamp: float, scale: Scale, norm: int) -> Sensitivity:
    """Theorem 5's sensitivity for all ordered pairs, with α = r_max − r_min.

    L1: 2Bα + 3B². L2: (1 + 2√2)B², provided β_p ≥ α²/4B².
    """
    value = 2 * clamp * scale.width + 3 * clamp**2 if norm == 1 else (1 + 2 * math.sqrt(2)) * clamp**2
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, f"{PAPER}, theorem 5, α = {scale.width:g}", True)


def weight_triangle(norm: int) -> Sensitivity:
    """Wgt's triangle. One rating more or less: from c ratings to c + 1.

    L1, w = 1/c: c(c + 1)/2 old entries move by 1/c − 1/(c + 1) each, and c + 1 new entries are 1/(c + 1) each. The
    sum is 1/2 + 1, attained for every c ≥ 1.

    L2, w = 1/√c: √(c(c + 1)/2·(1/√c − 1/√(c + 1))² + 1), largest at c = 1, where it is √(5/2 − √2) = 1.042.
    """
    value = 1.5 if norm == 1 else math.sqrt(2.5 - math.sqrt(2))
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, f"after {PAPER}, theorem 6, i ≤ j")


def published_weight_matrix(norm: int) -> Sensitivity:
    """Theorem 6's sensitivity for all ordered pairs: 3 in L1, √2 in L2."""
    value = 3.0 if norm == 1 else math.sqrt(2)
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, f"{PAPER}, theorem 6, all i, j", True)


def user_rating_sums(largest: float, norm: int) -> Sensitivity:
    """Σ_u w_u·x_ui by item, |x| ≤ `largest`. One user more or less, with w_u = 1/c_u (L1) or 1/√c_u (L2).

    The user's contribution is w_u·x_u. Its L1 norm is Σ|x_ui|/c_u ≤ `largest`, and its L2 norm is
    √(Σx_ui²/c_u) ≤ `largest`. To one sum over all items, with w_u = 1/c_u for either norm, the user contributes
    |Σx_ui|/c_u ≤ `largest`. Section 4.5. Counts are the case x = 1.
    """
    return Sensitivity(largest, norm, Neighbours.USER, f"{PAPER}, section 4.5: sums")


def user_triangle(clamp: float, norm: int) -> Sensitivity:
    """Cov's triangle (and Wgt's, B = 1) with each user's part divided once more by ‖e_u‖. One user more or less.

    The user's part is w_u²·r̂_u·r̂_uᵀ, with w_u² = 1/c_u² (L1) or 1/c_u (L2). L1: c(c + 1)/2 products of at most
    B²/c², whose sum is B² at c = 1, and falls to B²/2 as c grows. L2: at most the norm of the complete matrix,
    ‖r̂_u‖²/c_u ≤ B². Section 4.5: "the square of the norms of the vectors".
    """
    return Sensitivity(clamp**2, norm, Neighbours.USER, f"{PAPER}, section 4.5: covariance")


def gram_triangle_unbounded(clamp: float, n_users: int) -> Sensitivity:
    """Σ_i r̃_ui r̃_vi for all pairs of users u ≤ v, each once: r̃ clamped to [−B, B], averages released. Unbounded.

    A rating of item i by user u adds r̃_ui·r̃_vi to the element of u and each v who rated i, and r̃_ui² to that of u
    alone: n terms of at most B². If all users rated i and all residuals are ±B, it is nB². Section 3 scales the noise
    of an element by "the largest covariance any two users might have", in words only.
    """
    return Sensitivity(n_users * clamp**2, 1, Neighbours.UNBOUNDED, f"{PAPER}, section 3: Gram matrix")


def projected_residuals_unbounded(clamp: float, directions: int) -> Sensitivity:
    """R̃ᵀP for clamped residuals R̃ and d released orthonormal columns P. Unbounded.

    A rating adds r̃_ui·P_u to row i. Rows of orthonormal columns have ‖P_u‖₂ ≤ 1, so ‖P_u‖₁ ≤ √d: B√d in L1.
    """
    return Sensitivity(clamp * math.sqrt(directions), 1, Neighbours.UNBOUNDED, "‖r̃·P_u‖₁ ≤ B√d")
