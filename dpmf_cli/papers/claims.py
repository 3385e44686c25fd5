"""What this project found of each paper, as data: which config measures which table or figure, and what became of
each claim.

One YAML file per paper, named by the paper's key; `printed` reads its figures. No verdict stands in it: rules
(`rules/`) compute what results say of a claim, and `verdicts` what many settings do.
"""

from functools import cache
from typing import Any, Literal

from pydantic import Field

from dpmf_cli.config.names import is_on_own_data, whole_name
from dpmf_cli.papers.printed import paper_file, papers
from dpmf_cli.strict_model import StrictModel

ANY = "any"
"""The data set of a theorem."""

Kind = Literal["figure", "statistics", "baselines", "crossings", "improvements", "noise", "combined", "file"]


class Exhibit(StrictModel):
    """A table or figure of a paper, or what this project adds to them.

    configs   the names of the experiments that measure it; of a table, the first with a data set speaks for that
    neighbours   of a table of crossings, whose printed cells stand in it; none are known where it is empty
    data      data sets of the catalog that it is made of, where it needs no experiment
    file      one of the paper's outputs, where it needs neither
    """

    name: str
    what: str
    kind: Kind = "figure"
    configs: tuple[str, ...] = ()
    neighbours: str = ""
    data: tuple[str, ...] = ()
    file: str = ""


class Output(StrictModel):
    """A file that is made of results, in the folder of results.

    command   what makes it: it prints the file, or has `{file}` for its place; `{folder}` is that of results
    of        what the command is given: the folders of those of `configs` that were run, or nothing
    configs   the names of the experiments without any of which there is no such file; all of the paper's where empty
    """

    file: str
    command: str
    of: Literal["results", "nothing"] = "results"
    configs: tuple[str, ...] = ()


class Claim(StrictModel):
    """A statement of a paper that figures, or an audit, can confirm or contradict.

    statement   what the paper says, in our words
    source      where it says so: "section 5.2", "theorem 4"
    data        keys of the data sets that it is about, each of which has a verdict of its own; `ANY` for a theorem
    remark      where the paper's own figures disagree with each other, in which way
    configs     the names of the experiments that measure it
    """

    id: str
    statement: str
    source: str = ""
    data: tuple[str, ...]
    remark: str = ""
    configs: tuple[str, ...] = ()


class Erratum(StrictModel):
    """A mistake of a paper: where it stands, and what is wrong."""

    where: str
    what: str


class PrintedSettings(StrictModel):
    """What a paper prints of how it ran.

    source    where it is printed
    configs   the names of the experiments that it is about, or patterns of them ("ml1m_*")
    are       by a path into a config (`config.paths`), the printed value; a list, where the config has a
              number, is of all values that its entries have. What stands later in a file counts
    """

    source: str = Field(min_length=1)
    configs: tuple[str, ...] = Field(min_length=1)
    are: dict[str, Any] = Field(min_length=1)


class Departure(StrictModel):
    """Where shipped configs are not as it is printed: what is printed, what they have instead, and why."""

    configs: tuple[str, ...] = Field(min_length=1)
    key: str
    printed: Any
    shipped: Any
    reason: str = Field(min_length=1)


class PaperFindings(StrictModel):
    """A paper: its title, what it is about, where its page is, the command that reproduces it whole, its source.

    outputs   the tables and figures that are made of its results
    large     the configs whose data have the size of ML-10M or Netflix
    small     the configs that a small version of the whole runs, in the order of running
    printed   its figures, for `papers.printed`
    settings, departures   how it ran, and where the configs are otherwise, for `papers.departures`
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
    settings: tuple[PrintedSettings, ...] = ()
    departures: tuple[Departure, ...] = ()
    claims: tuple[Claim, ...]
    errata: tuple[Erratum, ...] = ()

    @property
    def configs(self) -> tuple[str, ...]:
        """The names of all its experiments in the order of running: that of the exhibits, the large ones last."""
        names = dict.fromkeys(name for exhibit in self.exhibits for name in exhibit.configs)
        return tuple(sorted(names, key=lambda name: name in self.large))


@cache
def paper(key: str) -> PaperFindings:
    """What was found of one paper, by its key ("friedman2016"). Raises `DpmfError` for a paper that is not here."""
    return PaperFindings.model_validate(paper_file(key))


def all_papers() -> dict[str, PaperFindings]:
    """Every paper by its key, in the order of the years."""
    return {key: paper(key) for key in sorted(papers(), key=lambda key: (key[-4:], key))}


def making(file: str) -> str:
    """The command, for a shell, that makes an output of a paper."""
    (command,) = (
        each.command for found in all_papers().values() for each in found.outputs if each.file == file
    )
    return f"{command} > results/{file}"


def is_held_against_tables(name: str) -> bool:
    """Whether an experiment of that name, or what it is a reduction of, reproduces a printed table of baselines or
    crossings; all are Friedman et al.'s.

    Any other experiment on the same data, another paper's among them, was set up otherwise than what is printed. So
    was one taken to another data set: its parameters are those printed for its own.
    """
    tables = (each for each in paper("friedman2016").exhibits if each.kind in ("baselines", "crossings"))
    return is_on_own_data(name) and any(whole_name(name) in table.configs for table in tables)
