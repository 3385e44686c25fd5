"""The tables of papers: verdicts on a paper's claims, its printed values, and what Neera et al. (2020) tabulate.

These are messages sent in the local model (table 1) and improvements over ISGD (section 4.3).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.terminal import signed, significant
from dpmf_cli.evaluation.crossings import Agreement, agreement
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.claims import ANY, Claim, PaperFindings
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.record import Explored, PrintedValue, Record
from dpmf_cli.papers.space import Setting
from dpmf_cli.papers.verdicts import Judged, judged, of_theorem
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import epsilon_per_user
from dpmf_cli.report.tables.layout import NONE, Group, TableColumn, TextTable, names, number, tabled
from dpmf_cli.report.words import lines


def verdicts(record: Record, claim: Claim) -> Iterator[tuple[str, Judged]]:
    """Yields the verdicts on a claim's atoms for each data set that it is about; one verdict for a theorem."""
    for data in claim.data:
        if data == ANY:
            found = [of_theorem(record.theorems.get(claim.id))]
        else:
            found = judged(record.data[data], claim.id) if data in record.data else []
        for each in found or [Judged("no data")]:
            yield "" if data == ANY else data, each


def of_verdict(verdict: Judged, data: str) -> tuple[str, ...]:
    """The row of a verdict on an inequality: what it is, on which data set, and the inequality."""
    return verdict.word, data or NONE, verdict.text


def claims_text(
    record: Record,
    paper: PaperFindings,
    header: tuple[str, ...] = ("verdict", "on", "inequality"),
    row: Callable[[Judged, str], tuple[str, ...]] = of_verdict,
) -> TextTable:
    """A group for each claim, with a `row` for each inequality and data set."""
    groups = []
    for claim in paper.claims:
        rows, absent = [], []
        for data, verdict in verdicts(record, claim):
            if verdict.word == "no data" and not verdict.text:
                absent.append(data)
            else:
                rows.append(row(verdict, data))
        if any(absent):
            rows.append(row(Judged("no data", NONE), ", ".join(absent)))
        groups.append(Group(claim.told + f" [{claim.source}]" * bool(claim.source), tuple(rows)))
    notes = tuple(lines("notes/explored", record=record))
    return TextTable(header, "l" * len(header), tuple(groups), notes)


def printed_values_text(found: Explored) -> TextTable:
    """A row for each printed value: what the shipped setting has on all folds, and how many settings agree."""

    def row(name: str, value: PrintedValue) -> tuple[str, ...]:
        off = [each.off[name] for each in found.tried if name in each.off]
        return (
            name,
            significant(value.printed),
            "none" if value.measured is None else significant(value.measured),
            NONE if value.gap is None else signed(value.gap, 4),
            agreement(value.off),
            f"{sum(agreement(each) is Agreement.AGREES for each in off)} of {len(off)}",
        )

    best = most_agreeing([found])
    choices = zip(found.values(best).items(), best, strict=True)
    return TextTable(
        header=("place", "printed", "measured", "gap", "it", "settings that agree"),
        alignment="lrrrlr",
        groups=(Group(found.title, tuple(row(*printed) for printed in found.printed.items())),),
        notes=tuple(lines("notes/printed_values", choices=choices)),
    )


def agreeing(found: Sequence[Explored], setting: Setting) -> Counter[Agreement]:
    """How many printed values of some data sets agree, are near and differ in a setting."""
    tried = [each for of in found for each in of.tried if each.setting == setting]
    return Counter(agreement(off) for each in tried for off in each.off.values())


def most_agreeing(found: Sequence[Explored]) -> Setting:
    """The setting, of those tried on all of these data sets, in which the most printed values agree."""
    common = [each.setting for each in found[0].tried]
    common = [each for each in common if all(any(each == of.setting for of in one.tried) for one in found)]

    def rank(setting: Setting) -> tuple[int, int]:
        counts = agreeing(found, setting)
        return counts[Agreement.AGREES], counts[Agreement.NEAR]

    return max(common, key=rank)


PRINTED_AT = {"ml-100k": "movielens", "jester-1": "jester"}
"""The data sets for which the paper prints improvements, and their names in the paper's file."""


