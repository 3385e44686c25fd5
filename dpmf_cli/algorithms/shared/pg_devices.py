"""The devices of PG-MF. They hold their users' ratings and factors, and report perturbed gradients for items."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.kernels.als import RatingsByRow, RowProblem, SideRatings, solve_rows
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.reports import coordinate_gradients
from dpmf_cli.privacy.local import PerturbedSigns, SignChannel
from dpmf_cli.ratings import Ratings


def solve_own_factors(model: FactorModel, own: Ratings, regularization: float) -> None:
    """p_u ← argmin Σ_i (r_ui − m − p·q_i)² + n_u·λ‖p‖² on each user's own ratings, on [0, 1], in place."""
    ratings = SideRatings("users", RatingsByRow(own.user_starts, own.items, unit_values(own)))
    solve_rows(model, ratings, RowProblem(regularization, bound=np.inf))


def unit_values(ratings: Ratings) -> NDArray[np.float32]:
    """(n,) ratings on [0, 1]."""
    scale = ratings.scale
    return np.asarray((ratings.values - scale.minimum) / scale.width, np.float32)


@dataclass(frozen=True)
class Devices:
    """All users' devices. No other code sees ratings, which leave this code only through a channel. Each rating is
    reported.

    factors      d
    bound        G, to which the coordinates of gradients are clipped
    coordinates  draws the coordinate of each report, and the rating or item if that is drawn too
    """

    ratings: Ratings
    factors: int
    regularization: float
    bound: float
    coordinates: np.random.Generator

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """(n,) ratings on [0, 1]."""
        return unit_values(self.ratings)

    def report_ratings(self, channel: SignChannel) -> PerturbedSigns:
        """Reports each rating, as 2r − 1."""
        return _of_no_coordinate(channel, 2 * self.values - 1, self.ratings.items)

    def solve_users(self, model: FactorModel) -> None:
        """Each device solves for its user's factors, in place."""
        solve_own_factors(model, self.ratings, self.regularization)

    def reported(self) -> tuple[slice | NDArray[np.int64], NDArray[np.int64]]:
        """The ratings that are reported, and how many ratings each of them stands for. Here: all, and one each."""
        return slice(None), np.ones(len(self.ratings), np.int64)

    def report_gradients(self, model: FactorModel, channel: SignChannel) -> PerturbedSigns:
        """Reports one coordinate of the gradient of each reported rating, in units of G. It is the same coordinate
        for each ε."""
        rows, weights = self.reported()
        coordinates = self.drawn_coordinates(len(weights))
        gradients = self.gradients(model, rows, coordinates)
        return channel.send(gradients, self.ratings.items[rows], coordinates, weights)

    def drawn_coordinates(self, reports: int) -> NDArray[np.uint8]:
        """(reports,) coordinates, drawn uniformly."""
        return self.coordinates.integers(self.factors, size=reports).astype(np.uint8)

    def gradients(
        self, model: FactorModel, rows: slice | NDArray[np.int64], coordinates: NDArray[np.uint8]
    ) -> NDArray[np.float32]:
        """(reports, E) (r_ui − m − p_u·q_i)·p_uc/G for the ratings `rows` and the coordinates c (reports,)."""
        users, items = self.ratings.users[rows], self.ratings.items[rows]
        return coordinate_gradients(model, users, items, coordinates, self.values[rows], self.bound)


class DevicesOfOneReport(Devices):
    """Devices that report one rating of their user in each iteration."""

    def reported(self) -> tuple[slice | NDArray[np.int64], NDArray[np.int64]]:
        """One rating of each user who has any. It is drawn uniformly and stands for all ratings of that user."""
        counts = self.ratings.user_counts
        drawn = self.ratings.user_starts[:-1] + (self.coordinates.random(len(counts)) * counts).astype(
            np.int64
        )
        return drawn[counts > 0], counts[counts > 0]


class DevicesOfWholeUsers(Devices):
    """Devices that report once in each iteration, on any item, rated or not. This hides what the user has rated.

    Shin et al. 2018, section 4.
    """

    def report_ratings(self, channel: SignChannel) -> PerturbedSigns:
        """Reports each user's mean of 2r − 1; 0 for a user without ratings."""
        users, counts = self.ratings.n_users, self.ratings.user_counts
        sums = np.bincount(self.ratings.users, 2 * self.values - 1, users)
        return _of_no_coordinate(channel, sums / np.maximum(counts, 1), np.zeros(users, np.int32))

    def report_gradients(self, model: FactorModel, channel: SignChannel) -> PerturbedSigns:
        """Reports a coordinate of an item's gradient, both drawn uniformly; 0 if the user has not rated the item.

        The report stands for all items.
        """
        ratings, users = self.ratings, self.ratings.n_users
        items = self.coordinates.integers(ratings.n_items, size=users).astype(np.int32)
        coordinates = self.drawn_coordinates(users)
        wanted = np.arange(users) * ratings.n_items + items
        rows = np.searchsorted(self.pairs[:-1], wanted)
        rated = self.pairs[rows] == wanted
        gradients = np.zeros((users, sum(group.lanes for group in model.groups)), np.float32)
        gradients[rated] = self.gradients(model, rows[rated], coordinates[rated])
        return channel.send(gradients, items, coordinates, np.full(users, ratings.n_items))

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """(n + 1,) a number for each rated (user, item), ascending. The last number, −1, belongs to no pair."""
        return np.append(self.ratings.users.astype(np.int64) * self.ratings.n_items + self.ratings.items, -1)


def _of_no_coordinate(
    channel: SignChannel, numbers: NDArray[np.floating], items: NDArray[np.int32]
) -> PerturbedSigns:
    """Sends numbers (n,) without coordinates. Each stands for itself."""
    n = len(numbers)
    return channel.send(numbers[:, None], items, np.zeros(n, np.uint8), np.ones(n, np.int64))
