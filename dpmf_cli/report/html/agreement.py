"""Judges how near measured values are to printed ones. Each verdict has its own word, sign and colour.

The tolerances were fixed on 2026-11-21 in 00cdf1a. Percentages had 5 and 10 points until 2026-11-23.
"""

from enum import StrEnum

from dpmf_cli.papers.printed import load

RATIOS = (1.3, 1.5)
"""A crossing, or another ratio, agrees within the first factor of the printed one, and is near within the second."""
DIFFERENCES = (0.005, 0.02)
"""An RMSE agrees within the first distance of the printed one, and is near within the second; rating units."""
POINTS = (100 * load("neera2020")["tolerances"]["improvement"], 5.0)
"""A percentage agrees within the first distance of the printed one, which is that of the paper's claims, and is near
within the second; points."""
SHARES = (1.005, 1.05)
"""A count agrees within the first factor of the printed one, and is near within the second."""


class Agreement(StrEnum):
    """A verdict. The values are class names of the page's style sheet."""

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
        """The words for the legend, and for a screen reader beside the sign."""
        return {
            "agrees": f"agrees: ratio within a factor {RATIOS[0]:g}, RMSE within {DIFFERENCES[0]:g}, "
            f"percentage within {POINTS[0]:g} points, count within {100 * (SHARES[0] - 1):.1f} %",
            "near": f"near: within a factor {RATIOS[1]:g}, {DIFFERENCES[1]:g}, {POINTS[1]:g} points, "
            f"or {100 * (SHARES[1] - 1):.0f} %",
            "differs": "differs: further away, or not reached in the grid of ε",
            "missing": "missing: printed, but not measured",
            "unprinted": "measured, but not printed",
        }[self.value]


def of_ratio(reproduced: float, printed: float) -> Agreement:
    """Judges two positive numbers by their ratio."""
    factor = max(reproduced / printed, printed / reproduced)
    return _within(factor, RATIOS)


def of_share(reproduced: float, printed: float) -> Agreement:
    """Judges two counts, or two means of counts."""
    return _within(max(reproduced / printed, printed / reproduced), SHARES)


def of_difference(reproduced: float, printed: float) -> Agreement:
    """Judges two RMSE."""
    return _within(abs(reproduced - printed), DIFFERENCES)


def of_points(reproduced: float, printed: float) -> Agreement:
    """Judges two percentages."""
    return _within(abs(reproduced - printed), POINTS)


def _within(distance: float, bounds: tuple[float, float]) -> Agreement:
    # A ten-thousandth of the bound is added for rounding: 0.9246 − 0.9196 counts as within 0.005.
    slack = [bound * 1.0001 for bound in bounds]
    if distance <= slack[0]:
        return Agreement.AGREES
    return Agreement.NEAR if distance <= slack[1] else Agreement.DIFFERS
