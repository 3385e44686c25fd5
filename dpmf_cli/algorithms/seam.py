"""Whether an algorithm's code draws randomness past its streams, or noise past its curator, told from its source.

Names alone are read. Code that hides its names is found by the contract instead (`dpmf_cli.testing`), which runs the
algorithm with all releases silenced: no noise may be left.
"""

import ast
from collections.abc import Iterator

MODULES = ("random", "secrets", "numpy.random", "scipy.stats")
"""Modules that draw numbers of which dpmf knows nothing."""

PRIVATE = ("_noise", "_lane_noise", "_streams", "_witness")
"""Attributes of releases and curators that are theirs alone."""


def past_the_seam(source: str) -> Iterator[tuple[int, str]]:
    """(line, what it does and the fix) for each place that draws numbers otherwise than by streams and mechanisms."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for name in (each.name for each in names):
                    if name in MODULES:
                        yield node.lineno, _drawn(name)
            case ast.ImportFrom(module=str(module), names=names):
                found = [f"{module}.{each.name}" for each in names if f"{module}.{each.name}" in MODULES]
                for name in [module] if module in MODULES else found:
                    yield node.lineno, _drawn(name)
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                if not _is_annotation_of(node, source):
                    yield node.lineno, _drawn("numpy.random")
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="streams" | "curator" as owner), attr="noise")
            ):
                yield node.lineno, f"`{owner}.noise` is for mechanisms alone; {_FIX}"
            case ast.Attribute(attr=attr) if attr in PRIVATE:
                yield node.lineno, f"`{attr}` is not an algorithm's to touch; {_FIX}"


_FIX = "take noise from a mechanism of dpmf_cli.privacy, with the fit's `curator`"


def _drawn(name: str) -> str:
    return f"draws from `{name}`; {_FIX}, and other randomness from `streams`"


def _is_annotation_of(node: ast.Attribute, source: str) -> bool:
    """Whether it stands in `np.random.Generator`, which draws nothing by itself."""
    line = source.splitlines()[node.lineno - 1]
    return line[node.col_offset :].startswith((f"{ast.unparse(node)}.Generator",))
