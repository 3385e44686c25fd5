"""How near what was measured is to what is printed: a verdict with a word, a sign and a colour of its own."""

from enum import StrEnum

RATIOS = (1.3, 1.5)
"""A crossing, or another ratio, agrees within the first factor of print, and is near within the second."""
DIFFERENCES = (0.005, 0.02)
"""An RMSE agrees where it is no further from print than the first, and is near within the second; rating units."""
POINTS = (5.0, 10.0)
"""A percentage agrees where it is no further from print than the first, and is near within the second; points."""
SHARES = (1.005, 1.05)
"""A count agrees within the first factor of print, and is near within the second."""


class Agreement(StrEnum):
    """The values are class names of the page's style sheet."""

    AGREES = "agrees"
    NEAR = "near"
    DIFFERS = "differs"
    MISSING = "missing"
    UNPRINTED = "unprinted"

    @property
    def sign(self) -> str:
        return {"agrees": "✓", "near": "≈", "differs": "✗", "missing": "?", "unprinted": "–"}[self.value]

    @property
    def meaning(self) -> str:
        """For the legend, and for a screen reader beside the sign."""
        return {
            "agrees": f"agrees: ratio within a factor {RATIOS[0]:g}, RMSE within {DIFFERENCES[0]:g}, "
            f"percentage within {POINTS[0]:g} points, count within {100 * (SHARES[0] - 1):.1f} %",
            "near": f"near: within a factor {RATIOS[1]:g}, {DIFFERENCES[1]:g}, {POINTS[1]:g} points, "
            f"or {100 * (SHARES[1] - 1):.0f} %",
            "differs": "differs: further away, or not reached in the grid of ε",
            "missing": "missing: printed, and nothing measured to hold against it",
            "unprinted": "measured, and nothing printed to hold against it",
        }[self.value]


def of_ratio(reproduced: float, printed: float) -> Agreement:
    """The agreement of two positive numbers by their ratio."""
    factor = max(reproduced / printed, printed / reproduced)
    return _within(factor, RATIOS)


def of_share(reproduced: float, printed: float) -> Agreement:
    """The agreement of two counts, or of means of them."""
    return _within(max(reproduced / printed, printed / reproduced), SHARES)


def of_difference(reproduced: float, printed: float) -> Agreement:
    """The agreement of two RMSE."""
    return _within(abs(reproduced - printed), DIFFERENCES)


def of_points(reproduced: float, printed: float) -> Agreement:
    """The agreement of two percentages."""
    return _within(abs(reproduced - printed), POINTS)


def _within(distance: float, bounds: tuple[float, float]) -> Agreement:
    # A thousandth of a bound for rounding: 0.9246 − 0.9196 is meant to be within 0.005.
    slack = [bound * 1.0001 for bound in bounds]
    if distance <= slack[0]:
        return Agreement.AGREES
    return Agreement.NEAR if distance <= slack[1] else Agreement.DIFFERS
