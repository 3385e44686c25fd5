"""Grids: which numbers a release may be, whatever the data.

A program adds floats where a proof adds real numbers. The low bits of a float sum tell which numbers were added
(Mironov 2012), so every release is rounded to the multiples of a grid g that follows from the noise's scale s alone:

    g = 2^(⌊log₂ s⌋ − 10),   so that s/2048 < g ≤ s/1024
    what is released is g·rint((c + s·X)/g), for the clean number c and the unit noise X, in float64

*Lemma.* Let Y = c + s·X in real arithmetic, X with the density exp(−|x|)/2, and let neighbours' vectors c be Δ apart
in L1, in m coordinates. In real arithmetic rounding comes after the mechanism: it costs nothing. The program differs
from it by which X round to a cell, an interval of X that is g/s > 2⁻¹¹ wide:

    1. s·X and c + s·X are rounded once each. Both roundings are monotone, and the ends of a cell, (k ± ½)·g, are
       floats: an end moves by 2⁻⁵³·(2|c| + 2|s·X|)/s in X.
    2. X itself is one of finitely many floats. NumPy's ziggurats (`standard_exponential`, `standard_normal`) give a
       multiple of w·2⁻⁵³ (2⁻⁵² for the normal), w ≤ 7.7 being the width of the layer: the number of floats in a cell
       is off by one at either end, of 2⁵³·2⁻¹¹/7.7 > 2³⁹.
    3. Beyond the last layer (|X| > 7.69 or 3.65) X is a logarithm of a 53-bit uniform. Its law is within 2⁻⁵⁰ in
       total variation.

For |c| ≤ 2¹⁰·s the chance of a cell is therefore its real one times 1 ± 2⁻³⁸, but for 2⁻⁵⁰ in all, and the loss
between neighbours is at most Δ/s + m·2⁻³⁷, but for a δ of m·2⁻⁴⁹. For a larger |c| the first is m·2⁻⁴¹·|c|/s.

Where c is a sum of n floats, neighbours' sums may be n·2⁻⁵³·Σ|terms| further apart than in real arithmetic: 2⁻¹³ of
a term at n = 2²⁰. `MARGIN` pays for all of this: every scale is larger by that part than the proof asks for.

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
