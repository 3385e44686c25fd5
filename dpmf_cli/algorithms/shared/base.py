"""The base classes of every algorithm: a frozen, validated set of parameters that can be fitted for a grid of ε."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Protocol, Self, get_args, runtime_checkable

from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.budget import EffectsParameters
from dpmf_cli.algorithms.shared.cost import Cost, Shape, pairs_cost
from dpmf_cli.algorithms.shared.theta import Accounting, NoiseKind
from dpmf_cli.core.arrays import Flags, Floats, Ints
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel, in_words
from dpmf_cli.core.terminal import printable
from dpmf_cli.privacy.accounting import LEAST_CERTIFIED_DELTA
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import Protection, protection_of
from dpmf_cli.privacy.sensitivity import Sensitivity


class Model(Protocol):
    """A fitted algorithm: one recommender for each ε of the grid."""

    def predict(self, users: Ints, items: Ints) -> Floats:
        """(n, E) predicted ratings, rating scale, for n pairs of dense indices."""


Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name. An array whose name begins with `users` has a row for each user."""
NO_NEW_USERS = "cannot predict for users to whom it was not fitted; use another method, or another `split`"


@runtime_checkable
class ReleasableModel(Protocol):
    """A model with a part that can be published.

    `published` is everything that may be published: released numbers, functions of them, and public numbers. A class
    method `restored(arrays, entry, own)` makes the same model from it, where `entry` is the algorithm and `own` are
    the ratings of the users who ask. A method that is not joint predicts from `published` alone.
    """

    @property
    def published(self) -> Arrays: ...


def for_new_users(model: Any, entry: "Algorithm", own: Ratings) -> Any:
    """The `Model` of `entry` for one ε, for users to whom it was not fitted and who have `own` ratings. Raises
    DpmfError for a private model that has no method for it and is not restored from items alone.
    """
    if hasattr(model, "for_new_users"):
        return model.for_new_users(entry, own)
    published = model.published if isinstance(model, ReleasableModel) else {"users": None}
    if not any(name.startswith("users") for name in published):
        return type(model).restored(published, entry, own)
    if entry.private:
        raise DpmfError(f"{entry.name} {NO_NEW_USERS}")
    return model


def _to_be_seen(label: str) -> str:
    if printable(label) != label:
        raise PydanticCustomError("label", "a label must be one line of visible characters")
    return label


KEYS_OF_NOISE = frozenset(("effects.noise_on_unrated", "effects.sum_share"))
"""Keys that say how noise is added to averages."""

OF_THE_CURVE = frozenset(
    ("algorithm", "label", "neighbours", "mode", "delta", "clip_predictions", "sweep", "by_epsilon")
)
"""Keys that are the same for all ε of a curve."""

Label = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_to_be_seen)]
"""One line of visible characters."""


class Paper(StrEnum):
    """The paper of a method, by its first author.

    `DPMF`: this project, for what a paper suggests without having it, and what papers have to beat. `PLUGIN`: a
    plugin that names no paper.
    """

    FRIEDMAN = "Friedman 2016"
    MCSHERRY = "McSherry 2009"
    NEERA = "Neera 2020"
    WANG = "Wang 2017"
    ZHANG = "Zhang 2018"
    CHIEN = "Chien 2021"
    HUA = "Hua 2015"
    LIU = "Liu 2015"
    ABADI = "Abadi 2016"
    DPMF = "dpmf"
    PLUGIN = "plugin"


@dataclass(frozen=True)
class Where:
    """A fact of a method that holds for those of its entries of which `of` is true.

    when   the same in words, as in "joint in published mode"
    """

    of: Callable[[Any], bool]
    when: str

    def __get__(self, entry: "Algorithm | None", owner: Any) -> Any:
        return self if entry is None else self.of(entry)


IN_PUBLISHED_MODE = Where(lambda entry: entry.mode is Mode.PUBLISHED, "in published mode")
IN_CORRECTED_MODE = Where(lambda entry: entry.mode is Mode.CORRECTED, "in corrected mode")


