"""The local model: each rating is perturbed on its user's device, and the aggregator gets nothing but the messages.

`PerturbedRatings` is that boundary: only the functions of this module can make one, from clean ratings and through
the ledger, and the aggregator's code (`LocalAlgorithm.aggregate`) takes it alone and reaches no clean value.

ε is spent per rating, so that a user who sends n messages spends n·ε in total (sequential composition). Which items a
user rated is not hidden at all. Neera et al. 2020 conclude more, which is not proved.
"""

from dataclasses import InitVar, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.core.ratings import Ratings, Scale, UserMajor, average_of
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.local_mechanisms import LocalMechanism, Sign
from dpmf_cli.privacy.mechanisms import on_devices
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

_SEAL = object()
"""The seal that only this module passes to the constructors of messages."""

CHUNK = 1 << 13
"""The count of numbers that are perturbed at a time, so that intermediate results stay in the cache."""


@dataclass(frozen=True)
class Traffic:
    """Bytes from all users to the aggregator (`up`) and back, counted from the messages of a simulation. Table 1."""

    up: int
    down: int
    messages: int
    users: int

    @property
    def up_per_user(self) -> float:
        return self.up / self.users

    @property
    def down_per_user(self) -> float:
        return self.down / self.users


@dataclass(eq=False, kw_only=True)
class Sealed:
    """Messages that have passed a local mechanism; made in any other way, they raise TypeError."""

    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError(f"only a local mechanism can make {type(self).__name__}")


@dataclass(eq=False, kw_only=True)
class PerturbedRatings(Sealed, UserMajor):
    """The messages of all users, decoded, for each ε of the grid.

    users, items  (n,) int32, in user-major order: who rated what is public
    values        the decoded messages, for each ε: on [0, 1], except that values of unbiased mechanisms may lie
                  outside
    scale         the public scale of ratings, whose ends correspond to 0 and 1
    epsilons      (E,)
    """

    users: Ints
    items: Ints
    n_users: int
    n_items: int
    scale: Scale
    epsilons: Doubles
    values: LaneValues
    message_bytes: int

    @property
    def means(self) -> Doubles:
        """(E,) the mean of all messages, or the middle of [0, 1] if there are none."""
        return np.array([average_of(self.values.column(e), 0.5) for e in range(len(self.epsilons))])

    @property
    def traffic(self) -> Traffic:
        return Traffic(len(self) * self.message_bytes, 0, len(self), self.n_users)


def value_seen_by_the_aggregator(source: str, counts: Longs) -> Sensitivity:
    """One rating on [0, 1], as the aggregator sees it: its value may change to any other.

    The ledger's text says how much ε users spend who send all their ratings. counts (n_users,)
    """
    spent = f"for a user n·ε: {counts.mean():.1f} ε on average, {counts.max()} ε at most"
    return Sensitivity(1.0, 1, Neighbours.LOCAL, f"{source}; {spent}")


def gradient_of_each_rating(counts: Longs) -> Sensitivity:
    """A number on [0, 1] that a device computes from *all* of its user's ratings, and reports for each of them.

    The report for (u, i) is about (r_ui − p_u·q_i)·p_u, and p_u is fitted to every rating of the user. So a changed
    value of one rating moves all n_u reports of an iteration, which, if each spends ε, together spend n_u·ε on that
    rating, and no more than that on all ratings of the user. counts (n_users,)
    """
    spent = f"a rating of a user with n: {counts.mean():.1f} ε on average, {counts.max()} ε at most"
    return Sensitivity(float(counts.max()), 1, Neighbours.LOCAL, f"one rating moves all n reports; {spent}")


def gradient_of_one_rating() -> Sensitivity:
    """A number on [0, 1] that a device computes from all ratings of its user, and reports once: the values of all
    these ratings spend ε together."""
    return Sensitivity(1.0, 1, Neighbours.LOCAL, "one report of a user's: ε for all of the user's values")


def report_of_a_user() -> Sensitivity:
    """A number on [0, 1] that a device reports once, whatever its user has rated, even if that is nothing: all of the
    user's ratings spend ε together, which covers their presence too."""
    return Sensitivity(1.0, 1, Neighbours.USER, "one report of a device: ε for all that its user has rated")


def epsilon_per_user(epsilons: Doubles, counts: Longs) -> tuple[Doubles, ...]:
    """(E,) the mean and (E,) the largest ε for all `counts` ratings of a user, if each spends ε."""
    return epsilons * counts.mean(), epsilons * counts.max()


