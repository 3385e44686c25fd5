"""Makes the table of leaders, `dpmf_cli/report/leaders.yaml`, from results: `python -m docs.makers.leaders CONFIG …`.

At each ε, the methods that keep a guarantee are ranked on each data set by mean RMSE, and over all data sets by their
mean rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import typer
import yaml

from dpmf_cli.core import __version__, terminal
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import Frontier, best_at
from dpmf_cli.experiment.results.folders import results_of
from dpmf_cli.experiment.results.manifest import what_ran
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, protection_of
from dpmf_cli.report.leaders import Leaders, LeadersAt, RankedMethod, Ranking
from dpmf_cli.report.tables.ranked import found_in

MOST = 3
"""How many methods are kept for each guarantee and ε."""


def main(of: list[Path], results: Path = Path("results")) -> None:
    """Prints the table of these configs, which were run, or results folders."""
    print(leaders_text({folder: each.experiment for folder, each in results_of(of, results)}), end="")


def leaders_text(found: Mapping[Path, Experiment]) -> str:
    """Returns the table of experiments, given by their results folders, as the text of a file.

    A method that several experiments ran gets the parameters of the first. Raises `DpmfError` if the experiments have
    no provable method in common.
    """
    ran = {each.name: what_ran(folder) for folder, each in found.items()}
    rankings = list(rankings_of(found_in(list(found.values()))))
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
            {
                "name": each.name,
                "config_sha256": ran[each.name].config.hash,
                "title": each.title,
                "data_sha256": ran[each.name].data.checksum,
                "folds": f"{each.folds} of {each.partition}",
                "runs": each.runs,
                "seed": each.seed,
            }
            for each in found.values()
        ],
        rankings=rankings,
        methods={label: entries[label] for label in sorted(labels)},
    )
    plain = table.model_dump(mode="json")
    return "# Made by `make leaders`. Ranks and RMSE are by data set.\n" + yaml.safe_dump(
        plain, sort_keys=False, allow_unicode=True, width=118, default_flow_style=None
    )


def rankings_of(found: Sequence[Frontier]) -> Iterator[Ranking]:
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
    """Returns the best of the methods that every data set has at that ε, by mean rank among them.

    Methods of equal mean rank are ordered by how far their errors are above the lowest ones.
    """
    every: dict[str, dict[str, float]] = {}
    for frontier in group:
        found = [best for each in frontier.members if (best := best_at(each, epsilon, exactly=True))]
        found.sort(key=lambda best: best.rmse)
        every[frontier.title] = {best.curve.label: best.rmse for best in found}
    shared = set.intersection(*map(set, every.values()))
    orders = {
        title: {label: rmse for label, rmse in order.items() if label in shared}
        for title, order in every.items()
    }
    ranks = {title: {label: rank for rank, label in enumerate(order, 1)} for title, order in orders.items()}

    def place(label: str) -> tuple[float, float]:
        above = mean(order[label] / min(order.values()) for order in orders.values())
        return mean(each[label] for each in ranks.values()), above

    return [
        RankedMethod(
            method=label,
            ranks={title: each[label] for title, each in ranks.items()},
            rmse={title: round(order[label], 4) for title, order in orders.items()},
        )
        for label in sorted(next(iter(orders.values())), key=place)[:MOST]
    ]


if __name__ == "__main__":
    terminal.guard()
    typer.run(main)
