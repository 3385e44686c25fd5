"""Finds places in an algorithm's source that draw randomness past its streams, or noise past its curator.

Only names are read, so this finds mistakes, not malice. The contract (`dpmf_cli.testing`) complements it: it runs the
algorithm with all releases silenced, with the noise of two runs, and the results must be equal.
"""

import ast
from collections.abc import Iterator

MODULES = ("random", "secrets", "numpy.random", "scipy.stats")
"""Modules that draw random numbers without dpmf's knowledge."""

HIDDEN = ("_noise", "_lane_noise", "_added_noise", "_streams", "_witness")
"""Attributes that only releases and curators themselves may use."""

OF_MECHANISMS = ("noise", "noise_again", "noise_later", "release", "releases")
"""Attributes of curators and streams that only mechanisms may use."""

OWNERS = ("streams", "curator")
"""The names that a fit has for the owners of those attributes."""

SEALED = ("SEAL", "LaneNoise", "LaterNoise", "KeyedNoise", "DeviceNoise", "named_generator", "named_bits")
"""Names of `dpmf_cli` that could make a release, or a generator of any law, by hand."""


def past_the_seam(source: str) -> Iterator[tuple[int, str]]:
    """Yields (line, what is wrong and the fix) for each place that draws numbers without streams or mechanisms."""
    tree = ast.parse(source)
    modules = _module_names(tree)
    types = _generator_types(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, _drawn(each.name)) for each in names if _draws(each.name))
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    if _draws(f"{module}.{each.name}"):
                        yield node.lineno, _drawn(f"{module}.{each.name}")
                    elif module.startswith("dpmf_cli") and each.name in SEALED:
                        yield node.lineno, f"an algorithm must not import `{each.name}`; {_FIX}"
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if _draws(f"{modules.get(name)}.{attr}"):
                if id(node) not in types:
                    yield node.lineno, _drawn(f"{modules[name]}.{attr}")
            case ast.Attribute(value=owner, attr=attr) if attr in OF_MECHANISMS and _last(owner) in OWNERS:
                yield node.lineno, f"only mechanisms may use `{_last(owner)}.{attr}`; {_FIX}"
            case ast.Attribute(value=owner, attr=attr) if attr in HIDDEN and _last(owner) != "self":
                yield node.lineno, f"an algorithm must not use `{attr}`; {_FIX}"


_FIX = "take noise from a mechanism of dpmf_cli.privacy, with the fit's `curator`"


def _drawn(name: str) -> str:
    return f"draws from `{name}`; {_FIX}, and other randomness from `streams`"


def _draws(name: str) -> bool:
    """Whether a dotted name is one of `MODULES`, or inside one."""
    return any(name == module or name.startswith(f"{module}.") for module in MODULES)


def _module_names(tree: ast.AST) -> dict[str, str]:
    """The modules by their names in the source: {"np": "numpy"} for `import numpy as np`."""
    imports = (each for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names)
    whole = (
        (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2 for each in imports
    )
    return dict(whole)


def _generator_types(tree: ast.AST) -> set[int]:
    """Ids of the node `np.random` in each `np.random.Generator` that is not called. Such a type draws nothing."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "Generator")
    return {id(node.value) for node in found if id(node) not in called}


def _last(owner: ast.expr) -> str:
    """The last part of the name of an attribute's owner: "curator" for `self.curator`."""
    return owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
