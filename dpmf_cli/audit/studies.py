"""The mechanisms of five benchmark studies, as their public code has them, and what trials show of each.

They are written from what the code does, and have none of its lines. Each draws many releases of the same ratings at
once. A bound holds for one pair of neighbours and one statistic, as those of `audit.distinguish` do.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmf_cli.audit import bounds
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.streams import named_generator

EPSILON = 1.0
"""The ε that the mechanisms are given."""

Release = Callable[[Doubles, int, np.random.Generator], Doubles]
"""Ratings, a number of trials, and a generator to the releases (trials, …)."""

Statistic = Callable[[Doubles], Doubles]
"""Releases (trials, …) to the number (trials,) that is looked at."""

Pair = tuple[Doubles, Doubles]
"""The ratings on both sides."""

RANK, PENALTY, STEPS, TOLERANCE = 10, 0.1, 150, 1e-4
"""DP-Impact's least squares: values that its search tries, most iterations, and the change of RMSE that ends them."""

WEIGHTS, BATCH, CLIP, LABEL_SCALE = 64, 32, 0.1, 100
"""FedPerGNN's constants: the width of its layers, users in a batch, bound of a gradient, divisor of ratings."""

NOISE = 2 * CLIP / math.sqrt(BATCH) / EPSILON
"""The scale of its noise, in units of the learning rate."""

KEPT = 0.75
"""The chance of a true answer when two coins decide."""


def predicted_ratings(ratings: Doubles, trials: int, rng: np.random.Generator) -> Doubles:
    """Returns (trials, users, items): DP-Impact's predictions, all with the same draw of Laplace noise, clipped."""
    users, items = _least_squares(np.tile(ratings, (trials, 1, 1)), rng)
    noise = rng.laplace(0, 5 / EPSILON, (trials, 1, 1))
    return np.asarray(np.clip(users @ items.swapaxes(1, 2) + noise, 0, 5))


def noisy_factors(
    ratings: Doubles, trials: int, rng: np.random.Generator, sensitivity: float | None = None
) -> Doubles:
    """Returns (trials, users + items, RANK): DP-Impact's factors, each entry with Laplace noise.

    sensitivity  None takes the largest change of a prediction when all ratings get normal noise of deviation 0.1
    """
    data = np.tile(ratings, (trials, 1, 1))
    users, items = _least_squares(data, rng)
    scale = np.full((trials, 1, 1), sensitivity or math.nan)
    if sensitivity is None:
        others, their_items = _least_squares(data + rng.normal(0, 0.1, data.shape), rng)
        moved = users @ items.swapaxes(1, 2) - others @ their_items.swapaxes(1, 2)
        scale = np.abs(moved).max(axis=(1, 2), keepdims=True)
    factors = np.concatenate([users, items], axis=1)
    return np.asarray(factors + scale / EPSILON * rng.laplace(size=factors.shape))


def _least_squares(ratings: Doubles, rng: np.random.Generator) -> Pair:
    """Returns the factors (trials, users, RANK) and (trials, items, RANK) of matrices without empty cells."""
    trials, n_users, n_items = ratings.shape
    users, items = (rng.random((trials, rows, RANK)) for rows in (n_users, n_items))
    before, moving = np.full(trials, np.inf), np.ones(trials, np.bool_)
    for _ in range(STEPS):
        users[moving] = _ridge(ratings[moving], items[moving])
        items[moving] = _ridge(ratings[moving].swapaxes(1, 2), users[moving])
        rmse = np.sqrt(((ratings - users @ items.swapaxes(1, 2)) ** 2).mean(axis=(1, 2)))
        moving &= np.abs(rmse - before) >= TOLERANCE
        if not moving.any():
            break
        before = rmse
    return users, items


def _ridge(targets: Doubles, factors: Doubles) -> Doubles:
    """Returns targets·(F·Fᵀ + λ)⁻¹·F, which is ridge regression on F, for each of a stack of matrices."""
    inner = factors @ factors.swapaxes(1, 2) + PENALTY * np.eye(factors.shape[1])
    return np.asarray(targets @ np.linalg.solve(inner, factors))


def reported_likes(
    likes: Doubles, trials: int, rng: np.random.Generator, sampled: int | None = None
) -> Doubles:
    """Returns (trials, items): ImpactOfDP's randomised response, 1 for each reported like.

    sampled  how many items that are not liked can be reported, drawn at random; None takes as many as are liked
    """
    liked = likes > 0
    kept = rng.random((trials, likes.size)) < math.exp(EPSILON) / (1 + math.exp(EPSILON))
    order = np.where(liked, np.inf, rng.random((trials, likes.size)))
    rank = np.argsort(np.argsort(order, axis=1), axis=1)
    asked = rank < min(liked.sum() if sampled is None else sampled, (~liked).sum())
    return np.asarray(np.where(liked, kept, asked & ~kept), np.float64)


