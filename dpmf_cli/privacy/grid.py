"""Grids: which numbers a release may be, whatever the data.

A program adds floats where a proof adds real numbers. The low bits of a float sum tell which numbers were added
(Mironov 2012), so every release is rounded to the multiples of a grid g that follows from the noise's scale s alone:

    g = 2^(⌊log₂ s⌋ − 10),   so that s/2048 < g ≤ s/1024
    what is released is g·rint((c + s·X)/g), for the clean number c and the unit noise X, in float64

*Lemma.* Let Y = c + s·X in real arithmetic, X with the density exp(−|x|)/2, and let neighbours' vectors c be Δ apart
in L1, in m coordinates. In real arithmetic rounding comes after the mechanism, and costs nothing. A cell is what is
rounded to one multiple of g: an interval of X that is wider than 2⁻¹¹. The program has another chance of a cell:

    1. s·X and c + s·X are rounded. Both roundings are monotone, and the ends of a cell, (k ± ½)·g, are floats. An end
       moves by at most 2⁻⁵²·(|X| + |c|/s): the chance is off by a factor 1 ± 2⁻⁴⁰·(|X| + |c|/s).
    2. X itself is one of finitely many floats. NumPy's ziggurats (`standard_exponential`, `standard_normal`) give a
       multiple of w·2⁻⁵³ (2⁻⁵² for the normal), w ≤ 7.7 being the width of the layer. A cell holds more than 2³⁹ of
       them, and is off by one at either end: by a factor 1 ± 2⁻³⁸.
    3. Beyond the last layer (|X| > 7.69 or 3.65) X is a logarithm of a 53-bit uniform. Each of some 2¹⁷ cells is off
       by 2⁻⁵³ of what is beyond, 2⁻¹¹: together by 2⁻⁴⁸ in total variation.

The loss between neighbours is therefore at most Δ/s + m·(2⁻³⁵ + 2⁻³⁹·|c|/s), but for a δ of m·2⁻⁴⁷.

*Gaussian noise.* A factor 1 ± r for every cell makes of (ε, δ) at most (ε + 2r, δ·(1 + r)), summed over coordinates
as above. *K-norm noise* is a direction, of normal numbers, times a length (`standard_gamma`, whose floats come from
normal numbers and logarithms): each coordinate has the errors of 1 to 3, and a cell of d coordinates d times as much.

*Sums.* Where c is a sum of n floats, each of two neighbours' sums is off by n·2⁻⁵³·Σ|terms| at most. They are
further apart by 2⁻¹⁴ of a term for n = 2¹⁹ ratings of one item. Sums over all ratings are added by pairs, so that n
stands for 10²: 10⁸ ratings are as exact.

`MARGIN` pays for all of this: every scale is larger by that part than the proof asks for. It is enough where
m·2⁻³⁵ ≤ 2⁻¹³·ε, as for 10⁵ numbers at ε = 0.03. Where more numbers move (the covariance of a user with thousands of
ratings) the loss is larger by m·2⁻³⁵, 10⁻⁴ for three million. The δ is not paid for.

*Lemma for solutions.* Where what is released is the solution p(η) of a perturbed objective in a ball of radius R,
and neighbours' Hessians A ≥ wI differ, a grid for the noise would tell them apart: p would be on the lattice
A⁻¹·g·Zᵈ. There the noise is not rounded, and p is put on the grid of R, h > 2⁻¹¹·R. The proof is about densities of
p(η) in real arithmetic; rounding comes after. The program's p is off by δ. So a cell's chance lies between the real
ones of the cell less and plus a border of δ, and inside the ball its logarithm is off by 4d·δ/h at most where the
density hardly changes within a cell:

    1. the noise is off by 2⁻⁵³ of itself; a cell is h·w wide in η at least, and holds about 2³⁸ floats a coordinate
    2. the sums and Cholesky's solution are off by δ/R ≤ 2d²·2⁻⁵³·(1 + n·q²/w) for n ratings (`kernels.als`)

The ridge that pays for the determinant has q²/w ≤ exp(share·ε) − 1. So at a small ε the loss is off by
n·d³·2⁻³⁹·share·ε, for n = 10⁵, d = 10 and a share of 0.1 by 2⁻¹⁵·ε: `MARGIN` is more. On the sphere a cell may be
grazed in less than its border. This has a chance of about d·δ/h, which is a δ that no margin pays for: 10⁻⁵·ε for
these numbers at worst.
"""

import numpy as np
from numpy.typing import NDArray

FINENESS = 10
"""A grid is 2⁻¹⁰ of the noise's scale, or up to half of that: its rounding adds 10⁻⁷ to the noise's variance."""

MARGIN = 2.0**-12
"""By which part scales are larger than proofs about real numbers ask for: what rounding may cost is paid from it."""

FINEST = 2.0**-950
"""The grid where there is no noise: all numbers below 2⁷⁰ are on it, to the last bit."""


def grid_of(scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """(E,) the grid of noise of each scale (E,): a power of two."""
    _, exponent = np.frexp(scale)
    grid = np.ldexp(1.0, exponent - 1 - FINENESS)
    return np.asarray(np.where(scale > 0, np.maximum(grid, FINEST), FINEST))


def on_grid(numbers: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…, E) the multiples of `grid` (E,) nearest to `numbers` (…, E); a tie goes to the even multiple, −0 is 0."""
    return np.asarray(np.rint(numbers / grid) * grid + 0.0)
