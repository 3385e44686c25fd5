"""The combined table: every algorithm of several experiments, ranked within each data set and guarantee.

Each group has a heading, and a sentence that says what its ε protects. Curves without a provable ε have a heading of
their own. For programs the columns `title`, `protects` and `towards` name the group, and `rank` and `rank_pure` start
anew in each group.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpmf_cli.evaluation.crossings import Crossing, Status, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import (
    BARS,
    MODEST,
    Bar,
    Ranked,
    Standing,
    by_guarantee,
    ranked,
    standings,
    swept_labels,
)
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.report.tables.columns import NONE, Column, epsilon_cell, marks, tabled
from dpmf_cli.report.tables.crossings import crossing_cell, end_status, end_value, mark_notes
from dpmf_cli.report.tables.layout import TextTable

NOT_PROVABLE = "No ε can be proved for what was run; ordered by the ε that is claimed, and not ranked."


def combined_table(
    experiments: Sequence[Experiment], *, bar: Bar = "ia", across: bool = False, notes: Sequence[str] = ()
) -> TextTable:
    """Returns all curves of the experiments, ranked within groups by the provable ε at which they meet `bar`.

    across  one ranking of all curves; all of them must then protect the same on the same data
    notes   the caller's lines below the table, for people

    Raises `DpmfError` for `across` over several data sets or guarantees.
    """
    found = [standing for experiment in experiments for standing in standings(experiment)]
    if across:
        ranked(found, bar)
    rows = [row for members in by_guarantee(found).values() for row in ranked(members, bar)]
    listed = [row.standing for row in rows]
    several = len({each.title for each in experiments}) < len(experiments)
    approximate = any(standing.curve.delta for standing in listed)

    def title(row: Ranked) -> tuple[str, str]:
        standing = row.standing
        whole = f"{standing.experiment.title}: {standing.guarantee}"
        return (
            (whole, standing.guarantee.statement)
            if standing.provable
            else (f"{whole}, not provable", NOT_PROVABLE)
        )

    columns: list[Column[Ranked]] = [
        Column("title", lambda row: row.standing.experiment.title),
        Column("protects", lambda row: row.standing.guarantee.protects.value),
        Column("towards", lambda row: row.standing.guarantee.towards),
        Column("rank", text=lambda row: str(row.rank or NONE), align="r"),
        Column(
            "rank_pure",
            lambda row: row.pure,
            lambda row: str(row.pure or NONE),
            head="pure",
            align="r",
            seen=lambda rows: approximate,
        ),
        Column("provable", lambda row: row.standing.provable),
        of_curve("algorithm"),
        Column(
            "label", lambda row: row.standing.curve.label, lambda row: short_marked(row.standing), "algorithm"
        ),
        of_curve("source", head="from"),
        *map(of_curve, ("neighbours", "mode", "joint", "delta")),
        *(column for each in BARS for column in _of_bar(each)),
        Column(
            "best_rmse",
            lambda row: row.standing.best,
            lambda row: NONE if row.standing.best is None else f"{row.standing.best:.4f}",
            head=f"RMSE, ε ≤ {MODEST:g}",
            align="r",
        ),
        Column("experiment", lambda row: row.standing.experiment.name, seen=lambda rows: several),
        *map(of_experiment, ("dataset", "folds", "partition", "runs", "seed")),
    ]
    bars = (f"{each}_{name}" for each in BARS for name in ("epsilon", "claimed", "provable"))
    shown = ("rank", "rank_pure", "label", "source", "mode", *bars, "best_rmse", "experiment")
    lines = [*_notes(experiments, listed, bar, approximate=approximate), *notes]
    return tabled(rows, columns, shown, title=title, notes=lines)


def of_curve(name: str, head: str | None = None) -> Column[Any]:
    """Returns the column of an attribute of a row's curve."""
    return Column(name, lambda row: getattr(row.standing.curve, name), head=head)


def of_experiment(name: str) -> Column[Any]:
    return Column(name, lambda row: getattr(row.standing.experiment, name))


