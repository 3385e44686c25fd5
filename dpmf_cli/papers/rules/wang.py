"""Claims of Wang and Tang (2017): on single steps of their algorithms, and on how neighbourhoods and factorisations
compare.

The paper chooses its parameters anew for each ε, so a method counts with its best curve at each ε. The paper does not
say which items PCC and COS take as neighbours, so both choices are judged, each as a part of a claim.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Computed, Rule, Theorem

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


_NEIGHBOURS = {
    "similar items": ("PCC", "COS"),
    "items with common raters": ("PCC, common raters", "COS, co-raters, common raters"),
}
"""The baselines, by the kind of their neighbours."""

_PAIRS = tuple(name for pair in _NEIGHBOURS.values() for name in pair)

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(E,) ε and (E,) RMSE."""


@dataclass(frozen=True)
class Method:
    """A private method of the paper: its name there, its key here, and its config.

    per_user   whether its ε is per user: τ times the ε that the paper writes
    """

    title: str
    key: str
    config: str
    per_user: bool

    def curve(self, evidence: Evidence) -> Curve:
        """Returns its best curve, over the ε that the paper writes."""
        epsilons, rmse = evidence.best(evidence.named(self.config), self.key)
        return epsilons / self.ratings, rmse

    def from_where_it_is_good(self, evidence: Evidence) -> Curve:
        """Returns its best curve from the ε on from which section 5.2 calls it better.

        Raises MissingEvidence if the grid, whose points are rounded, has no such ε.
        """
        return _from(PRINTED["better_from"][self.key], self.curve(evidence))

    @property
    def ratings(self) -> int:
        """τ, or 1."""
        return int(PRINTED["settings"]["ratings_per_user_at_most"]) if self.per_user else 1

    def baseline(self, evidence: Evidence, name: str) -> float:
        return evidence.baseline(evidence.named(self.config), name)

    def at(self, epsilon: float) -> str:
        return f"ε = {epsilon:.3g}{f' × {self.ratings}' if self.per_user else ''}"


SGD_PNBM = Method("DPSGD-PNBM", "dpsgd_pnbm", "wang_fig1_{}", False)
SGD_MF = Method("DPSGD-MF", "psgd", "wang_fig1_{}", False)
POSTERIOR_PNBM = Method("DPPS-PNBM", "dpps_pnbm", "wang_fig2_{}", True)
POSTERIOR_MF = Method("DPPS-MF", "dpps_mf", "wang_fig2_{}", True)


def _from(least: float, curve: Curve, most: float = np.inf) -> Curve:
    epsilons, rmse = curve
    kept = (epsilons >= least * (1 - 1e-6)) & (epsilons <= most * (1 + 1e-6))
    if not kept.any():
        raise MissingEvidence(f"ε from {least:g} on")
    return epsilons[kept], rmse[kept]


def _beats(*methods: Method) -> Rule:
    """Makes a rule: at all ε, the method is better than the baseline.

    A part is one method and one of PCC and COS with one choice of neighbours.
    """

    def rule(evidence: Evidence) -> Computed:
        held, told = [], []
        for method in methods:
            epsilons, rmse = method.from_where_it_is_good(evidence)
            level = {name: method.baseline(evidence, name) for name in _PAIRS}
            held += [bool((rmse < level[name]).all()) for name in _PAIRS]
            against = ", ".join(f"{name} ({level[name]:.4f}) {(rmse < level[name]).sum()}" for name in _PAIRS)
            first = f"{method.title} {rmse[0]:.4f} at {method.at(epsilons[0])}, {rmse.min():.4f} at best"
            told.append(f"{first}, at {len(rmse)} ε below: {against}")
        return Computed(tuple(held), "; ".join(told))

    return rule


def throughout(evidence: Evidence) -> Computed:
    """The method is better than PCC and COS at all ε, a part for each method and choice of neighbours."""
    each = _beats(SGD_PNBM, POSTERIOR_PNBM)(evidence)
    pairs = zip(each.held[::2], each.held[1::2], strict=True)
    return Computed(tuple(pcc and cos for pcc, cos in pairs), each.measured)