def deniable_answers(ratings: Doubles, trials: int, rng: np.random.Generator, stars: bool = False) -> Doubles:
    """Returns (trials, ratings): ReuseKNN's answers, the true rating or a uniform number of the scale.

    stars  whether the random answers are whole stars
    """
    shape = (trials, ratings.size)
    guesses = rng.integers(1, 6, shape) if stars else rng.uniform(1, 5, shape)
    return np.asarray(np.where(rng.random(shape) < KEPT, ratings, guesses))


def noisy_gradients(
    ratings: Doubles,
    trials: int,
    rng: np.random.Generator,
    scale: float = NOISE,
) -> Doubles:
    """Returns (trials, WEIGHTS): FedPerGNN's update by one batch of ratings, in units of the learning rate.

    The weights are those of the last layer, at the start: every feature and every prediction is ½.
    """
    labels = np.floor(ratings / LABEL_SCALE)
    gradient = np.full(WEIGHTS, float(((0.5 - labels) / 4).mean()))
    clipped = gradient * min(1.0, CLIP / float(np.linalg.norm(gradient)))
    return clipped + rng.laplace(0, scale, (trials, WEIGHTS))


def perturbed_stars(ratings: Doubles, trials: int, rng: np.random.Generator, height: float = 0.48) -> Doubles:
    """Returns (trials, ratings): ComDPRS's whole stars."""
    drawn = [rng.choice(5, trials, p=chances_of_stars(rating, height)) for rating in ratings.tolist()]
    return np.asarray(np.stack(drawn, axis=1) + 1, np.float64)


def chances_of_stars(
    rating: float, height: float = 0.48, width: float = 0.843, floor: float = 0.28
) -> Doubles:
    """Returns (5,) the chance of each star in ComDPRS: a uniform density, higher by `height` over some `width`.

    The defaults are constants of its code. A user's share of ε is no argument: nothing depends on it.
    """
    area = height * width
    edge = (1 - area) / (2 * floor)
    reach = area * (2 * edge - width)
    start = ((rating - 1) / 4 * reach - edge) / area - width / 2
    grid = np.linspace(-edge, edge, 1001)
    grid = grid[grid <= reach - edge]  # what lies beyond 5 stars is dropped
    density = np.round(floor + height * ((grid >= start) & (grid < start + width)), 3)
    stars = np.round(1 + 4 * (grid + edge) / reach).astype(np.intp)
    chances = np.bincount(stars, density, 6)[1:]
    return np.asarray(chances / chances.sum())


def least_epsilon(
    release: Release, seen: Statistic, pair: Pair, trials: int, confidence: float = 0.95, name: str = ""
) -> float:
    """Returns the ε below which no claim for the release is true. Half of the trials choose the event."""
    here, there = (
        seen(release(side, trials, named_generator("audit", "studies", name, number)))
        for number, side in enumerate(pair)
    )
    half = trials // 2
    event = bounds.best_threshold(here[:half], there[:half], 0.0)
    return bounds.epsilon_of_event(event.counts(here[half:], there[half:]), 0.0, confidence)


@dataclass(frozen=True)
class StudyMechanism:
    """A mechanism of a benchmark study, and a pair of neighbours for which its ε is too small.

    protects    what the neighbours of its claim differ in
    why         why the claim fails
    source      repository, commit, file and function
    of_pair     the pair in words
    by_formula  the ε of the pair in closed form; nan where none is known
    """

    study: str
    mechanism: str
    protects: str
    why: str
    source: str
    of_pair: str
    pair: Pair
    release: Release
    seen: Statistic
    by_formula: float = math.nan
    claimed: float = EPSILON
    trials: int = 20_000

    @cached_property
    def least(self) -> float:
        """The ε that trials show, at 95 %."""
        return least_epsilon(self.release, self.seen, self.pair, self.trials, name=self.mechanism)

    @property
    def ceiling(self) -> float:
        """The most that so many trials can show."""
        half = self.trials // 2
        return bounds.epsilon_of_event(bounds.always_against_never(half, half), 0.0, 0.95)


def _changed(ratings: Doubles, value: float, at: tuple[slice | int, ...]) -> Doubles:
    """Returns a copy of the ratings with another value there."""
    copy = ratings.copy()
    copy[at] = value
    return copy


_BLOCK = np.full((4, 3), 3.0)
_BLOCKS = _changed(_BLOCK, 5.0, (0, 0)), _changed(_BLOCK, 1.0, (0, 0))
_ITEMS, _LIKES = 200, 5
_PROFILE = np.repeat([1.0, 0.0], [_LIKES + 1, _ITEMS - _LIKES - 1])
_USERS = np.tile([100.0, 1.0], (BATCH, 1))
_OWN = 20

