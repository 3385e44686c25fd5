"""Sensitivities of the item-item covariance and of the sums before it: McSherry and Mironov 2009, theorems 4 to 6.

Cov = Σ_u w_u r̂_u r̂_uᵀ and Wgt = Σ_u w_u e_u e_uᵀ, w_u = 1/c_u for L1 and 1/√c_u for L2, c_u the user's number of
ratings, r̂ residuals clamped to [−B, B]. Both are symmetric and are released as triangles: each unordered pair of
items once. The paper counts the ordered pairs. tests/privacy/test_covariance_sensitivity.py searches for neighbours
that exceed what stands here, and exhibits those that exceed the paper.
"""

import math

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity, clamped_residuals
from dpmf_cli.ratings import Scale

PAPER = "McSherry and Mironov 2009"
TRIED = 2000
"""Numbers of ratings tried one by one; beyond, one bound for all."""


def covariance_triangle(clamp: float, scale: Scale, neighbours: Neighbours) -> Sensitivity:
    """Σ_u w_u r̂_ui r̂_uj for all pairs i ≤ j, each once, as one vector: w_u = 1/c_u, averages released.

    r̂ are residuals clamped to [−B, B], c_u the user's number of ratings. The averages, the user's own among them,
    are outputs of earlier steps, hence equal on both sides: only the residual of the rating in question differs,
    and the α of McSherry and Mironov 2009, theorem 4 (how far the others move with the user's mean), is 0.

    Unbounded, from c ≥ 1 to c + 1 ratings: c(c + 1)/2 old products of at most B² change their weight by
    1/c − 1/(c + 1) = 1/(c(c + 1)): B²/2 in all. c + 1 new ones enter with weight 1/(c + 1): B². Together
    3B²/2, which c + 1 residuals of ±B attain; a user's first rating moves one element, by B².

    Bounded, c ratings and w_u public, r̂_ui moves from a to b with |a − b| ≤ D = min(2B, Δr): c − 1 products move
    by at most D·B each and the square by |a − b|·|a + b| ≤ B², and ≤ D(2B − D) where D < B. All weigh 1/c, so the
    sum is a mean of at most max(D·B, the square's) = D·max(B, 2B − D): 2B² wherever 2B ≤ Δr, approached as c grows.
    """
    if neighbours is Neighbours.UNBOUNDED:
        return Sensitivity(
            1.5 * clamp**2, 1, neighbours, "theorem 5 of McSherry and Mironov 2009, i ≤ j, α = 0"
        )
    moved = clamped_residuals(clamp, scale).value
    value = moved * max(clamp, 2 * clamp - moved)
    return Sensitivity(
        value, 1, neighbours, "McSherry and Mironov 2009, section 4.4, i ≤ j, one value changed"
    )


def published_covariance_matrix(clamp: float, neighbours: Neighbours) -> Sensitivity:
    """`covariance_triangle` for all ordered pairs (i, j), which is how McSherry and Mironov 2009, theorem 5, count.

    Every product of two items counts twice. Unbounded: with α = 0 their 2Bα + 3B² is 3B². Bounded:
    (2(c − 1)·2B² + B²)/c < 4B². Noise on each unordered pair that is scaled to this spends half of its ε.
    """
    value = (3 if neighbours is Neighbours.UNBOUNDED else 4) * clamp**2
    return Sensitivity(value, 1, neighbours, "McSherry and Mironov 2009, theorem 5, all i, j, α = 0", True)


def residual_range(scale: Scale) -> float:
    """α: how far apart two item-centred ratings r − MAvg_i can be, where MAvg is released and within the scale.

    (r_max − r_min) + (max MAvg − min MAvg) ≤ 2(r_max − r_min). The paper takes r_max − r_min, which forgets that
    the averages of two items differ (theorem 4: "for the Netflix Prize data set α = 4").
    """
    return 2 * scale.width


