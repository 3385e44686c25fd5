"""Weighted products of items, for several models at once. Each row is released as soon as it is summed.

The float64 sums of a row lie side by side for all models of a group, and stay in the nearer caches. The terms are
computed from the averages of each model during the pass, so nothing is kept for each rating. With noise, eight models
of ML-1M take 0.5 s on one core, and one model 0.28 s. A clean triangle of `covariance.weighted_products` takes 0.3 s.
As in that function, the terms of an element are added one by one in the order of the users.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.covariance import Raters, place, triangle_size, weighted_products
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.lanes import add, clamp, doubles, load, mul, splat, store, sub
from dpmf_cli.kernels.releasing import ANCHOR
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel
from dpmf_cli.ratings import Ratings

AT_ONCE = 8
"""Most models of a group: one AVX-512 register of float64."""
BYTES_AT_ONCE = 1 << 31
"""Most bytes of a group's released triangles, two for each model, unless those of a single model take more."""


def measured_together(n_items: int) -> int:
    """Returns how many models are measured in one pass over the ratings: a power of two, within `BYTES_AT_ONCE`."""
    fit = BYTES_AT_ONCE // (2 * 4 * triangle_size(n_items))
    return min(AT_ONCE, 1 << max(fit, 1).bit_length() - 1)


@dataclass(frozen=True)
class Products:
    """Inputs and releases of Σ_u w_u v_ui v_uj, for every pair of items i ≤ j and each of E models.

    Here v_ui = clamp(r_ui − items_i − users_u, [−B, B]).

    values    (n_ratings,) r, float32, in the order of `ratings`
    weights   (n_users,) w
    items     (n_items, E) and users (n_users, E): what each model subtracts; or one column for all models
    clamp     B
    part      the place of the models in the grid
    released  (E, size) float32: a packed triangle for each model, which `release_products` fills
    """

    ratings: Ratings
    raters: Raters
    values: NDArray[np.float32]
    weights: NDArray[np.float64]
    items: NDArray[np.float64]
    users: NDArray[np.float64]
    clamp: float
    part: slice
    released: NDArray[np.float32]

    @property
    def groups(self) -> tuple["Products", ...]:
        """This group alone."""
        return (self,)

    @property
    def width(self) -> int:
        """How many lanes are summed, a power of two."""
        models: int = self.items.shape[1]
        return 1 << (models - 1).bit_length()


def _plain_products(products: Products, publish: Publish) -> None:
    """The plain twin. It measures a clean triangle for each model, and publishes all at once."""
    ratings, bound = products.ratings, products.clamp
    clean = np.empty((triangle_size(ratings.n_items), products.items.shape[1]))
    for lane in range(clean.shape[1]):
        left = products.values - products.items[ratings.items, lane] - products.users[ratings.users, lane]
        clipped = np.clip(left, -bound, bound)
        clean[:, lane] = weighted_products(ratings, products.raters, clipped, products.weights)
    products.released[:] = publish(np.broadcast_to(clean, (len(clean), len(products.released)))).T


@noisy_kernel(_plain_products)
def release_products(products: Products, noise: LaneNoise) -> None:
    """Sets released ← grid(Σ + noise) in float64, then rounds to float32; noise unit (size,)."""
    ratings, width = products.ratings, products.width
    _release_products(
        ratings.users,
        ratings.items,
        products.values,
        ratings.user_starts,
        products.raters.starts,
        products.raters.positions,
        products.weights,
        pad(products.items, width, np.float64).ravel(),
        pad(products.users, width, np.float64).ravel(),
        products.clamp,
        noise.unit,
        noise.scale,
        ANCHOR * noise.grid,
        products.released,
        (0,) * width,
    )


@compiled(
    example(
        weights=[1.0, 0.5, 1.0, 0.25],
        item_averages=lambda s: 3.5 + numbers(ITEMS * s.w),
        user_averages=lambda s: numbers(USERS * s.w),
        unit=numbers(triangle_size(ITEMS)),
        scales=lambda s: np.linspace(0.3, 0.7, 2 * s.w),
        anchors=lambda s: np.full(2 * s.w, 1.5 * 2.0**22),
        out=lambda s: np.zeros((2 * s.w, triangle_size(ITEMS))),
    )
)
def _release_products(
    users,
    items,
    values,
    user_starts,
    item_starts,
    positions,
    weights,
    item_averages,
    user_averages,
    bound,
    unit,
    scales,
    anchors,
    out,
    width_of,
):
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
            left = sub(sub(splat(values[first], like), own), mean)
            factor = mul(splat(weights[user], like), clamp(left, low, high))
            for y in range(first, user_starts[user + 1]):
                at = np.int64(items[y]) * w
                left = sub(sub(splat(values[y], like), load(item_averages, at, like)), mean)
                term = mul(factor, clamp(left, low, high))
                store(sums, at, add(load(sums, at, like), term))
        row = place(i, i, n_items) - i
        for lane in range(len(out)):
            scale, anchor, released = scales[lane], anchors[lane], out[lane]
            for j in range(i, n_items):
                clean = sums[j * w + lane % w]
                released[row + j] = np.float32(clean + scale * unit[row + j] + anchor - anchor)
