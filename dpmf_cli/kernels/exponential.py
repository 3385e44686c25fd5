"""The exponential function in lanes."""

import numpy as np

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.lanes import add, clamp, fma, mul, splat, sub, times_power, zeros


@compiled()
def exponential(x, width_of):
    """Returns eˣ in every lane for x ≤ 0, to a few units of the last place. Below −87 it is e⁻⁸⁷.

    x = n·ln 2 + r with |r| ≤ (ln 2)/2. A polynomial gives eʳ (Cephes, Moshier 1989).
    """
    like = zeros(width_of)
    x = clamp(x, splat(np.float32(-87), like), like)
    magic = splat(np.float32(12582912), like)  # 1.5·2²³: a sum with it is rounded to a whole number
    shifted = fma(x, splat(np.float32(1.44269504), like), magic)
    n = sub(shifted, magic)
    r = fma(n, splat(np.float32(-0.693359375), like), x)
    r = fma(n, splat(np.float32(2.12194440e-4), like), r)
    y = splat(np.float32(1.9875691500e-4), like)
    y = fma(y, r, splat(np.float32(1.3981999507e-3), like))
    y = fma(y, r, splat(np.float32(8.3334519073e-3), like))
    y = fma(y, r, splat(np.float32(4.1665795894e-2), like))
    y = fma(y, r, splat(np.float32(1.6666665459e-1), like))
    y = fma(y, r, splat(np.float32(5.0000001201e-1), like))
    y = add(fma(y, mul(r, r), r), splat(np.float32(1), like))
    return times_power(y, shifted)
