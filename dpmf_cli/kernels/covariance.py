"""Item-item matrices as packed upper triangles: sums of products, their releases, multiplication and eigenpairs.

McSherry and Mironov 2009, section 4.4: Cov = Σ_u w_u r̂_u r̂_uᵀ and Wgt = Σ_u w_u e_u e_uᵀ. Both are symmetric, so
each unordered pair of items is held, measured and given noise once. A triangle is n(n + 1)/2 numbers: row i holds
the elements (i, i) … (i, n − 1), and the rows follow each other.

A matrix is summed row by row (Gustavson 1978), so that a row's sums stay in the nearest cache. That is faster than
user by user, or in blocks of users through dense BLAS. The terms of an element are added one by one in the order of
the users, so that its bytes depend on nothing else.

For several models at once, each row, whose float64 sums lie side by side for all models of a group, is released as
soon as it is summed. The terms are computed from the averages of each model during the pass, so nothing is kept for
each rating.

Released triangles are float32, and are never unpacked. With `scaling` s, functions work on D·A·D, where D = diag(s),
and A stays as it is. Section 4.6, "cleaning": Avg_ij is multiplied by s_i·s_j, where s_i = √MCnt_i, and replaced by
its best approximation of rank k (`leading_eigenpairs` with that scaling), divided by s_i·s_j (`rank_k`), in which
entries that rest on many ratings weigh more.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from dpmf_cli.core.arrays import Doubles, Floats, Singles
from dpmf_cli.core.compiled.lane_groups import LaneGroup, pad
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, ROWS, USERS, example, numbers, triangle
from dpmf_cli.kernels.lane_math import cast, clamp, fma, total
from dpmf_cli.kernels.lanes import doubles, load, splat, store, zeros
from dpmf_cli.kernels.releasing import ANCHOR
from dpmf_cli.kernels.sums import Columns, item_major
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel

LANES = (0,) * 16


def triangle_size(n_items: int) -> int:
    """Elements of a packed upper triangle, the diagonal included."""
    return n_items * (n_items + 1) // 2


@compiled(inline="always")
def place(i, j, n_items):
    """The place in a packed triangle of the element of the unordered pair {i, j}. i, j: int64."""
    low, high = (i, j) if i < j else (j, i)
    return low * (2 * n_items - low - 1) // 2 + high


def weighted_products(ratings: Ratings, values: Doubles, weights: Doubles) -> Doubles:
    """Σ_u w_u v_ui v_uj for every pair of items i ≤ j, over the users who rated both: a packed triangle, float64.

    values (n_ratings,) v, one per rating; weights (n_users,) w. In float32, sums of so many terms would move between
    neighbours by more than their sensitivity.
    """
    out = np.zeros(triangle_size(ratings.n_items))
    _weighted_products(Columns.of(ratings)._replace(values=values), item_major(ratings), weights, out)
    return out


@compiled(example(weights=[1.0, 0.5, 1.0, 0.25], out=np.zeros(triangle_size(ITEMS))))
def _weighted_products(ratings, raters, weights, out):
    users, items, values, user_starts = ratings
    item_starts, _, positions = raters
    n_items = len(item_starts) - 1
    for i in range(n_items):
        row = out[place(i, i, n_items) - i :]
        for x in range(item_starts[i], item_starts[i + 1]):
            first = positions[x]
            user = users[first]
            factor = weights[user] * values[first]
            for y in range(first, user_starts[user + 1]):
                row[items[y]] += factor * values[y]


@compiled(example(covariance=triangle(ROWS), weight=1 + np.abs(triangle(ROWS)), n_items=ROWS))
def mean_ratios(covariance, weight, n_items):
    """(on the diagonal, off it): the μ that minimises Σ (Cov_ij − μ·Wgt_ij)², or 0 if all weights are 0.

    Entries are shrunk to this average. Because noise is equally large on every entry, this estimate counts an entry
    by its weight; in ΣCov/ΣWgt, millions of empty entries would add nothing but noise (3.4 times as much on ML-1M).

    Sums in float64. Complete vectors are summed lane by lane, the remaining entries of each row one by one.
    """
    w, wide = len(LANES), doubles(LANES)
    products, squares = wide, wide
    product_on, square_on, product_off, square_off = 0.0, 0.0, 0.0, 0.0
    for i in range(n_items):
        x = place(i, i, n_items)
        of, end = np.float64(weight[x]), x + n_items - i
        product_on += of * covariance[x]
        square_on += of * of
        whole = x + 1 + (end - x - 1) // w * w
        for y in range(x + 1, whole, w):
            weights = load(weight, y, wide)
            products = fma(weights, load(covariance, y, wide), products)
            squares = fma(weights, weights, squares)
        for y in range(whole, end):
            of = np.float64(weight[y])
            product_off += of * covariance[y]
            square_off += of * of
    product_off, square_off = product_off + total(products), square_off + total(squares)
    on = product_on / square_on if square_on > 0 else 0.0
    return on, product_off / square_off if square_off > 0 else 0.0


@compiled(
    example(
        weight=np.abs(triangle(ITEMS)),
        pull_on_diagonal=2.0,
        pull_off_diagonal=3.0,
        on_diagonal=0.5,
        off_diagonal=0.1,
    )
)
def shrink(covariance, weight, n_items, pull_on_diagonal, pull_off_diagonal, on_diagonal, off_diagonal):
    """Sets Cov_ij ← (Cov_ij + s·μ)/(Wgt_ij + s) in place; Wgt ≥ 0.

    The pull s > 0 and the average μ have one value for the diagonal and one for all other entries.
    McSherry and Mironov 2009, section 4.6: "shrinking to the average", with s for β·avgWgt.
    """
    x = 0
    for i in range(n_items):
        end = x + n_items - i
        _shrink(covariance[x : x + 1], weight[x : x + 1], pull_on_diagonal, on_diagonal)
        _shrink(covariance[x + 1 : end], weight[x + 1 : end], pull_off_diagonal, off_diagonal)
        x = end


@compiled(error_model="numpy")
def _shrink(covariance, weight, pull, average):
    """Shrinks entries with SIMD, for which NumPy's error model leaves out the test for a zero divisor, which would
    prevent it."""
    for x in range(len(covariance)):
        covariance[x] = (covariance[x] + pull * average) / (weight[x] + pull)


AT_ONCE = 8
"""Most models of a group: one AVX-512 register of float64."""
BYTES_AT_ONCE = 1 << 31
"""Most bytes of a group's released triangles, two for each model, unless those of a single model take more."""


