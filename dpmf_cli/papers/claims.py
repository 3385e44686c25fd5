"""The findings of this project about each paper, as data: the claims, and which config measures which figure.

There is one YAML file per paper, named by the paper's key; `printed` reads its figures. The file holds no verdicts:
rules (`rules/`) compute what results say about a claim, and `verdicts` computes what many settings say. The parts of
the complete reproduction are the papers, and the comparisons of all methods.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.experiment.config.documents import is_on_own_data, whole_name
from dpmf_cli.papers.printed import paper_file, papers

ANY = "any"
"""Stands in place of a data set in the claim of a theorem."""

Table = Literal[
    "statistics",
    "baselines",
    "crossings",
    "printed crossings",
    "improvements",
    "traffic",
    "noise",
    "combined",
    "frontier",
]
Kind = Literal["figure", "statistics", "baselines", "crossings", "improvements", "noise", "combined", "file"]


class Exhibit(StrictModel):
    """A table or figure of a paper, or one that this project adds.

    configs   the names of the experiments that measure it; a table takes a data set from the first that has it
    neighbours   of a table of crossings, the neighbours of its printed values; empty if no printed values are known
    data      data sets of the catalog that it is made from, if it needs no experiment
    file      one of the paper's outputs, if it needs neither; `command` makes it
    """

    name: str
    what: str
    kind: Kind = "figure"
    configs: tuple[str, ...] = ()
    neighbours: str = ""
    data: tuple[str, ...] = ()
    file: str = ""
    command: str = ""

    @property
    def making(self) -> str:
        """The shell command that makes its file."""
        return f"{self.command} > results/{self.file}"


class Output(StrictModel):
    """A file in the results folder, in the form that its ending names.

    table     what it shows: of the results of those `configs` that were run, or of `data`
    figure    a picture of the same results, drawn beside it
    configs   the names of experiments; the file is made if any of them was run; empty means all of the paper's
    data      keys of data sets, if it needs no results
    """

    file: str
    table: Table
    figure: str = ""
    configs: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        form = self.file.rpartition(".")[2]
        return "table" if form == "txt" else form


class Claim(StrictModel):
    """A statement of a paper that figures, or an audit, can confirm or contradict.

    statement   what the paper says, in our words
    source      where it says so: "section 5.2", "theorem 4"
    data        keys of the data sets that it is about; each has its own verdict; `ANY` for a theorem
    remark      what a reader of the verdict must know: how the paper's own figures disagree, what was reconstructed
    configs     the names of the experiments that measure it
    """

    id: str
    statement: str
    source: str = ""
    data: tuple[str, ...]
    remark: str = ""
    configs: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The statement, with the remark behind it."""
        return self.statement + f" ({self.remark})" * bool(self.remark)


class Erratum(StrictModel):
    """A mistake in a paper: where it is, and what is wrong."""

    where: str
    what: str


class PaperFindings(StrictModel):
    """A paper: its title, its subject, where its page is, the command that reproduces all of it, and its source.

    outputs   the tables and figures that are made from its results
    large     the configs whose tasks may not fit in memory side by side with others
    small     the configs of the small reproduction, in the order of running
    printed   its figures, for `papers.printed`
    settings, departures   how the paper ran, and where the configs differ, for `docs.makers.departures`
    """

    title: str
    subject: str
    page: str
    command: str
    source: str
    exhibits: tuple[Exhibit, ...]
    outputs: tuple[Output, ...] = ()
    large: tuple[str, ...] = ()
    small: tuple[str, ...]
    printed: dict[str, Any]
    settings: tuple[dict[str, Any], ...] = ()
    departures: tuple[dict[str, Any], ...] = ()
    claims: tuple[Claim, ...]
    errata: tuple[Erratum, ...] = ()

    @property
    def configs(self) -> tuple[str, ...]:
        """The names of all its experiments in the order of running: as in the exhibits, but large ones last."""
        names = dict.fromkeys(name for exhibit in self.exhibits for name in exhibit.configs)
        return tuple(sorted(names, key=lambda name: name in self.large))


@cache
def paper(key: str) -> PaperFindings:
    """The findings about one paper, by its key ("friedman2016"). Raises `DpmfError` for an unknown paper."""
    return PaperFindings.model_validate(paper_file(key))


def all_papers() -> dict[str, PaperFindings]:
    """Every paper by its key, in the order of the years."""
    return {key: paper(key) for key in sorted(papers(), key=lambda key: (key[-4:], key))}


def is_held_against_tables(name: str) -> bool:
    """Whether an experiment of that name reproduces a printed table of baselines or crossings.

    A reduction counts as the experiment that it reduces. All such tables are Friedman et al.'s. Any other experiment
    on the same data, for example another paper's, has a setup that differs from the printed one, as has an experiment
    taken to another data set, whose parameters are those printed for its own.
    """
    tables = (each for each in paper("friedman2016").exhibits if each.kind in ("baselines", "crossings"))
    return is_on_own_data(name) and any(whole_name(name) in table.configs for table in tables)


@dataclass(frozen=True)
class AcrossPapers:
    """A part of the reproduction that compares the methods of all papers. Its fields are as those of a paper."""

    configs: tuple[str, ...]
    small: tuple[str, ...]
    outputs: tuple[Output, ...]
    large: tuple[str, ...] = ()


Part = PaperFindings | AcrossPapers

LARGE = (
    "frontier_ml10m",
    "frontier_netflix",
    "dpals_ml10m",
    "ml10m_bounded",
    "ml10m_unbounded",
    "netflix_bounded",
    "netflix_unbounded",
    "netflix_probe_bounded",
    "netflix_probe_unbounded",
    "mcsherry_netflix",
    "zhang_fig2_netflix",
    "zhang_fig3_netflix",
    "zhang_fig4_netflix",
)
"""All that needs the whole of MovieLens 10M or of the Netflix Prize ratings."""

COMPARISONS = {
    "combined": AcrossPapers(
        ("combined_ml100k", "combined_ml1m"),
        ("combined_ml100k",),
        (Output(file="combined.md", table="combined", figure="combined.png"),),
    ),
    "frontier": AcrossPapers(
        (
            *("frontier_ml100k", "frontier_ml1m", "frontier_jester", "frontier_netflix_sample"),
            *("frontier_features_ml100k", "frontier_features_ml1m"),
            *("frontier_confirmation", "frontier_features_confirmation"),
        ),
        ("frontier_ml100k", "frontier_features_ml100k"),
        (Output(file="frontier.md", table="frontier", figure="frontier.png"),),
        ("frontier_confirmation",),  # a covariance of 9,724 items
    ),
    "large": AcrossPapers(
        LARGE,
        (),
        (
            Output(file="large.md", table="crossings", configs=LARGE),
            Output(
                file="frontier_large.md", table="frontier", configs=LARGE[:2], figure="frontier_large.png"
            ),
        ),
        LARGE,
    ),
}


def parts() -> Mapping[str, Part]:
    """Each part by its key, in the order of running."""
    return {**all_papers(), **COMPARISONS}


def parts_named(what: str) -> tuple[Part, ...]:
    """One part by its key, or `all` of them. Raises DpmfError for anything else."""
    known = parts()
    if what == "all":
        return tuple(known.values())
    if what not in known:
        raise DpmfError(f'there is no "{what}" to reproduce{did_you_mean(what, [*known, "all"])}')
    return (known[what],)
