"""Personal privacy specifications, the sampling that meets them, and fits on the samples.

Zhang, Liu, Chen and Zhong 2018, section 5, after Jorgensen, Yu and Cormode 2015.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.base import Algorithm, Model
from dpmf_cli.algorithms.shared.budget import Budget
from dpmf_cli.algorithms.shared.factorization import Kept
from dpmf_cli.core.arrays import Doubles, Floats, Ints
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons, Ledger


def sampling_probability(records: Doubles, threshold: Doubles) -> Doubles:
    """π = (e^ε − 1)/(e^t − 1) if ε < t, else 1: equation 11. (n, E) for records' ε (n, E) and thresholds (E,).

    Computed as e^(ε−t)·(1 − e^(−ε))/(1 − e^(−t)), which does not overflow for any ε.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        below = np.exp(records - threshold) * np.expm1(-records) / np.expm1(-threshold)
    return np.where(records < threshold, below, 1.0)


def sampled_epsilon(probability: Doubles, epsilon: Doubles) -> Doubles:
    """The ε of a record that enters an ε-DP algorithm with probability π: ln(1 − π + π·e^ε), unbounded neighbours.

    Zhang et al. 2018, theorem 6. If π is from `sampling_probability` and the algorithm's ε is the threshold, the
    result is the smaller of the record's own ε and the threshold. It is infinite if the algorithm's ε is.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        together = np.logaddexp(np.log1p(-probability), np.log(probability) + epsilon)
    return np.where(probability > 0, together, 0.0)


def replaced_epsilon(probability: Doubles, epsilon: Doubles) -> Doubles:
    """The ε of a record's *value*: ln((1 − π + π·e^ε)/(1 − π + π·e^(−ε))), if ε-DP holds for unbounded neighbours.

    The sample has the record with its old value, with its new value, or not at all. A set of outputs of the algorithm
    then has probability P, P′ or P₀, with P ≤ e^ε·P₀ and P₀ ≤ e^ε·P′; no other bound is known. The result is twice
    `sampled_epsilon` for π = 1, and less for smaller π. That is sharper than the 2ε of Zhang et al. 2018, remark 7.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        absent, present = np.log1p(-probability), np.log(probability)
        least = np.where(np.isinf(epsilon), absent, np.logaddexp(absent, present - epsilon))
    together = sampled_epsilon(probability, epsilon)
    return np.where(probability > 0, together - least, 0.0)


class Draw(NamedTuple):
    """Thresholds (E,), and (n, E) each record's probability of being sampled, and whether it was."""

    thresholds: Doubles
    probability: Doubles
    kept: Kept


