"""`dpmf doctor` describes this machine and its caches; `dpmf verify` checks whether files are as written."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import say

EXTRAS = {
    "excel": "python_calamine",
    "fetch": "requests",
    "parquet": "pyarrow",
    "zstd": "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd",
}
"""The module that each optional part of dpmf brings, by the part's name in `pip install dpmf[NAME]`."""


def doctor(as_json: options.JsonOption = False) -> None:
    """Show machine, versions, data and caches; verify kernels.

    Add the output to a bug report. Changes nothing. The exit code is 1 if a kernel is damaged, or if the folder of
    kernels is not private.

    Example: dpmf doctor
    """
    from dpmf_cli.core.compiled import machine_code

    found = _found()
    machine, cache, kernels, data = (found[part] for part in ("machine", "cache", "kernels", "data"))
    extras = [f"{extra} {'is here' if here else 'is not here'}" for extra, here in found["extras"].items()]
    lines = [
        f"machine   {machine['processor']}, {machine['cores']} cores, {machine['memory'] / 2**30:.1f} GiB",
        f"versions  {', '.join(f'{name} {version}' for name, version in found['versions'].items())}",
        f"extras    {', '.join(extras)}",
        f"data      {data['folder']}: {', '.join(data['present']) or 'no data set of the catalog'}",
        f"cache     {cache['folder']}",
        *(f"          {name}: {size / 2**20:.1f} MiB" for name, size in cache["sizes"].items()),
        f"kernels   {kernels['folder']}",
        f"          {kernels['size'] / 2**20:.1f} MiB; {kernels['sound']} sound, {len(kernels['damaged'])} damaged",
        *[f"          not used: {machine_code.NOT_PRIVATE}"] * (not kernels["private"]),
        *(f"          damaged: {path}; it is compiled anew when it is needed" for path in kernels["damaged"]),
    ]
    print(json.dumps(found, indent=2) if as_json else "\n".join(lines))
    if kernels["damaged"] or not kernels["private"]:
        raise typer.Exit(1)


def _is_here(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that the module would be in
        return False


def _found() -> dict[str, Any]:
    from dpmf_cli.core.compiled import machine_code
    from dpmf_cli.core.files import cache_folder
    from dpmf_cli.datasets import data_folder
    from dpmf_cli.datasets.located import present_keys
    from dpmf_cli.experiment.results.manifest import cpu, versions
    from dpmf_cli.experiment.running.batches import memory

    cache, kernels = cache_folder(), list(machine_code.inspected())
    damaged = [str(path) for path, _, sound in kernels if not sound]
    return {
        "machine": {"processor": cpu(), "cores": available_cores(), "memory": memory()},
        "versions": versions(),
        "extras": {extra: _is_here(module) for extra, module in EXTRAS.items()},
        "data": {"folder": str(data_folder()), "present": sorted(present_keys(data_folder()))},
        "cache": {
            "folder": str(cache),
            "sizes": {
                path.name: sum(each.lstat().st_size for each in [path, *path.rglob("*")] if each.is_file())
                for path in sorted(cache.glob("*"))
            },
        },
        "kernels": {
            "folder": str(machine_code.place()),
            "private": machine_code.is_private(),
            "size": sum(size for _, size, _ in kernels),
            "sound": len(kernels) - len(damaged),
            "damaged": damaged,
        },
    }


def verify(
    of: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders of results, configs or results folders of experiments, releases, or folders of releases; "
            "default: all of --results, and released/."
        ),
    ] = None,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    recompute: Annotated[
        int, typer.Option(min=0, help="Compute this many random tasks again, and compare bytes.")
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The seed that draws these tasks; default: a random one, which is printed."),
    ] = None,
    as_json: options.JsonOption = False,
    plugin: options.PluginOption = None,
) -> None:
    """Check stored files by checksums; change nothing.

    Checks task files, tables and figures, parsed ratings and their ids, data files, releases and their account. The
    exit code is 1 if one of them is off.

    Example: dpmf verify results --recompute 3
    """
    from secrets import randbelow

    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.results.folders import results_folder
    from dpmf_cli.experiment.results.manifest import MANIFEST
    from dpmf_cli.experiment.running import verify as verifying
    from dpmf_cli.releasing.archive import releases_in
    from dpmf_cli.releasing.publishing import verified

    releases = [folder for path in of or [Path("released")] for folder in releases_in(path)]
    default = [] if releases and results == Path("results") and not results.exists() else [results]
    others = [path for path in of or default if not releases_in(path)]
    found, folders = verifying.Verified(), Folders.named(data, results=results)
    for path in others:
        folder = path if path == results else results_folder(path, results)
        if folder == path and not os.path.exists(path / MANIFEST):
            verifying.verify_results(found, path, folders)
        else:
            beside = None if folder == path else path.parent
            verifying.verify_experiment(found, folder, folders, beside)
    checks = found.checks if others else []
    if recompute and not others:
        raise DpmfError("--recompute: tasks of results are computed again; name a folder of results")
    if releases or not of:
        checks += [check for check in verified(releases) if check.sound or check.off]
    if recompute:
        seed = randbelow(2**32) if seed is None else seed
        say(f"tasks are drawn by --seed {seed}")
        checks.append(verifying.recompute(found, recompute, seed))
    for note in dict.fromkeys(note for check in checks for note in check.notes):
        say(note)
    if as_json:
        by_kind = {check.pop("kind"): check for check in map(asdict, checks)}
        print(json.dumps({"seed": seed, "checks": by_kind}, indent=2))
    else:
        rows = [
            ("", "sound", "off"),
            *((each.kind, f"{each.sound:,}", f"{len(each.off):,}") for each in checks),
        ]
        wide = max(len(row[0]) for row in rows)
        print("\n".join(f"{kind:<{wide}}  {sound:>9}  {off:>5}" for kind, sound, off in rows))
        for each in (each for check in checks for each in check.off):
            print(f"{each.path}: {each.what}; {each.fix}")
    if any(check.off for check in checks):
        raise typer.Exit(1)
