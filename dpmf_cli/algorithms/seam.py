"""Whether an algorithm's code draws randomness past its streams, or noise past its curator, told from its source.

Names alone are read: this finds mistakes, not malice. The contract (`dpmf_cli.testing`) looks from another
side. It runs the algorithm with all releases silenced: no noise of another run may be left.
"""

import ast
from collections.abc import Iterator

MODULES = ("random", "secrets", "numpy.random", "scipy.stats")
"""Modules that draw numbers of which dpmf knows nothing."""

HIDDEN = ("_noise", "_lane_noise", "_added_noise", "_streams", "_witness")
"""Attributes of releases and curators that are theirs alone."""

OF_MECHANISMS = ("noise", "noise_again", "noise_later", "release", "releases")
"""What mechanisms alone ask of a curator, or of streams."""

OWNERS = ("streams", "curator")
"""What mechanisms ask, by the names that a fit has for them."""

SEALED = ("SEAL", "LaneNoise", "LaterNoise", "KeyedNoise", "DeviceNoise", "named_generator", "named_bits")
"""Names of `dpmf_cli` with which a release, or a generator of any law, could be made by hand."""


def past_the_seam(source: str) -> Iterator[tuple[int, str]]:
    """(line, what it does and the fix) for each place that draws numbers otherwise than by streams and mechanisms."""
    tree = ast.parse(source)
    modules = _module_names(tree)
    types = _generator_types(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in (each.name for each in names):
                    if _draws(name):
                        yield node.lineno, _drawn(name)
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    if _draws(module) or _draws(f"{module}.{each.name}"):
                        yield node.lineno, _drawn(f"{module}.{each.name}")
                    elif module.startswith("dpmf_cli") and each.name in SEALED:
                        yield node.lineno, f"`{each.name}` is not an algorithm's to import; {_FIX}"
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if _draws(f"{modules.get(name)}.{attr}"):
                if id(node) not in types:
                    yield node.lineno, _drawn(f"{modules[name]}.{attr}")
            case ast.Attribute(value=owner, attr=attr) if attr in OF_MECHANISMS and _last(owner) in (
                "streams",
                "curator",
            ):
                yield node.lineno, f"`{_last(owner)}.{attr}` is for mechanisms alone; {_FIX}"
            case ast.Attribute(value=owner, attr=attr) if attr in HIDDEN and _last(owner) != "self":
                yield node.lineno, f"`{attr}` is not an algorithm's to touch; {_FIX}"


_FIX = "take noise from a mechanism of dpmf_cli.privacy, with the fit's `curator`"


def _drawn(name: str) -> str:
    return f"draws from `{name}`; {_FIX}, and other randomness from `streams`"


def _draws(name: str) -> bool:
    """Whether a dotted name is one of `MODULES`, or in one."""
    return any(name == module or name.startswith(f"{module}.") for module in MODULES)


def _module_names(tree: ast.AST) -> dict[str, str]:
    """The modules that names of the source stand for, as `import numpy as np` has it."""
    imports = (each for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names)
    whole = (
        (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2 for each in imports
    )
    return dict(whole)


def _generator_types(tree: ast.AST) -> set[int]:
    """The `np.random` of each `np.random.Generator` that is not called: a type, which draws nothing by itself."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "Generator")
    return {id(node.value) for node in found if id(node) not in called}


def _last(owner: ast.expr) -> str:
    """The last part of the name of what an attribute is of: "curator" in `self.curator`."""
    return owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
