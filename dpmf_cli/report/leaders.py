"""Ranks methods on public ratings: makes such a table, and reads `leaders.yaml`, which ships with the package.

`dpmf frontier CONFIG … --leaders FILE` makes the table. At each ε, the methods that keep a guarantee are ranked on
each data set by mean RMSE, and over all data sets by their mean rank. To choose by that table, nobody has to look at
their own ratings.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

from dpmf_cli.core import __version__
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import Frontier, best_at
from dpmf_cli.experiment.results.manifest import what_ran
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of
from dpmf_cli.report.tables.ranked import found_in
from dpmf_cli.report.words import lines

MOST = 3
"""How many methods are kept for each guarantee and ε."""


class RankedMethod(StrictModel):
    """A method at one ε: its label, and its rank and mean RMSE by title of the data set."""

    method: str
    ranks: dict[str, int]
    rmse: dict[str, float]


class LeadersAt(StrictModel):
    """The best methods at an ε, the best one first."""

    epsilon: float
    methods: list[RankedMethod]


class Ranking(StrictModel):
    """The best methods for one guarantee, by ε ascending."""

    protects: Protection
    joint: bool
    delta: float
    at: list[LeadersAt]

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.protects, self.joint, self.delta)

    def nearest(self, epsilon: float) -> LeadersAt:
        """Returns the leaders at the ε of the table that is nearest in log ε."""
        return min(self.at, key=lambda each: abs(math.log(each.epsilon / epsilon)))


class Measurement(StrictModel):
    """An experiment from which the ranks come."""

    name: str
    config_sha256: str
    title: str
    data_sha256: str
    folds: str
    runs: int
    seed: int | str


class Leaders(StrictModel):
    """The complete table. `methods` maps labels to entries of a config."""

    dpmf: str
    experiments: list[Measurement]
    rankings: list[Ranking]
    methods: dict[str, dict[str, Any]]

    def ranking(self, wanted: Guarantee) -> Ranking:
        """Returns the ranking of the methods that keep a guarantee. All δ > 0 count as equal here.

        Raises `DpmfError` if the table has none; the message names the options that ask for what it has.
        """
        may = [
            each
            for each in self.rankings
            if each.protects == wanted.protects
            and each.joint <= wanted.joint
            and (each.delta == 0 or wanted.delta > 0)
        ]
        if not may:
            others = [each.guarantee for each in self.rankings if each.protects == wanted.protects]
            raise DpmfError(
                f"no method that was run on public ratings hides {wanted.in_words}; "
                + (options_of(others) or "none that was run hides anything of that kind")
            )
        return max(may, key=lambda each: (each.joint, each.delta))


def options_of(weaker: Iterable[Guarantee]) -> str:
    """Returns "add …" with the options of `dpmf recommend` that ask for each of these guarantees; "" for none."""
    words = [
        " ".join(["--towards others"] * joint + [f"--delta {delta:g}"] * (delta > 0))
        for joint, delta in sorted({(each.joint, each.delta) for each in weaker})
    ]
    return f"add `{'`, or `'.join(words)}`" if words else ""


@cache
def shipped() -> Leaders:
    """Returns the table that ships with the package."""
    text = (resources.files("dpmf_cli.report") / "leaders.yaml").read_text(encoding="utf-8")
    return Leaders.model_validate(yaml.safe_load(text))


def leaders_text(experiments: Sequence[Experiment], folders: Mapping[str, Path]) -> str:
    """Returns the table of these experiments as the text of a file. `folders` maps their names to results folders.

    A method that several experiments ran gets the parameters of the first. Raises `DpmfError` if the experiments have
    no provable method in common.
    """
    ran = {each.name: what_ran(folders[each.name]) for each in experiments}
    rankings = list(_rankings(found_in(experiments)))
    if not rankings:
        raise DpmfError("no method with a provable ε was run on each of these data sets")
    labels = {each.method for ranking in rankings for at in ranking.at for each in at.methods}
    entries: dict[str, dict[str, Any]] = {}
    for each in ran.values():
        for entry in each.config.algorithms:
            if entry.name in labels:
                # As a config has it: the values that are not defaults, and those that it would inherit.
                beside = {"sweep", "swept", "swept_label", "delta"}
                least = entry.model_dump(mode="json", exclude_defaults=True, exclude=beside)
                inherited = entry.model_dump(mode="json", include={"neighbours", "mode", "effects"})
                named = {"algorithm": entry.algorithm, "label": entry.name}
                entries.setdefault(entry.name, named | least | inherited)
    table = Leaders(
        dpmf=__version__,
        experiments=[
            Measurement(
                name=each.name,
                config_sha256=ran[each.name].config.hash,
                title=each.title,
                data_sha256=ran[each.name].data.checksum,
                folds=f"{each.folds} of {each.partition}",
                runs=each.runs,
                seed=each.seed,
            )
            for each in experiments
        ],
        rankings=rankings,
        methods={label: entries[label] for label in sorted(labels)},
    )
    plain = table.model_dump(mode="json")
    return (
        "# Made by `dpmf frontier … --leaders`; see leaders.py. Ranks and RMSE are by data set.\n"
        + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=118, default_flow_style=None)
    )


def _rankings(found: Sequence[Frontier]) -> Iterator[Ranking]:
    """Yields the ranking of each guarantee that a user may ask for, over all data sets that have it."""
    groups: dict[Guarantee, list[Frontier]] = {}
    for frontier in found:
        if frontier.guarantee.protects in map(protection_of, Neighbours):
            groups.setdefault(frontier.guarantee, []).append(frontier)
    for guarantee, group in groups.items():
        common = set.intersection(*({lead.epsilon for lead in each.leads} for each in group))
        common -= {LEAST_EPSILON}  # ε → 0 is no ε to ask for
        ranked = ((epsilon, _ranked(group, epsilon)) for epsilon in sorted(common))
        at = [LeadersAt(epsilon=epsilon, methods=methods) for epsilon, methods in ranked if methods]
        if at:
            yield Ranking(protects=guarantee.protects, joint=guarantee.joint, delta=guarantee.delta, at=at)


def _ranked(group: Sequence[Frontier], epsilon: float) -> list[RankedMethod]:
    """Returns the best of the methods that every data set has at that ε, by mean rank.

    Methods of equal mean rank are ordered by how far their errors are above the lowest ones.
    """
    orders: dict[str, dict[str, float]] = {}
    for frontier in group:
        found = [best for each in frontier.members if (best := best_at(each, epsilon, exactly=True))]
        found.sort(key=lambda best: best.rmse)
        orders[frontier.title] = {best.curve.label: best.rmse for best in found}
    ranks = {title: {label: rank for rank, label in enumerate(order, 1)} for title, order in orders.items()}
    first, *others = orders.values()

    def place(label: str) -> tuple[float, float]:
        above = mean(order[label] / min(order.values()) for order in orders.values())
        return mean(each[label] for each in ranks.values()), above

    shared = (label for label in first if all(label in order for order in others))
    return [
        RankedMethod(
            method=label,
            ranks={title: each[label] for title, each in ranks.items()},
            rmse={title: round(order[label], 4) for title, order in orders.items()},
        )
        for label in sorted(shared, key=place)[:MOST]
    ]


def chosen_in_words(ranking: Ranking, epsilon: float, label: str, entry: Mapping[str, Any]) -> list[str]:
    """Says which method was chosen at an ε of the table, by which ranks and with which parameters, as paragraphs."""
    named = ("algorithm", "label", "neighbours", "mode")
    parameters = {key: value for key, value in entry.items() if key not in named}
    line = yaml.safe_dump(
        parameters, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    leaders = ranking.nearest(epsilon)
    return lines(
        "chosen",
        hidden=ranking.guarantee.in_words,
        epsilon=epsilon,
        leaders=leaders,
        chosen=next(each for each in leaders.methods if each.method == label),
        parameters=line.strip()[1:-1] or "its defaults",
    )
