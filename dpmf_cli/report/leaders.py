"""The table `leaders.yaml` of the methods that lead on public ratings, which `docs/makers/leaders.py` makes: to
choose by it, one need not look at one's own ratings."""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.privacy.protection import Guarantee, Protection
from dpmf_cli.report.words import lines


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
        """The leaders at the ε of the table that is nearest in log ε."""
        return min(self.at, key=lambda each: abs(math.log(each.epsilon / epsilon)))


class Leaders(StrictModel):
    """The complete table: `methods` maps labels to entries of a config, and the ranks come from the `experiments`."""

    dpmf: str
    experiments: list[dict[str, Any]]
    rankings: list[Ranking]
    methods: dict[str, dict[str, Any]]

    def ranking(self, wanted: Guarantee) -> Ranking:
        """The ranking of the methods that keep a guarantee. All δ > 0 count as equal here.

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
    """ "add …" with the options of `dpmf recommend` that ask for each of these guarantees; "" for none."""
    words = [
        " ".join(["--towards others"] * joint + [f"--delta {delta:g}"] * (delta > 0))
        for joint, delta in sorted({(each.joint, each.delta) for each in weaker})
    ]
    return f"add `{'`, or `'.join(words)}`" if words else ""


@cache
def shipped() -> Leaders:
    text = (resources.files("dpmf_cli.report") / "leaders.yaml").read_text(encoding="utf-8")
    return Leaders.model_validate(yaml.safe_load(text))


def chosen_in_words(ranking: Ranking, epsilon: float, label: str, entry: Mapping[str, Any]) -> list[str]:
    """Which method was chosen at an ε of the table, by which ranks and with which parameters, as paragraphs."""
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