def bytes_of_both(n_items: int) -> int:
    """Bytes of a model's two triangles."""
    return 2 * 4 * triangle_size(n_items)


def can_keep(n_items: int, grid: int) -> bool:
    """Whether both triangles of all models of a grid may be in memory at once."""
    return grid * bytes_of_both(n_items) <= BYTES_AT_ONCE


def measured_together(n_items: int) -> int:
    """How many models are measured in one pass over the ratings: a power of two, within `BYTES_AT_ONCE`."""
    fit = BYTES_AT_ONCE // bytes_of_both(n_items)
    return min(AT_ONCE, 1 << max(fit, 1).bit_length() - 1)


@dataclass(frozen=True)
class Products(LaneGroup):
    """Inputs and releases of Σ_u w_u v_ui v_uj, for every pair of items i ≤ j and each of E models.

    Here v_ui = clamp(r_ui − items_i − users_u, [−B, B]).

    values    (n_ratings,) r, float32, in the order of `ratings`
    weights   (n_users,) w
    items     (n_items, E) and users (n_users, E): what each model subtracts; or one column for all models
    clamp     B
    released  (E, size) float32: a packed triangle for each model, which `release_products` fills
    """

    ratings: Ratings
    values: Singles
    weights: Doubles
    items: Doubles
    users: Doubles
    clamp: float
    released: Singles

    @property
    def width(self) -> int:
        """How many lanes are summed, a power of two."""
        return 1 << int(self.items.shape[1] - 1).bit_length()


def _plain_products(products: Products, publish: Publish) -> None:
    """The Python reference, which measures a clean triangle for each model, and publishes all at once."""
    ratings, bound = products.ratings, products.clamp
    clean = np.empty((triangle_size(ratings.n_items), products.items.shape[1]))
    for lane in range(clean.shape[1]):
        left = products.values - products.items[ratings.items, lane] - products.users[ratings.users, lane]
        clipped = np.clip(left, -bound, bound)
        clean[:, lane] = weighted_products(ratings, clipped, products.weights)
    products.released[:] = publish(np.broadcast_to(clean, (len(clean), len(products.released)))).T