def perturb_ratings(
    train: Ratings, mechanism: LocalMechanism, epsilons: Epsilons, *, debias: bool, curator: Curator
) -> PerturbedRatings:
    """The messages that all devices send; all of `epsilons` (E,) is in the ledger before the first draw.

    Ratings are scaled to [0, 1] by the public scale (equation 1). With `debias`, the aggregator reads p as ½ + (p −
    ½)/s, s = E[r*|1] − E[r*|0]. The result, which is post-processing and costs nothing, is unbiased at both ends and
    the middle of the scale, and at all values if the mechanism's mean is linear. Elsewhere a bias of at most 0.1 is
    left with bounded Laplace, and of 0.03 with clamped Laplace.
    """
    (messages,) = on_devices(
        "each rating, on its device",
        mechanism,
        sensitivity=value_seen_by_the_aggregator(mechanism.source, train.user_counts),
        epsilon=epsilons,
        curator=curator,
        stream="messages",
    )
    slope = mechanism.slope(epsilons) if debias and not mechanism.unbiased else np.ones(len(epsilons))
    received = LaneValues.empty(len(train), len(epsilons))
    for first in range(0, len(train), CHUNK):
        rows = slice(first, first + CHUNK)
        values = (train.values[rows].astype(np.float64) - train.scale.minimum) / train.scale.width
        received.put(rows, 0.5 + (messages.sent(values, first) - 0.5) / slope)
    return PerturbedRatings(
        seal=_SEAL,
        users=train.users,
        items=train.items,
        n_users=train.n_users,
        n_items=train.n_items,
        scale=train.scale,
        epsilons=epsilons,
        values=received,
        message_bytes=_message_bytes(train.n_items, ("value", mechanism.payload)),
    )


def _message_bytes(n_items: int, *payload: tuple[str, str]) -> int:
    """The bytes of one message: the payload, and the item's id in as few bytes as the catalogue needs."""
    return np.dtype([("item", np.min_scalar_type(max(n_items - 1, 0))), *payload]).itemsize


@dataclass(eq=False, kw_only=True)
class PerturbedSigns(Sealed):
    """One reported number of each device's rating, decoded, for each ε of the grid.

    items, coordinates  (n,) the item and the coordinate of each number: public
    weights             (n,) how many ratings each number stands for: public
    numbers             (n, E) the decoded numbers, whose means are the numbers in [−1, 1] that were perturbed
    """

    items: Ints
    coordinates: NDArray[np.uint8]
    weights: Longs
    numbers: Singles


class SignChannel:
    """Reports numbers in [−1, 1], put on [0, 1], each as a `Sign`: `repetitions` times, with equal parts of ε, all of
    which is in the ledger before the first report.

    epsilon      (E,) the ε of all reports of one number
    sensitivity  how many numbers a changed value of one rating moves: the provable ε is that many times ε

    `send` raises RuntimeError if it is called more often than was paid for.
    """

    def __init__(
        self,
        step: str,
        *,
        repetitions: int,
        epsilon: Doubles,
        sensitivity: Sensitivity,
        n_items: int,
        curator: Curator,
    ) -> None:
        self._rounds = on_devices(
            step,
            Sign(),
            repetitions=repetitions,
            sensitivity=replace(sensitivity, calibrated_to=replace(sensitivity, value=1.0)),
            epsilon=epsilon,
            curator=curator,
        )
        self._grid = len(epsilon)
        self._each = _message_bytes(n_items, ("coordinate", "u1"), ("sign", "u1"))
        self.messages = 0

    @property
    def bytes(self) -> int:
        return self.messages * self._each

    def send(
        self, numbers: Floats, items: Ints, coordinates: NDArray[np.uint8], weights: Longs
    ) -> PerturbedSigns:
        """What the aggregator receives for numbers (n, E) or (n, 1), clipped to [−1, 1] on the device."""
        reports = next(self._rounds, None)
        if reports is None:
            raise RuntimeError("more reports than were paid for")
        decoded = np.empty((len(numbers), self._grid), np.float32)
        for first in range(0, len(numbers), CHUNK):
            rows = slice(first, first + CHUNK)
            decoded[rows] = reports.sent((np.clip(numbers[rows], -1, 1) + 1) / 2, first)
        self.messages += len(numbers)
        return PerturbedSigns(
            seal=_SEAL, items=items, coordinates=coordinates, weights=weights, numbers=decoded
        )
