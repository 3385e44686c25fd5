"""Everything that the package prints, or writes as CSV, goes through `terminal.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "dpmf_cli"

OWN_PIPE = "datasets/sheet_reader.py"
"""A separate program, whose output the package reads."""


def ways_past(source: str) -> Iterator[str]:
    """Ways to a terminal or a CSV file that bypass the one function: streams other than the current
    `sys.stdout` and `sys.stderr`, their bytes and file numbers, writers of CSV, and a progress bar without a
    named stream."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(ast.Name("sys"), "__stdout__" | "__stderr__"):
                yield f"sys.{node.attr}"
            case ast.Attribute(ast.Attribute(ast.Name("sys"), "stdout" | "stderr"), "buffer" | "fileno"):
                yield f"sys.{node.value.attr}.{node.attr}"  # type: ignore[attr-defined]
            case ast.Attribute(ast.Name("os"), "write" | "fdopen" | "writev"):
                yield f"os.{node.attr}"
            case ast.Attribute(ast.Name("csv"), "writer" | "DictWriter"):
                yield f"csv.{node.attr}"
            case ast.ImportFrom("csv" | "sys", names):
                yield from (
                    name.name for name in names if name.name in ("writer", "DictWriter", "stdout", "stderr")
                )
            case ast.Attribute(_, "to_csv"):
                yield "to_csv"
            case ast.Call(ast.Name("open"), [ast.Constant(1 | 2), *_]):
                yield "open"
            case ast.Call(ast.Name("unguarded")):
                yield "unguarded"
            case ast.Call(ast.Name("tqdm")):
                # Its own stream is the guarded one, which shows what moves the cursor.
                if not any(key.arg == "file" for key in node.keywords):
                    yield "tqdm"


def test_what_goes_past_is_the_bar_of_progress_a_programs_own_pipe_and_the_last_line() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), way)
        for path in PACKAGE.rglob("*.py")
        for way in ways_past(path.read_text(encoding="utf-8"))
    }
    assert found == {
        ("core/terminal.py", "csv.writer"),
        ("core/terminal.py", "unguarded"),
        ("datasets/fetch.py", "unguarded"),
        (OWN_PIPE, "sys.stdout.buffer"),
        ("cli/entry.py", "os.write"),
    }


@pytest.mark.parametrize(
    "source",
    [
        "print('x', file=sys.__stderr__)",
        "sys.stdout.buffer.write(b'x')",
        "os.write(2, b'x')",
        "csv.writer(stream)",
        "from csv import DictWriter",
        "from sys import stderr",
        "frame.to_csv(path)",
        "open(2, 'w')",
        "tqdm(total=3)",
        "unguarded(sys.stdout).write('x')",
    ],
)
def test_each_way_past_is_found(source: str) -> None:
    assert list(ways_past(source)) != []


def test_the_command_guards_its_streams_before_all_else() -> None:
    tree = ast.parse((PACKAGE / "cli" / "main.py").read_text(encoding="utf-8"))
    (main,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    assert ast.unparse(main.body[1]) == "terminal.guard()"