STUDIES = (
    StudyMechanism(
        "DP-Impact",
        "noise on predicted ratings",
        "a rating's value",
        "One draw of noise shifts the whole matrix. A user's items keep their order, and the noise cancels where "
        "predictions are subtracted. InputPerturbation_UnBoundLaplace.py draws once, too.",
        "fr-iit/DP-Impact at 229751e7, OutputPerturbation_ALS_PredictedRating.py, "
        "matrix_factorization_with_output_perturbation_als",
        "4 users who rated 3 items with 3, but for one rating of 5 or of 1",
        _BLOCKS,
        predicted_ratings,
        lambda noisy: noisy[:, 0, 0] - noisy[:, 0, 1],
        by_formula=math.inf,
        trials=4_000,
    ),
    StudyMechanism(
        "DP-Impact",
        "noise on latent factors",
        "a rating's value",
        "The sensitivity is the largest change of a prediction when all ratings get random noise of deviation "
        "0.1, once. It depends on the ratings, and a rating can change by 4.",
        "fr-iit/DP-Impact at 229751e7, OutputPerturbation_ALS_LatentMatrix.py, "
        "matrix_factorization_with_output_perturbation_als",
        "the same; the random noise fills empty cells too, and there the sensitivity comes out many times larger",
        _BLOCKS,
        noisy_factors,
        lambda factors: np.asarray(np.einsum("tk,tk->t", factors[:, 0], factors[:, 4])),
        trials=4_000,
    ),
    StudyMechanism(
        "ImpactOfDP",
        "randomised response on likes",
        "a like",
        "Of the other items, only as many as are liked are drawn and can be reported. A report is e^ε·n_neg/n_pos"
        " times as likely for a liked item as for another. More than 2·n_pos reports show one like more for sure.",
        "pmuellner/ImpactOfDP at f495e8ea, data_splits_and_dp.py, apply_dp",
        f"{_LIKES + 1} or {_LIKES} likes among {_ITEMS} items",
        (_PROFILE, _changed(_PROFILE, 0.0, (0,))),
        reported_likes,
        lambda reported: reported[:, 0],
        by_formula=EPSILON + math.log((_ITEMS - _LIKES) / _LIKES),
    ),
    StudyMechanism(
        "ReuseKNN",
        "deniable answer",
        "a rating's value",
        "The answer is the true rating with a chance of 3/4, otherwise a uniform real number, which is no whole "
        "star. Each query draws anew. The code names no ε; two coins cost ln 3 for a yes or no.",
        "pmuellner/ReuseKNN at 6bdf2b48, algorithms/knn_neighborhood.pyx, UserKNN.estimate, deniable_answer",
        "a rating of 3 or of 4",
        (np.array([3.0]), np.array([4.0])),
        deniable_answers,
        lambda answers: np.asarray(answers[:, 0] == 3, np.float64),
        by_formula=math.inf,
        claimed=math.log(3),
    ),
    StudyMechanism(
        "FedPerGNN",
        "noise on gradients",
        "a user",
        "The noise is for one coordinate, over √32 for a batch of 32 users, under a bound of the L2 norm of the "
        "batch's gradient. Each step has the whole ε. Measured are 64 weights of the last layer in one step.",
        "wuch15/FedPerGNN at 9e77e2ec, run.py, train; model.py; preprocess.py; const.py",
        "32 users rated two items with 100 and 1, but one user both with 100 or both with 1 (labels: 1 and 0)",
        (_changed(_USERS, 100.0, (0,)), _changed(_USERS, 1.0, (0,))),
        noisy_gradients,
        lambda updates: updates.sum(axis=1),
        by_formula=WEIGHTS / (4 * BATCH) / NOISE,
    ),
    StudyMechanism(
        "ComDPRS",
        "composite noise on ratings",
        "a user's values",
        "Each of n_u ratings is given ε/n_u, but the density in use has no ε, and its parameters are chosen for "
        "all of it. Which items are rated, and so n_u, is released as it is. With the parameters of the main "
        "program, for ε = 0.1, the stars do not depend on the ratings.",
        "fr-iit/ComDPRS at 3bd0dbcd, RecSys_InputPerturbation_ComDP.py, comDP_pertubation; "
        "Perturbation_Mechanism.py, PDF_fun, perturbation_fun_optimized; its constants k = 0.48, m = 0.843, "
        "y = 0.28, which its constraints allow for ε = 1",
        f"a user with {_OWN} ratings of 1 or of 5",
        (np.full(_OWN, 1.0), np.full(_OWN, 5.0)),
        perturbed_stars,
        lambda stars: stars.sum(axis=1),
        by_formula=_OWN * float(np.abs(np.log(chances_of_stars(5.0) / chances_of_stars(1.0))).max()),
    ),
)
"""What was read in the studies' repositories."""
