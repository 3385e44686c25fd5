"""Item-item matrices of weighted products, Σ_u w_u v_u v_uᵀ, as packed upper triangles.

McSherry and Mironov 2009, section 4.4: Cov = Σ_u w_u r̂_u r̂_uᵀ and Wgt = Σ_u w_u e_u e_uᵀ. Both are symmetric, so
each unordered pair of items is held, measured and given noise once. A triangle is n(n + 1)/2 numbers: row i holds
the elements (i, i) … (i, n − 1), and the rows follow each other.

A matrix is summed row by row (Gustavson 1978), so that a row's sums stay in the nearest cache. That is faster than
user by user, or in blocks of users through dense BLAS. The terms of an element are added one by one in the order of
the users. So its bytes depend on nothing else.

For several models at once, each row is released as soon as it is summed. The float64 sums of a row lie side by
side for all models of a group. The terms are computed from the averages of each model during the pass, so nothing is
kept for each rating.
"""

from dataclasses import dataclass

import numpy as np

from dpmf_cli.core.arrays import Doubles, Singles
from dpmf_cli.core.compiled.lane_groups import LaneGroup, pad
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, ROWS, USERS, example, numbers, triangle
from dpmf_cli.kernels.lane_math import clamp, fma, total
from dpmf_cli.kernels.lanes import doubles, load, splat, store
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
    """Returns the place in a packed triangle of the element of the unordered pair {i, j}. i, j: int64."""
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

    Entries are shrunk to this average. Noise is equally large on every entry, so this estimate counts an entry by its
    weight. In ΣCov/ΣWgt, millions of empty entries would add nothing but noise (3.4 times as much on ML-1M).

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
    """Shrinks entries with SIMD.

    NumPy's error model leaves out the test for a zero divisor. That test would prevent SIMD.
    """
    for x in range(len(covariance)):
        covariance[x] = (covariance[x] + pull * average) / (weight[x] + pull)


AT_ONCE = 8
"""Most models of a group: one AVX-512 register of float64."""
BYTES_AT_ONCE = 1 << 31
"""Most bytes of a group's released triangles, two for each model, unless those of a single model take more."""


def measured_together(n_items: int) -> int:
    """Returns how many models are measured in one pass over the ratings: a power of two, within `BYTES_AT_ONCE`."""
    fit = BYTES_AT_ONCE // (2 * 4 * triangle_size(n_items))
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
    """The plain twin. It measures a clean triangle for each model, and publishes all at once."""
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
        unit=numbers(triangle_size(ITEMS)),
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
