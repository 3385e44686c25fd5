"""Lines are told apart by colour and marker together."""

import pytest

from dpmf_cli.report.figures.looks import LOOKS, looks
from dpmf_cli.report.figures.style import COLOURS, MARKERS


@pytest.mark.parametrize("groups", [list(range(LOOKS)), [0] * LOOKS, [rank // 16 for rank in range(LOOKS)]])
def test_as_many_lines_as_there_are_looks_share_none(groups: list[int]) -> None:
    assert len(set(looks(groups))) == LOOKS


def test_a_group_has_a_colour_and_every_line_a_marker_of_its_own() -> None:
    found = looks(["a", "b", "a", "c", "b"])
    assert [look.colour for look in found] == [0, 1, 0, 2, 1]
    assert len({look.marker for look in found}) == 5


def test_more_lines_than_looks_begin_again() -> None:
    found = looks(list(range(2 * LOOKS)))
    assert len(set(found[LOOKS:])) == LOOKS == len(COLOURS) * len(MARKERS)
