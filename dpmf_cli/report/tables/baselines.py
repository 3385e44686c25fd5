"""The table of baselines (Friedman et al. 2016, table 3), and the table of fits without noise.

Both show RMSE, or another metric if that is shown. If an experiment reproduces table 3, the printed values stand
beside the reproduced ones.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.metrics import RMSE, Metric
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.claims import is_held_against_tables
from dpmf_cli.papers.printed import printed_baseline
from dpmf_cli.report.tables.layout import NONE, TableColumn, TextTable, names, number, tabled

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
    of_key = Counter(baseline.algorithm for baseline in experiment.baselines)
    held = is_held_against_tables(experiment.name) and experiment.metric == RMSE

    def row(baseline: Measured) -> BaselineRow:
        key, values, complete = baseline.algorithm, baseline.values[:, :, :1], is_complete(baseline)
        folds, runs, _ = values.shape
        return BaselineRow(
            dataset=experiment.dataset,
            title=experiment.title,
            experiment=experiment.name,
            baseline=baseline.label if of_key[key] > 1 else NAMES.get(key, key.upper()),
            printed=printed_baseline(experiment.dataset, key.upper()) if held else None,
            reproduced=float(values.mean()) if complete else None,
            sd_folds=float(sd_over_folds(values)[0]) if complete and folds > 1 else None,
            folds=folds,
            runs=runs,
            metric=experiment.metric,
        )

    order = {key: place for place, key in enumerate(_TABLE3)}
    return [row(b) for b in sorted(experiment.baselines, key=lambda b: order.get(b.algorithm, len(order)))]


def reproduced_cell(row: BaselineRow) -> str:
    if row.reproduced is None:
        return "incomplete"
    return f"{row.reproduced:.4f}" + ("" if row.sd_folds is None else f" ± {row.sd_folds:.4f}")


COLUMNS: tuple[TableColumn[BaselineRow], ...] = (
    *names("dataset title experiment baseline"),
    number("printed", seen=lambda rows: any(row.printed is not None for row in rows)),
    TableColumn("reproduced", text=reproduced_cell),
    *names("sd_folds folds runs"),
    TableColumn(
        "metric", lambda row: row.metric.key, kept=lambda rows: any(row.metric != RMSE for row in rows)
    ),
    TableColumn(
        "difference",
        text=lambda row: NONE if row.difference is None else signed(row.difference, 4),
        align="r",
        seen=lambda rows: any(row.printed is not None for row in rows),
    ),
)

SHOWN = ("baseline", "printed", "reproduced", "difference")


def baselines_table(rows: Sequence[BaselineRow]) -> TextTable:
    """Returns printed and reproduced RMSE of the baselines, or another metric, by experiment."""

    def title(row: BaselineRow) -> str:
        metric = "" if row.metric == RMSE else f", {row.metric.title}"
        return f"{row.title} ({row.experiment}{metric})"

    metrics = ", ".join(dict.fromkeys(row.metric.title for row in rows))
    notes = [f"{metrics}; ± the standard deviation over folds"] if rows else []
    if any(row.printed is not None for row in rows):
        notes.append("printed: by Friedman et al. (2016), where their tables are reproduced")
    return tabled(rows, COLUMNS, SHOWN, title=title, notes=notes)


def twins_table(experiment: Experiment) -> TextTable:
    """Returns the error of each private algorithm without noise, if the experiment measured it."""
    spread = experiment.folds > 1
    return tabled(
        [(curve.label, twin) for curve in experiment.curves if (twin := curve.without_noise()) is not None],
        shown=[
            TableColumn(f"{experiment.metric.title} without noise", text=lambda row: row[0]),
            TableColumn(
                "mean",
                text=lambda row: f"{row[1].mean()[0]:.4f}" if is_complete(row[1]) else "incomplete",
                align="r",
            ),
            TableColumn(
                "sd over folds",
                text=lambda row: (
                    f"{sd_over_folds(row[1].values)[0]:.4f}" if spread and is_complete(row[1]) else NONE
                ),
                align="r",
            ),
        ],
        title=f"{experiment.title} ({experiment.name})",
    )