class Algorithm(StrictModel, ABC):
    """A recommender. Its fields are its parameters. The docstring of a subclass is its pseudocode.

    title       its name in tables and figures
    stochastic  whether two runs on one fold differ. If they do not, it is run once for each fold
    private     whether it is fitted for the config's ε grid; otherwise it is fitted once, without noise
    joint       whether a prediction of a private algorithm uses the target user's own ratings without noise. Privacy
                then holds against all other users only (joint differential privacy)
    shares_lanes  whether one fit can have a different sample of the ratings for each ε; `fit_samples` does that
    new_users   whether its models predict for users to whom they were not fitted, from items and own ratings
    scores_only  whether its predictions are scores that order items, which are no ratings and have no errors
    counts_users  whether a fit uses the number of users, which must then be public, besides their ratings
    revision    raised when a change of the code changes the results, so that those of an older revision are computed
                anew
    plugin      where its code comes from, if not from dpmf (`algorithms.plugins`). Results depend on it
    settings_at_once   how many entries are fitted together at most (`shared_fit`), if they must have the same ε; 0 if
                they are lanes of one pass, whatever their ε
    small       parameters with which a fit takes few steps, for audits on few ratings: later steps repeat the first
    by_rating   whether its Python references go through ratings one by one, which takes minutes for 10⁵ ratings
    why_no_noise_free_run   why it cannot also be fitted without noise (`twins`), and what to do; "" if it can
    """

    title: ClassVar[str]
    stochastic: ClassVar[bool] = True
    private: ClassVar[bool] = False
    joint: ClassVar[bool | Where] = False
    shares_lanes: ClassVar[bool | Where] = False
    new_users: ClassVar[bool | Where] = False
    scores_only: ClassVar[bool] = False
    counts_users: ClassVar[bool | Where] = False
    revision: ClassVar[int] = 1
    plugin: ClassVar[dict[str, str]] = {}
    settings_at_once: ClassVar[int] = 0
    small: ClassVar[Mapping[str, Any]] = {}
    by_rating: ClassVar[bool] = False
    why_no_noise_free_run: ClassVar[str] = ""

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
            message = "a sweep is one parameter and a list of values: {factors: [3, 5]}"
            raise PydanticCustomError("sweep", message)
        if self.swept is not None and not isinstance(self.swept_value, int | float):
            message = "{name} is not a numeric parameter and cannot be swept"
            raise PydanticCustomError("sweep", message, {"name": self.swept})
        return self

    @classmethod
    def key(cls) -> str:
        """Its name in configs, from `algorithm: Literal["…"]`; "" for a base class, which has none."""
        names = get_args(cls.model_fields["algorithm"].annotation)
        return names[0] if len(names) == 1 and isinstance(names[0], str) else ""

    @property
    def name(self) -> str:
        """The name that distinguishes this entry of a config from the others in tables and figures."""
        return self.label or self.default_name

    @property
    def default_name(self) -> str:
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
        return KEYS_OF_NOISE

    @property
    def needs_epsilons(self) -> bool:
        """Whether the data set must have a column with the ε of each rating."""
        return False

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
        """A model for each of `epsilons` (E,). An algorithm without privacy gets only inf.

        All noise comes from the curator, through the mechanisms of `dpmf_cli.privacy`, which enter each step in the
        ledger first. All other randomness comes from the streams. The model for an ε does not depend on the other ε
        of the grid.
        """

    def fit_samples(
        self, train: Ratings, kept: Flags, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> Model:
        """A model for each column of `kept` (n_ratings, E), fitted on the ratings of that column.

        Only algorithms with `shares_lanes` have it; others raise NotImplementedError.
        """
        raise NotImplementedError(f"{self.algorithm} cannot fit a different sample for each ε")

    @property
    def shared_fit(self) -> str | None:
        """A key that entries share if one pass, or one release, serves them all; None if each needs its own."""
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
        """The models of all `entries`, which have the same `shared_fit`, fitted at once, each with its own grid and
        curator. Each model equals that of `fit` to the bit."""
        return cls.sharing(
            [
                entry.fit(train, epsilons, streams=streams, curator=curator)
                for entry, epsilons, curator in zip(entries, grids, curators, strict=True)
            ]
        )

    @classmethod
    def sharing(cls, models: Sequence[Any]) -> Sequence[Model]:
        """Models of entries that were fitted together, which may now compute once what is equal in all of them."""
        return models

    def cost(self, shape: Shape, grid: int) -> Cost:
        """The time and memory of one fit for `grid` values of ε, within a factor of about 2."""
        raise NotImplementedError(f"{self.algorithm} has no `cost`")

    @classmethod
    def cost_together(cls, entries: Sequence[Self], shape: Shape, grids: Sequence[int]) -> Cost:
        """The cost of `fit_together` for entries with these numbers of ε."""
        return entries[0].cost(shape, sum(grids))

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        """The cost of predicting so many `pairs` in so many `calls` of `predict`, which metrics of ordered items
        need. A fit's `cost` includes the predictions of a test fold; all pairs are some hundred times as many."""
        return pairs_cost(grid, pairs)


def refuse_list(value: Any) -> Any:
    """The value. Raises for a list, because one of the right shape was split into several entries before."""
    if isinstance(value, list):
        raise PydanticCustomError("list", "a list holds one or more values, each once")
    return value


ByMode = Mapping[Mode, tuple[str, ...]]
"""Names of parameters, by the mode that uses them."""

Choices = tuple[tuple[Mapping[str, Any], ...], ...]
"""Tuples of alternatives, each of which is some parameters with their values."""

SAMPLED: tuple[Mapping[str, Any], ...] = ({}, {"sampling_rate": 0.3})
"""The `choices` of a method that may learn from samples."""

Variants = dict[tuple[Neighbours, Mode], Any]
"""What runs, or what scales the noise, for each neighbours and mode that an algorithm offers."""


def in_both_modes(*kinds: Neighbours, **runs: Any) -> Variants:
    """The variants of an algorithm that does the same published and corrected, for each kind of neighbours; what runs
    may be given by the name of the neighbours."""
    by_kind: dict[str, Any] = {**dict.fromkeys(kinds), **runs}
    return {(Neighbours(kind), mode): run for kind, run in by_kind.items() for mode in Mode}


def by_mode(*kinds: Neighbours, **runs: Any) -> Variants:
    """The variants of an algorithm for each kind of neighbours. What runs is given by the name of the mode."""
    return {(neighbours, Mode(mode)): run for neighbours in kinds for mode, run in runs.items()}


class PrivateAlgorithm(Algorithm):
    """An algorithm that spends ε.

    variants  what it offers, by (neighbours, mode). Where they are several algorithms, the values are the methods to
              fit by, and `fit` stays as it is here. If only the scale of noise differs, they are what sets the scale
    paper     the paper that it comes from
    only      parameters that only one mode uses. An entry of the other mode that sets one is refused
    about     what it is, in a sentence for those who choose a method; by default the first line of its module
    averaged  whether it uses `effects`. If it does not, an entry that sets `effects` is refused
    """

    private: ClassVar[bool] = True
    new_users: ClassVar[bool | Where] = Where(lambda entry: entry.joint, "where it is joint")
    variants: ClassVar[Variants]
    paper: ClassVar[Paper]
    about: ClassVar[str] = ""
    only: ClassVar[ByMode] = {}
    averaged: ClassVar[bool] = True

    neighbours: Neighbours = Neighbours.BOUNDED
    mode: Mode = Mode.PUBLISHED
    effects: EffectsParameters = EffectsParameters()
    by_epsilon: list[dict[str, Any]] | None = Field(
        None,
        min_length=1,
        exclude_if=lambda pieces: pieces is None,
        description="parameters that vary with ε: `[{up_to: 1, learning_rate: 0.1}, {up_to: 10, epochs: 3}]`. Each ε "
        "uses the first piece whose `up_to` is not below it; an ε above every `up_to` has the entry's own parameters",
    )

    _one_neighbours = field_validator(
        "neighbours", mode="before", json_schema_input_type=Neighbours | list[Neighbours]
    )(refuse_list)
    _one_mode = field_validator("mode", mode="before", json_schema_input_type=Mode | list[Mode])(refuse_list)

    @field_validator("effects", mode="before")
    @classmethod
    def _keep_own_defaults(cls, value: Any) -> Any:
        """What a config says, with this algorithm's own defaults for what it leaves out of `effects`."""
        own: EffectsParameters = cls.model_fields["effects"].default
        return {**own.model_dump(), **value} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _refuse_unsupported_variant(self) -> Self:
        if (self.neighbours, self.mode) not in self.variants:
            message = (
                "{algorithm} does not support neighbours {neighbours} in {mode} mode; it supports {offered}"
            )
            offered = ", ".join(sorted(f"{n.value} ({m.value})" for n, m in self.variants))
            context = {
                "algorithm": self.algorithm,
                "neighbours": self.neighbours.value,
                "mode": self.mode.value,
            }
            raise PydanticCustomError("unsupported_variant", message, {**context, "offered": offered})
        return self

    @model_validator(mode="after")
    def _refuse_bad_pieces(self) -> Self:
        """Refuses pieces of `by_epsilon` that do not ascend, or set an unknown parameter or an invalid value."""
        reached = 0.0
        for index, piece in enumerate(self.by_epsilon or ()):
            up_to: Any = piece.get("up_to")
            if type(up_to) not in (int, float) or not reached < up_to < math.inf:
                raise _of_piece(index, "`up_to` must be an ε above the `up_to` of the piece before")
            reached = up_to
            fixed = sorted({*OF_THE_CURVE, (self.swept or "").split(".")[0]} & piece.keys())
            if fixed or len(piece) == 1:
                said = f"`{fixed[0]}` is the same for all ε of a curve" if fixed else "it sets nothing"
                raise _of_piece(index, f"{said}; remove it")
            try:
                self._with(piece)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                context = first.get("ctx", {})
                key = first["loc"] or context.get("path") or (context.get("key", "a parameter"),)
                raise _of_piece(index, f"{'.'.join(map(str, key))}: {in_words(first)}") from None
        return self

    @property
    def ignored(self) -> frozenset[str]:
        of = {Neighbours.BOUNDED: "effects.noise_on_unrated", Neighbours.UNBOUNDED: "effects.sum_share"}
        return super().ignored - {of.get(self.neighbours, "")}

    @model_validator(mode="after")
    def _refuse_what_is_ignored(self) -> Self:
        """Default values are allowed, because a resolved config spells them out."""
        of_mode = "{mode} mode of {algorithm} would ignore it; remove it, or set `mode: {other}`"
        of_neighbours = "{algorithm} with neighbours {neighbours} has no use for it; remove it"
        found = {"algorithm": self.algorithm, "neighbours": self.neighbours.value, "mode": self.mode.value}
        found["other"] = next(mode.value for mode in Mode if mode is not self.mode)
        useless = [(key, of_neighbours) for key in sorted(self.ignored)]
        for key, message in useless + [(key, of_mode) for key in sorted(self.only_other(self.mode))]:
            holder = self.effects if key.startswith("effects.") else self
            name = key.removeprefix("effects.")
            if getattr(holder, name) != type(holder).model_fields[name].default:
                raise PydanticCustomError("ignored", message, {**found, "path": tuple(key.split("."))})
        return self

    def refuse_steps_that_diverge(self, rate: float, key: str) -> None:
        """Raises PydanticCustomError if S ← S − rate·(gradient + ridge·S) may overshoot, where the parameter `key` is
        the ridge.

        Up to rate·ridge = 1 the ridge term only shrinks S, and clipped gradients and their noise cannot carry S away.
        Beyond that, S may overflow single precision. Errors are then NaN, for some data sets and not for others.
        """
        if rate * getattr(self, key) > 1:
            message = "it must be at most {most} with steps of {rate}, or the descent diverges"
            context = {"rate": f"{rate:g}", "most": f"{1 / rate:g}", "path": (key,)}
            raise PydanticCustomError("diverges", message, context)

    def refuse_a_delta_beyond_the_accountant(self, sampling_rate: float) -> None:
        """Raises PydanticCustomError if δ is too small to certify for sampled Gaussian steps; δ = 0 is pure ε-DP."""
        if sampling_rate < 1 and 0 < self.spends_delta < LEAST_CERTIFIED_DELTA:
            message = "with a sampling_rate below 1 no δ below {least} can be certified"
            context = {"least": LEAST_CERTIFIED_DELTA, "path": ("delta",)}
            raise PydanticCustomError("least_delta", message, context)

    def pieces(self, grid: Sequence[float]) -> Iterator[tuple[Self, tuple[float, ...]]]:
        if self.by_epsilon is None:
            yield from super().pieces(grid)
            return
        reached = 0.0
        for piece in (*self.by_epsilon, {"up_to": math.inf}):
            part = tuple(epsilon for epsilon in grid if reached < epsilon <= piece["up_to"])
            if part:
                yield self._with(piece), part
            reached = piece["up_to"]

    def _with(self, piece: Mapping[str, Any]) -> Self:
        """The entry with the parameters of a piece. A plain entry with the same parameters has the same results."""
        entry = {**self.model_dump(exclude={"by_epsilon"}), **piece}
        return self.model_validate({key: value for key, value in entry.items() if key != "up_to"})

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        """Tuples of alternatives that change what is released. An audit tries one of each with one of every other."""
        return ()

    @classmethod
    def small_in(cls, mode: Mode) -> dict[str, Any]:
        return {field: value for field, value in cls.small.items() if field not in cls.only_other(mode)}

    @classmethod
    def only_other(cls, mode: Mode) -> tuple[str, ...]:
        return cls.only.get(Mode.CORRECTED if mode is Mode.PUBLISHED else Mode.PUBLISHED, ())

    @property
    def variant(self) -> Any:
        """The value of `variants` for this entry's neighbours and mode."""
        return self.variants[self.neighbours, self.mode]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        """The model by the algorithm of this entry's neighbours and mode; a method with only one overrides it."""
        model: Model = self.variant(self, train, epsilons, streams=streams, curator=curator)
        return model

    def calibrated(self, true: Sensitivity, stated: Sensitivity) -> Sensitivity:
        """The true sensitivity; in published mode, noise is scaled to the paper's."""
        return replace(true, calibrated_to=stated) if self.mode is Mode.PUBLISHED else true

    @property
    def source(self) -> str:
        """The paper that this entry comes from, as tables cite it."""
        return self.paper

    @property
    def protects(self) -> Protection:
        return protection_of(self.neighbours)

    @property
    def accounting(self) -> Accounting:
        """The accounting of θ. McSherry and Mironov 2009, section 5, scale the noise of measurement i to Δ_i/θ_i with
        Σθ_i = θ. By default every step is pure ε-DP, and θ is ε itself."""
        return Accounting(NoiseKind.LAPLACE, self.mode, {}, 0.0)

    @property
    def spends_delta(self) -> float:
        """The δ of the ledger's (ε, δ); 0 if every step is pure ε-DP."""
        return self.accounting.spends_delta

    def epsilon_of(self, theta: float) -> float:
        """The total ε that θ stands for."""
        return self.accounting.epsilon_of(theta)

    def theta_of(self, epsilon: float) -> float:
        return self.accounting.theta_of(epsilon)


def _of_piece(index: int, message: str) -> PydanticCustomError:
    return PydanticCustomError("by_epsilon", "{message}", {"message": message, "path": ("by_epsilon", index)})
