"""Helpers that the tests of sampled steps share."""

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

DELTA = 1e-6
KINDS = [Neighbours.USER, Neighbours.BOUNDED, Neighbours.UNBOUNDED]


def for_contribution(contribution: float, neighbours: Neighbours) -> Sensitivity:
    moves = 1 if neighbours is Neighbours.USER else 2
    return Sensitivity(moves * contribution, 2, neighbours, "test")
