"""Results folders: which of them are meant, and the experiments that they hold."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from dpmf_cli.config import ExperimentConfig, load_config
from dpmf_cli.config.names import MARK
from dpmf_cli.config.shipped import means_a_config, near_names
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.collect import Collected, collect
from dpmf_cli.results.manifest import MANIFEST, read_manifest, what_ran
from dpmf_cli.results.store import Store
from dpmf_cli.terminal import say


def collect_folder(folder: Path, warn: Callable[[str], None] = say) -> Collected:
    """The results of the config that a results folder's manifest holds; its tasks lie beside the folder."""
    return collect(what_ran(folder, warn), Store(folder.parent, warn))


def results_folder(path: Path, results: Path) -> Path:
    """The one results folder that is meant, as `results_folders` finds it. Raises DpmfError for several, too."""
    folder, *others = results_folders(path, results)
    if others:
        names = ", ".join(str(each) for each in (folder, *others))
        raise DpmfError(f"{path} was run smaller in several ways; name one of their folders: {names}")
    return folder


def results_folders(path: Path, results: Path) -> list[Path]:
    """The results folders that are meant: `path` itself, or that of a config. Of a config that was only run smaller
    (`dpmf run --runs 1`) those of its reductions.

    It is told where a config has changed since it was run: what is shown is what was run. Raises DpmfError for what
    is neither.
    """
    if os.path.isdir(path):  # unlike Path's own, it answers for a name that is too long, too
        return [path]
    if not means_a_config(path):
        raise DpmfError(f"{path}: neither a config nor a results folder{near_names(path)}")
    config = load_config(path)
    whole = results / config.name
    reductions = sorted(each.parent for each in results.glob(f"{config.name}{MARK}*/{MANIFEST}"))
    if (whole / MANIFEST).exists() or not reductions:
        _tell_of_changes(path, config, whole)
        return [whole]
    for folder in reductions:
        say(f"{path} itself was not run; this is {folder}/, a smaller run of it")
    return reductions


def _tell_of_changes(path: Path, config: ExperimentConfig, folder: Path) -> None:
    with suppress(DpmfError):  # what is wrong with it, its reader says
        if read_manifest(folder)["config_sha256"] != config.hash:
            say(f"{path} is not what {folder}/ was run with; `dpmf run {path}` brings it up to date")


def collected_results(of: list[Path], results: Path) -> Iterator[Collected]:
    """The experiments that are meant: of configs, of folders themselves, or of all folders with a manifest.

    Where all are asked for, a folder that cannot be read is told and passed over.
    """
    yield from (collected for _, collected in results_of(of, results))


def results_of(of: list[Path], results: Path) -> Iterator[tuple[Path, Collected]]:
    """The same, each with its folder."""
    if not of:
        yield from all_results(results)
        return
    for folder in folders_of(of, results):
        yield folder, collect_folder(folder)


def all_results(results: Path) -> Iterator[tuple[Path, Collected]]:
    """Every folder with a manifest and its experiment, by name; one that cannot be read is told and passed over.

    Raises `DpmfError` where there is no such folder.
    """
    found = sorted(path.parent for path in results.glob(f"*/{MANIFEST}"))
    if not found:
        raise DpmfError(
            f"{results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
        )
    for folder in found:
        try:
            collected = collect_folder(folder)
        except DpmfError as error:
            say(f"passed over: {error}")
        else:
            yield folder, collected


def folders_of(of: list[Path], results: Path) -> Iterator[Path]:
    """The results folders that are meant, as `results_folders` finds each."""
    for path in of:
        yield from results_folders(path, results)
