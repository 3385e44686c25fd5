"""COS: item kNN with cosines, without noise. Wang and Tang 2017, section 5.1."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.correlation import CorrelationKNN, over_co_raters, over_norms
from dpmf_cli.algorithms.shared.neighbourhood import by_user, item_products
from dpmf_cli.ratings import Ratings


class CosineKNN(CorrelationKNN):
    """s_ij = Σ_u r_ui·r_uj/√(Σ_u r_ui²·Σ_u r_uj²).

    The sum of products runs over the users who rated both items. The paper does not say which users the sums of
    squares run over. With all raters of an item, its similarity to items with few common raters is small, which is
    more accurate.
    """

    title: ClassVar[str] = "COS"
    algorithm: Literal["cos"]
    over: Literal["raters", "co_raters"] = Field(
        "raters", description="the users over whom squares are summed: raters of the item, or of both items"
    )

    def similarities(
        self, train: Ratings, averages: NDArray[np.float64]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        values = train.values.astype(np.float64)
        if self.over == "co_raters":
            yield from over_co_raters(train, values)
            return
        norms = np.sqrt(np.bincount(train.items, values**2, train.n_items))
        ratings = by_user(train, values)
        for items, products in item_products(ratings, ratings):
            yield items, over_norms(products, norms[items, None] * norms)
