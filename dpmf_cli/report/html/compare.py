"""The page of several runs side by side: settings that differ, a chart for each method, differences of errors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dpmf_cli.evaluation.curves import ERROR_CDF, Experiment, Measured
from dpmf_cli.report.html.charts import charts_of
from dpmf_cli.report.html.experiment import Drawn, drawn
from dpmf_cli.report.tables.compare import differences_table, settings_table
from dpmf_cli.report.tables.layout import TextTable
from dpmf_cli.results.compare_folders import Compared


@dataclass(frozen=True)
class Together:
    """Several runs beside the first one: settings that differ, charts, and differences of each run from the first."""

    names: tuple[str, ...]
    title: str
    settings: TextTable
    charts: tuple[Drawn, ...]
    differences: tuple[tuple[str, TextTable], ...]


def together(several: Sequence[Compared]) -> Together:
    """Returns the content of the page for comparisons that all have the same first run."""
    first = several[0]
    names = (first.names[0], *(compared.names[1] for compared in several))
    return Together(
        names,
        first.title,
        settings_table(several),
        tuple(
            drawn(replace(chart, title=f"{each.title}: {chart.title}"))
            for each in _by_method(several, names)
            for chart in charts_of(each)
        ),
        tuple((compared.names[1], differences_table(compared)) for compared in several),
    )


def _by_method(several: Sequence[Compared], names: Sequence[str]) -> Iterator[Experiment]:
    """Yields for each method of the first run an experiment with one curve for each run that is compared.

    It has only the folds and runs that all experiments have. A method with the same errors in all is left out.
    """
    first = several[0].experiments[0]
    experiments = [first, *(compared.experiments[1] for compared in several)]
    folds, runs = (min(getattr(each, key) for each in experiments) for key in ("folds", "runs"))

    def cut(measured: Measured, label: str = "") -> Measured:
        few = measured.changed(lambda cube: cube[:folds, :runs])
        others = {key: cube for key, cube in few.others.items() if key != ERROR_CDF}
        return replace(few, label=label or measured.label, others=others)

    baselines = tuple(cut(each) for each in first.baselines if each.swept is None)
    differences = [compared.comparison.differences for compared in several]
    differ = {each.label_a for of_pair in differences for each in of_pair if not each.same}
    pairs = [{each.label_a: each.label_b for each in of_pair} for of_pair in differences]
    curves = [{curve.label: curve for curve in each.curves} for each in experiments[1:]]
    for at, curve in enumerate(first.curves):
        if curve.swept is None and curve.label in differ:
            found = [
                cut(of_run[pair[curve.label]], name)
                for of_run, pair, name in zip(curves, pairs, names[1:], strict=True)
                if curve.label in pair
            ]
            yield replace(
                first,
                name=f"method-{at}",
                title=curve.label,
                folds=folds,
                runs=runs,
                curves=(cut(curve, names[0]), *found),
                baselines=baselines,
                growth=None,
            )
