r"""Writes the numbers and pictures of an experiment as LaTeX macros, so that nobody types them.

\input{results/my-shop/figures}
ISGD meets the averages at $\varepsilon$ = \dpmf{my-shop/ISGD/GE} \dpmf{my-shop/ISGD/GE/interval}.
\dpmffigure{my-shop/curves}
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.tables.baselines import baseline_cells, baseline_rows
from dpmf_cli.report.tables.cells import NONE, crossing_cell, epsilon_cell
from dpmf_cli.report.tables.layout import escape_latex
from dpmf_cli.terminal import printable

_HEAD = r"""% The figures of {name}, written by dpmf. \input this file; docs/report.md says how to use it.
\providecommand{{\dpmfresults}}{{results}}
\providecommand{{\dpmfset}}[2]{{\expandafter\def\csname dpmf@#1\endcsname{{#2}}}}
\providecommand{{\dpmf}}[1]{{\ifcsname dpmf@#1\endcsname\csname dpmf@#1\endcsname
  \else\GenericError{{}}{{dpmf: no figure is called #1}}{{}}{{}}\fi}}
\providecommand{{\dpmffigure}}[1]{{\includegraphics[width=\linewidth]{{\dpmfresults/#1}}}}
"""


def figure_macros(experiment: Experiment, crossings: Sequence[Crossing]) -> str:
    r"""Defines `\dpmf{NAME/ENTRY/BASELINE}` for crossings, as in tables, and `\dpmf{NAME/BASELINE}` for the RMSE of a
    baseline, or the metric that is shown.

    `/interval`, `/claimed` and `/provable` after the name of a crossing give its interval and its two ε.
    """
    lines, taken = [_HEAD.format(name=printable(experiment.name))], set[str]()
    for path, text in _figures(experiment, crossings):
        name = "/".join(map(_plain, path))
        while name in taken:
            name += "'"
        taken.add(name)
        lines.append(f"\\dpmfset{{{name}}}{{{escape_latex(printable(text))}}}\n")
    return "".join(lines)


def _figures(experiment: Experiment, crossings: Iterable[Crossing]) -> Iterator[tuple[tuple[str, ...], str]]:
    for row in baseline_rows(experiment):
        name, value = baseline_cells(row, with_printed=False)
        yield (experiment.name, name), value.partition(" ±")[0]
    for crossing in crossings:
        of = experiment.name, crossing.label, crossing.baseline
        point, bracket, interval = crossing_cell(crossing).partition(" [")
        yield of, point.rstrip("†")
        yield (*of, "interval"), bracket.strip() + interval.rstrip("*") or NONE
        yield (*of, "claimed"), epsilon_cell(crossing.claimed)
        yield (*of, "provable"), epsilon_cell(crossing.provable)


def _plain(name: str) -> str:
    r"""Returns a name in characters that `\csname` takes unchanged: ε becomes `epsilon`, others become a dash."""

    def spelt(found: re.Match[str]) -> str:
        return re.sub("[^A-Za-z]", "", escape_latex(found[0])).removeprefix("var") or "-"

    return re.sub(r"[^A-Za-z0-9 _.,+()-]", spelt, name)
