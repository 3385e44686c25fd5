"""Grids: the numbers that a release may be, whatever the data.

A program adds floats where a proof adds real numbers. Because the low bits of a float sum tell which numbers were
added (Mironov 2012), every release is rounded to the multiples of a grid g that follows from the noise's scale s
alone:

    g = 2^(⌊log₂ s⌋ − 10),   so that s/2048 < g ≤ s/1024
    the released number is g·rint((c + s·X)/g), for the clean number c and the unit noise X, in float64

*Lemma.* Let Y = c + s·X in real arithmetic, where X has the density exp(−|x|)/2. Let the vectors c of two neighbours
be Δ apart in L1, and differ in m coordinates. In real arithmetic rounding comes after the mechanism, and so costs
nothing. A cell is the set of numbers that are rounded to one multiple of g: an interval of X that is wider than 2⁻¹¹.
In the program the probability of a cell differs from the real one for three reasons:

    1. s·X and c + s·X are rounded. Both roundings are monotone, and the ends of a cell, (k ± ½)·g, are floats. An end
       moves by at most 2⁻⁵²·(|X| + |c|/s). So the probability is off by a factor 1 ± 2⁻⁴⁰·(|X| + |c|/s).
    2. X itself is one of finitely many floats. NumPy's ziggurats (`standard_exponential`, `standard_normal`) give a
       multiple of w·2⁻⁵³ (2⁻⁵² for the normal), where w ≤ 7.7 is the width of the layer. A cell holds more than 2³⁹
       such multiples, and is off by one at either end: by a factor 1 ± 2⁻³⁸.
    3. Beyond the last layer (|X| > 7.69 or 3.65) X is a logarithm of a 53-bit uniform. The probability that X lies
       there is 2⁻¹¹. Each of some 2¹⁷ cells is off by 2⁻⁵³ of that: together by 2⁻⁴⁸ in total variation.

The loss between neighbours is therefore at most Δ/s + m·(2⁻³⁵ + 2⁻³⁹·|c|/s), apart from a δ of m·2⁻⁴⁷.

*Gaussian noise.* A factor 1 ± r for every cell turns (ε, δ) into at most (ε + 2r, δ·(1 + r)), summed over coordinates
as above.

*K-norm noise* is a direction, made of normal numbers, times a length (`standard_gamma`, whose floats come from normal
numbers and logarithms). Each coordinate has the errors 1 to 3, and a cell of d coordinates has d times as much.

*Sums.* Where c is a sum of n floats, each of the two neighbours' sums is off by n·2⁻⁵³·Σ|terms| at most. For n = 2¹⁹
ratings of one item, this puts the two sums further apart by 2⁻¹⁴ of a term. Sums over all ratings use pairwise
summation, so n stands for 10² there: the sums of 10⁸ ratings are as exact.

`MARGIN` pays for all of this: every scale is larger than the proof asks for by that fraction. It is enough where
m·2⁻³⁵ ≤ 2⁻¹³·ε, as for 10⁵ numbers at ε = 0.03. Where more numbers move (the covariance of a user with thousands of
ratings) the loss is larger by m·2⁻³⁵, which is 10⁻⁴ for three million numbers. `MARGIN` does not pay for the δ.

*Lemma for solutions.* Suppose that the released numbers are the solution p(η) of a perturbed objective in a ball of
radius R, and that the Hessians A ≥ wI of two neighbours differ. A grid for the noise would tell the neighbours apart,
since p would lie on the lattice A⁻¹·g·Zᵈ. So the noise is not rounded, and p itself is put on the grid of R,
h > 2⁻¹¹·R. The proof is about
densities of p(η) in real arithmetic, and rounding comes after it. Because the program's p is off by δ, the
probability of a cell lies between two real probabilities: of the cell less a border of δ, and of the cell plus a
border of δ. Inside the ball, and where the density hardly changes within a cell, the logarithm of the probability is
off by 4d·δ/h at most:

    1. The noise is off by 2⁻⁵³ of itself. A cell is at least h·w wide in η, and holds about 2³⁸ floats in each
       coordinate.
    2. The sums and Cholesky's solution are off by δ/R ≤ 2d²·2⁻⁵³·(1 + n·q²/w) for n ratings (`kernels.als`).

The ridge that pays for the determinant has q²/w ≤ exp(share·ε) − 1. So at a small ε the loss is off by
n·d³·2⁻³⁹·share·ε. For n = 10⁵, d = 10 and a share of 0.1 this is 2⁻¹⁵·ε, which is less than `MARGIN`·ε. A cell on the
sphere may reach into the ball by less than its border. The probability of such cells, about d·δ/h, is a δ that no
margin pays for: 10⁻⁵·ε for these numbers at worst.
"""

import numpy as np

from dpmf_cli.core.arrays import Doubles

FINENESS = 10
"""A grid is between 2⁻¹¹ and 2⁻¹⁰ of the noise's scale: its rounding adds 10⁻⁷ to the noise's variance."""

MARGIN = 2.0**-12
"""The fraction by which scales are larger than proofs about real numbers ask for: it pays for rounding."""

FINEST = 2.0**-950
"""The grid where there is no noise: all numbers below 2⁷⁰ are on it, to the last bit."""


def grid_of(scale: Doubles) -> Doubles:
    """(E,) the grid for noise of each `scale` (E,): a power of two."""
    _, exponent = np.frexp(scale)
    grid = np.ldexp(1.0, exponent - 1 - FINENESS)
    return np.asarray(np.where(scale > 0, np.maximum(grid, FINEST), FINEST))


def on_grid(numbers: Doubles, grid: Doubles) -> Doubles:
    """(…, E) the multiples of `grid` (E,) nearest to `numbers` (…, E); ties go to the even one, −0 to 0."""
    return np.asarray(np.rint(numbers / grid) * grid + 0.0)
