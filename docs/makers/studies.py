"""The mechanisms of five benchmark studies, as their public code has them, and what trials show of each.

They are written from what the code does, and have none of its lines. Each draws many releases of the same ratings at
once. A bound holds for one pair of neighbours and one statistic, as those of `audit.distinguish` do.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import yaml

from dpmf_cli.audit import bounds
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.streams import named_generator
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.report.tables.layout import TextTable, epsilon_cell, names, number, tabled

EPSILON = 1.0
"""The ε that the mechanisms are given."""

TRIALS, CONFIDENCE = 4_000, 0.95
"""How often each releases either side, and the confidence of what this shows."""

CEILING = bounds.epsilon_of_event(bounds.always_against_never(TRIALS // 2, TRIALS // 2), 0.0, CONFIDENCE)
"""The most that so many trials can show."""

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
        others, their_items = _least_squares(data + rng.normal(0, 0.1, data.shape), rng, 0.0)
        moved = users @ items.swapaxes(1, 2) - others @ their_items.swapaxes(1, 2)
        scale = np.abs(moved).max(axis=(1, 2), keepdims=True)
    factors = np.concatenate([users, items], axis=1)
    return np.asarray(factors + scale / EPSILON * rng.laplace(size=factors.shape))


def _least_squares(ratings: Doubles, rng: np.random.Generator, tolerance: float = TOLERANCE) -> Pair:
    """Returns the factors (trials, users, RANK) and (trials, items, RANK) of matrices without empty cells."""
    trials, n_users, n_items = ratings.shape
    users, items = (rng.random((trials, rows, RANK)) for rows in (n_users, n_items))
    before, moving = np.full(trials, np.inf), np.ones(trials, np.bool_)
    for _ in range(STEPS):
        users[moving] = _ridge(ratings[moving], items[moving])
        items[moving] = _ridge(ratings[moving].swapaxes(1, 2), users[moving])
        rmse = np.sqrt(((ratings - users @ items.swapaxes(1, 2)) ** 2).mean(axis=(1, 2)))
        moving &= np.abs(rmse - before) >= tolerance
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


def noisy_gradients(ratings: Doubles, trials: int, rng: np.random.Generator, scale: float = NOISE) -> Doubles:
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


def least_epsilon(release: Release, seen: Statistic, pair: Pair) -> float:
    """Returns the ε below which no claim is true, at `CONFIDENCE`. Half of the trials choose the event."""
    sides = zip(pair, ("here", "there"), strict=True)
    here, there = (
        seen(release(data, TRIALS, named_generator("audit", "studies", side))) for data, side in sides
    )
    half = TRIALS // 2
    event = bounds.best_threshold(here[:half], there[:half], 0.0)
    return bounds.epsilon_of_event(event.counts(here[half:], there[half:]), 0.0, CONFIDENCE)


class StudyText(StrictModel):
    """What is said of a study's mechanism.

    protects  what the neighbours of its claim differ in
    why       why the claim fails
    source    repository, commit, files and functions
    pair      the neighbours that are tried
    """

    study: str
    mechanism: str
    protects: str
    why: str
    source: str
    pair: str
    claimed: float = EPSILON


_SAID = yaml.safe_load(Path(__file__).with_name("studies.yaml").read_text(encoding="utf-8"))
TEXTS = {key: StudyText.model_validate(each) for key, each in _SAID.items()}


@dataclass(frozen=True)
class StudyMechanism:
    """A mechanism of a benchmark study, and neighbours for which its ε is too small.

    by_formula  the ε of what is seen of this pair, in closed form; nan where none is known
    """

    text: StudyText
    release: Release
    pair: Pair
    seen: Statistic
    by_formula: float

    @cached_property
    def least(self) -> float:
        """The ε that trials show."""
        return least_epsilon(self.release, self.seen, self.pair)


_CELL = np.pad([[2.0]], ((0, 3), (0, 2)))
_BLOCKS = 3 + _CELL, 3 - _CELL
_PROFILES = np.repeat([1.0, 0.0], [6, 194]), np.repeat([0.0, 1.0, 0.0], [1, 5, 194])
_OTHERS = np.tile([100.0, 1.0], (BATCH - 1, 1))

STUDIES = (
    StudyMechanism(
        TEXTS["predicted ratings"],
        predicted_ratings,
        _BLOCKS,
        lambda noisy: noisy[:, 0, 0] - noisy[:, 0, 1],
        math.inf,
    ),
    StudyMechanism(
        TEXTS["latent factors"],
        noisy_factors,
        _BLOCKS,
        lambda factors: np.asarray(np.einsum("tk,tk->t", factors[:, 0], factors[:, 4])),
        math.nan,
    ),
    StudyMechanism(
        TEXTS["likes"],
        reported_likes,
        _PROFILES,
        lambda reported: reported[:, 0],
        EPSILON + math.log(195 / 5),
    ),
    StudyMechanism(
        TEXTS["answers"],
        deniable_answers,
        (np.array([3.0]), np.array([4.0])),
        lambda answers: np.asarray(answers[:, 0] == 3, np.float64),
        math.inf,
    ),
    StudyMechanism(
        TEXTS["gradients"],
        noisy_gradients,
        (np.vstack([[100.0, 100.0], _OTHERS]), np.vstack([[1.0, 1.0], _OTHERS])),
        lambda updates: updates.sum(axis=1),
        WEIGHTS / (4 * BATCH) / NOISE,
    ),
    StudyMechanism(
        TEXTS["stars"],
        perturbed_stars,
        (np.full(20, 1.0), np.full(20, 5.0)),
        lambda stars: stars.sum(axis=1),
        20 * float(np.abs(np.log(chances_of_stars(5.0) / chances_of_stars(1.0))).max()),
    ),
)
"""The neighbours are in `studies.yaml` in words."""


def studies_table() -> TextTable:
    """Returns a row for each mechanism of a benchmark study: its ε, what trials show, and why. It runs the trials."""

    def known(each: StudyMechanism) -> float | None:
        return None if math.isnan(each.by_formula) else each.by_formula

    columns = [
        *names("study mechanism protects", of="text"),
        number("claimed", epsilon_cell, lambda each: each.text.claimed, head="ε, given or implied"),
        number("least", epsilon_cell, head="measured at least"),
        number("by_formula", epsilon_cell, known, head="by formula"),
        *names("pair why source", of="text"),
    ]
    texts = [each.text for each in STUDIES]
    return tabled(
        STUDIES,
        columns,
        ("study", "mechanism", "protects", "claimed", "least", "by_formula", "why"),
        title="Mechanisms of other studies",
        notes=(
            f"measured at least: with a confidence of {100 * CONFIDENCE:g} %, by {TRIALS:,} releases on each side; "
            f"so many show {CEILING:.3g} at most",
            "by formula: of the number that is looked at; ∞: one side gives what the other never gives (one start)",
            *(f"{text.study}, {text.mechanism}: {text.pair}. {text.source}." for text in texts),
        ),
    )
