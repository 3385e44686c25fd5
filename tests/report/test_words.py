"""Paragraphs are broken into lines where a reader may break them."""

from dpmf_cli.report.words import WIDTH, wrapped


def test_a_command_stays_on_one_line_and_other_lines_are_short() -> None:
    command = f"`dpmf release {'x' * WIDTH} --method 'PGE, own ratings' --epsilon 1`"
    first, *rest = wrapped(f"- {'To use it, ' * 4}type {command}; {'or not ' * 20}where ε = 1.").splitlines()
    assert rest[0] == f"  {command};"
    assert max(map(len, [first, *rest[1:]])) <= WIDTH
