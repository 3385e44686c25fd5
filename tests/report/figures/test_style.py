"""Text in figures."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmf_cli.report.figures.style import drawing, file_of


def figure_of(text: str) -> bytes:
    figure = Figure()
    FigureCanvasAgg(figure)
    figure.add_subplot().set_title(text)
    figure.text(0, 0, text)
    with drawing():
        return file_of(figure, "svg")


def test_every_character_of_a_text_is_drawn() -> None:
    assert figure_of("a\x1b[5m\u202eb") == figure_of(r"a\u001b[5m\u202eb")
    assert figure_of("two\nlines") != figure_of(r"two\u000alines")
