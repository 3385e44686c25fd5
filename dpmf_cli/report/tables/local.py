"""Tables of the local model: what is sent (Neera et al. 2020, table 1), and improvements (section 4.3)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.printed import load
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import epsilon_per_user
from dpmf_cli.ratings import Ratings
from dpmf_cli.report.tables.layout import Group, TextTable
from dpmf_cli.streams import Streams

PRINTED_AT = {"ml-100k": "movielens", "jester-1": "jester"}
"""The data sets whose improvements are printed, and their name there."""


def traffic_table(entries: Sequence[PrivateAlgorithm], ratings: Ratings, title: str) -> TextTable:
    """Bytes that the users of one simulation really sent and received, on all ratings at ε = 1.

    Entries that are not of the local model have no messages and are passed over.
    """
    rows = []
    for entry in entries:
        streams = Streams(0, title, entry.algorithm, 0, 0)
        curator = Curator(Ledger([1.0]), streams)
        model = entry.fit(ratings, curator.ledger.limit, streams=streams, curator=curator)
        traffic = getattr(model, "traffic", None)
        if traffic is not None:
            rows.append(
                (
                    entry.name,
                    f"{traffic.messages / len(ratings):g}",
                    f"{traffic.up / traffic.messages:g}",
                    f"{traffic.up_per_user:,.0f}",
                    f"{traffic.down_per_user:,.0f}",
                )
            )
    mean, largest = (float(each[0]) for each in epsilon_per_user(np.ones(1), ratings.user_counts))
    return TextTable(
        header=("method", "messages a rating", "bytes each", "up a user, bytes", "down a user, bytes"),
        alignment="lrrrr",
        groups=(Group(title, tuple(rows)),),
        notes=(
            "a message: the item's id and what is said of its rating",
            f"ε is per rating: a user spends {mean:.1f} ε on average and {largest:.0f} ε at most",
        ),
    )


def mean_of_messages(experiment: Experiment) -> Measured | None:
    """The experiment's `local_mean`, if it has one that is complete: who is worse has learned nothing."""
    return next((c for c in experiment.curves if c.algorithm == "local_mean" and not c.missing), None)


def learned_nothing_table(experiment: Experiment) -> TextTable | None:
    """At which ε each curve of the local model is worse than predicting the mean of the perturbed values; None where
    the experiment does not have that mean."""
    floor = mean_of_messages(experiment)
    if floor is None:
        return None
    rows = []
    for curve in experiment.curves:
        if curve is floor or curve.neighbours != floor.neighbours:
            continue
        common = np.isin(curve.epsilons, floor.epsilons)
        at = curve.epsilons[common]
        level = floor.mean()[np.searchsorted(floor.epsilons, at)]
        # A model that diverged is not better than anything.
        worse = at[~(curve.mean()[common] <= level)]
        where = "everywhere" if len(worse) == len(at) > 0 else ", ".join(f"{epsilon:g}" for epsilon in worse)
        name = curve.label + ("‡" if curve.joint else "")
        rows.append((name, "incomplete" if curve.missing else where or "nowhere"))
    return TextTable(
        header=("† worse than the mean of the perturbed values", "at ε ="),
        alignment="ll",
        groups=(Group(f"{experiment.title} ({experiment.name})", tuple(rows)),),
        notes=(f"the mean: {floor.label}; mean RMSE over folds and runs",),
    )


def improvements_table(experiments: Sequence[Experiment]) -> TextTable:
    """How much lower the RMSE of BLP-MoG-MF is than that of every other private curve, beside what is printed.

    At each ε for which an improvement over ISGD is printed and that is in the grid: 1 − RMSE/RMSE′, with the standard
    deviation of the folds. A curve above the mean of the perturbed ratings is flagged: it has learned nothing.
    """
    printed = load("neera2020")["improvement_over_isgd"]
    groups = []
    for experiment in experiments:
        ours = next((curve for curve in experiment.curves if curve.algorithm == "blp_mog_mf"), None)
        if ours is None or ours.missing:
            continue
        cells = {float(e): value for e, value in printed.get(PRINTED_AT.get(experiment.dataset), {}).items()}
        for epsilon in sorted(set(cells) & set(ours.epsilons.tolist())):
            at = int(np.searchsorted(ours.epsilons, epsilon))
            floor = mean_of_messages(experiment)
            rows = tuple(
                _improvement(ours, curve, at, cells[epsilon], floor)
                for curve in experiment.curves
                if not curve.missing
            )
            groups.append(Group(f"{experiment.name}: {experiment.title}, ε = {epsilon:g}", rows))
    return TextTable(
        header=("method", "RMSE", "", "BLP-MoG-MF lower by", "printed"),
        alignment="lrlrr",
        groups=tuple(groups),
        notes=(
            "± standard deviation over folds",
            "† worse than predicting the mean of the perturbed ratings",
            "‡ predicts from the target user's own clean ratings",
        ),
    )


def lower_by(ours: Measured, other: Measured, at: int) -> NDArray[np.float64]:
    """(folds,) by how many percent the RMSE of `ours` is lower than that of `other`, at one ε of the grid."""
    part: NDArray[np.float64] = ours.rmse[:, :, at].mean(axis=1) / other.rmse[:, :, at].mean(axis=1)
    return 100 * (1 - part)


def _improvement(
    ours: Measured, other: Measured, at: int, printed: float, floor: Measured | None
) -> tuple[str, ...]:
    """One row; at, the index of ε."""
    theirs = other.rmse[:, :, at]
    flags = "†" if floor is not None and theirs.mean() > floor.rmse[:, :, at].mean() else ""
    lower = lower_by(ours, other, at)
    spread = f" ± {float(sd_over_folds(lower[:, None, None])[0]):.1f}" if len(lower) > 1 else ""
    return (
        other.label,
        f"{theirs.mean():.4f}",
        flags + ("‡" if other.joint else ""),
        "" if other is ours else f"{lower.mean():.1f}{spread} %",
        f"{100 * printed:.0f} %" if other.algorithm == "isgd_local" else "",
    )
