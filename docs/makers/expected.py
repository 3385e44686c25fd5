"""Saves the figures that a reproduction finds as the expected ones: `python -m docs.makers.expected WHAT [--small]`.

Runs what is left of the reproduction first, like `dpmf reproduce`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmf_cli.core.children import available_cores
from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config.documents import FOLDER
from dpmf_cli.experiment.results.store import write_atomically
from dpmf_cli.papers.claims import parts_named
from dpmf_cli.studies.reproduce import Figures, Reproduction, figures_of, path_of, read_expected, run_all


def main(what: str, small: Annotated[bool, typer.Option("--small")] = False, jobs: int | None = None) -> None:
    """Saves the figures of a paper, or of `all`, among the expected ones."""
    folders = Folders.named(base=FOLDER, results=Path("results", "small" if small else ""))
    found, _ = run_all(
        Reproduction.of(parts_named(what), folders, small=small), folders, jobs or available_cores()
    )
    now, path = {each.name: figures_of(each) for each in found}, path_of(small=small)
    write_atomically(path, text_of({**read_expected(path), **now}).encode())
    print(f"{path}: {sum(map(len, now.values())):,} figures of {len(now)} experiments")


def text_of(expected: Mapping[str, Figures]) -> str:
    """Returns the text of a file of expected figures: one figure in each line, by experiment."""
    data: dict[str, Any] = {
        name: {key: [each.mean, each.deviation] for key, each in sorted(found.items())}
        for name, found in sorted(expected.items())
    }
    body = ",\n".join(
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(key, ensure_ascii=False)}: {json.dumps(pair)}" for key, pair in found.items()
        )
        + "\n }"
        for name, found in data.items()
    )
    return f"{{\n{body}\n}}\n"


if __name__ == "__main__":
    typer.run(main)