def _of_bar(bar: Bar) -> Iterator[Column[Ranked]]:
    """Yields the columns of the crossing with a baseline."""

    def column(
        name: str,
        of: Callable[[Crossing], Any],
        text: Callable[[Crossing], str] = str,
        head: str | None = None,
        align: str = "l",
    ) -> Column[Ranked]:
        def value(row: Ranked) -> Any:
            crossing = row.standing.crossings.get(bar)
            return None if crossing is None else of(crossing)

        def cell(row: Ranked) -> str:
            crossing = row.standing.crossings.get(bar)
            return NONE if crossing is None else text(crossing)

        return Column(f"{bar}_{name}", value, cell, head, align)

    yield column("status", lambda each: each.status.value)
    yield column("epsilon", lambda each: each.reproduced, crossing_cell, f"meets {bar.upper()} at ε")
    yield column("low", lambda each: end_value(each.low))
    yield column("high", lambda each: end_value(each.high))
    yield column("low_status", lambda each: end_status(each.low))
    yield column("high_status", lambda each: end_status(each.high))
    yield column("recrosses", lambda each: each.recrosses)
    yield column(
        "claimed", lambda each: each.claimed, lambda each: epsilon_cell(each.claimed), "claimed", "r"
    )
    yield column(
        "provable", lambda each: each.provable, lambda each: epsilon_cell(each.provable), "provable", "r"
    )


def short_label(standing: Standing) -> str:
    """Returns the curve's label without the words of the heading and of the column of modes.

    `ISGD, bounded, published` becomes `ISGD`.
    """
    curve, label = standing.curve, standing.curve.label
    for word in (curve.mode, curve.neighbours, "personalised"):
        label = label.removesuffix(f", {word}") or label
    return label


def short_marked(standing: Standing) -> str:
    """Returns the short label with the marks of joint DP and of (ε, δ)."""
    return short_label(standing) + marks(joint=standing.curve.joint, delta=standing.curve.delta)


def _notes(
    experiments: Sequence[Experiment], found: Sequence[Standing], bar: Bar, *, approximate: bool
) -> Iterator[str]:
    """Yields the notes: how curves `found` are ranked, what signs mean, and how each experiment was measured."""
    crossings = [crossing for standing in found for crossing in standing.crossings.values()]
    yield "ε under different headings are statements about different things: they are not comparable, and not ranked"
    if len({standing.guarantee.joint for standing in found}) > 1:
        yield (
            "protection towards everybody implies protection towards other users (joint) at the same ε; the "
            "converse is false"
        )
    yield (
        f"ranked by the provable ε at which the mean curve meets {bar.upper()}; rows whose intervals overlap "
        "cannot be told apart; –: meets it at no provable ε of the grid"
    )
    if approximate:
        yield (
            "a row with § is (ε, δ), and promises less than a row without § at the same ε; rank: all rows ranked "
            "together as (ε, δ), which pure ε implies for any δ, for orientation only; pure: rank among the rows "
            "without § only"
        )
    deltas = [
        {each.curve.delta for each in group if each.curve.delta and each.provable}
        for group in by_guarantee(found).values()
    ]
    if any(len(each) > 1 for each in deltas):
        yield (
            "δ differs between rows with §: rank is for the largest δ under its heading, which rows with a smaller δ "
            "also keep; for a smaller δ, only the rows that keep it would be ranked"
        )
    yield f"RMSE, ε ≤ {MODEST:g}: the lowest RMSE on the grid with a provable ε of at most {MODEST:g}"
    yield from mark_notes(crossings)
    yield from baselines_and_design(experiments)
    for experiment in experiments:
        if swept := swept_labels(experiment):
            yield f"{experiment.name}: left out, since points of a sweep are not curves over ε: {'; '.join(swept)}"


def baselines_and_design(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yields for each experiment the errors of its baselines, and the number of its folds and runs."""

    def level(baseline: Measured) -> str:
        if not is_complete(baseline):
            return f"{baseline.label} {Status.INCOMPLETE}"
        spread = f" ± {sd_over_folds(baseline.rmse)[0]:.4f}" if len(baseline.rmse) > 1 else ""
        return f"{baseline.label} {baseline.mean()[0]:.4f}{spread}"

    for each in experiments:
        yield (
            f"{each.name}: RMSE {', '.join(map(level, each.baselines))}; {each.folds} of {each.partition} folds × "
            f"{each.runs} run{'s' * (each.runs > 1)}, seed {each.seed}"
        )
