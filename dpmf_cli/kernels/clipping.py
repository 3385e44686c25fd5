"""Clipping in float32."""

import numpy as np

GUARD = np.float32(1 - 2**-11)
"""Clipping aims so far below a limit, which rounding then cannot exceed: a float32 sum of m squares, one added after
the other, is too small by m·2⁻²⁴ of itself at most, its root by half of that."""
