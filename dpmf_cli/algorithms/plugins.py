"""Plugins: algorithms from outside the package (docs/design.md says why a config only names them).

A name is looked up among the files of the command line (`--plugin FILE`), then among the entry points
`dpmf.algorithms` of installed distributions. Only entry points that a config names are imported.

A plugin's code is part of the name of its results: the SHA-256 of its file, and for an installed plugin also the
distribution and its version. The checksum does not cover modules that the file imports: if a change to one of them
changes a result, raise `revision` or the distribution's version.
"""

import ast
import copyreg
import hashlib
import inspect
import platform
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, Paper, PrivateAlgorithm
from dpmf_cli.core.errors import DpmfError, did_you_mean

GROUP = "dpmf.algorithms"
"""The group of the plugins' entry points: `item_median = "my_package.item_median:ItemMedian"`."""

FIT = ["train", "epsilons", "streams", "curator"]
"""The arguments with which a plugin's `fit` is called."""

NAME = r"^[a-z][a-z0-9_]{0,39}$"


def _no_place(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(NAME, value):
        fix = "a config lists its name, of small letters, digits and _"
        raise PydanticCustomError("plugin", "`--plugin FILE` gives a plugin's file; {fix}", {"fix": fix})
    return value


PluginName = Annotated[str, Field(pattern=NAME), BeforeValidator(_no_place)]
"""The name of a plugin in a config: never a path, never a module."""

_given: dict[str, type[Algorithm]] = {}
"""The algorithms of the files that `--plugin` gave to this process, by name."""


def give(files: Iterable[Path] | None) -> None:
    """Lets configs name the algorithms of these files. Raises DpmfError for a file that is not a plugin."""
    for path in files or ():
        try:
            text = path.read_bytes()
        except OSError as error:
            raise DpmfError(f"{path}: cannot be read: {error.strerror or error}") from None
        _given.update(_of_text(str(path.resolve()), text))


def given() -> list[str]:
    """The names of the algorithms in the files that `--plugin` gave."""
    return sorted(_given)


def available() -> list[str]:
    """The names that a config can list in `plugins`. Imports no plugin."""
    return sorted({*_given, *(point.name for point in metadata.entry_points(group=GROUP))})


def plugin(name: str) -> type[Algorithm]:
    """The plugin of that name. Raises DpmfError if there is none, or if its code fails."""
    if name in _given:
        return _given[name]
    if name in BASELINES or name in PRIVATE:
        raise DpmfError(f'"{name}" is part of dpmf, not a plugin; leave it out')
    return _installed(name)


def plugin_names(data: Any) -> list[str]:
    """The valid names that a config lists in `plugins`, before the config is validated."""
    listed = data.get("plugins") if isinstance(data, dict) else None
    listed = listed if isinstance(listed, list) else []
    return [name for name in listed if isinstance(name, str) and re.fullmatch(NAME, name)]


@cache
def _installed(name: str) -> type[Algorithm]:
    points = list(metadata.entry_points(group=GROUP, name=name))
    if not points:
        fix = "give its file with `--plugin FILE`, or install its package"
        raise DpmfError(f'there is no plugin "{name}"{did_you_mean(name, available())}; {fix}')
    if len(points) > 1:
        owners = ", ".join(sorted(point.dist.name for point in points if point.dist))
        raise DpmfError(f'"{name}" is a plugin of several packages ({owners}); uninstall all but one')
    point = points[0]
    where = f'the plugin "{name}" ({point.value})'
    try:
        algorithm = point.load()
    except Exception as error:
        raise DpmfError(f"{where} cannot be loaded: {_reason(error)}") from None
    if not (isinstance(algorithm, type) and issubclass(algorithm, Algorithm)):
        raise DpmfError(f"{where} is not a subclass of Algorithm or PrivateAlgorithm")
    _refuse_unfit(algorithm, where)
    if algorithm.key() != name:
        raise DpmfError(f'{where} calls itself "{algorithm.key()}"; its entry point must have the same name')
    code = Path(inspect.getfile(algorithm)).read_bytes()
    _refuse_own_noise(code, where)
    source = {"sha256": hashlib.sha256(code).hexdigest()}
    if point.dist:
        source |= {"distribution": point.dist.name, "version": point.dist.version}
    return _adopted(algorithm, source)


@cache
def _of_text(path: str, text: bytes) -> dict[str, type[Algorithm]]:
    digest = hashlib.sha256(text).hexdigest()
    _refuse_own_noise(text, path)
    module = ModuleType(f"dpmf_plugin_{digest[:16]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where pydantic looks for the names in annotations
    try:
        exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102  the file that --plugin named
    except Exception as error:
        del sys.modules[module.__name__]
        raise DpmfError(f"{path}: {_reason(error, path)}") from None
    found = {}
    for algorithm in vars(module).values():
        is_algorithm = isinstance(algorithm, type) and issubclass(algorithm, Algorithm)
        if not is_algorithm or algorithm.__module__ != module.__name__ or not algorithm.key():
            continue
        _refuse_unfit(algorithm, f"{path}: {algorithm.__name__}")
        if algorithm.key() in found:
            raise DpmfError(
                f'{path}: two classes are named "{algorithm.key()}"; make them one, whose `variants` give the method '
                "to fit by for each neighbours and mode"
            )
        found[algorithm.key()] = algorithm
    if not found:
        raise DpmfError(
            f"{path}: no algorithm in it; write a subclass of Algorithm or PrivateAlgorithm with "
            '`algorithm: Literal["its_name"]`, `fit` and `cost`'
        )
    for algorithm in found.values():
        _adopted(algorithm, {"sha256": digest}, (path, text))
    return found


def _adopted(
    algorithm: type[Algorithm], source: dict[str, str], file: tuple[str, bytes] | None = None
) -> type[Algorithm]:
    """The class, with a note of where its code is from, by which another process loads it for a pickled instance."""
    algorithm.plugin = source
    if issubclass(algorithm, PrivateAlgorithm) and not hasattr(algorithm, "paper"):
        algorithm.paper = Paper.PLUGIN
    origin = algorithm.key(), source, file
    copyreg.pickle(algorithm, lambda instance: (_revived, (*origin, instance.__getstate__())))
    return algorithm


def _revived(
    name: str, source: dict[str, str], file: tuple[str, bytes] | None, state: dict[str, Any]
) -> Algorithm:
    """The instance that was pickled, in a process that may be on another machine, and that loads its class first if
    need be. Raises DpmfError if the code installed here is not that of `source`."""
    algorithm = _of_text(*file)[name] if file else plugin(name)
    if algorithm.plugin != source:
        raise DpmfError(
            f'the plugin "{name}" installed on {platform.node()} is not the one that the run was started with; '
            "install the same version there"
        )
    instance = algorithm.__new__(algorithm)
    instance.__setstate__(state)
    return instance


def _refuse_unfit(algorithm: type[Algorithm], where: str) -> None:
    name, variants = algorithm.key(), getattr(algorithm, "variants", {})
    runs = [algorithm.fit]
    missing = sorted(getattr(algorithm, "__abstractmethods__", ()))
    if algorithm.fit is PrivateAlgorithm.fit:
        variants = variants if isinstance(variants, dict) else {}
        runs = [run for run in variants.values() if callable(run)]
        if len(runs) < max(len(variants), 1):
            missing.append("fit")
    if algorithm.cost is Algorithm.cost:
        missing.append("cost")
    if missing:
        raise DpmfError(f"{where} has no `{missing[0]}`")
    for fit in runs:
        parameters = [each for each in inspect.signature(fit).parameters if each != "self"]
        if parameters != FIT:
            raise DpmfError(
                f"{where}: its `fit` takes ({', '.join(parameters)}); write it as "
                "`fit(self, train, epsilons, *, streams, curator)` (docs/guides/plugin.md)"
            )
    is_private = issubclass(algorithm, PrivateAlgorithm)
    naming = ': name it by `algorithm: Literal["…"]`, in small letters, digits and _'
    for wrong, message in (
        (not re.fullmatch(NAME, name), naming),
        (name in BASELINES or name in PRIVATE, f': "{name}" is part of dpmf; choose another name'),
        (not isinstance(getattr(algorithm, "title", None), str), " has no `title`, its name in tables"),
        (is_private and not variants, " has no `variants`, the neighbours and modes that it offers"),
        (algorithm.private and not is_private, " is private; make it a subclass of PrivateAlgorithm"),
    ):
        if wrong:
            raise DpmfError(f"{where}{message}")


def _refuse_own_noise(code: bytes, where: str) -> None:
    """Raises DpmfError if the code draws noise past the curator, or randomness past the streams."""
    try:
        found = next(past_the_seam(code.decode()), None)
    except (SyntaxError, ValueError):
        return  # the import of the file reports that it is not Python
    if found:
        line, what = found
        raise DpmfError(f"{where}: line {line}: {what}")


def _reason(error: Exception, path: str = "") -> str:
    """What went wrong, with the line of the plugin's file if it is known."""
    line, text = (error.lineno, error.msg) if isinstance(error, SyntaxError) else (None, str(error))
    for frame in traceback.extract_tb(error.__traceback__):
        line = frame.lineno if frame.filename == path else line
    return f"{f'line {line}: ' if line else ''}{type(error).__name__}: {text}"


MODULES = ("random", "secrets", "numpy.random", "scipy.stats")
"""Modules that draw random numbers without dpmf's knowledge."""

HIDDEN = ("_noise", "_lane_noise", "_added_noise", "_streams", "_recorder")
"""Attributes that only releases and curators themselves may use."""

OF_MECHANISMS = ("noise", "noise_again", "noise_later", "release", "releases")
"""Attributes of curators and streams that only mechanisms may use."""

OWNERS = ("streams", "curator")
"""The names that a fit has for the owners of those attributes."""

SEALED = ("SEAL", "LaneNoise", "LaterNoise", "KeyedNoise", "DeviceNoise", "named_generator", "named_bits")
"""Names of `dpmf_cli` that could make a release, or a generator of any law, by hand."""


def past_the_seam(source: str) -> Iterator[tuple[int, str]]:
    """Yields (line, what is wrong and the fix) for each place that draws numbers past the streams or the curator.

    Only names are read, so this finds mistakes, not malice. The contract (`dpmf_cli.testing`) complements it: it runs
    the algorithm with all releases silenced, with the noise of two runs, and the results must be equal.
    """
    nodes = list(ast.walk(ast.parse(source)))
    imports = (each for node in nodes if isinstance(node, ast.Import) for each in node.names)
    # {"np": "numpy"} for `import numpy as np`
    modules = dict((i.asname, i.name) if i.asname else (i.name.partition(".")[0],) * 2 for i in imports)
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    # the `np.random` in each `np.random.Generator` that is not called: a type, which draws nothing
    types = {id(node.value) for node in attributes if node.attr == "Generator" and id(node) not in called}
    for node in nodes:
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
    return any(name == module or name.startswith(f"{module}.") for module in MODULES)


def _last(owner: ast.expr) -> str:
    """The last part of the name of an attribute's owner: "curator" for `self.curator`."""
    return owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
