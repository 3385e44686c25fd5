"""Results folders: found by what a command names, and collected into experiments for tables and figures.

A command that shows finished results need not import what computes them: the cache remembers what was collected.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import read_file
from dpmf_cli.core.remembered import recall, remember, state
from dpmf_cli.core.terminal import say
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.metrics import RMSE
from dpmf_cli.experiment.config.documents import MARK, means_a_config, near_names, read_whole

MANIFEST = "manifest.json"
"""The file of a results folder that says what was run."""

Ledger = list[dict[str, Any]]
"""The steps of a ledger as plain data."""


@dataclass(frozen=True)
class Collected:
    """An experiment, and the ledger of each of its curves by label, with steps as plain data.

    made_from  the `state` of its tasks' folders, and after a run of its results folder; empty if it changed, a file
               is damaged, or plugins took part
    """

    experiment: Experiment
    ledgers: dict[str, Ledger]
    metric: str = RMSE.key
    made_from: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> Experiment:
        """The experiment, showing the metric that its config selects; `experiment` itself shows RMSE."""
        return self.experiment.showing(self.metric)


def collect_folder(folder: Path) -> Collected:
    """The results of the config in a results folder's manifest. The tasks are stored beside the folder."""
    place = f"collected {folder.absolute()}"
    found: Collected | None = recall(place)
    if found is None:
        from dpmf_cli.experiment.results.collect import collect
        from dpmf_cli.experiment.results.manifest import what_ran
        from dpmf_cli.experiment.results.store import Store

        here = state([folder])
        found = collect(what_ran(folder), Store(folder.parent, say))
        if found.made_from:
            remember(place, found, here | found.made_from)
    return found


def name_and_hash(path: Path, **changes: Any) -> tuple[str, str, tuple[str, ...]]:
    """The name and the hash of a config that is `reduced` by these changes, and what it leaves to defaults, in words.

    Raises as `load_config`.
    """
    document = read_whole(path)
    place = f"config {document.path.absolute()} {document.data} {changes}"
    found: tuple[str, str, tuple[str, ...]] | None = recall(place)
    if found is None:
        from dpmf_cli.experiment.config.loading import reduced, validated

        config = reduced(validated(document), **changes)
        found = config.name, config.hash, tuple(config.left_to_defaults)
        if not config.plugins:
            remember(place, found, {})
    return found


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
    name, digest, _ = name_and_hash(path)
    whole = results / name
    reductions = sorted(each.parent for each in results.glob(f"{name}{MARK}*/{MANIFEST}"))
    if (whole / MANIFEST).exists() or not reductions:
        # What is wrong with the folder is said where it is read.
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            if json.loads(read_file(whole / MANIFEST))["config_sha256"] != digest:
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
