"""What this project found of each paper, as data: which config measures which table or figure, and what became of
each claim.

One YAML file per paper, named as in `papers.printed`, where the claims' statements are. What can be computed from
results is (`rules/`); a verdict written here is that of the paper's `command`, run whole.
"""

from functools import cache
from importlib import resources
from typing import Literal

import yaml

from dpmf_cli.config.names import is_on_own_data, whole_name
from dpmf_cli.papers.printed import load, papers
from dpmf_cli.strict_model import StrictModel

Word = Literal["confirmed", "in part", "refuted", "not tested"]
Kind = Literal["figure", "statistics", "baselines", "crossings", "improvements", "noise", "combined", "file"]


class Exhibit(StrictModel):
    """A table or figure of a paper, or what this project adds to them.

    configs   the names of the experiments that measure it; of a table, the first with a data set speaks for that
    neighbours   of a table of crossings, whose printed cells stand in it; none are known where it is empty
    data      data sets of the catalog that it is made of, where it needs no experiment
    file      in the results folder, made by `command`, where it needs neither
    """

    name: str
    what: str
    kind: Kind = "figure"
    configs: tuple[str, ...] = ()
    neighbours: str = ""
    data: tuple[str, ...] = ()
    file: str = ""
    command: str = ""


class Finding(StrictModel):
    """What became of a claim. `measured` holds the figures behind the verdict, `configs` name what measured them."""

    id: str
    verdict: Word
    measured: str
    configs: tuple[str, ...]


class Paper(StrictModel):
    """A paper: its title, what it is about, where its page is, the command that reproduces it whole."""

    title: str
    subject: str
    page: str
    command: str
    exhibits: tuple[Exhibit, ...]
    claims: tuple[Finding, ...]


@cache
def paper(key: str) -> Paper:
    """What was found of one paper, by its key ("friedman2016")."""
    text = (resources.files("dpmf_cli.papers") / "claims_yaml" / f"{key}.yaml").read_text(encoding="utf-8")
    return Paper.model_validate(yaml.safe_load(text))


def all_papers() -> dict[str, Paper]:
    """Every paper by its key, in the order of the years."""
    return {key: paper(key) for key in sorted(papers(), key=lambda key: (key[-4:], key))}


def is_held_against_tables(name: str) -> bool:
    """Whether an experiment of that name, or what it is a reduction of, reproduces a printed table of baselines or
    crossings; all are Friedman et al.'s.

    Any other experiment on the same data, another paper's among them, was set up otherwise than what is printed. So
    was one taken to another data set: its parameters are those printed for its own.
    """
    tables = (each for each in paper("friedman2016").exhibits if each.kind in ("baselines", "crossings"))
    return is_on_own_data(name) and any(whole_name(name) in table.configs for table in tables)


def statement(key: str, claim: str) -> tuple[str, str]:
    """What a paper claims, in our words, and a remark on it, "" where there is none."""
    found = next(each for each in load(key)["claims"] if each["id"] == claim)
    return found["statement"], found.get("remark", "")
