"""`dpmf verify`: checks whether results, parsed ratings, data and releases are as they were written."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import DataOption, PluginOption, ResultsOption
from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.datasets.soundness import Soundness
    from dpmf_cli.results.verify import Verified


def verify(
    of: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders of results, configs or results folders of experiments, releases, or folders of releases; "
            "default: all of --results, and released/.",
            show_default=False,
        ),
    ] = None,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    recompute: Annotated[
        int,
        typer.Option("--recompute", min=0, help="Compute this many random tasks again, and compare bytes."),
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The seed that draws these tasks; default: a random one, which is printed.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
    plugin: PluginOption = None,
) -> None:
    """Check stored files by checksums; change nothing.

    Checks task files, tables and figures, parsed ratings and their ids, data files, releases and their account. The
    exit code is 1 if one of them is off.

    Example: dpmf verify results --recompute 3
    """
    from secrets import randbelow

    from dpmf_cli.releasing.archive import releases_in
    from dpmf_cli.releasing.publishing import verified
    from dpmf_cli.results.verify import joined
    from dpmf_cli.running import recompute as anew
    from dpmf_cli.terminal import say

    releases = [folder for path in of or [Path("released")] for folder in releases_in(path)]
    default = [] if releases and results == Path("results") and not results.exists() else [results]
    others = [path for path in of or default if not releases_in(path)]
    found = joined([_looked_at(path, results, data) for path in others]) if others else None
    checks = found.checks if found else []
    if recompute and found is None:
        raise DpmfError("--recompute: tasks of results are computed again; name a folder of results")
    if releases or not of:
        checks += [check for check in verified(releases) if check.sound or check.off]
    if recompute and found:
        seed = randbelow(2**32) if seed is None else seed
        say(f"tasks are drawn by --seed {seed}")
        checks.append(anew.recompute(found.finished(), recompute, seed))
    for note in dict.fromkeys(note for check in checks for note in check.notes):
        say(note)
    print(_as_json(checks, seed) if as_json else _as_text(checks), end="")
    if any(check.off for check in checks):
        raise typer.Exit(1)


def _looked_at(path: Path, results: Path, data: Path | None) -> "Verified":
    """Verifies a folder of results, or one experiment that is named by its config or its results folder."""
    from dpmf_cli.datasets import Folders
    from dpmf_cli.results.folders import results_folder
    from dpmf_cli.results.manifest import MANIFEST
    from dpmf_cli.results.verify import verify_experiment, verify_results

    folders = Folders.named(data, results=results)
    folder = path if path == results else results_folder(path, results)
    if folder == path and not os.path.exists(path / MANIFEST):
        return verify_results(path, folders)
    return verify_experiment(folder, folders, None if folder == path else path.parent)


def _as_text(checks: Sequence["Soundness"]) -> str:
    rows = [("", "sound", "off"), *((each.kind, f"{each.sound:,}", f"{len(each.off):,}") for each in checks)]
    wide = max(len(row[0]) for row in rows)
    lines = [f"{kind:<{wide}}  {sound:>9}  {off:>5}" for kind, sound, off in rows]
    lines += [f"{each.path}: {each.what}; {each.fix}" for check in checks for each in check.off]
    return "\n".join(lines) + "\n"


def _as_json(checks: Sequence["Soundness"], seed: int | None) -> str:
    import json
    from dataclasses import asdict

    found = {
        check.kind: {key: value for key, value in asdict(check).items() if key != "kind"} for check in checks
    }
    return json.dumps({"seed": seed, "checks": found}, indent=2) + "\n"
