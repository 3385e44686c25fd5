"""ALS with objective perturbation, which Friedman et al. 2016, section 7, suggest."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.base import Variants, in_both_modes
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.algorithms.shared.private_least_squares import PrivateLeastSquares, RowMoves
from dpmf_cli.kernels.als import by_item, by_user, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams


class ObjectivePrivateALS(PrivateLeastSquares):
    """ALS with objective perturbation (Chaudhuri et al. 2011), as the paper's conclusion suggests. Bounded.

        p_u ← argmin J_Q(p_u) + 2·b·p_u = A⁻¹(Σ_i r̃_ui·q_i − b),  A = Σ_i q_i·q_iᵀ + n_u·λ·I

    A is public given the released Q, so this is K-norm noise on the vector Σ r̃·q, whose sensitivity is q_max·Δr
    (`sensitivity.least_squares_right_hand_side`). Since A ≥ n_u·λ·I, the noise on p_u is never larger than that of
    output perturbation at the same ε, and it is smaller the more items the user rated.
    """

    title: ClassVar[str] = "PALS, objective"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED)

    revision: ClassVar[int] = 2

    algorithm: Literal["pals_objective"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        effects = self.measure_effects(train, epsilons, curator)
        user_noises = self.noises("user", train, epsilons, curator)
        item_noises = self.noises("item", train, epsilons, curator)
        users, items = self.problem("user", train.scale), self.problem("item", train.scale)
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        model = self.start_within_norms(train, effects, streams)
        for of_users, of_items in zip(user_noises, item_noises, strict=True):
            of_users.inside(solve_perturbed, model, ratings_by_user, users, self.user_norm)
            of_items.inside(solve_perturbed, model, ratings_by_item, items, self.item_norm)
        return model

    def moves(self, side: Side, scale: Scale) -> RowMoves:
        _, other = self.norms(side)
        return RowMoves(sensitivity.least_squares_right_hand_side(other, self.bound(scale), scale))
