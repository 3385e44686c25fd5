"""PCC: item kNN with Pearson correlations, without noise. Wang and Tang 2017, section 5.1."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.correlation import CorrelationKNN, over_co_raters
from dpmf_cli.ratings import Ratings


class PearsonKNN(CorrelationKNN):
    """s_ij = Σ_u (r_ui − r̄_i)(r_uj − r̄_j)/√(Σ_u (r_ui − r̄_i)²·Σ_u (r_uj − r̄_j)²).

    All sums run over the users who rated both items.
    """

    title: ClassVar[str] = "PCC"
    algorithm: Literal["pcc"]

    def similarities(
        self, train: Ratings, averages: NDArray[np.float64]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        return over_co_raters(train, train.values.astype(np.float64) - averages[train.items])
