"""Claims of Neera et al. (2020): on what devices send, which data do not decide, and on errors."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.neera2020.blp_mog_mf import MixtureFactorization
from dpmf_cli.algorithms.neera2020.isgd_local import LocalSGD
from dpmf_cli.algorithms.neera2020.pg_mf import PrivateGradientMF
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.datasets.catalog import entry
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.evaluation.numbers import signed, significant
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Cell, Computed, Rule, Theorem
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import Traffic
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace
from dpmf_cli.privacy.neighbours import HIDE_IDS

PRINTED = load("neera2020")

EPSILONS = np.array([0.1, 1.0])
"""The ε of figure 2."""

SHOWN = np.linspace(0, 1, 21)
"""Ratings on [0, 1] at which a law is evaluated."""

EXTREMES = (2.0**-53, 1 - 2.0**-53)
"""The uniforms that lead to the least and the largest message."""


def hides_completely(_: Evidence) -> Computed:
    """Messages reveal neither which item was rated nor how: not even their mean may move with the rating."""
    algorithm = MixtureFactorization(algorithm="blp_mog_mf")
    slope = BoundedLaplace().slope(EPSILONS)
    parts = algorithm.neighbours in HIDE_IDS, *(bool(each <= 0) for each in slope)
    said = ", ".join(f"{each:.3f} at ε = {epsilon:g}" for each, epsilon in zip(slope, EPSILONS, strict=True))
    return Computed(
        parts,
        f"a message names its item; its mean moves with the rating, from end to end by {said} of the scale",
    )


def noise_of_messages(_: Evidence) -> Computed:
    """Messages stay within the scale, and their noise is no longer Laplace's and has the mean 0 of equation 6."""
    centred = BoundedLaplace().expected(SHOWN, EPSILONS) - SHOWN[:, None]
    ends = np.array(
        [BoundedLaplace().decoded(SHOWN, np.full((len(SHOWN), 1), u), EPSILONS) for u in EXTREMES]
    )
    deviation = np.sqrt(2) / EPSILONS
    mean = float(np.abs(centred).max())
    parts = (
        bool(((ends >= 0) & (ends <= 1)).all()),
        bool((deviation > 1).all()),
        mean <= float(PRINTED["tolerances"]["zero_mean"]),
    )
    return Computed(
        parts,
        f"messages lie within {ends.min():g} and {ends.max():g}; Laplace noise deviates by "
        f"{' and '.join(map(significant, deviation))}; bounded noise has a mean of up to {mean:.2f} off 0, which "
        "follows the rating",
    )


def traffic(evidence: Evidence) -> Computed:
    """Counts the messages of table 1.

    There is one message per rating and nothing back. In PG-MF, there are one gradient and the items' factors.
    """
    table, times = PRINTED["table1"], float(PRINTED["tolerances"]["traffic"])
    items = entry(evidence.data).expected.items
    ours, isgd, theirs = _sent(items)
    ratings, iterations = len(_few(items)), PrivateGradientMF.model_fields["iterations"].default
    size, down = ours.up / ours.messages, theirs.down_per_user / 1e6
    gradients = theirs.messages / theirs.users - 1  # without the one report for the mean
    parts = (
        ours.messages == isgd.messages == ratings,
        ours.down == isgd.down == 0,
        size <= times * table["blp_mog_mf"]["up_bytes"],
        gradients == iterations,
        _within(down, table["pg_mf"]["down_megabytes"], times),
    )
    return Computed(
        parts,
        f"a message a rating, of {size:g} bytes, and nothing back; PG-MF one gradient of a user in each of "
        f"{gradients:g} iterations, and {down:.3g} MB back in all",
    )


def _within(value: float, printed: float, times: float) -> bool:
    return printed / times <= value <= printed * times


