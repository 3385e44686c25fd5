"""Tables of the local model: messages sent (Neera et al. 2020, table 1), and improvements (section 4.3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.printed import load
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import epsilon_per_user
from dpmf_cli.report.tables.layout import Group, TableColumn, TextTable, names, number, tabled

PRINTED_AT = {"ml-100k": "movielens", "jester-1": "jester"}
"""The data sets for which the paper prints improvements, and their names in the paper's file."""


@dataclass(frozen=True)
class Sent:
    """What the users of one method sent and received: messages per rating, bytes per message, bytes per user."""

    method: str
    messages_per_rating: float
    bytes_each: float
    up_per_user: float
    down_per_user: float


def traffic(entries: Sequence[PrivateAlgorithm], ratings: Ratings, title: str) -> list[Sent]:
    """Simulates each entry once, on all ratings at ε = 1, and returns what users really sent and received.

    Entries that are not of the local model have no messages and are left out.
    """
    found = []
    for entry in entries:
        streams = Streams(0, title, entry.algorithm, 0, 0)
        curator = Curator(Ledger([1.0]), streams)
        model = entry.fit(ratings, curator.ledger.limit, streams=streams, curator=curator)
        sent = getattr(model, "traffic", None)
        if sent is not None:
            a_rating, each = sent.messages / len(ratings), sent.up / sent.messages
            found.append(Sent(entry.name, a_rating, each, sent.up_per_user, sent.down_per_user))
    return found


def traffic_table(sent: Sequence[Sent], ratings: Ratings, title: str) -> TextTable:
    """Returns a row for each method; for programs, `group` is the title."""
    columns: list[TableColumn[Sent]] = [
        TableColumn("group", lambda each: title),
        TableColumn("method"),
        number("messages_per_rating", "g", head="messages per rating"),
        number("bytes_each", "g", head="bytes each"),
        number("up_per_user", ",.0f", head="bytes sent per user"),
        number("down_per_user", ",.0f", head="bytes received per user"),
    ]
    mean, largest = (float(each[0]) for each in epsilon_per_user(np.ones(1), ratings.user_counts))
    return tabled(
        sent,
        columns,
        ("method", "messages_per_rating", "bytes_each", "up_per_user", "down_per_user"),
        title=title,
        notes=(
            "a message: the item's id and what the device reports about its rating",
            f"`neighbours: local`: ε per rating; a user spends {mean:.1f} ε on average and {largest:.0f} ε at most",
        ),
    )


def mean_of_messages(experiment: Experiment) -> Measured | None:
    """Returns the experiment's `local_mean` if it is complete: a method with a larger error has learned nothing."""
    return next((c for c in experiment.curves if c.algorithm == "local_mean" and not c.missing), None)


def learned_nothing_table(experiment: Experiment) -> TextTable | None:
    """Returns the ε at which each curve of the local model is worse than predicting the mean of the perturbed values.

    Returns None if the experiment does not have that mean.
    """
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


def improvements(experiments: Sequence[Experiment]) -> Iterator[dict[str, Any]]:
    """Yields by how many percent the RMSE of BLP-MoG-MF is lower than another curve's, at each ε that is printed.

    lower_percent    None for BLP-MoG-MF itself; `lower_sd` is its standard deviation over folds, None for one fold
    printed_percent  None for a method for which the paper prints nothing
    learned_nothing  whether the curve's RMSE is above that of the mean of the perturbed ratings
    """
    printed = load("neera2020")["improvement_over_isgd"]
    for experiment in experiments:
        ours = next((curve for curve in experiment.curves if curve.algorithm == "blp_mog_mf"), None)
        if ours is None or ours.missing:
            continue
        floor = mean_of_messages(experiment)
        cells = {float(e): value for e, value in printed.get(PRINTED_AT.get(experiment.dataset), {}).items()}
        for epsilon in sorted(set(cells) & set(ours.epsilons.tolist())):
            at = int(np.searchsorted(ours.epsilons, epsilon))
            for other in (curve for curve in experiment.curves if not curve.missing):
                rmse, lower = float(other.rmse[:, :, at].mean()), lower_by(ours, other, at)
                sd = float(sd_over_folds(lower[:, None, None])[0])
                yield {
                    "experiment": experiment.name,
                    "title": experiment.title,
                    "epsilon": epsilon,
                    "method": other.label,
                    "rmse": rmse,
                    "lower_percent": None if other is ours else float(lower.mean()),
                    "lower_sd": None if other is ours or len(lower) < 2 else sd,
                    "printed_percent": 100 * cells[epsilon] if other.algorithm == "isgd_local" else None,
                    "learned_nothing": floor is not None and bool(rmse > floor.rmse[:, :, at].mean()),
                    "joint": other.joint,
                }


def improvements_table(experiments: Sequence[Experiment]) -> TextTable:
    """Returns a row for each improvement."""

    def lower(each: SimpleNamespace) -> str:
        spread = "" if each.lower_sd is None else f" ± {each.lower_sd:.1f}"
        return "" if each.lower_percent is None else f"{each.lower_percent:.1f}{spread} %"

    signs: TableColumn[Any] = TableColumn(
        "signs", head="", text=lambda each: "†" * each.learned_nothing + "‡" * each.joint
    )
    columns: list[TableColumn[Any]] = [
        *names("experiment title epsilon method"),
        number("rmse", head="RMSE"),
        TableColumn("lower_percent", text=lower, head="BLP-MoG-MF lower by", align="r"),
        *names("lower_sd"),
        TableColumn(
            "printed_percent",
            text=lambda each: "" if each.printed_percent is None else f"{each.printed_percent:.0f} %",
            head="printed",
            align="r",
        ),
        *names("learned_nothing joint"),
    ]
    return tabled(
        [SimpleNamespace(**each) for each in improvements(experiments)],
        columns,
        ("method", "rmse", signs, "lower_percent", "printed_percent"),
        title=lambda each: f"{each.experiment}: {each.title}, ε = {each.epsilon:g}",
        notes=(
            "± standard deviation over folds",
            "† worse than predicting the mean of the perturbed ratings",
            "‡ predicts from the target user's own clean ratings",
        ),
    )


def lower_by(ours: Measured, other: Measured, at: int) -> NDArray[np.float64]:
    """Returns (folds,) by how many percent the RMSE of `ours` is below that of `other`; `at` is the index of ε."""
    part: NDArray[np.float64] = ours.rmse[:, :, at].mean(axis=1) / other.rmse[:, :, at].mean(axis=1)
    return 100 * (1 - part)
