"""Stars: the unit in which algorithms see ratings, whatever scale a site has.

The papers give their parameters (clamps, norms, learning rates, λ) for ratings from 1 to 5. An affine map takes any
other scale to 1 to 5 before a fit, and takes predictions and errors back after it. So the answers for ratings r and
a·r + b are the same. The map is public, and neighbours stay neighbours: an ε means the same before and after the map.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings, Scale

FIVE_STARS = Scale(1.0, 5.0)
"""The scale that algorithms see."""

GRID_TOLERANCE = 1e-3
"""How far a float32 rating may be off its grid, as a share of a step."""


@dataclass(frozen=True)
class Stars:
    """The map of one scale onto 1 to 5 stars."""

    scale: Scale

    @property
    def unit(self) -> float:
        """One star in rating units."""
        return self.scale.width / FIVE_STARS.width

    def of(self, ratings: Ratings) -> Ratings:
        """Returns the same ratings in stars: 1 + 4·(r − r_min)/Δr, rounded to float32.

        All are within 1 to 5, even if float32 is too coarse for the scale and puts a rating over its end.
        A rating on the grid of the scale is first counted in whole steps. So the stars do not depend on how exactly
        floats represent the step, or on the unit of the scale.
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
        stars = np.clip(stars, FIVE_STARS.minimum, FIVE_STARS.maximum)  # sensitivities rely on it
        in_stars = replace(FIVE_STARS, step=FIVE_STARS.width / width if scale.step else 0.0)
        return replace(ratings, values=stars.astype(np.float32), scale=in_stars)

    def back(self, stars: NDArray[np.floating]) -> NDArray[np.float64]:
        """Converts predictions in stars, of any shape, to rating units."""
        return np.asarray(
            self.scale.minimum + self.unit * (np.asarray(stars, np.float64) - FIVE_STARS.minimum)
        )


def in_stars(scale: Scale) -> bool:
    """Whether ratings on that scale are stars already."""
    return (scale.minimum, scale.maximum) == (FIVE_STARS.minimum, FIVE_STARS.maximum)
