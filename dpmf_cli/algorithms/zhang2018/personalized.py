"""Personalised differential privacy around any algorithm that hides the presence of a rating, and its clean twin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.beyond.perturbed_factorizations import PrivateBatchGradientDescent
from dpmf_cli.algorithms.friedman2016.isgd import InputPerturbationSGD
from dpmf_cli.algorithms.friedman2016.pals import PrivateALS
from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.algorithms.friedman2016.psgd import PrivateSGD
from dpmf_cli.algorithms.shared.base import Choices, Paper, PrivateAlgorithm, Variants, Where, in_both_modes
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.model import Model, RecordCosts
from dpmf_cli.algorithms.shared.sample_fits import (
    AroundABase,
    Columns,
    Draw,
    replaced_epsilon,
    sampled_epsilon,
)
from dpmf_cli.algorithms.zhang2018.dp_pmf import PrivatePMF
from dpmf_cli.core.strict_model import tagged
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import RECORDS_APART, Mode, Neighbours
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.privacy.sensitivity import moved_by_presence

PrivateBase = (
    PrivatePMF
    | InputPerturbationSGD
    | PrivateALS
    | PrivateSGD
    | PrivateBatchGradientDescent
    | PrivateGlobalEffects
)
"""The algorithms that can be personalised. They hide the presence of a rating by pure ε-DP in all predictions. The
one exception is published `dp_pmf`, which is joint; the paper personalises it.

`pknn` and `mm_*` are joint too and are not offered: a user's predictions contain that user's own clean ratings, so a
record's ε would hold only against everybody else. `psgd` has no corrected mode for unbounded neighbours.
"""


@dataclass(frozen=True)
class PersonalModel:
    """The base's model, and what it cost the records."""

    model: Model
    record_costs: RecordCosts

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        return self.model.predict(users, items)


class Personalized(AroundABase, PrivateAlgorithm):
    """PDP by sampling. Zhang et al. 2018, definition 5, algorithm 1, theorem 6; Jorgensen et al. 2015.

        every record (u, i) that asks for ε_ui enters the sample with probability
            1 where ε_ui ≥ t,   (e^{ε_ui} − 1)/(e^t − 1) below;
        the base algorithm is fitted on the sample with ε = t, for neighbours that differ in the presence of a rating

    Record (u, i) is then hidden by min(ε_ui, t) (definition 3). An ε of the grid is a *ceiling*: ε_ui ← min(ε_ui, ε),
    so that no record spends more than ε. One curve thus leads from uniform privacy (ε = ε_c, where nothing is sampled
    away) to the specification itself (ε ≥ ε_l; the paper's figures are at ε_l). The ledger lists the base's steps,
    which add up to t ≤ ε. `RecordCosts` says how much the records do spend; these are exact statistics of the
    ratings, not to be released.

    For bounded neighbours (remark 7), the same algorithm runs. Another value is one record less and one more, so the
    value of record (u, i) is hidden by 2·min(ε_ui, t). The ledger claims twice the base's ε, and the ceiling is on
    2ε_ui. For a record with ε_ui < t, a smaller ε is provable (`replaced_epsilon`). A base that hides only values
    would not do: it would show which records are sampled, and sampling would gain nothing.
    """

    title: ClassVar[str] = "Personalised"
    paper: ClassVar[Paper] = Paper.ZHANG
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    averaged: ClassVar[bool] = False
    why_no_twin: ClassVar[str] = (
        "a personalised algorithm has no twin, because its records set their own ε; remove `twins`, and add "
        "`sampled` to `baselines`"
    )
    revision: ClassVar[int] = 2
    joint: ClassVar[bool | Where] = Where(lambda entry: entry.base.joint, "where its base is")
    small: ClassVar[Mapping[str, Any]] = {
        "epsilon_conservative": 0.5,
        "epsilon_moderate": 1,
        "epsilon_liberal": 2,
        "threshold": 1,
    }

    algorithm: Literal["personalized"]
    neighbours: Neighbours = Neighbours.UNBOUNDED
    base: Annotated[PrivateBase, Field(discriminator="algorithm"), BeforeValidator(tagged)] = Field(
        description="the unbounded algorithm that is fitted on the sample; it inherits mode and effects"
    )

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        bases = [each for each in get_args(PrivateBase) if (Neighbours.UNBOUNDED, mode) in each.variants]
        return (tuple({"base": {"algorithm": each.key(), **each.small_in(mode)}} for each in bases),)

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(base := tagged(data.get("base")), dict):
            return data
        given = {key: data[key] for key in ("mode", "effects") if key in data}
        return {**data, "base": {"neighbours": Neighbours.UNBOUNDED, **given, **base}}

    @model_validator(mode="after")
    def _provable_where_corrected(self) -> Self:
        if (self.base.neighbours, self.base.mode) != (Neighbours.UNBOUNDED, self.mode):
            raise PydanticCustomError(
                "base",
                "`base` must hide presence (neighbours: unbounded), in the same mode as the entry around it",
            )
        if self.mode is Mode.CORRECTED and not self.threshold_is_public:
            raise PydanticCustomError(
                "threshold",
                "the {threshold} of a column depends on which ratings there are: give a number as `threshold`",
                {"threshold": self.threshold},
            )
        return self

    @property
    def default_name(self) -> str:
        return f"{self.base.title}, personalised"

    @property
    def source(self) -> str:
        """The paper, which personalises its own DP-PMF; around another paper's method, both papers."""
        own = self.base.paper is self.paper
        return self.paper if own else f"{self.paper} around {self.base.paper}"

    @property
    def protects(self) -> Protection:
        unbounded = self.neighbours is Neighbours.UNBOUNDED
        return Protection.PERSONALISED if unbounded else Protection.PERSONALISED_VALUE

    @property
    def changes(self) -> int:
        return RECORDS_APART[self.neighbours]

    def accounted(self, draw: Draw, model: Columns, account: Ledger, ledger: Ledger) -> PersonalModel:
        columns = model.columns
        for step in account.entries:
            provable = self.changes * step.provable[columns]
            ledger.spend(
                step.step,
                f"{step.mechanism}, on a sample",
                moved_by_presence(step.sensitivity, self.neighbours),
                self.changes * step.claimed[columns],
                provable if self.threshold_is_public else np.full_like(provable, np.inf),
                calibrated_to=moved_by_presence(step.calibrated_to, self.neighbours),
            )
        kept, records = np.zeros_like(draw.thresholds), np.zeros((3, len(draw.thresholds)))
        if len(draw.kept):
            of_a_record = sampled_epsilon if self.changes == 1 else replaced_epsilon
            spent = of_a_record(draw.probability, ledger.provable / self.changes)
            records = np.quantile(spent, (0, 0.5, 1), axis=0, method="nearest")
            kept = draw.kept.mean(axis=0)
        columns_of_costs = (draw.thresholds, kept, *records)
        return PersonalModel(model, RecordCosts(*(tuple(column.tolist()) for column in columns_of_costs)))

    def cost(self, shape: Shape, grid: int) -> Cost:
        together = grid if self.base.shares_lanes else 1
        base, times = self.base.cost(shape, together), grid // together
        sampling = 1e-7 * shape.ratings * grid
        return Cost(times * base.seconds + sampling, times * base.bytes + 40.0 * shape.ratings * grid)