@cache
def _sent(n_items: int) -> tuple[Traffic, ...]:
    """Returns what BLP-MoG-MF, ISGD, and PG-MF with ε per user send for a few ratings among `n_items` items."""
    entries: tuple[PrivateAlgorithm, ...] = (
        MixtureFactorization(algorithm="blp_mog_mf"),
        LocalSGD(algorithm="isgd_local"),
        PrivateGradientMF.model_validate({"algorithm": "pg_mf", "neighbours": "user"}),
    )
    return tuple(_fitted(each, _few(n_items)).traffic for each in entries)


def _fitted(algorithm: PrivateAlgorithm, ratings: Ratings) -> Any:
    streams = Streams(0, "a few ratings", algorithm.algorithm, 0, 0)
    curator = Curator(Ledger([1.0]), streams)
    return algorithm.fit(ratings, curator.ledger.limit, streams=streams, curator=curator)


def _few(n_items: int) -> Ratings:
    """Returns three ratings of the first items: one of the first user, two of the second."""
    users, items = np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32)
    return Ratings(users, items, np.array([5, 1, 3], np.float32), 2, n_items, Scale(1, 5, 1))


PRINTED_AS = {"ml-100k": "movielens", "jester-1": "jester"}
OURS, ISGD, PG_MF = "blp_mog_mf", "isgd_local", "pg_mf"

FIGURE_3 = ("explore_neera_{}", "neera_fig3_{}")
FIGURE_4 = ("explore_neera_{}", "neera_fig4_{}", "neera_fig4_{}_half")
"""The configs of a figure. Rules read the first of them that was run, and find a curve by its algorithm. If several
curves have that algorithm, the first is the paper's."""

Values = NDArray[np.float64]


def tolerance(name: str) -> float:
    return float(PRINTED["tolerances"][name])


def named(evidence: Evidence, patterns: tuple[str, ...]) -> str:
    """Returns the first config of a figure that was run. Raises MissingEvidence if none was."""
    for pattern in patterns[:-1]:
        try:
            return evidence.experiment(evidence.named(pattern)).name
        except MissingEvidence:
            continue
    return evidence.experiment(evidence.named(patterns[-1])).name


def curve(evidence: Evidence, label: str, patterns: tuple[str, ...] = FIGURE_4) -> Measured:
    return evidence.curve(named(evidence, patterns), label)


def gains(evidence: Evidence) -> tuple[Values, Values]:
    """Returns (E,) the ε, and (E,) the fraction by which BLP-MoG-MF's RMSE is below ISGD's."""
    ours, theirs = curve(evidence, OURS), curve(evidence, ISGD)
    return ours.epsilons, 1 - ours.mean() / theirs.mean()


def gain_at(evidence: Evidence, epsilon: float) -> float:
    epsilons, gain = gains(evidence)
    at = np.flatnonzero(np.isclose(epsilons, epsilon))
    if not len(at):
        raise MissingEvidence(f"ε = {epsilon:g}")
    return float(gain[at[0]])


def of_rmse(what: Measured) -> str:
    first, last = what.mean()[[0, -1]]
    return f"{what.label} {first:.3f} to {last:.3f}"


def compared(ours: Measured, theirs: Measured, kept: NDArray[np.bool_] | None = None) -> Computed:
    """Judges at each ε, or at those `kept`, whether the RMSE of `ours` is below that of `theirs` on the same grid."""
    below = ours.mean() < theirs.mean()
    below = below if kept is None else below[kept]
    said = f"below {theirs.label} at {below.sum()} of {len(below)} ε; RMSE of {of_rmse(ours)}, of {of_rmse(theirs)}"
    return Computed(tuple(map(bool, below)), said)


def improves_by(epsilon: str) -> Rule:
    """Makes a rule: the improvement at an ε is the printed one, within its tolerance."""

    def rule(evidence: Evidence) -> Computed:
        wanted = PRINTED["improvement_over_isgd"][PRINTED_AS[evidence.data]][epsilon]
        gain = gain_at(evidence, float(epsilon))
        near = abs(gain - wanted) <= tolerance("improvement")
        return Computed((near,), f"{signed(100 * gain, 1)} %, printed {100 * wanted:.0f} %")

    return rule


