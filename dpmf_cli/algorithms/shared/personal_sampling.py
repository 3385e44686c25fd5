"""Personal privacy specifications, and the sampling that meets them.

Zhang, Liu, Chen and Zhong 2018, section 5, after Jorgensen, Yu and Cormode 2015.
"""

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.base import NeededColumn
from dpmf_cli.algorithms.shared.budget import Budget
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import StrictModel


def sampling_probability(records: NDArray[np.float64], threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """π = (e^ε − 1)/(e^t − 1) if ε < t, else 1: equation 11. (n, E) for records' ε (n, E) and thresholds (E,).

    Computed as e^(ε−t)·(1 − e^(−ε))/(1 − e^(−t)), which does not overflow for any ε.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        below = np.exp(records - threshold) * np.expm1(-records) / np.expm1(-threshold)
    return np.where(records < threshold, below, 1.0)


def sampled_epsilon(probability: NDArray[np.float64], epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ε of a record that enters an ε-DP algorithm with probability π: ln(1 − π + π·e^ε), unbounded neighbours.

    Zhang et al. 2018, theorem 6. If π is from `sampling_probability` and the algorithm's ε is the threshold, the
    result is the smaller of the record's own ε and the threshold. It is infinite if the algorithm's ε is.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        together = np.logaddexp(np.log1p(-probability), np.log(probability) + epsilon)
    return np.where(probability > 0, together, 0.0)


def replaced_epsilon(probability: NDArray[np.float64], epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
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


class PersonalSampling(StrictModel):
    """The ε that each record asks for, and the threshold t. A record gains nothing by asking for more than t.

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
    def needs_column(self) -> NeededColumn | None:
        """The column of ε, if each rating states its own; otherwise None."""
        if self.specification == "fractions":
            return None
        return NeededColumn("epsilon", "ε", "specification", "use `specification: fractions`")

    @property
    def threshold_is_public(self) -> bool:
        """Whether t is the same for all neighbours, as theorem 6 requires."""
        return self.specification == "fractions" or isinstance(self.threshold, float)

    def stated_epsilons(self, train: Ratings, streams: Streams) -> NDArray[np.float64]:
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
            count = train.n_users if self.per == "user" else train.n_items
            group, within = streams.generator(purpose).random((2, count))
        (_, low, middle), (_, _, high) = self._levels()[:2]
        drawn = np.where(
            group < self.conservative,
            low + within * (middle - low),
            np.where(group < self.conservative + self.moderate, middle + within * (high - middle), high),
        )
        if self.per == "record":
            return np.asarray(drawn)
        return np.asarray(drawn[train.users if self.per == "user" else train.items])

    def thresholds(self, records: NDArray[np.float64], ceilings: NDArray[np.float64]) -> NDArray[np.float64]:
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
