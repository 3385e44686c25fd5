"""The parts of which a whole reproduction is made: the five papers, and what stands above them."""

from collections.abc import Mapping
from dataclasses import dataclass

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.papers.claims import Output, all_papers


@dataclass(frozen=True)
class Reproducible:
    """What is run, and what is written of it then.

    configs  the names of its experiments, in the order of running
    large    those whose data have the size of ML-10M or Netflix
    small    those that a small version of it runs
    """

    key: str
    title: str
    configs: tuple[str, ...]
    large: tuple[str, ...]
    small: tuple[str, ...]
    outputs: tuple[Output, ...]


COMBINED = Reproducible(
    "combined",
    "Every private algorithm in one table",
    configs=("combined_ml100k", "combined_ml1m"),
    large=(),
    small=("combined_ml100k",),
    outputs=(Output(file="combined.md", command="dpmf combined --format md --figure {folder}/combined.png"),),
)


def parts() -> Mapping[str, Reproducible]:
    """By its key each part, in the order of running."""
    papers = {
        key: Reproducible(key, each.title, each.configs, each.large, each.small, each.outputs)
        for key, each in all_papers().items()
    }
    return {**papers, COMBINED.key: COMBINED}


def parts_named(what: str) -> tuple[Reproducible, ...]:
    """One part by its key, or `all` of them. Raises DpmfError for what is neither."""
    known = parts()
    if what == "all":
        return tuple(known.values())
    if what not in known:
        raise DpmfError(f'there is no "{what}" to reproduce{did_you_mean(what, [*known, "all"])}')
    return (known[what],)