def gain_shrinks(evidence: Evidence) -> Computed:
    little, more = (gain_at(evidence, epsilon) for epsilon in (0.1, 1.0))
    return Computed(
        (little > more,), f"{signed(100 * little, 1)} % at ε = 0.1, {signed(100 * more, 1)} % at 1"
    )


def beats_isgd(evidence: Evidence) -> Computed:
    return compared(curve(evidence, OURS), curve(evidence, ISGD))


def beats_pg_mf(evidence: Evidence) -> Computed:
    """BLP-MoG-MF has a lower RMSE than PG-MF at each ε that figure 3 shows."""
    ours, theirs = (curve(evidence, label, FIGURE_3) for label in (OURS, PG_MF))
    last = float(PRINTED["epsilon_ranges"]["fig3"][1])
    found = compared(ours, theirs, ours.epsilons <= last)
    worst = float((theirs.provable / theirs.claimed).max())
    proved = f"{significant(worst)} times the ε" if np.isfinite(worst) else "no ε"
    return Computed(
        found.held, f"{found.measured}, which proves {proved} and predicts from clean ratings (‡)"
    )


def gains_more_here(evidence: Evidence) -> Computed:
    """The gain is larger than on ML-100K at each ε."""
    (_, here), (_, there) = gains(evidence), gains(evidence.on("ml-100k"))
    if len(here) != len(there):
        raise MissingEvidence("another grid on ML-100K")
    said = "; ".join(
        f"{title}: {signed(100 * each[0], 1)} to {signed(100 * each[-1], 1)} %"
        for title, each in (("here", here), ("ML-100K", there))
    )
    return Computed(tuple(map(bool, here > there)), said)


def density(evidence: Evidence) -> float:
    """Returns the fraction of all cells that are in a training set."""
    experiment, counts = evidence.experiment(named(evidence, FIGURE_4)), entry(evidence.data).expected
    trained = 1 - 1 / experiment.partition if experiment.partition > 1 else 1.0
    return trained * counts.ratings / (counts.users * counts.items)


def gains_more_where_sparser(evidence: Evidence) -> Computed:
    here, there = density(evidence), density(evidence.on("ml-100k"))
    more = gains_more_here(evidence).held
    said = f"{100 * here:.1f} % of the cells have a rating, {100 * there:.1f} % on ML-100K"
    return Computed(
        tuple(each == (here < there) for each in more), f"more at {sum(more)} of {len(more)} ε; {said}"
    )


def errors_are_larger_for_sparsity(evidence: Evidence) -> Computed:
    """Errors are larger than on ML-100K as a fraction of the scale, which is 20 wide and not 4, and the data are
    sparser."""
    ours, other = curve(evidence, OURS), curve(evidence.on("ml-100k"), OURS)
    here, there = float(ours.mean().mean()), float(other.mean().mean())
    width, width_there = (entry(each).scale.width for each in (evidence.data, "ml-100k"))
    parts = (here / width > there / width_there, density(evidence) < density(evidence.on("ml-100k")))
    said = f"RMSE {here:.2f} and {there:.2f}, of the scale {here / width:.3f} and {there / width_there:.3f}"
    return Computed(parts, f"{said}; here and on ML-100K, over all ε")


def falls_with_epsilon(evidence: Evidence) -> Computed:
    """The RMSE of every method of the paper falls with ε."""
    rise = tolerance("rise")
    shown = [
        each
        for patterns in (FIGURE_4, FIGURE_3)
        for each in _curves(evidence, patterns)
        if each.algorithm in (OURS, ISGD, PG_MF)
    ]
    unique = list({each.label: each for each in shown}.values())
    if not unique or any(each.missing for each in unique):
        raise MissingEvidence("figures 3 and 4")
    falling = [bool((np.diff(each.mean()) < rise).all()) for each in unique]
    return Computed(tuple(falling), f"RMSE of {'; '.join(map(of_rmse, unique))}")


