"""A model without noise on the sample that personalised privacy draws."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from dpmf_cli.algorithms.baselines.als import AlternatingLeastSquares
from dpmf_cli.algorithms.baselines.pmf import ProbabilisticMF
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.sample_fits import (
    AroundABase,
    Columns,
    fit_samples,
    refuse_what_a_base_ignores,
    sample,
    sampling_probability,
)
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import tagged

CleanBase = ProbabilisticMF | AlternatingLeastSquares


class Sampled(AroundABase):
    """Fits a model without noise on the very sample that `Personalized` draws at a ceiling of ε_l or more.

    It shows what sampling alone costs: with equal parameters, both methods start from the same factors and use the
    same batches.
    """

    title: ClassVar[str] = "Sampled"

    algorithm: Literal["sampled"]
    base: Annotated[CleanBase, Field(discriminator="algorithm"), BeforeValidator(tagged)]

    @model_validator(mode="after")
    def _keep_the_base_bare(self) -> Self:
        refuse_what_a_base_ignores(self.base)
        return self

    @property
    def default_name(self) -> str:
        return f"{self.base.title} on the sample"

    @classmethod
    def fit_together(
        cls,
        entries: Sequence[Self],
        train: Ratings,
        grids: Sequence[Epsilons],
        *,
        streams: Streams,
        curators: Sequence[Curator],
    ) -> list[Model]:
        """Fits the samples of all entries side by side, in one fit of the base that they share."""
        streams = replace(streams, algorithm="personalized")
        samples = []
        for entry in entries:
            asked = entry.stated_epsilons(train, streams)[:, None]
            thresholds = entry.thresholds(asked[:, 0], np.array([np.inf]))
            samples.append(sample(train, sampling_probability(asked, thresholds), streams))
        epsilons = np.concatenate(grids)
        kept = np.concatenate(samples, axis=1)
        model = fit_samples(entries[0].base, train, kept, epsilons, streams=streams, curator=curators[0])
        return [Columns(model, slice(at, at + 1)) for at in range(len(entries))]

    def cost(self, shape: Shape, grid: int) -> Cost:
        base = self.base.cost(shape, grid)
        return Cost(base.seconds + 1e-7 * shape.ratings, base.bytes + 40.0 * shape.ratings)
