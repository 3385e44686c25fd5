"""Claims of Wang and Tang (2017) on single steps of their algorithms: sections 2, 3, 4.2 and 5.2."""

from itertools import product

import numpy as np

from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Computed, Rule

PRINTED = load("wang2017")
_CONFIG = "wang_tricks_{}"


def items_rather_than_users(evidence: Evidence) -> Computed:
    name = evidence.named(_CONFIG)
    rmse = {
        key: [evidence.baseline(name, label) for label in (key, f"{key}, users")] for key in ("PCC", "COS")
    }
    told = ", ".join(
        f"{key} {items:.4f} of items, {users:.4f} of users" for key, (items, users) in rmse.items()
    )
    return Computed(tuple(items < users for items, users in rmse.values()), told)


def clamp_is_trivial(evidence: Evidence) -> Computed:
    name, tolerance = evidence.named(_CONFIG), PRINTED["tolerances"]["trivial"]
    free, clamped = (evidence.baseline(name, label) for label in ("PNBM", "PNBM, errors clamped"))
    return Computed(
        (abs(free - clamped) <= tolerance,), f"PNBM {free:.4f}, with clamped errors {clamped:.4f}"
    )


def _best_iterations(evidence: Evidence, line: str, epsilon: float) -> int:
    """Returns the K with the lowest RMSE at an ε, among all that are swept."""
    points = evidence.line(evidence.named(_CONFIG), line)
    return int(min(points, key=lambda point: point[1].mean()[point[1].epsilons == epsilon][0])[0])


def fewer_iterations(evidence: Evidence) -> Computed:
    few, many = (_best_iterations(evidence, "DPSGD-PNBM", epsilon) for epsilon in (1, 100))
    return Computed((few < many,), f"best at K = {few} at ε = 1, at K = {many} at 100")


def posterior_sampling_costs_more(evidence: Evidence) -> Computed:
    tau = PRINTED["settings"]["ratings_per_user_at_most"]
    posterior, sgd = _best_iterations(evidence, "DPPS-PNBM", tau), _best_iterations(evidence, "DPSGD-PNBM", 1)
    return Computed(
        (posterior > sgd,),
        f"DPPS-PNBM best at K = {posterior} at ε = 1 × {tau}, DPSGD-PNBM at K = {sgd} at ε = 1",
    )


def printed_h(first: float, second: float, size: int) -> float:
    """Returns H_ij of section 4.2 for two items with these shares of all ratings, and `size` ratings a mini-batch."""
    return 1 - first * second * ((1 - second) * (1 - first)) ** (size - 1)


def in_a_sample(first: float, second: float, size: int) -> float:
    """Returns the probability that a mini-batch, drawn with replacement, has ratings of both items."""
    return 1 - (1 - first) ** size - (1 - second) ** size + (1 - first - second) ** size


def unbiased_with_h(evidence: Evidence) -> Computed:
    """H is the expectation of "both items are in the mini-batch". This is arithmetic, the same on all data."""
    cases = list(product((1e-4, 1e-3, 1e-2), (1e-4, 1e-3, 1e-2), (100, 1000, 10_000)))
    off = [abs(printed_h(*case) - in_a_sample(*case)) for case in cases]
    at = cases[int(np.argmax(off))]
    told = f"items with shares {at[0]:g} and {at[1]:g} of the ratings, {at[2]} in a mini-batch"
    return Computed(
        (max(off) <= PRINTED["tolerances"]["probability"],),
        f"{told}: printed H {printed_h(*at):.4g}, the probability {in_a_sample(*at):.4g}",
    )


RULES: dict[str, Rule] = {
    "items-rather-than-users": items_rather_than_users,
    "clamp-is-trivial": clamp_is_trivial,
    "fewer-iterations-for-small-epsilon": fewer_iterations,
    "posterior-sampling-costs-more": posterior_sampling_costs_more,
    "h-makes-it-unbiased": unbiased_with_h,
}
