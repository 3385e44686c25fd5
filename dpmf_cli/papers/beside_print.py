"""Crossings beside the values of Friedman et al.'s tables 4 and 5, and the values that no crossing reproduces."""

from collections.abc import Collection, Sequence

from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.claims import is_held_against_tables
from dpmf_cli.papers.printed import PrintedCrossing, printed_crossing, printed_crossings


def beside_print(experiment: Experiment) -> list[Crossing]:
    """The crossings of an experiment, with the printed ε if it reproduces a printed table."""
    return find_crossings(experiment, printed_crossing if is_held_against_tables(experiment.name) else None)


def with_printed_values(crossings: Sequence[Crossing], *, present: Collection[str] = ()) -> list[Crossing]:
    """`crossings`, completed by the values of tables 4 and 5 that none of them belongs to.

    A crossing belongs to the value of its dataset, neighbours, algorithm and baseline if its experiment reproduces
    these tables. An added crossing has the status "not run". If its dataset is neither that of a crossing nor in
    `present`, the keys of datasets whose data are at hand, its status is "data not present".
    """
    here = {*present, *(crossing.dataset for crossing in crossings)}
    held = {_place(crossing) for crossing in crossings if is_held_against_tables(crossing.experiment)}
    added = [
        Crossing(
            dataset=each.dataset,
            neighbours=each.neighbours,
            mode="published",
            algorithm=each.algorithm,
            label=each.algorithm,
            baseline=each.baseline,
            status=Status.NOT_RUN if each.dataset in here else Status.NO_DATA,
            printed=each.epsilon,
        )
        for each in printed_crossings()
        if _place(each) not in held
    ]
    # Tables 4 and 5 are ordered by algorithm first; a reader looks for a dataset first.
    added.sort(key=lambda each: (each.dataset, each.neighbours))
    return [*crossings, *added]


def _place(of: Crossing | PrintedCrossing) -> tuple[str, str, str, str]:
    return of.dataset, of.neighbours, of.algorithm, of.baseline
