"""The base classes of every algorithm: a frozen, validated set of parameters that can be fitted for a grid of ε."""

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
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import Protection, protection_of
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import StrictModel
from dpmf_cli.terminal import printable


def _to_be_seen(label: str) -> str:
    if printable(label) != label:
        raise PydanticCustomError("label", "a label must be one line of visible characters")
    return label


UNUSED_WITHOUT_NOISE = frozenset(("effects.noise_on_unrated", "effects.sum_share"))
"""Keys that say how noise is added to averages."""

Label = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_to_be_seen)]
"""One line of visible characters."""


@dataclass(frozen=True)
class NeededColumn:
    """A column that an entry needs in the user's own data set.

    column    its key in the data set's `columns`
    of        what the column holds, in a message
    key       the entry's key that asks for it
    instead   what to do if there is no such column
    """

    column: str
    of: str
    key: str
    instead: str


class Algorithm(StrictModel, ABC):
    """A recommender. Its fields are its parameters. The docstring of a subclass is its pseudocode.

    title       its name in tables and figures
    stochastic  whether two runs on one fold differ. If they do not, it is run once for each fold
    joint       whether a prediction of a private algorithm uses the target user's own ratings without noise. Privacy
                then holds against all other users only (joint differential privacy). If that depends on the
                parameters, `joint` is a property whose docstring says when
    private     whether it is fitted for the config's ε grid; otherwise it is fitted once, without noise
    scores_only  whether its predictions are scores that order items. Scores are not ratings and have no errors
    shares_lanes  whether one fit can have a different sample of the ratings in each lane; `fit_samples` does that
    counts_users  whether a fit uses the number of users besides their ratings. That number must then be public
    revision    raised when a change of the code changes the results. Stored results of an older revision are then
                computed anew
    plugin      where its code comes from, if not from dpmf (`algorithms.plugins`). Results depend on it
    why_no_twin   why it cannot also be fitted without noise (`twins`), and what to do; "" if it can
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
    label: Label | None = Field(None, description="name of the curve; by default the algorithm's name")
    sweep: dict[str, list[float]] | None = Field(
        None,
        description="{parameter: [values]}: one curve for each value, and a figure over the values. A dot names a "
        "part: `effects.beta_u`. If a part of `budget` is swept, its other parts share the rest in proportion",
    )
    swept: SkipJsonSchema[str | None] = Field(None, description="the parameter that a sweep has set here")
    swept_label: SkipJsonSchema[Label | None] = Field(
        None, description="the `label` of the swept entry; each value is added to it"
    )
    clip_predictions: bool = Field(False, description="clip predictions to the rating scale before errors")

    @model_validator(mode="after")
    def _sweep_a_number(self) -> Self:
        if self.sweep is not None:  # a sweep of the right shape has become several entries before
            raise PydanticCustomError(
                "sweep", "a sweep is one parameter and a list of values: {factors: [3, 5]}"
            )
        if self.swept is not None and not isinstance(self.swept_value, int | float):
            raise PydanticCustomError(
                "sweep", "{name} is not a numeric parameter and cannot be swept", {"name": self.swept}
            )
        return self

    @property
    def name(self) -> str:
        """The name that distinguishes this entry of a config from the others in tables and figures."""
        return self.label or self.default_name

    @property
    def default_name(self) -> str:
        """The name of an entry without a `label`."""
        return self.title

    @property
    def swept_value(self) -> Any:
        """The value that the sweep has set here; None without a sweep, or if there is no such parameter."""
        value: Any = self if self.swept else None
        for part in (self.swept or "").split("."):
            value = getattr(value, part, None)
        return value

    @property
    def ignored(self) -> frozenset[str]:
        """The keys that this entry has and does not use. A part of `effects` is written `effects.sum_share`."""
        return UNUSED_WITHOUT_NOISE

    @property
    def needs_column(self) -> NeededColumn | None:
        """The column that the entry's data set must have; None if it needs none."""
        return None

    @property
    def line(self) -> str:
        """The name of the entry as written in the config. All values of a sweep share it."""
        return (self.label if self.swept is None else self.swept_label) or self.default_name

    def parameters(self) -> dict[str, Any]:
        """Everything that a result depends on, as plain data. Its hash names the stored result."""
        return {
            **self.model_dump(mode="json", exclude={"label", "sweep", "swept", "swept_label"}),
            "revision": self.revision,
            **({"plugin": self.plugin} if self.plugin else {}),
        }

    def pieces(self, grid: Sequence[float]) -> Iterator[tuple[Self, tuple[float, ...]]]:
        """The entries that stand for this one on an ascending grid, each with its ε. If no parameter varies with ε,
        that is this entry with the complete grid."""
        yield self, tuple(grid)

    @abstractmethod
    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        """Fits one model for each of `epsilons` (E,). An algorithm without privacy gets only inf.

        All noise comes from the curator, through the mechanisms of `dpmf_cli.privacy`, which enter each step in the
        ledger first. All other randomness comes from the streams. The model for an ε does not depend on the other ε
        of the grid.
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
        """Fits one model for each column of `kept` (n_ratings, E), on the ratings of that column.

        Only algorithms with `shares_lanes` have it; others raise NotImplementedError.
        """
        raise NotImplementedError(f"{self.algorithm} cannot fit a different sample in each lane")

    @property
    def shared_fit(self) -> str | None:
        """A key that entries share if one pass over the ratings fits them all; None if each needs its own pass."""
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
        """Fits all of `entries` at once. Each model equals that of `fit` to the bit. All entries have the same
        `shared_fit`; each has its own grid and curator."""
        return [
            entry.fit(train, epsilons, streams=streams, curator=curator)
            for entry, epsilons, curator in zip(entries, grids, curators, strict=True)
        ]

    def cost(self, shape: Shape, grid: int) -> Cost:
        """Estimates the time and memory of one fit for `grid` values of ε, within a factor of about 2.

        A plugin overrides this. The costs of dpmf's own algorithms are in `algorithms.costs`.
        """
        return COSTS[self.algorithm](self, shape, grid)


def refuse_list(value: Any) -> Any:
    """Refuses a list of `neighbours` or `mode`. A list of the right shape was split into several entries before."""
    if isinstance(value, list):
        raise PydanticCustomError(
            "list",
            "a list holds one or more values, each once",
        )
    return value


Variants = frozenset[tuple[Neighbours, Mode]]


def in_both_modes(*kinds: Neighbours) -> Variants:
    """The variants of an algorithm that offers each kind of neighbours, published and corrected."""
    return frozenset((neighbours, mode) for neighbours in kinds for mode in Mode)


class PrivateAlgorithm(Algorithm):
    """An algorithm that spends ε.

    variants      the (neighbours, mode) pairs that it offers
    paper         the paper that it comes from
    of_the_other  parameters that only the other mode uses. An entry that sets one is refused
    averaged      whether it uses `effects`. If it does not, an entry that sets `effects` is refused

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
        """Fills what a config leaves out of `effects` with this algorithm's own defaults."""
        own: EffectsParameters = cls.model_fields["effects"].default
        return {**own.model_dump(), **value} if isinstance(value, dict) else value

    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        """Raises TypeError if the parameters belong to a subclass; `model_validate` makes its instances."""
        if parameters and cls.class_of(parameters) is not cls:
            raise TypeError(f"{cls.__name__} stands for several algorithms: make one by `model_validate`")
        return super().__new__(cls)

    @model_validator(mode="wrap")
    @classmethod
    def _become_its_variant(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        return validate(data) if (of := cls.class_of(data)) is cls else of.model_validate(data)

    @classmethod
    def class_of(cls, data: Any) -> type[Self]:
        """The subclass that offers the neighbours and mode that an entry asks for; this class if there is none."""
        if not isinstance(data, dict):
            return cls
        return cls.offering(*(data.get(key, cls.model_fields[key].default) for key in ("neighbours", "mode")))

    @classmethod
    def offering(cls, neighbours: Any, mode: Any) -> type[Self]:
        """The subclass that has these neighbours and this mode among its variants; this class if it has no subclass.

        Only subclasses in its own module count, so a plugin may extend an algorithm without replacing it. If no
        subclass offers the variant, the first is returned, and its validation reports the error.
        """
        asked = (neighbours, mode)  # from a config: any value, hashable or not
        own = cls.algorithms()
        offering = (each for each in own if any(asked == variant for variant in each.variants))
        return next(offering, own[0] if own else cls)

    @classmethod
    def algorithms(cls) -> list[type[Self]]:
        """The algorithms that its key stands for, if there are several: its subclasses in its own module."""
        return [each for each in cls.__subclasses__() if each.__module__ == cls.__module__]

    @classmethod
    def offered(cls) -> Variants:
        """The variants of its key: its own, and those of its ancestors in its own module, which hold the
        parameters."""
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
        """The paper that this entry comes from, as tables cite it."""
        return self.paper

    @property
    def protects(self) -> Protection:
        """What its ε protects."""
        return protection_of(self.neighbours)

    @property
    def spends_delta(self) -> float:
        """The δ of the ledger's (ε, δ); 0 if every step is pure ε-DP."""
        return 0.0

    def epsilon_of(self, theta: float) -> float:
        """The total ε that θ stands for. McSherry and Mironov 2009, section 5, scale the noise of measurement i to
        Δ_i/θ_i with Σθ_i = θ. For Laplace noise θ is ε itself."""
        return theta

    def theta_of(self, epsilon: float) -> float:
        """The inverse of `epsilon_of`."""
        return epsilon

    def averages(self, train: Ratings, budget: EffectsBudget, curator: Curator) -> Effects:
        """Measures the averages under this entry's neighbours and mode."""
        return private_effects(
            train,
            self.effects,
            budget,
            neighbours=self.neighbours,
            mode=self.mode,
            curator=curator,
        )
