"""ISGD in the local model. Neera et al. 2020, section 4."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import visiting_order
from dpmf_cli.algorithms.shared.local_model import LocalFactorization
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.sgd import Sgd, descend_values
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.privacy.local_mechanisms import Mechanism


class LocalSGD(LocalFactorization):
    """ISGD in the local model, without averages. Section 4:

        r*_ui = clamp(r_ui + Laplace(1/ε), [0, 1])           on the device, once
        (P, Q) = SGD on Σ (r*_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²)

    The paper prints none of its parameters, and its improvements over ISGD depend on them
    (docs/papers/neera2020.md). The defaults here are unregularised.
    """

    title: ClassVar[str] = "ISGD, local"
    paper: ClassVar[Paper] = Paper.NEERA
    revision: ClassVar[int] = 2
    small: ClassVar[Mapping[str, Any]] = {"epochs": 3}
    by_rating: ClassVar[bool] = True

    algorithm: Literal["isgd_local"]
    mechanism: Mechanism = Field(Mechanism.LAPLACE, description="what a device does to each rating")
    factors: int = Field(20, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.0, ge=0, description="λ; not in the paper")
    learning_rate: float = Field(0.05, gt=0, le=1, description="γ, on [0, 1]; not in the paper")
    epochs: int = Field(30, ge=1, description="not in the paper")
    order: Literal["user_major", "shuffled"] = "user_major"

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        descend_values(
            model,
            received.users,
            received.items,
            visiting_order(received, self.order, streams.generator("order of visits")),
            received.values,
            Sgd(self.learning_rate, self.regularization, epochs=self.epochs),
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        visits = self.epochs * shape.ratings * len(groups(grid))
        return super().cost(shape, grid) + Cost(visits * self.factors * 2.8e-9, 8.0 * shape.ratings)
