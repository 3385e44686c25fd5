"""The parts of the complete reproduction: the five papers, and the comparisons of all methods."""

from collections.abc import Mapping
from dataclasses import dataclass

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.papers.claims import Output, all_papers


@dataclass(frozen=True)
class Reproducible:
    """One part: the experiments that it runs, and the files that it then writes.

    configs  the names of its experiments, in the order of running
    large    those whose data have the size of ML-10M or Netflix
    small    those of the small reproduction
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

FRONTIER = Reproducible(
    "frontier",
    "At each ε the best of all methods",
    configs=("frontier_ml100k", "frontier_ml1m", "frontier_jester", "frontier_netflix_sample"),
    large=(),
    small=("frontier_ml100k",),
    outputs=(Output(file="frontier.md", command="dpmf frontier --format md --figure {folder}/frontier.png"),),
)


def parts() -> Mapping[str, Reproducible]:
    """Returns each part by its key, in the order of running."""
    papers = {
        key: Reproducible(key, each.title, each.configs, each.large, each.small, each.outputs)
        for key, each in all_papers().items()
    }
    return {**papers, COMBINED.key: COMBINED, FRONTIER.key: FRONTIER}


def parts_named(what: str) -> tuple[Reproducible, ...]:
    """Returns one part by its key, or `all` of them. Raises DpmfError for anything else."""
    known = parts()
    if what == "all":
        return tuple(known.values())
    if what not in known:
        raise DpmfError(f'there is no "{what}" to reproduce{did_you_mean(what, [*known, "all"])}')
    return (known[what],)