class PersonalSampling(StrictModel):
    """The ε that each record asks for, and the threshold t, above which a record gains nothing by asking.

    `fractions` (section 6.1): a fraction f_c of the records is conservative, with ε uniform in [ε_c, ε_m]. A fraction
    f_m is moderate, with ε uniform in [ε_m, ε_l]. The rest is liberal, with ε_l. The ε is drawn for each record as in
    the paper, or for each user or item.
    `column`: each rating has its own ε, from `columns.epsilon` of the user's file.

    Only t must be public. A record is hidden by its own ε even from someone who knows that ε. Neighbours differ in
    the presence of (u, i, r, ε_ui); the ε of all other records and t are the same on both sides. `fractions` per
    record draws an ε for the records that are present, each independently from one distribution. A column's ε come
    with the ratings. Definition 2 of the paper has an ε for every pair, rated or not; that is not needed. For
    `fractions`, the mean and the largest ε are those of the distribution, not of the records in the data.
    """

    specification: Literal["fractions", "column"] = "fractions"
    per: Literal["record", "user", "item"] = Field(
        "record", description="`fractions` draws one ε for each of these"
    )
    conservative: float = Field(0.54, ge=0, le=1, description="f_c, section 6.1")
    moderate: float = Field(0.37, ge=0, le=1, description="f_m, section 6.1")
    epsilon_conservative: Budget = Field(0.1, description="ε_c, section 6.1")
    epsilon_moderate: Budget = Field(0.2, description="ε_m, section 6.1")
    epsilon_liberal: Budget = Field(1.0, description="ε_l, section 6.1")
    threshold: Literal["mean", "max"] | Budget = Field(
        "mean", description="t: the mean or the largest of the records' ε, or a number"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.conservative + self.moderate > 1 + 1e-9:
            raise PydanticCustomError(
                "fractions", "the fractions `conservative` and `moderate` sum to more than 1; lower one"
            )
        if not self.epsilon_conservative <= self.epsilon_moderate <= self.epsilon_liberal:
            raise PydanticCustomError(
                "levels", "the levels must ascend: epsilon_conservative, epsilon_moderate, epsilon_liberal"
            )
        return self

    @property
    def needs_epsilons(self) -> bool:
        return self.specification != "fractions"

    @property
    def threshold_is_public(self) -> bool:
        """Whether t is the same for all neighbours, as theorem 6 requires."""
        return self.specification == "fractions" or isinstance(self.threshold, float)

    def stated_epsilons(self, train: Ratings, streams: Streams) -> Doubles:
        """(n_ratings,) the ε that each record asks for. Raises DpmfError if the data lack the column of ε."""
        if self.specification == "column":
            column = train.columns.get("epsilon")
            if column is None:
                raise DpmfError(
                    "specification: column needs the data's own `columns.epsilon`; this data set has none"
                )
            stated = np.asarray(column, dtype=np.float64)
            if not np.all(stated > 0):
                raise DpmfError("the column `epsilon` must have a positive number for every rating")
            return stated
        purpose = "privacy specification"
        if self.per == "record":
            group, within = streams.of_ratings(purpose, train, 2)
        else:
            of_users = self.per == "user"
            owners, count = (train.users, train.n_users) if of_users else (train.items, train.n_items)
            group, within = streams.generator(purpose).random((2, count))[:, owners]
        (_, low, middle), (_, _, high) = self._levels()[:2]
        moderate = np.where(
            group < self.conservative + self.moderate, middle + within * (high - middle), high
        )
        return np.where(group < self.conservative, low + within * (middle - low), moderate)

    def thresholds(self, records: Doubles, ceilings: Doubles) -> Doubles:
        """(E,) t for records' ε (n,) that are capped at `ceilings` (E,).

        With `column`, the mean or the largest ε of no records is the ceiling.
        """
        if isinstance(self.threshold, float):
            return np.minimum(self.threshold, ceilings)
        if self.specification == "column":
            if not len(records):
                return ceilings
            capped = np.minimum(records[:, None], ceilings)
            return np.asarray(capped.mean(axis=0) if self.threshold == "mean" else capped.max(axis=0))
        if self.threshold == "max":
            return np.minimum(max(high for share, _, high in self._levels() if share > 0), ceilings)
        return np.array(
            [sum(share * _capped_mean(low, high, c) for share, low, high in self._levels()) for c in ceilings]
        )

    def draw(self, train: Ratings, ceilings: Doubles, streams: Streams) -> Draw:
        """The samples for records' ε that are capped at `ceilings` (E,), by algorithm 1. One uniform draw for each
        record serves all ε."""
        asked = self.stated_epsilons(train, streams)
        thresholds = self.thresholds(asked, ceilings)
        probability = sampling_probability(asked[:, None], thresholds)
        kept = streams.of_ratings("sampling", train)[:, None] < probability
        return Draw(thresholds, probability, np.asarray(kept))

    def _levels(self) -> tuple[tuple[float, float, float], ...]:
        """(fraction, least ε, largest ε) of each group."""
        low, middle, high = self.epsilon_conservative, self.epsilon_moderate, self.epsilon_liberal
        liberal = max(0.0, 1 - self.conservative - self.moderate)
        return (self.conservative, low, middle), (self.moderate, middle, high), (liberal, high, high)


def _capped_mean(low: float, high: float, ceiling: float) -> float:
    """The mean of min(X, ceiling) for X uniform in [low, high]."""
    if ceiling >= high:
        return (low + high) / 2
    if ceiling <= low:
        return ceiling
    return ((ceiling**2 - low**2) / 2 + ceiling * (high - ceiling)) / (high - low)


@dataclass(frozen=True)
class RecordCosts:
    """The `record_costs` of a model whose fit gave the training ratings different ε.

    For each ε of the grid: the threshold t, the fraction of the training ratings that was sampled (`kept`), and
    the least, the median and the largest ε that can be proved for a training rating."""

    threshold: tuple[float, ...]
    kept: tuple[float, ...]
    least: tuple[float, ...]
    median: tuple[float, ...]
    largest: tuple[float, ...]


T = TypeVar("T")


@dataclass(frozen=True)
class ModelColumns:
    """A part of the models that were fitted together, and what it cost the records, if they have an ε each."""

    model: Model
    columns: slice
    record_costs: RecordCosts | None = None

    def predict(self, users: Ints, items: Ints) -> Floats:
        return self.model.predict(users, items)[:, self.columns]


class AroundABase(PersonalSampling, Algorithm):
    """An algorithm that fits another algorithm, its `base`, on the sample that personal privacy draws. A subclass
    says which bases are allowed, and `accounted` what the fit cost."""

    base: Algorithm

    @model_validator(mode="after")
    def _keep_the_base_bare(self) -> Self:
        """Raises an error for a key of the base that is only read from the entry itself."""
        for key in ("label", "clip_predictions", "by_epsilon"):
            if getattr(self.base, key, None):
                raise PydanticCustomError(
                    "base", "set `{key}` on the method, not on its `base`", {"key": key}
                )
        return self

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "base": self.base.parameters()}

    @property
    def shared_fit(self) -> str | None:
        """The key of the base, since entries with equal bases differ only in samples and thresholds; None if the base
        cannot have a different sample for each ε."""
        return json.dumps(self.base.parameters(), sort_keys=True) if self.base.shares_lanes else None

    @property
    def changes(self) -> int:
        """How many records two neighbours differ by."""
        return 1

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        return self.fit_together([self], train, [epsilons], streams=streams, curators=[curator])[0]

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
        """The models of all entries, from one fit of the base that they share, which has the thresholds as its ε
        unless it has no privacy."""
        streams = replace(streams, algorithm="personalized")
        draws = [
            entry.draw(train, grid / entry.changes, streams)
            for entry, grid in zip(entries, grids, strict=True)
        ]
        epsilons = np.concatenate([draw.thresholds for draw in draws] if cls.private else grids)
        kept, together = np.concatenate([draw.kept for draw in draws], axis=1), curators[0].apart(epsilons)
        model = fit_samples(entries[0].base, train, kept, epsilons, streams=streams, curator=together)
        models, first = [], 0
        for entry, draw, curator in zip(entries, draws, curators, strict=True):
            own = ModelColumns(model, slice(first, first + len(draw.thresholds)))
            models.append(entry.accounted(draw, own, together.ledger, curator.ledger))
            first = own.columns.stop
        return models

    def accounted(self, draw: Draw, model: ModelColumns, account: Ledger, ledger: Ledger) -> Model:
        """The model, once `ledger` has what the base spent on this entry's columns, by its `account`."""
        return model