@dataclass(frozen=True)
class Sent:
    """What the users of one method sent and received."""

    method: str
    messages_per_rating: float
    bytes_each: float
    up_per_user: float
    down_per_user: float


def traffic(entries: Sequence[PrivateAlgorithm], ratings: Ratings, title: str) -> list[Sent]:
    """What users send and receive, from a simulation of each entry, on all ratings at ε = 1.

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
    """A row for each method; for programs, `group` is the title."""
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
        notes=lines("notes/traffic", mean=mean, largest=largest),
    )


def mean_of_messages(experiment: Experiment) -> Measured | None:
    """The experiment's `local_mean` if it is complete: a method with a larger error has learned nothing."""
    return next((c for c in experiment.curves if c.algorithm == "local_mean" and not c.missing), None)


def learned_nothing_table(experiment: Experiment) -> TextTable | None:
    """The ε at which local curves are worse than the mean of the perturbed values; None without that mean."""
    floor = mean_of_messages(experiment)
    if floor is None:
        return None
    rows = []
    for curve in experiment.curves:
        if curve is floor or curve.neighbours != floor.neighbours:
            continue
        at, own, others = np.intersect1d(curve.epsilons, floor.epsilons, return_indices=True)
        # A model that diverged is not better than anything.
        worse = at[~(curve.mean()[own] <= floor.mean()[others])]
        where = "everywhere" if len(worse) == len(at) > 0 else ", ".join(f"{epsilon:g}" for epsilon in worse)
        rows.append((curve.label + "‡" * curve.joint, "incomplete" if curve.missing else where or "nowhere"))
    return TextTable(
        header=("† worse than the mean of the perturbed values", "at ε ="),
        alignment="ll",
        groups=(Group(f"{experiment.title} ({experiment.name})", tuple(rows)),),
        notes=(f"the mean: {floor.label}; mean RMSE over folds and runs",),
    )


def improvements(experiments: Sequence[Experiment]) -> Iterator[SimpleNamespace]:
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
                rmse, errors = float(other.rmse[:, :, at].mean()), (ours.rmse[:, :, at], other.rmse[:, :, at])
                part = errors[0].mean(axis=1) / errors[1].mean(axis=1)
                lower = 100 * (1 - part)  # (folds,)
                yield SimpleNamespace(
                    experiment=experiment.name,
                    title=experiment.title,
                    epsilon=epsilon,
                    method=other.label,
                    rmse=rmse,
                    lower_percent=None if other is ours else float(lower.mean()),
                    lower_sd=None
                    if other is ours or len(lower) < 2
                    else float(sd_over_folds(lower[:, None, None])[0]),
                    printed_percent=100 * cells[epsilon] if other.algorithm == "isgd_local" else None,
                    learned_nothing=floor is not None and bool(rmse > floor.rmse[:, :, at].mean()),
                    joint=other.joint,
                )


def improvements_table(experiments: Sequence[Experiment]) -> TextTable:
    def lower(each: SimpleNamespace) -> str:
        spread = "" if each.lower_sd is None else f" ± {each.lower_sd:.1f}"
        return "" if each.lower_percent is None else f"{each.lower_percent:.1f}{spread} %"

    def printed(each: SimpleNamespace) -> str:
        return "" if each.printed_percent is None else f"{each.printed_percent:.0f} %"

    columns: list[TableColumn[SimpleNamespace]] = [
        *names("experiment title epsilon method"),
        number("rmse", head="RMSE"),
        TableColumn("lower_percent", text=lower, head="BLP-MoG-MF lower by", align="r"),
        *names("lower_sd"),
        TableColumn("printed_percent", text=printed, head="printed", align="r"),
        *names("learned_nothing joint"),
    ]
    signs: TableColumn[SimpleNamespace] = TableColumn(
        "", text=lambda each: "†" * each.learned_nothing + "‡" * each.joint
    )
    return tabled(
        list(improvements(experiments)),
        columns,
        ("method", "rmse", signs, "lower_percent", "printed_percent"),
        title=lambda each: f"{each.experiment}: {each.title}, ε = {each.epsilon:g}",
        notes=lines("notes/improvements"),
    )