def _curves(evidence: Evidence, patterns: tuple[str, ...]) -> tuple[Measured, ...]:
    try:
        return evidence.experiment(named(evidence, patterns)).curves
    except MissingEvidence:
        return ()


def clean_is_the_limit(evidence: Evidence) -> Computed:
    """No private method of the paper has a smaller error than matrix factorisation without noise, at any ε."""
    name = named(evidence, FIGURE_4)
    limit = evidence.baseline(name, "mf_sgd")
    there = {each.algorithm for each in evidence.experiment(name).curves}
    shown = [OURS, ISGD, *(each for each in (PG_MF,) if each in there)]
    best = [(each, float(evidence.curve(name, each).mean().min())) for each in shown]
    said = ", ".join(f"{each} {rmse:.3f}" for each, rmse in best)
    return Computed(
        tuple(rmse >= limit for _, rmse in best), f"{limit:.3f} without noise; least RMSE of {said}"
    )


def mixture_helps(evidence: Evidence) -> Computed:
    """At each ε, the mixture lowers the RMSE by more than the least that counts as a gain."""
    gain = 1 - curve(evidence, OURS).mean() / curve(evidence, "MF, BLP").mean()
    said = f"RMSE lower by {signed(100 * gain.min(), 2)} to {signed(100 * gain.max(), 2)} % with the mixture"
    return Computed(tuple(map(bool, gain > tolerance("mixture_gain"))), said)


def better_messages(than: str) -> Rule:
    """Makes a rule: bounded Laplace noise is better than another mechanism, with the same factorisation."""

    def rule(evidence: Evidence) -> Computed:
        return compared(curve(evidence, "MF, BLP"), curve(evidence, than))

    return rule


def accurate(evidence: Evidence) -> Computed:
    """At small ε, BLP-MoG-MF is better than predicting the mean of all messages."""
    ours, floor = curve(evidence, OURS), curve(evidence, "local_mean")
    return compared(ours, floor, ours.epsilons <= tolerance("strong_privacy"))


def cells(evidence: Evidence) -> Iterator[Cell]:
    """Yields the data set's cells of the four printed improvements."""
    for epsilon, wanted in PRINTED["improvement_over_isgd"].get(PRINTED_AS.get(evidence.data), {}).items():
        try:
            measured = gain_at(evidence, float(epsilon))
        except MissingEvidence:
            continue
        yield Cell(f"section 4.3, improvement at ε = {epsilon}", wanted, measured, tolerance("improvement"))


def needs_results(rule: Rule) -> Rule:
    """Restricts a rule about messages to data sets on which something was run."""

    def checked(evidence: Evidence) -> Computed:
        named(evidence, FIGURE_4)
        return rule(evidence)

    return checked


RULES: dict[str, Rule] = {
    "improvement-at-0.1": improves_by("0.1"),
    "improvement-at-1": improves_by("1"),
    "improvement-shrinks": gain_shrinks,
    "beats-isgd-everywhere": beats_isgd,
    "gains-more-on-jester": gains_more_here,
    "better-when-sparse": gains_more_where_sparser,
    "larger-errors-on-jester": errors_are_larger_for_sparsity,
    "error-falls-with-epsilon": falls_with_epsilon,
    "clean-is-the-limit": clean_is_the_limit,
    "beats-pg-mf": beats_pg_mf,
    "mixture-helps": mixture_helps,
    "blp-beats-laplace": better_messages("MF, clamped Laplace"),
    "blp-beats-randomised-response": better_messages("MF, randomised response"),
    "accurate-under-strong-privacy": accurate,
    "blp-is-private": Theorem("blp_mog_mf, local, published"),
    "completely-hides": needs_results(hides_completely),
    "figure-2": needs_results(noise_of_messages),
    "traffic": needs_results(traffic),
}