def fit_samples(
    base: Algorithm, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
) -> Model:
    """A model for each column of `kept` (n, E), with the ε at the same place, fitted in one pass if the base can do
    that, and otherwise one after the other."""
    if base.shares_lanes:
        return base.fit_samples(train, kept, epsilons, streams=streams, curator=curator)

    def fit(place: int, epsilon: Epsilons, alone: Curator) -> Model:
        return base.fit(train.select(kept[:, place]), epsilon, streams=streams, curator=alone)

    return SideBySide(tuple(one_by_one(fit, epsilons, curator)))


def one_by_one(fit: Callable[[int, Epsilons, Curator], T], epsilons: Epsilons, curator: Curator) -> list[T]:
    """What `fit` gives for each ε separately, with its place in the grid; each step enters the ledger once, for all
    ε."""
    found, accounts = [], []
    for place, epsilon in enumerate(epsilons):
        alone = curator.apart([epsilon], first=place)
        accounts.append(alone.ledger)
        found.append(fit(place, np.array([epsilon]), alone))
    for steps in zip(*(account.entries for account in accounts), strict=True):
        curator.ledger.spend(
            steps[0].step,
            steps[0].mechanism,
            steps[0].sensitivity,
            np.concatenate([step.claimed for step in steps]),
            np.concatenate([step.provable for step in steps]),
        )
    return found


@dataclass(frozen=True)
class SideBySide:
    """Models of one ε each, as one model; each is a column of the predictions."""

    models: tuple[Model, ...]

    def predict(self, users: Ints, items: Ints) -> Floats:
        return np.concatenate([model.predict(users, items) for model in self.models], axis=1)
