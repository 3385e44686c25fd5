"""What pictures of the documentation are made of: SVG that takes its colours from the reader's scheme.

They are 480 units wide, so that words are legible at 390 pixels.
"""

from collections.abc import Sequence
from html import escape

WIDTH = 480
STYLE = """<style>
:root { color-scheme: light dark; }
text { font: 14px system-ui, sans-serif; fill: #1f2328; }
.head { font-weight: 600; } .note { font-size: 12px; fill: #59636e; } .mid { text-anchor: middle; }
.box { fill: #eef2fb; stroke: #7c93c9; } .line { stroke: #59636e; fill: none; stroke-width: 1.5; }
.page { fill: #fff; } .band { fill: #7c93c9; opacity: .18; } .grid { stroke: #59636e; opacity: .25; }
.a { fill: #2f6fde; stroke: #2f6fde; } .b { fill: #c9552a; stroke: #c9552a; } .near { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; } text { fill: #e6edf3; } .note { fill: #a8b3bf; } .box { fill: #1d2740; stroke: #5f79b8; }
  .line, .grid { stroke: #a8b3bf; } .a { fill: #79a8ff; stroke: #79a8ff; } .b { fill: #ff9d73; stroke: #ff9d73; }
  .near { fill: none; }
}
</style>"""


def picture(title: str, height: float, marks: Sequence[str]) -> str:
    """Returns an SVG of marks; the title is read to those who do not see it."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">'
    page = f'<rect width="{WIDTH}" height="{height:g}" class="page"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, page, *marks, "</svg>", ""])


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def box(x: float, y: float, width: float, lines: Sequence[str], kind: str = "mid") -> str:
    """Returns a box around lines of words, the first of them in bold."""
    height = 18 * len(lines) + 10
    start = x + width / 2 if "mid" in kind else x + 8
    words = [
        text(start, y + 20 + 18 * row, line, f"{kind} {'head' * (row == 0 and 'plain' not in kind)}")
        for row, line in enumerate(lines)
    ]
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" class="box"/>'
    return "\n".join([shape, *words])


def line(*points: tuple[float, float], kind: str = "line") -> str:
    return f'<polyline points="{" ".join(f"{x:g},{y:g}" for x, y in points)}" class="{kind}"/>'


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Returns a horizontal or vertical arrow."""
    (x0, y0), (x, y) = start, end
    across, down = (x > x0) - (x < x0), (y > y0) - (y < y0)
    one, other = ((x - 6 * across + 4 * side * down, y - 6 * down + 4 * side * across) for side in (1, -1))
    return "\n".join([line(start, end), line(one, end, other)])