def keeps_accuracy(evidence: Evidence) -> Computed:
    """DPSGD-PNBM loses less than DPSGD-MF between the ε from which the one is good and that of the other."""
    printed = PRINTED["better_from"]
    few, many = printed["dpsgd_pnbm"], printed["psgd"]
    lost = {}
    for method in (SGD_PNBM, SGD_MF):
        epsilons, rmse = _from(few, method.curve(evidence), many)
        lost[method.title] = rmse[0] - rmse[-1]
    told = ", ".join(f"{title} by {by:.4f}" for title, by in lost.items())
    return Computed(
        (lost["DPSGD-PNBM"] < lost["DPSGD-MF"],),
        f"from ε = {epsilons[-1]:.3g} down to {epsilons[0]:.3g} RMSE grows: {told}",
    )


def _accurate(*methods: tuple[Method, bool]) -> Rule:
    """Makes a rule with a part for each method: it is accurate, that is, better than averages alone (GE).

    It must be so at all ε from which the paper says so, or only at ε = 1.
    """

    def rule(evidence: Evidence) -> Computed:
        held, told = [], []
        for method, at_one in methods:
            epsilons, rmse = (
                _from(1, method.curve(evidence)) if at_one else method.from_where_it_is_good(evidence)
            )
            rmse = rmse[:1] if at_one else rmse
            level = method.baseline(evidence, "ge")
            held.append(bool((rmse < level).all()))
            told.append(
                f"{method.title} {rmse[0]:.4f} at {method.at(epsilons[0])}, "
                f"below GE ({level:.4f}) at {(rmse < level).sum()} of {len(rmse)} ε"
            )
        start = POSTERIOR_PNBM.baseline(evidence, "constant_nbm")
        return Computed(tuple(held), f"{'; '.join(told)}; similarities that nobody learned {start:.4f}")

    return rule


def more_accurate(evidence: Evidence) -> Computed:
    """DPPS-PNBM is better in figure 3, with ε per rating compared to ε/τ per user.

    The parts are ε = 1, and all ε within a decade of it that both grids have.
    """
    sgd, posterior = SGD_PNBM.curve(evidence), POSTERIOR_PNBM.curve(evidence)
    within = _from(0.1, sgd, 10)[0]
    both = [(e, at) for e in within if len(at := np.flatnonzero(np.isclose(posterior[0], e, rtol=1e-3)))]
    if not any(np.isclose(e, 1) for e, _ in both):
        raise MissingEvidence("ε = 1 on both grids")
    cells = {float(e): (float(posterior[1][at[0]]), float(sgd[1][sgd[0] == e][0])) for e, at in both}
    better = {e: ours < theirs for e, (ours, theirs) in cells.items()}
    told = ", ".join(f"{ours:.4f} and {theirs:.4f} at {e:.3g}" for e, (ours, theirs) in cells.items())
    at_one = next(holds for e, holds in better.items() if np.isclose(e, 1))
    return Computed((at_one, all(better.values())), f"DPPS-PNBM and DPSGD-PNBM {told}")


def pnbm_then_mf(evidence: Evidence) -> Computed:
    """Each pair has two parts: PNBM is better at the least ε of the grid, and MF is better at some high ε."""
    held, told = [], []
    for pnbm, mf in ((SGD_PNBM, SGD_MF), (POSTERIOR_PNBM, POSTERIOR_MF)):
        epsilons, ours = pnbm.curve(evidence)
        _, theirs = mf.curve(evidence)
        passes, high = _passes(evidence, pnbm, mf)
        held += [bool(ours[0] < theirs[0]), passes]
        told.append(
            f"{pnbm.title} {ours[0]:.4f}, {mf.title} {theirs[0]:.4f} at {pnbm.at(epsilons[0])}; {high}"
        )
    return Computed(tuple(held), "; ".join(told))


