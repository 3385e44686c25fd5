"""What every algorithm is: a frozen, validated set of parameters that can be fitted for a grid of ε."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.effects import Effects, EffectsBudget, EffectsParameters
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_averages import private_effects
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import Protection, protection_of
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import StrictModel


class Model(Protocol):
    """A fitted algorithm: one recommender for each ε of the grid."""

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        """(n, E) predicted ratings, rating scale, for n pairs of dense indices."""


Label = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f\u2028\u2029]+$")]
"""Printable text in one line."""


UNEVENNESS = 2.5
"""Σ c_u² over what it would be if all users had as many ratings: 1.9 in ML-100K, 2.4 in ML-1M, 3.1 in a sample of
Netflix."""


@dataclass(frozen=True)
class Shape:
    """The size of a training set.

    squares   Σ c_u² over its users, c_u being the number of ratings of one; estimated where it is not given
    """

    users: int
    items: int
    ratings: int
    squares: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.squares):
            object.__setattr__(self, "squares", UNEVENNESS * self.ratings**2 / self.users)


@dataclass(frozen=True)
class Cost:
    """What one fit takes: bytes beside the ratings themselves, and time, as what it consists of, since the same work
    takes another time on another machine, and on data that no longer fit a cache (`machine.Machine.seconds`).

    seconds   of one core of `machine.REFERENCE`, with data near
    far       (count, bytes) each: so many cache lines at random places of so many bytes
    """

    seconds: float
    bytes: float
    far: tuple[tuple[float, float], ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        """Of both, one after the other, with what each holds kept."""
        return Cost(self.seconds + other.seconds, self.bytes + other.bytes, self.far + other.far)


@dataclass(frozen=True)
class NeededColumn:
    """What an entry needs of the user's own data set.

    column    its key in the data set's `columns`
    of        what the column holds, in a message
    key       the entry's key that asks for it
    instead   what to do where there is no such column
    """

    column: str
    of: str
    key: str
    instead: str


class Algorithm(StrictModel, ABC):
    """A recommender. Its fields are its parameters, its subclass's docstring is its pseudocode.

    title       how tables and figures call it
    stochastic  whether two runs on one fold differ; one that does not is run once a fold
    joint       of one that spends ε: whether a prediction uses the target user's own ratings without noise, so that
                privacy holds towards everybody else only (joint differential privacy); a property, documented with
                when it is so, where that depends on the parameters
    private     whether it is fitted for the config's ε grid, or once, without noise
    revision    raised when a change of the code changes the results: stored results of an older revision
                are then computed anew
    plugin      where its code comes from, if not from dpmf (`algorithms.plugins`): a result depends on it
    why_no_twin   where it cannot be fitted without noise too (`twins`): why, and what to do
    """

    title: ClassVar[str]
    stochastic: ClassVar[bool] = True
    private: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    revision: ClassVar[int] = 1
    plugin: ClassVar[dict[str, str]] = {}
    why_no_twin: ClassVar[str] = ""

    algorithm: str
    label: Label | None = Field(None, description="name of the curve; the algorithm's by default")
    sweep: dict[str, list[float]] | None = Field(
        None, description="{parameter: [values]}: one curve for each value, and a figure over them"
    )
    swept: SkipJsonSchema[str | None] = Field(None, description="the parameter that a sweep has set here")
    swept_label: SkipJsonSchema[Label | None] = Field(
        None, description="the `label` of the entry that was swept, which each value adds itself to"
    )
    clip_predictions: bool = Field(False, description="clip predictions to the rating scale before errors")

    @model_validator(mode="after")
    def _sweep_a_number(self) -> Self:
        if self.sweep is not None:  # a sweep of the right shape has become several entries before
            raise PydanticCustomError(
                "sweep", "a sweep is one parameter and a list of values: {factors: [3, 5]}"
            )
        if self.swept is not None and not isinstance(getattr(self, self.swept, None), int | float):
            raise PydanticCustomError("sweep", "{name} is not a number to sweep", {"name": self.swept})
        return self

    @property
    def name(self) -> str:
        """What distinguishes this entry of a config from the others, in tables and figures."""
        return self.label or self.default_name

    @property
    def default_name(self) -> str:
        """The name of an entry without a `label`."""
        return self.title

    @property
    def needs_column(self) -> NeededColumn | None:
        """The column that its data set must have."""
        return None

    @property
    def line(self) -> str:
        """The name of the entry as it stands in the config: all values of a sweep share it."""
        return (self.label if self.swept is None else self.swept_label) or self.default_name

    def parameters(self) -> dict[str, Any]:
        """Everything that a result depends on, as plain data: a result is stored under its hash."""
        return {
            **self.model_dump(mode="json", exclude={"label", "sweep", "swept", "swept_label"}),
            "revision": self.revision,
            **({"plugin": self.plugin} if self.plugin else {}),
        }

    @abstractmethod
    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> Model:
        """Fits one model for each ε of `ledger.epsilons`, and enters every noisy step in the ledger.

        The model for an ε does not depend on which other ε are in the grid.
        """

    @property
    def shared_fit(self) -> str | None:
        """What entries have in common whose fits are one pass over the ratings; None where each has its own."""
        return None

    @classmethod
    def fit_together(
        cls, entries: Sequence[Self], train: Ratings, *, streams: Streams, ledgers: Sequence[Ledger]
    ) -> Sequence[Model]:
        """What `fit` gives each of `entries`, to the bit; they have one `shared_fit`, and ledgers of their own."""
        return [
            entry.fit(train, streams=streams, ledger=ledger)
            for entry, ledger in zip(entries, ledgers, strict=True)
        ]

    @abstractmethod
    def cost(self, shape: Shape, grid: int) -> Cost:
        """What one fit for `grid` values of ε takes, within a factor of about 2."""


def refuse_list(value: Any) -> Any:
    """Refuses a list of `neighbours` or `mode`: one of the right shape has become several entries before."""
    if isinstance(value, list):
        raise PydanticCustomError("list", "a list holds one or more values, each once")
    return value


Variants = frozenset[tuple[Neighbours, Mode]]


def in_both_modes(*kinds: Neighbours) -> Variants:
    """The variants of an algorithm that hides each of `kinds`, as published and corrected."""
    return frozenset((neighbours, mode) for neighbours in kinds for mode in Mode)


class PrivateAlgorithm(Algorithm):
    """An algorithm that spends ε. `variants` lists the (neighbours, mode) pairs that it offers, `paper` is where it
    comes from."""

    private: ClassVar[bool] = True
    variants: ClassVar[Variants]
    paper: ClassVar[Paper]

    neighbours: Neighbours = Neighbours.BOUNDED
    mode: Mode = Mode.PUBLISHED
    effects: EffectsParameters = EffectsParameters()

    _one_neighbours = field_validator(
        "neighbours", mode="before", json_schema_input_type=Neighbours | list[Neighbours]
    )(refuse_list)
    _one_mode = field_validator("mode", mode="before", json_schema_input_type=Mode | list[Mode])(refuse_list)

    @field_validator("effects", mode="before")
    @classmethod
    def _keep_own_defaults(cls, value: Any) -> Any:
        """What a config leaves out of `effects` is this algorithm's own default, not another's."""
        own: EffectsParameters = cls.model_fields["effects"].default
        return {**own.model_dump(), **value} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _refuse_unsupported_variant(self) -> Self:
        if (self.neighbours, self.mode) not in self.variants:
            raise PydanticCustomError(
                "unsupported_variant",
                "{algorithm} does not support neighbours {neighbours} in {mode} mode; it supports {offered}",
                {
                    "algorithm": self.algorithm,
                    "neighbours": self.neighbours.value,
                    "mode": self.mode.value,
                    "offered": ", ".join(sorted(f"{n.value} ({m.value})" for n, m in self.variants)),
                },
            )
        return self

    @property
    def source(self) -> str:
        """Where this entry comes from, as tables cite it."""
        return self.paper

    @property
    def protects(self) -> Protection:
        """What its ε is a statement about."""
        return protection_of(self.neighbours)

    @property
    def spends_delta(self) -> float:
        """The δ of the (ε, δ) that the ledger speaks of; 0 where every step is pure ε-DP."""
        return 0.0

    def epsilon_of(self, theta: float) -> float:
        """The total ε that θ stands for: McSherry and Mironov 2009, section 5, scale the noise of measurement i to
        Δ_i/θ_i with Σθ_i = θ. For Laplace noise that is ε itself."""
        return theta

    def theta_of(self, epsilon: float) -> float:
        """The inverse of `epsilon_of`."""
        return epsilon

    def averages(self, train: Ratings, budget: EffectsBudget, streams: Streams, ledger: Ledger) -> Effects:
        """The averages under this entry's neighbours and mode."""
        return private_effects(
            train,
            self.effects,
            budget,
            neighbours=self.neighbours,
            mode=self.mode,
            streams=streams,
            ledger=ledger,
        )
