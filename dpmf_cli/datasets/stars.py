"""Stars: the unit in which algorithms see ratings, whatever scale a site has.

The papers give their parameters (clamps, norms, learning rates, λ) for ratings from 1 to 5. A public affine map takes
any other scale there before a fit, and takes predictions and errors back after it. So the answers for ratings r and
a·r + b are the same. The map is public and keeps neighbours neighbours: an ε means the same before it and after it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Ratings, Scale

FIVE_STARS = Scale(1.0, 5.0)
"""The scale that algorithms see."""

GRID_TOLERANCE = 1e-3
"""Share of a step by which a float32 rating may miss its grid."""


@dataclass(frozen=True)
class Stars:
    """The map of one scale onto 1 to 5 stars."""

    scale: Scale

    @property
    def unit(self) -> float:
        """What one star is, in rating units."""
        return self.scale.width / FIVE_STARS.width

    def of(self, ratings: Ratings) -> Ratings:
        """The same ratings in stars: 1 + 4·(r − r_min)/Δr, rounded to float32.

        None is off 1 to 5, even where float32 is too coarse for the scale and takes a rating over its end.
        A rating on the grid of the scale is counted in whole steps first. So the stars do not depend on how well
        floats hold the step, or on the unit that the scale is written in.
        """
        scale = self.scale
        values = ratings.values.astype(np.float64) - scale.minimum
        width = scale.width
        if scale.step:
            values /= scale.step
            whole = np.rint(values)
            values = np.where(np.abs(values - whole) <= GRID_TOLERANCE, whole, values)
            width = float(np.rint(width / scale.step))
        stars = FIVE_STARS.minimum + FIVE_STARS.width * values / width
        stars = np.clip(stars, FIVE_STARS.minimum, FIVE_STARS.maximum)  # sensitivities count on it
        in_stars = replace(FIVE_STARS, step=FIVE_STARS.width / width if scale.step else 0.0)
        return replace(ratings, values=stars.astype(np.float32), scale=in_stars)

    def back(self, stars: NDArray[np.floating]) -> NDArray[np.float64]:
        """Predictions in stars, of any shape, in rating units."""
        return np.asarray(
            self.scale.minimum + self.unit * (np.asarray(stars, np.float64) - FIVE_STARS.minimum)
        )


def in_stars(scale: Scale) -> bool:
    """Whether ratings on that scale are stars already."""
    return (scale.minimum, scale.maximum) == (FIVE_STARS.minimum, FIVE_STARS.maximum)
