"""What every algorithm is: a frozen, validated set of parameters that can be fitted for a grid of ε."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.algorithms.costs.table import COSTS
from dpmf_cli.algorithms.shared.by_epsilon import ByEpsilon, pieces_of, refuse_bad_pieces
from dpmf_cli.algorithms.shared.effects import Effects, EffectsBudget, EffectsParameters
from dpmf_cli.algorithms.shared.entry_checks import refuse_fields_of_the_other_mode, refuse_what_is_ignored
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_averages import private_effects
from dpmf_cli.escapes import printable
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import Protection, protection_of
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import StrictModel


def _to_be_seen(label: str) -> str:
    if printable(label) != label:
        raise PydanticCustomError("label", "a label is one line, of characters that can be seen")
    return label


UNUSED_WITHOUT_NOISE = frozenset(("effects.noise_on_unrated", "effects.sum_share"))
"""Keys that say how averages get their noise."""

Label = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_to_be_seen)]
"""Text in one line, of which every character can be seen."""


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
    scores_only  whether its predictions are scores that order items, and no ratings: they have no errors
    shares_lanes  whether one fit can have another sample of the ratings in each lane: then it has `fit_samples`
    counts_users  whether a fit looks at how many users there are, beside their ratings: that number must be public
    revision    raised when a change of the code changes the results: stored results of an older revision
                are then computed anew
    plugin      where its code comes from, if not from dpmf (`algorithms.plugins`): a result depends on it
    why_no_twin   where it cannot be fitted without noise too (`twins`): why, and what to do
    """

    title: ClassVar[str]
    stochastic: ClassVar[bool] = True
    private: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    scores_only: ClassVar[bool] = False
    shares_lanes: ClassVar[bool] = False
    counts_users: ClassVar[bool] = False
    revision: ClassVar[int] = 1
    plugin: ClassVar[dict[str, str]] = {}
    why_no_twin: ClassVar[str] = ""

    algorithm: str
    label: Label | None = Field(None, description="name of the curve; the algorithm's by default")
    sweep: dict[str, list[float]] | None = Field(
        None,
        description="{parameter: [values]}: one curve for each value, and a figure over them; "
        "`effects.beta_u` names a part, of a `budget` the other parts share what is left in proportion",
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
        if self.swept is not None and not isinstance(self.swept_value, int | float):
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
    def swept_value(self) -> Any:
        """What the sweep has set here; None where there is no sweep, or no such parameter."""
        value: Any = self if self.swept else None
        for part in (self.swept or "").split("."):
            value = getattr(value, part, None)
        return value

    @property
    def ignored(self) -> frozenset[str]:
        """The keys that this entry has and does not use, a part of `effects` as `effects.sum_share`."""
        return UNUSED_WITHOUT_NOISE

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

    def pieces(self, grid: Sequence[float]) -> Iterator[tuple[Self, tuple[float, ...]]]:
        """The entries that stand for this one on an ascending grid, each with its ε: itself with all of them, but
        where parameters vary with ε."""
        yield self, tuple(grid)

    @abstractmethod
    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        """Fits one model for each of `epsilons` (E,), inf alone for an algorithm without privacy.

        All noise comes from the curator, by the mechanisms of `dpmf_cli.privacy`, which enter it in the ledger first.
        All other randomness comes from the streams. The model for an ε does not depend on the other ε of the grid.
        """

    def fit_samples(
        self,
        train: Ratings,
        kept: NDArray[np.bool_],
        epsilons: Epsilons,
        *,
        streams: Streams,
        curator: Curator,
    ) -> Model:
        """One model for each column of `kept` (n_ratings, E), on the ratings of that column; if it `shares_lanes`."""
        raise NotImplementedError(f"{self.algorithm} has no sample in each lane")

    @property
    def shared_fit(self) -> str | None:
        """What entries have in common whose fits are one pass over the ratings; None where each has its own."""
        return None

    @classmethod
    def fit_together(
        cls,
        entries: Sequence[Self],
        train: Ratings,
        grids: Sequence[Epsilons],
        *,
        streams: Streams,
        curators: Sequence[Curator],
    ) -> Sequence[Model]:
        """What `fit` gives each of `entries`, to the bit. All have the same `shared_fit`; each has its own grid and
        curator."""
        return [
            entry.fit(train, epsilons, streams=streams, curator=curator)
            for entry, epsilons, curator in zip(entries, grids, curators, strict=True)
        ]

    def cost(self, shape: Shape, grid: int) -> Cost:
        """What one fit for `grid` values of ε takes, within a factor of about 2.

        A plugin overrides this. What dpmf's own algorithms take stands in `algorithms.costs`.
        """
        return COSTS[self.algorithm](self, shape, grid)


def refuse_list(value: Any) -> Any:
    """Refuses a list of `neighbours` or `mode`: one of the right shape has become several entries before."""
    if isinstance(value, list):
        raise PydanticCustomError(
            "list",
            "a list holds one or more values, each once",
        )
    return value


Variants = frozenset[tuple[Neighbours, Mode]]


def in_both_modes(*kinds: Neighbours) -> Variants:
    """The variants of an algorithm that hides each of `kinds`, as published and corrected."""
    return frozenset((neighbours, mode) for neighbours in kinds for mode in Mode)


class PrivateAlgorithm(Algorithm):
    """An algorithm that spends ε. `variants` lists the (neighbours, mode) pairs that it offers, `paper` is where it
    comes from, and `of_the_other` are the parameters that only the other mode has a use for: they are refused. Where
    it is not `averaged`, no part of it uses `effects`, and an entry's own are refused.

    A key may stand for several algorithms. The class with its parameters then has a subclass for each of them, with a
    `fit` and `variants` of its own. An entry of a config becomes an instance of the subclass that offers its
    neighbours and mode.
    """

    private: ClassVar[bool] = True
    variants: ClassVar[Variants]
    paper: ClassVar[Paper]
    of_the_other: ClassVar[tuple[str, ...]] = ()
    averaged: ClassVar[bool] = True

    neighbours: Neighbours = Neighbours.BOUNDED
    mode: Mode = Mode.PUBLISHED
    effects: EffectsParameters = EffectsParameters()
    by_epsilon: ByEpsilon = None

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

    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        """Raises TypeError where the parameters are those of a subclass, which `model_validate` makes."""
        if parameters and cls.class_of(parameters) is not cls:
            raise TypeError(f"{cls.__name__} stands for several algorithms: make one by `model_validate`")
        return super().__new__(cls)

    @model_validator(mode="wrap")
    @classmethod
    def _become_its_variant(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        return validate(data) if (of := cls.class_of(data)) is cls else of.model_validate(data)

    @classmethod
    def class_of(cls, data: Any) -> type[Self]:
        """The subclass that offers the neighbours and mode that an entry asks for; itself where there is none."""
        if not isinstance(data, dict):
            return cls
        return cls.offering(*(data.get(key, cls.model_fields[key].default) for key in ("neighbours", "mode")))

    @classmethod
    def offering(cls, neighbours: Any, mode: Any) -> type[Self]:
        """The subclass that has these neighbours and this mode among its variants; itself where it has none.

        A plugin may extend an algorithm without becoming it. Where none offers what is asked for, any says so.
        """
        asked = (neighbours, mode)  # of a config: anything, also what cannot be in a set
        own = cls.algorithms()
        offering = (each for each in own if any(asked == variant for variant in each.variants))
        return next(offering, own[0] if own else cls)

    @classmethod
    def algorithms(cls) -> list[type[Self]]:
        """The algorithms that its key stands for, where those are several: its subclasses in its own module."""
        return [each for each in cls.__subclasses__() if each.__module__ == cls.__module__]

    @classmethod
    def offered(cls) -> Variants:
        """The variants of its key: those of the class with the parameters, its ancestor in its own module."""
        families = (each for each in cls.__mro__ if each.__module__ == cls.__module__)
        return frozenset().union(*(each.variants for each in families if issubclass(each, PrivateAlgorithm)))

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
                    "offered": ", ".join(sorted(f"{n.value} ({m.value})" for n, m in self.offered())),
                },
            )
        return self

    def pieces(self, grid: Sequence[float]) -> Iterator[tuple[Self, tuple[float, ...]]]:
        return super().pieces(grid) if self.by_epsilon is None else pieces_of(self, grid)

    @model_validator(mode="after")
    def _refuse_bad_pieces(self) -> Self:
        refuse_bad_pieces(self)
        return self

    @property
    def ignored(self) -> frozenset[str]:
        used = {Neighbours.BOUNDED: "noise_on_unrated", Neighbours.UNBOUNDED: "sum_share"}.get(
            self.neighbours
        )
        return super().ignored - {f"effects.{used}"}

    @model_validator(mode="after")
    def _refuse_what_is_ignored(self) -> Self:
        refuse_what_is_ignored(self)
        return self

    @model_validator(mode="after")
    def _refuse_parameters_of_the_other_mode(self) -> Self:
        refuse_fields_of_the_other_mode(self, self.of_the_other)
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

    def averages(self, train: Ratings, budget: EffectsBudget, curator: Curator) -> Effects:
        """The averages under this entry's neighbours and mode."""
        return private_effects(
            train,
            self.effects,
            budget,
            neighbours=self.neighbours,
            mode=self.mode,
            curator=curator,
        )
