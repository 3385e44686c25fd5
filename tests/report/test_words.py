"""Paragraphs are broken into lines where a reader may break them."""

from dpmf_cli.report.words import WIDTH, wrapped


def test_a_command_stays_on_one_line_and_other_lines_are_short() -> None:
    command = "`dpmf release films.yaml --method 'Public pattern, own ratings' --epsilon 1`"
    text = wrapped(f"- {'To use it, type this: ' * 4}{command}; {'or not ' * 20}where ε = 1.")
    assert f"\n  {command};" in text
    assert "ε = 1." in text
    assert max(map(len, text.splitlines())) <= WIDTH
    long = f"`dpmf release {'x' * WIDTH} --epsilon 1`"
    assert wrapped(f"Type {long}") == f"\nType\n{long}\n"
