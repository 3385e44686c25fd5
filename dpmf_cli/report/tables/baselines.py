"""The table of baselines (Friedman et al. 2016, table 3), and the table of fits without noise.

Both show RMSE, or another metric if that is shown. If an experiment reproduces table 3, the printed values stand
beside the reproduced ones. Formats are those of `formats`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.metrics import RMSE, Metric
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.claims import is_held_against_tables
from dpmf_cli.papers.printed import printed_baseline
from dpmf_cli.report.tables.cells import NONE
from dpmf_cli.report.tables.formats import render
from dpmf_cli.report.tables.layout import Group, TextTable

#: What tables and figures call a baseline whose key says too little.
NAMES = {"als": "Clean MF (ALS)", "mf_sgd": "Clean MF (SGD)", "popularity": "Popularity"}

#: The baselines in table 3's order, registry keys.
_TABLE3 = ("ga", "ia", "ge", "als")


@dataclass(frozen=True)
class BaselineRow:
    """A baseline's RMSE in rating units, or another metric: printed in table 3, and reproduced.

    `printed` is None if table 3 leaves the baseline out, or if the experiment does not reproduce the paper's tables.
    `reproduced` is the mean over folds and runs, `sd_folds` the standard deviation over folds (None for one
    fold). Both are None if a task has no result yet.
    """

    dataset: str
    title: str
    experiment: str
    baseline: str
    printed: float | None
    reproduced: float | None
    sd_folds: float | None
    folds: int
    runs: int
    metric: Metric = RMSE

    @property
    def difference(self) -> float | None:
        """Reproduced − printed; None if either is missing."""
        if self.reproduced is None or self.printed is None:
            return None
        return self.reproduced - self.printed


def baseline_rows(experiment: Experiment) -> list[BaselineRow]:
    """Returns the baselines of one experiment: first those of table 3, in its order, then the others.

    If a config has the same baseline several times, with different parameters, each goes by its own label.
    """
    order = {key: place for place, key in enumerate(_TABLE3)}
    of_key = Counter(baseline.algorithm for baseline in experiment.baselines)
    held = is_held_against_tables(experiment.name) and experiment.metric == RMSE
    rows = []
    for baseline in sorted(experiment.baselines, key=lambda each: order.get(each.algorithm, len(order))):
        key = baseline.algorithm
        name = baseline.label if of_key[key] > 1 else NAMES.get(key, key.upper())
        values = baseline.values[:, :, :1]
        folds, runs, _ = values.shape
        complete = is_complete(baseline)
        rows.append(
            BaselineRow(
                dataset=experiment.dataset,
                title=experiment.title,
                experiment=experiment.name,
                baseline=name,
                printed=printed_baseline(experiment.dataset, key.upper())
                if held and baseline.metric == RMSE
                else None,
                reproduced=float(values.mean()) if complete else None,
                sd_folds=float(sd_over_folds(values)[0]) if complete and folds > 1 else None,
                folds=folds,
                runs=runs,
                metric=baseline.metric,
            )
        )
    return rows


def baselines_table(rows: Sequence[BaselineRow], form: str = "table") -> str:
    """Draws printed and reproduced RMSE of the baselines, or another metric, by experiment, in any format."""
    of_errors = all(row.metric == RMSE for row in rows)
    own = [field for field in BaselineRow.__dataclass_fields__ if field != "metric"]
    records = [
        {
            **{field: getattr(row, field) for field in own},
            **({} if of_errors else {"metric": row.metric.key}),
            "difference": row.difference,
        }
        for row in rows
    ]
    fields = [*own, *([] if of_errors else ["metric"]), "difference"]
    return render(baselines_text(rows), fields, records, form)


def baselines_text(rows: Sequence[BaselineRow]) -> TextTable:
    """Returns the same as a table of text."""
    groups: dict[tuple[str, str], list[BaselineRow]] = {}
    for row in rows:
        shown = [] if row.metric == RMSE else [row.metric.title]
        groups.setdefault((row.title, ", ".join([row.experiment, *shown])), []).append(row)
    with_printed = any(row.printed is not None for row in rows)
    printed, difference = (("printed",), ("difference",)) if with_printed else ((), ())
    titles = ", ".join(dict.fromkeys(row.metric.title for row in rows))
    notes = [f"{titles}; ± the standard deviation over folds"] if rows else []
    if with_printed:
        notes.append("printed: by Friedman et al. (2016), where their tables are reproduced")
    return TextTable(
        header=("baseline", *printed, "reproduced", *difference),
        alignment="lrlr" if with_printed else "ll",
        groups=tuple(
            Group(
                f"{title} ({experiment})",
                tuple(baseline_cells(row, with_printed=with_printed) for row in group),
            )
            for (title, experiment), group in groups.items()
        ),
        notes=tuple(notes),
    )


def baseline_cells(row: BaselineRow, *, with_printed: bool = True) -> tuple[str, ...]:
    """Returns a baseline's row of the table: its name, printed, reproduced with its spread, difference."""
    reproduced = "incomplete" if row.reproduced is None else f"{row.reproduced:.4f}"
    spread = "" if row.sd_folds is None else f" ± {row.sd_folds:.4f}"
    difference = NONE if row.difference is None else signed(row.difference, 4)
    printed = NONE if row.printed is None else f"{row.printed:.4f}"
    return (
        row.baseline,
        *((printed,) if with_printed else ()),
        reproduced + spread,
        *((difference,) if with_printed else ()),
    )


def twins_text(experiment: Experiment) -> TextTable:
    """Returns the error of each private algorithm without noise, if the experiment measured it."""
    rows = []
    for curve in experiment.curves:
        twin = curve.without_noise()
        if twin is not None:
            complete = is_complete(twin)
            spread = (
                f"{float(sd_over_folds(twin.values)[0]):.4f}" if complete and experiment.folds > 1 else NONE
            )
            rows.append((curve.label, f"{twin.mean()[0]:.4f}" if complete else "incomplete", spread))
    return TextTable(
        header=(f"{experiment.metric.title} without noise", "mean", "sd over folds"),
        alignment="lrr",
        groups=(Group(f"{experiment.title} ({experiment.name})", tuple(rows)),),
    )