@noisy_kernel(_plain_products)
def release_products(products: Products, noise: LaneNoise) -> None:
    """Sets released ← grid(Σ + noise) in float64, then rounds to float32; noise unit (size,)."""
    ratings, width = products.ratings, products.width
    _release_products(
        Columns.of(ratings)._replace(values=products.values),
        item_major(ratings),
        tuple(pad(each, width, np.float64).ravel() for each in (products.items, products.users)),
        products.weights,
        products.clamp,
        noise.unit,
        noise.scale,
        ANCHOR * noise.grid,
        products.released,
        products.width_of,
    )


@compiled(
    example(
        weights=[1.0, 0.5, 1.0, 0.25],
        subtracted=lambda s: (3.5 + numbers(ITEMS * s.w), numbers(USERS * s.w)),
        scales=lambda s: np.linspace(0.3, 0.7, 2 * s.w),
        anchors=lambda s: np.full(2 * s.w, 1.5 * 2.0**22),
        out=lambda s: np.zeros((2 * s.w, triangle_size(ITEMS))),
    )
)
def _release_products(ratings, raters, subtracted, weights, bound, unit, scales, anchors, out, width_of):
    users, items, values, user_starts = ratings
    item_averages, user_averages = subtracted
    item_starts, _, positions = raters
    n_items, w, like = len(item_starts) - 1, len(width_of), doubles(width_of)
    low, high = splat(-bound, like), splat(bound, like)
    sums = np.zeros(n_items * w)
    for i in range(n_items):
        sums[i * w :] = 0.0
        own = load(item_averages, i * w, like)
        for x in range(item_starts[i], item_starts[i + 1]):
            first = positions[x]
            user = np.int64(users[first])
            mean = load(user_averages, user * w, like)
            left = splat(values[first], like) - own - mean
            factor = splat(weights[user], like) * clamp(left, low, high)
            for y in range(first, user_starts[user + 1]):
                at = np.int64(items[y]) * w
                left = splat(values[y], like) - load(item_averages, at, like) - mean
                term = factor * clamp(left, low, high)
                store(sums, at, load(sums, at, like) + term)
        row = place(i, i, n_items) - i
        for lane in range(len(out)):
            scale, anchor, released = scales[lane], anchors[lane], out[lane]
            for j in range(i, n_items):
                clean = sums[j * w + lane % w]
                released[row + j] = np.float32(clean + scale * unit[row + j] + anchor - anchor)


TOLERANCE = 1e-4
"""Lanczos stops when the residual of every pair is below this fraction of its eigenvalue."""
SMALL = 400
"""Matrices of at most so many rows are solved densely. So are all if at least a quarter of the pairs are wanted."""
COLUMNS = 1024
"""How many columns are taken at a time. Four rows of them stay in the nearest cache while every vector uses them."""
ROWS_AT_ONCE = 4

Which = Literal["magnitude", "largest"]


def multiply(triangle: Singles, vectors: Floats, *, scaling: Floats | None = None) -> Doubles:
    """(n, b) float64 A·vectors, or D·A·D·vectors with `scaling` (n,), for vectors (n, b).

    The triangle is read once, whatever b is, at the speed of memory. Vectors are rounded to float32 and multiplied in
    float32. Because sums of at most 4 products (down a column) or 64 (along a row, in each lane) are then added up in
    float64, the result is that of the rounded vectors to about 1e-7, at the cost of float32 throughout.
    """
    n, b = vectors.shape
    scale = None if scaling is None else np.asarray(scaling, np.float64)[:, None]
    right = np.ascontiguousarray((vectors if scale is None else vectors * scale).T, np.float32)
    out = np.zeros((b, n))
    _multiply(triangle, np.int64(n), right.ravel(), out.ravel(), LANES)
    return out.T if scale is None else out.T * scale