def _passes(evidence: Evidence, pnbm: Method, mf: Method) -> tuple[bool, str]:
    """Returns whether a factorisation is better at some high ε, and where it is furthest ahead or comes nearest.

    One ε is enough: the paper's range is not known, and a curve that has diverged at the end of our range says
    nothing about the paper's. For the same reason, an ε at which either method has diverged does not count.
    """
    epsilons, theirs = mf.from_where_it_is_good(evidence)
    ours = _from(epsilons[0], pnbm.curve(evidence))[1]
    finite = np.isfinite(ours) & np.isfinite(theirs)
    if not finite.any():
        return False, f"one of them has diverged at every ε from {mf.at(epsilons[0])} on"
    ahead = np.subtract(ours, theirs, out=np.full(len(epsilons), -np.inf), where=finite)
    best = int(ahead.argmax())
    return bool(ahead[best] > 0), f"{ours[best]:.4f} and {theirs[best]:.4f} at {mf.at(epsilons[best])}"


def mf_without_privacy(evidence: Evidence) -> Computed:
    mf, pnbm = (SGD_PNBM.baseline(evidence, name) for name in ("als", "pnbm"))
    return Computed((mf < pnbm,), f"clean MF {mf:.4f}, PNBM {pnbm:.4f}")


def pnbm_without_privacy(evidence: Evidence) -> Computed:
    """PNBM is better than each neighbourhood baseline and than MF, a part for each."""
    pnbm = SGD_PNBM.baseline(evidence, "pnbm")
    others = {name: SGD_PNBM.baseline(evidence, name) for name in (*_PAIRS, "als")}
    told = ", ".join(f"{name} {rmse:.4f}" for name, rmse in others.items())
    return Computed(tuple(pnbm < rmse for rmse in others.values()), f"PNBM {pnbm:.4f}; {told}")


def loses_below_4b(evidence: Evidence) -> Computed:
    """For each method, no ε below 4B has a lower RMSE than the first ε from 4B on, where B = φ²τ."""
    whole = PRINTED["whole_posterior_from"]
    held, told = [], []
    for method in (POSTERIOR_PNBM, POSTERIOR_MF):
        epsilons, rmse = method.curve(evidence)
        at_end, below = _from(whole, (epsilons, rmse))[1][0], rmse[epsilons < whole * (1 - 1e-6)]
        held.append(bool(at_end <= below.min()))
        told.append(
            f"{method.title} {below.min():.4f} at best below {method.at(whole)}, {at_end:.4f} from there"
        )
    return Computed(tuple(held), "; ".join(told))


RULES: dict[str, Rule] = {
    "sgd-pnbm-beats-neighbours": _beats(SGD_PNBM),
    "sgd-mf-beats-neighbours": _beats(SGD_MF),
    "sgd-pnbm-keeps-accuracy": keeps_accuracy,
    "posterior-sampling-accurate": _accurate((POSTERIOR_PNBM, False), (POSTERIOR_MF, False)),
    "posterior-sampling-beats-neighbours": _beats(POSTERIOR_PNBM, POSTERIOR_MF),
    "both-accurate-at-one": _accurate((SGD_PNBM, True), (POSTERIOR_PNBM, True)),
    "posterior-sampling-more-accurate": more_accurate,
    "pnbm-beats-neighbours-throughout": throughout,
    "pnbm-then-mf": pnbm_then_mf,
    "mf-better-without-privacy": mf_without_privacy,
    "pnbm-better-without-privacy": pnbm_without_privacy,
    "accuracy-lost-below-4b": loses_below_4b,
    "per-coordinate-sensitivity": Theorem("dpsgd_pnbm, bounded, published"),
    "theorem-1": Theorem("dpsgd_pnbm, samples of 0.3, bounded, published"),
    "theorem-2": Theorem("dpps_pnbm, user, published"),
    "items-rather-than-users": items_rather_than_users,
    "clamp-is-trivial": clamp_is_trivial,
    "fewer-iterations-for-small-epsilon": fewer_iterations,
    "posterior-sampling-costs-more": posterior_sampling_costs_more,
    "h-makes-it-unbiased": unbiased_with_h,
}
