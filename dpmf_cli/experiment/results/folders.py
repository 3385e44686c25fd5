"""Finds the results folders that a command's arguments mean, and collects their experiments."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import read_file
from dpmf_cli.core.terminal import say
from dpmf_cli.experiment.config.documents import MARK, means_a_config, near_names, read_whole
from dpmf_cli.experiment.results import MANIFEST
from dpmf_cli.experiment.results.collected import Collected, remembered


def collect_folder(folder: Path, warn: Callable[[str], None] = say) -> Collected:
    """The results of the config in a results folder's manifest. The tasks are stored beside the folder."""
    said = []

    def noted(message: str) -> None:
        said.append(message)
        warn(message)

    def collected() -> tuple[Collected, bool]:
        from dpmf_cli.experiment.results.collect import collect
        from dpmf_cli.experiment.results.manifest import what_ran
        from dpmf_cli.experiment.results.store import Store

        ran = what_ran(folder, noted)
        return collect(ran, Store(folder.parent, noted)), not (said or ran.config.plugins)

    tasks = folder.parent / "tasks" / _unchecked(folder).get("dataset", "")
    found: Collected = remembered(
        ["collected", str(folder.absolute())], [folder / MANIFEST, tasks], collected
    )
    return found


def _unchecked(folder: Path) -> dict[str, str]:
    """What a manifest says, whoever wrote it: the hash of the config, and the key of the data set."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        body = json.loads(read_file(folder / MANIFEST))
        return {"config": str(body["config_sha256"]), "dataset": str(body["dataset"]["key"])}
    return {}


def results_folder(path: Path, results: Path) -> Path:
    """The single folder that `results_folders` finds. Raises DpmfError as it does, and if there are several."""
    folder, *others = results_folders(path, results)
    if others:
        names = ", ".join(map(str, (folder, *others)))
        raise DpmfError(
            f"{path} has several smaller runs and no full one; name one of their folders: {names}"
        )
    return folder


def results_folders(path: Path, results: Path) -> list[Path]:
    """The results folders that `path` means: itself if it is a folder, else the folder of the config at `path`.

    If only smaller runs of the config exist (`dpmf run --runs 1`), their folders are returned. A message says if a
    config has changed since it was run; the results are those of what was run. Raises DpmfError if `path` is neither
    a folder nor a config.
    """
    if os.path.isdir(path):  # unlike Path.is_dir, it also answers for a name that is too long
        return [path]
    if not means_a_config(path):
        raise DpmfError(f"{path}: neither a config nor a results folder{near_names(path)}")
    document = read_whole(path)

    def named() -> tuple[tuple[str, str], bool]:
        from dpmf_cli.experiment.config.loading import validated

        config = validated(document)
        return (config.name, config.hash), not config.plugins

    name, digest = remembered(["config", path.stem, repr(document.data)], [], named)
    whole = results / name
    reductions = sorted(each.parent for each in results.glob(f"{name}{MARK}*/{MANIFEST}"))
    if (whole / MANIFEST).exists() or not reductions:
        if _unchecked(whole).get("config", digest) != digest:
            fix = f"`dpmf run {path}` brings the results up to date"
            say(f"{path} has changed since {whole}/ was made; {fix}")
        return [whole]
    for folder in reductions:
        say(f"{path} itself was not run; this is {folder}/, a smaller run of it")
    return reductions


def results_of(of: list[Path], results: Path) -> Iterator[tuple[Path, Collected]]:
    """The experiments of these configs or results folders, each with its folder.

    With an empty list, those of every folder with a manifest, ordered by name. A folder that cannot be read is then
    reported and skipped. Raises `DpmfError` where no folder has a manifest.
    """
    if of:
        for folder in folders_of(of, results):
            yield folder, collect_folder(folder)
        return
    found = sorted(path.parent for path in results.glob(f"*/{MANIFEST}"))
    if not found:
        fix = "run a config first, e.g. dpmf run configs/quickstart.yaml"
        raise DpmfError(f"{results}: no results here; {fix}")
    for folder in found:
        try:
            collected = collect_folder(folder)
        except DpmfError as error:
            say(f"passed over: {error}")
        else:
            yield folder, collected


def folders_of(of: list[Path], results: Path) -> Iterator[Path]:
    """The results folders that `results_folders` finds for each path."""
    for path in of:
        yield from results_folders(path, results)
