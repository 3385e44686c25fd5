"""`dpmf doctor`: describes this machine, its data and its caches, and checks the compiled kernels."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

EXTRAS = {"parquet": "pyarrow", "cluster": "distributed"}
"""The module that each optional part of dpmf brings, by the part's name in `pip install dpmf[NAME]`."""


def doctor(
    clear_kernels: Annotated[
        bool,
        typer.Option(
            "--clear-kernels", help="Remove the compiled kernels; each is compiled again when it is needed."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Show machine, versions, data and caches; verify kernels.

    Add the output to a bug report. Only --clear-kernels changes anything. The exit code is 1 if a kernel is damaged,
    or if the folder of kernels is not private.

    Example: dpmf doctor
    """
    from dpmf_cli.compiled import entries

    removed = entries.clear() if clear_kernels else 0
    found = _found()
    print(json.dumps(found, indent=2) if as_json else _text(found))
    if removed and not as_json:
        print(f"removed {removed} compiled kernels")
    if found["kernels"]["damaged"] or not found["kernels"]["private"]:
        raise typer.Exit(1)


def _found() -> dict[str, Any]:
    from importlib.util import find_spec

    from dpmf_cli.compiled import entries
    from dpmf_cli.datasets import data_folder
    from dpmf_cli.datasets.presence import present_keys
    from dpmf_cli.files import cache_folder
    from dpmf_cli.results import provenance
    from dpmf_cli.running.batches import memory
    from dpmf_cli.running.machine import available_cores

    cache, kernels = cache_folder(), list(entries.inspected())
    counts = Counter(each.condition for each in kernels)
    return {
        "machine": {"processor": provenance.cpu(), "cores": available_cores(), "memory": memory()},
        "versions": provenance.versions(),
        "extras": {extra: find_spec(module) is not None for extra, module in EXTRAS.items()},
        "data": {"folder": str(data_folder()), "present": sorted(present_keys(data_folder()))},
        "cache": {
            "folder": str(cache),
            "sizes": {path.name: _size(path) for path in sorted(cache.glob("*"))},
        },
        "kernels": {
            "folder": str(entries.place()),
            "private": entries.is_private(),
            "size": sum(each.size for each in kernels),
            "sound": counts["sound"],
            "older": counts["older"],
            "damaged": [str(each.path) for each in kernels if each.condition == "damaged"],
        },
    }


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return sum(each.lstat().st_size for each in [path, *path.rglob("*")] if each.is_file())


def _text(found: dict[str, Any]) -> str:
    from dpmf_cli.compiled import entries

    machine, cache, kernels, data = (found[part] for part in ("machine", "cache", "kernels", "data"))
    extras = ", ".join(
        f"{extra} {'is here' if here else 'is not here'}" for extra, here in found["extras"].items()
    )
    lines = [
        f"machine   {machine['processor']}, {machine['cores']} cores, {machine['memory'] / 2**30:.1f} GiB",
        f"versions  {', '.join(f'{name} {version}' for name, version in found['versions'].items())}",
        f"extras    {extras}",
        f"data      {data['folder']}: {', '.join(data['present']) or 'no data set of the catalog'}",
        f"cache     {cache['folder']}",
        *(f"          {name}: {size / 2**20:.1f} MiB" for name, size in cache["sizes"].items()),
        f"kernels   {kernels['folder']}",
        f"          {kernels['size'] / 2**20:.1f} MiB; {kernels['sound']} sound, "
        f"{kernels['older']} of other versions, {len(kernels['damaged'])} damaged",
    ]
    if not kernels["private"]:
        lines.append(f"          not used: {entries.NOT_PRIVATE}")
    lines += [
        f"          damaged: {path}; it is compiled anew when it is needed" for path in kernels["damaged"]
    ]
    return "\n".join(lines)
