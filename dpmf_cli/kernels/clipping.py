"""Clipping in float32."""

import numpy as np

GUARD = np.float32(1 - 2**-11)
"""Clipping aims at a limit times this, so that rounding cannot exceed the limit. A float32 sum of m squares, added
one after the other, is too small by at most m·2⁻²⁴ of itself, and its root by at most half of that."""