@compiled(example(right=numbers(2 * ROWS), out=np.zeros(2 * ROWS)))
def _multiply(triangle, n, right, out, width_of):
    """Adds A·right (b·n) to out (b·n), one vector after the other. Right of their corner, four rows go together."""
    w, like, wide = len(width_of), zeros(width_of), doubles(width_of)
    blocks = n // ROWS_AT_ONCE * ROWS_AT_ONCE
    for i in range(0, blocks, ROWS_AT_ONCE):
        row0, row1 = place(i, i, n) - i, place(i + 1, i + 1, n) - i - 1
        row2, row3 = place(i + 2, i + 2, n) - i - 2, place(i + 3, i + 3, n) - i - 3
        for first in range(i + ROWS_AT_ONCE, n, COLUMNS):
            last = min(first + COLUMNS, n)
            whole = first + (last - first) // w * w
            for base in range(0, len(out), n):
                v0, v1 = splat(right[base + i], like), splat(right[base + i + 1], like)
                v2, v3 = splat(right[base + i + 2], like), splat(right[base + i + 3], like)
                sum0, sum1, sum2, sum3 = like, like, like, like
                for j in range(first, whole, w):
                    v = load(right, base + j, like)
                    a0, a1 = load(triangle, row0 + j, like), load(triangle, row1 + j, like)
                    a2, a3 = load(triangle, row2 + j, like), load(triangle, row3 + j, like)
                    sum0, sum1 = fma(a0, v, sum0), fma(a1, v, sum1)
                    sum2, sum3 = fma(a2, v, sum2), fma(a3, v, sum3)
                    column = fma(a3, v3, fma(a2, v2, fma(a1, v1, fma(a0, v0, like))))
                    store(out, base + j, load(out, base + j, wide) + cast(column, wide))
                out[base + i] += total(sum0)
                out[base + i + 1] += total(sum1)
                out[base + i + 2] += total(sum2)
                out[base + i + 3] += total(sum3)
                _multiply_part(triangle, n, right, out, base, i, i + ROWS_AT_ONCE, whole, last)
        for base in range(0, len(out), n):
            _multiply_part(triangle, n, right, out, base, i, i + ROWS_AT_ONCE, i, i + ROWS_AT_ONCE)
    for base in range(0, len(out), n):
        _multiply_part(triangle, n, right, out, base, blocks, n, blocks, n)


@compiled()
def _multiply_part(triangle, n, right, out, base, first_row, last_row, first, last):
    """Multiplies by the elements on or above the diagonal of some rows and columns, one by one."""
    for i in range(first_row, last_row):
        row = place(i, i, n) - i
        for j in range(max(i, first), last):
            a = np.float64(triangle[row + j])
            out[base + i] += a * right[base + j]
            if i != j:
                out[base + j] += a * right[base + i]


def leading_eigenpairs(
    triangle: Singles, n: int, k: int, *, scaling: Floats | None = None, which: Which = "magnitude"
) -> tuple[Doubles, Doubles]:
    """(values (k,), orthonormal vectors (n, k)) of A, or of D·A·D with `scaling` (n,); n pairs if k > n.

    which  "magnitude": largest |λ| first, the best approximation of rank k in the Frobenius norm (Eckart and Young
           1936); "largest": largest λ first
    The component of a vector that is largest in magnitude is positive. The same input gives the same output: random
    numbers depend on n only.

    The method is Lanczos (ARPACK) with one vector at a time. On ML-1M's covariance times √(counts) it is two to three
    times as fast as power iterations or a block Krylov space. Each pair is right to 1e-6 of the largest eigenvalue;
    they leave 1e-4 and more. A block Krylov space is used only if ARPACK gives up, and a dense matrix if n is small
    or k is at least a quarter of n.
    """
    k = min(k, n)
    if n <= SMALL or 4 * k >= n:
        dense = np.zeros((n, n))  # its upper triangle
        dense[np.tri(n, dtype=bool).T] = triangle
        if scaling is not None:
            scale = np.asarray(scaling, np.float64)
            dense *= scale[:, None] * scale
        values, vectors = eigh(dense, lower=False)
    else:

        def product(vector: Doubles) -> Doubles:
            return multiply(triangle, vector.reshape(n, 1), scaling=scaling)[:, 0]

        operator, rng = LinearOperator((n, n), matvec=product, dtype=np.float64), np.random.default_rng(n)
        given = {"v0": rng.standard_normal(n), "ncv": min(n, 2 * k + 20), "tol": TOLERANCE, "rng": rng}
        try:
            values, vectors = eigsh(operator, k, which="LM" if which == "magnitude" else "LA", **given)
        except ArpackError:
            values, vectors = _block_krylov(triangle, n, k, scaling)
    order = np.argsort(-np.abs(values) if which == "magnitude" else -values, kind="stable")[:k]
    return values[order], with_fixed_signs(vectors[:, order])


