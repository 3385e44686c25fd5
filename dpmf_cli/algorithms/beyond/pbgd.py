"""PBGD: batch gradient descent with joint clipping, a direction that Friedman et al. 2016 name in section 7."""

from typing import ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.base import Variants, in_both_modes
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import NormBoundedFactorization
from dpmf_cli.kernels.clipped_gradients import BatchStep, step_batch
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivateBatchGradientDescent(NormBoundedFactorization):
    """In each of k steps, errors e are clamped so that ‖e·q_i‖ + ‖e·p_u‖ ≤ C for every rating:

        p_u ← (1 − γλ)·p_u + γ(Σ_i e·q_i + noise),   q_i ← (1 − γλ)·q_i + γ(Σ_u e·p_u + noise),   then the norm bounds

    One rating touches only two rows. K-norm noise for the sum of the rows' L2 norms has length Gamma(d, k·Δ/ε) in
    every row, with Δ = C unbounded and 2C bounded (`sensitivity.clipped_gradients`). It covers both sides at once.
    Every row gets noise, rated or not, and no scale depends on private counts, so ε is provable for both kinds of
    neighbours.
    """

    title: ClassVar[str] = "PBGD"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)

    revision: ClassVar[int] = 2

    algorithm: Literal["pbgd"]
    learning_rate: float = Field(0.02, gt=0, le=1, description="γ, on sums of gradients")
    epochs: int = Field(5, ge=1, description="k: steps, each with ε/k")
    clip: float = Field(
        0.5, ge=1e-6, le=1e6, description="C: the most that one rating may add to both gradients together"
    )

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        effects = self.measure_effects(train, epsilons, curator)
        steps = repeated_k_norm(
            "gradients",
            (train.n_users + train.n_items, self.factors),
            repetitions=self.epochs,
            sensitivity=sensitivity.clipped_gradients(self.clip, self.neighbours),
            epsilon=self.for_factors(epsilons),
            curator=curator,
        )
        model = self.start_within_norms(train, effects, streams)
        bound = self.bound(train.scale)
        step = BatchStep(
            self.learning_rate, self.regularization, bound, self.clip, self.user_norm, self.item_norm
        )
        for gradients in steps:
            gradients.inside(
                step_batch,
                model,
                train,
                step,
            )
        return model
