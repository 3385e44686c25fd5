"""Properties that all compiled loops share."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import dpmf_cli
from dpmf_cli.core.compiled.machine_code import KernelCache

ROOT = Path(dpmf_cli.__file__).parent
SOURCES = {
    ".".join(["dpmf_cli", *path.relative_to(ROOT).with_suffix("").parts]): path.read_text()
    for path in ROOT.rglob("*.py")
}
COMPILED = {
    f"{module}.{name}": found
    for module, text in SOURCES.items()
    if "@compiled(" in text
    for name, found in vars(importlib.import_module(module)).items()
    if hasattr(found, "py_func") and found.py_func.__module__ == module
}


def test_kernels_release_the_interpreter() -> None:
    """Other threads of a program that calls dpmf must go on while a kernel runs for minutes."""
    assert len(COMPILED) > 50
    assert [name for name, found in COMPILED.items() if not found.targetoptions.get("nogil")] == []


def test_every_compiled_function_has_the_cache_that_verifies() -> None:
    assert [name for name, found in COMPILED.items() if type(found._cache) is not KernelCache] == []
    others = {module for module, text in SOURCES.items() if "njit" in text or "import jit" in text}
    assert others == {"dpmf_cli.core.compiled.machine_code"}


def called_by_python(module: str, text: str) -> Iterator[str]:
    """The full names of the compiled functions that a module's plain code uses."""
    tree = ast.parse(text)
    names = {name.rpartition(".")[2]: name for name in COMPILED if name.rpartition(".")[0] == module}
    modules = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            full = {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            names |= {name: found for name, found in full.items() if found in COMPILED}
            modules |= full
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and f"{module}.{node.name}" in COMPILED:
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id in names:
                yield names[each.id]
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                found = f"{modules.get(each.value.id)}.{each.attr}"
                if found in COMPILED:
                    yield found


def test_every_kernel_that_python_calls_has_an_example_and_no_other_has() -> None:
    """The others are checked as parts of these."""
    called = {name for module, text in SOURCES.items() for name in called_by_python(module, text)}
    assert {name for name, found in COMPILED.items() if found._cache.examples} == called
    assert len(called) > 30