def _block_krylov(triangle: Singles, n: int, k: int, scaling: Floats | None) -> tuple[Doubles, Doubles]:
    """Ritz pairs of span(AX, A²X, …) for a random block X of k + 4 vectors (Musco and Musco 2015).

    It finds both ends of the spectrum at once, without a test of convergence.
    """
    block = np.random.default_rng(n).standard_normal((n, k + 4))
    blocks = []
    for _ in range(min(8, n // (k + 4))):
        block, _ = np.linalg.qr(multiply(triangle, block, scaling=scaling))
        blocks.append(block)
    basis, _ = np.linalg.qr(np.hstack(blocks))
    inner = basis.T @ multiply(triangle, basis, scaling=scaling)
    values, vectors = eigh((inner + inner.T) / 2)
    return values, basis @ vectors


def with_fixed_signs(vectors: Doubles) -> Doubles:
    """The columns of `vectors` (n, k), each with the sign that makes its component of largest magnitude positive."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0))


def rank_k(
    triangle: Singles, n: int, values: Doubles, vectors: Doubles, scaling: Floats | None = None
) -> None:
    """Overwrites the packed triangle with Σ_a λ_a·v_ia·v_ja/(s_i·s_j).

    values λ (k,); vectors v (n, k); scaling s (n,) > 0, or 1 for every item. Sums of k products in float32.
    """
    factors = vectors if scaling is None else vectors / np.asarray(scaling, np.float64)[:, None]
    width = len(LANES)
    right = np.zeros((-(-n // width) * width, len(values)), np.float32)
    right[:n] = factors
    panels = np.ascontiguousarray(right.reshape(-1, width, len(values)).transpose(0, 2, 1))
    left = (factors * values).astype(np.float32)
    _rank_k(triangle, np.int64(n), np.int64(len(values)), left.ravel(), panels.ravel(), LANES)


@compiled(example(k=2, left=numbers(ROWS * 2), panels=numbers(-(-ROWS // 16) * 16 * 2)))
def _rank_k(triangle, n, k, left, panels, width_of):
    """Fills the triangle. `panels` hold the factors of w items each, as k vectors of w lanes.

    Panels to the right of four rows' corner take these four rows together. The last rows, if fewer than four, have no
    panel to their right.
    """
    w, like = len(width_of), zeros(width_of)
    whole = n // w * w
    for i in range(0, n, ROWS_AT_ONCE):
        rows = min(ROWS_AT_ONCE, n - i)
        first = min(-(-(i + rows) // w) * w, n)
        for r in range(rows):
            row = place(i + r, i + r, n) - i - r
            _scalar_part(triangle, row, k, left, panels, i + r, i + r, first, w)
            _scalar_part(triangle, row, k, left, panels, i + r, max(first, whole), n, w)
        row0, row1 = place(i, i, n) - i, place(i + 1, i + 1, n) - i - 1
        row2, row3 = place(i + 2, i + 2, n) - i - 2, place(i + 3, i + 3, n) - i - 3
        for j in range(first, whole, w):
            sum0, sum1, sum2, sum3 = like, like, like, like
            for a in range(k):
                v, at = load(panels, j * k + a * w, like), i * k + a
                sum0, sum1 = fma(splat(left[at], like), v, sum0), fma(splat(left[at + k], like), v, sum1)
                at += 2 * k
                sum2, sum3 = fma(splat(left[at], like), v, sum2), fma(splat(left[at + k], like), v, sum3)
            store(triangle, row0 + j, sum0)
            store(triangle, row1 + j, sum1)
            store(triangle, row2 + j, sum2)
            store(triangle, row3 + j, sum3)


@compiled()
def _scalar_part(triangle, row, k, left, panels, i, first, last, w):
    for j in range(first, last):
        panel, value = j // w * w * k + j % w, np.float32(0)
        for a in range(k):
            value += left[i * k + a] * panels[panel + a * w]
        triangle[row + j] = value


def eigen_of_low_rank(values: Doubles, factors: Doubles) -> tuple[Doubles, Doubles]:
    """(λ (k,), orthonormal V (n, k)) with V·diag(λ)·Vᵀ = F·diag(values)·Fᵀ, for F = `factors` (n, k), k ≤ n.

    Largest |λ| first. F = Q·R reduces it to the k × k matrix R·diag(values)·Rᵀ. The vectors' signs are fixed as in
    `leading_eigenpairs`.
    """
    basis, upper = np.linalg.qr(factors)
    inner, rotation = np.linalg.eigh((upper * values) @ upper.T)
    order = np.argsort(-np.abs(inner), kind="stable")
    vectors = basis @ rotation[:, order]
    return inner[order], with_fixed_signs(vectors)
