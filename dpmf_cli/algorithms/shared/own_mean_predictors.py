"""What stands beside a private covariance: averages alone, and a covariance that no data went into.

McSherry and Mironov 2009 have neither. Everything goes to the averages, so that the difference from `mm_knn` and
`mm_svd` *at the same ε* is what measuring a covariance is worth. At the same θ it is not, where noise is Gaussian:
μ is θ·√Σf_i², 0.98θ here and 0.81θ there.
"""

from pydantic import Field

from dpmf_cli.algorithms.shared.budget import Fractions


class ItemAveragesBudget(Fractions):
    """Fractions of θ: for both global averages, and the item averages."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.98, gt=0, lt=1)