def own_centred_triangle(clamp: float, alpha: float, beta_p: float, norm: int) -> Sensitivity:
    """Cov's triangle where the user's mean is subtracted but not released. One rating more or less.

    Item-centred ratings, and the G that r̄_u = (Σ_i x_i + β_p·G)/(c_u + β_p) is drawn to, lie in an interval of
    width α. A rating x added to c others moves r̄_u by |x − r̄_u|/(c + 1 + β_p) ≤ d = α/(c + 1 + β_p) (theorem 4),
    and clamping is 1-Lipschitz: each old residual moves from r_i to s_i by at most min(d, 2B).

    L1, w = 1/c.   Σ_{i≤j} |w_b·s_i·s_j − w_a·r_i·r_j| ≤ w_b·Σ_{i≤j} B(|δ_i| + |δ_j|) + (w_a − w_b)·B²·c(c + 1)/2
                   = B·d·c + B²/2; the c + 1 products with the new residual are B² at most. In all
                   B·α·c/(c + 1 + β_p) + 3B²/2 < Bα + 3B²/2: half of theorem 5's bound, which counts each pair twice.

    L2, w = 1/√c.  The old block as a whole matrix moves by X = w_b·√c·d·2B√c + (w_a − w_b)·cB² at most, since
                   ssᵀ − rrᵀ = δsᵀ + rδᵀ; its diagonal by Y = √c·(w_b·2B·d + (w_a − w_b)·B²). A triangle's squared
                   norm is half of the matrix's and half of the diagonal's. The new products add
                   w_b²·B⁴·(c + 1) = B⁴. In all √((X² + Y²)/2 + B⁴), whose largest value over c is found by trying:
                   all terms fall from where c ≥ β_p + 3 and d ≤ 2B on.
    """
    if norm == 1:
        return Sensitivity(
            clamp * alpha + 1.5 * clamp**2,
            1,
            Neighbours.UNBOUNDED,
            f"{PAPER}, theorem 5, i ≤ j, α = {alpha:g}",
        )
    falling = math.ceil(max(beta_p + 3, alpha / (2 * clamp)))
    tried = min(falling, TRIED)
    largest = max(_triangle_l2(clamp, alpha, beta_p, c) for c in range(tried + 1))
    if tried < falling:
        largest = max(largest, _triangle_l2_beyond(clamp, alpha, beta_p, tried))
    return Sensitivity(
        largest, 2, Neighbours.UNBOUNDED, f"after {PAPER}, theorem 5, i ≤ j, every c, α = {alpha:g}"
    )


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

    c/(√(c + 1)·(c + 1 + β_p)) ≤ √c/(c + β_p + 1) ≤ 1/(2√(β_p + 1)), and what is left of X and Y falls with c.
    """
    lighter = (1 / math.sqrt(c) - 1 / math.sqrt(c + 1)) * clamp**2
    whole = clamp * alpha / math.sqrt(beta_p + 1) + lighter * c
    diagonal = 2 * clamp * alpha / (c + 1 + beta_p) + lighter * math.sqrt(c)
    return math.sqrt((whole**2 + diagonal**2) / 2 + clamp**4)


def published_own_centred_matrix(clamp: float, scale: Scale, norm: int) -> Sensitivity:
    """What theorem 5 states for all ordered pairs, with α = r_max − r_min.

    L1: 2Bα + 3B². L2: (1 + 2√2)B², provided β_p ≥ α²/4B².
    """
    value = 2 * clamp * scale.width + 3 * clamp**2 if norm == 1 else (1 + 2 * math.sqrt(2)) * clamp**2
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, f"{PAPER}, theorem 5, α = {scale.width:g}", True)


def weight_triangle(norm: int) -> Sensitivity:
    """Wgt's triangle. One rating more or less: from c ratings to c + 1.

    L1, w = 1/c: c(c + 1)/2 old entries move by 1/c − 1/(c + 1), c + 1 new ones are 1/(c + 1): 1/2 + 1, attained for
    every c ≥ 1. L2, w = 1/√c: √(c(c + 1)/2·(1/√c − 1/√(c + 1))² + 1), largest at c = 1, where it is
    √(5/2 − √2) = 1.042.
    """
    value = 1.5 if norm == 1 else math.sqrt(2.5 - math.sqrt(2))
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, f"after {PAPER}, theorem 6, i ≤ j")


def published_weight_matrix(norm: int) -> Sensitivity:
    """What theorem 6 states for all ordered pairs: 3 in L1, √2 in L2."""
    value = 3.0 if norm == 1 else math.sqrt(2)
    return Sensitivity(value, norm, Neighbours.UNBOUNDED, f"{PAPER}, theorem 6, all i, j", True)


def user_rating_sums(largest: float, norm: int) -> Sensitivity:
    """Σ_u w_u·x_ui by item, |x| ≤ `largest`. One user more or less, with w_u = 1/c_u (L1) or 1/√c_u (L2).

    The user's part is w_u·x_u: Σ|x_ui|/c_u ≤ `largest`, and √(Σx_ui²/c_u) ≤ `largest`. For one sum over all items,
    with w_u = 1/c_u whatever the norm, it is |Σx_ui|/c_u ≤ `largest`. Section 4.5; counts are the case x = 1.
    """
    return Sensitivity(largest, norm, Neighbours.USER, f"{PAPER}, section 4.5: sums")


def user_triangle(clamp: float, norm: int) -> Sensitivity:
    """Cov's triangle (and Wgt's, B = 1) with each user's part divided once more by ‖e_u‖. One user more or less.

    The part is w_u²·r̂_u·r̂_uᵀ, w_u² = 1/c_u² (L1) or 1/c_u (L2). L1: c(c + 1)/2 products of at most B²/c²: B² at c
    = 1, falling to B²/2. L2: at most the whole matrix's ‖r̂_u‖²/c_u ≤ B². Section 4.5: "the square of the norms of
    the vectors".
    """
    return Sensitivity(clamp**2, norm, Neighbours.USER, f"{PAPER}, section 4.5: covariance")


def user_gram(longest: float) -> Sensitivity:
    """Σ_u a_u a_uᵀ's triangle, ‖a_u‖₂ ≤ `longest`. One user more or less.

    The user's part a·aᵀ has the Frobenius norm ‖a‖². Its triangle has what is off the diagonal once: half of the
    matrix's squared norm and half of the diagonal's, ‖a‖⁴ at most, which an a with one element attains. a_u is a
    function of the user's ratings and of what is released. Jain, Thakkar and Thakurta 2018 have ‖a_u‖ ≤ 2L: 4L².
    """
    return Sensitivity(
        longest**2, 2, Neighbours.USER, "Jain, Thakkar and Thakurta 2018, algorithm 1: ‖a aᵀ‖ = ‖a‖²"
    )
