"""The manifest of a results folder: the config that its tables are of, the data, and what they were made with.

How it is read, here; what a run puts into it, in `run_manifest`.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmf_cli.config import ExperimentConfig, config_of
from dpmf_cli.datasets import Dataset
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.portions import Portion
from dpmf_cli.results.store import encode, sealed, write_atomically
from dpmf_cli.terminal import say

MANIFEST = "manifest.json"


def write_manifest(folder: Path, body: dict[str, Any]) -> None:
    """Writes a manifest with the checksum of its content."""
    whole = json.loads(encode(sealed(body)))
    write_atomically(folder / MANIFEST, json.dumps(whole, indent=2).encode() + b"\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a results folder. Raises DpmfError where there is none, or it is damaged."""
    path = folder / MANIFEST
    try:
        body = json.loads(path.read_bytes())
        digest = body.pop("sha256", None)  # older ones have none
        sound = digest in (None, hashlib.sha256(encode(body)).hexdigest())
        sound = sound and isinstance(body["config"], dict) and isinstance(body["config_sha256"], str)
        of = body["dataset"]
        known = (of["key"], of["title"], of["checksum"], of.setdefault("test_checksum", ""))
        if not (sound and all(isinstance(text, str) for text in known)):
            raise ValueError
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be read: {error.strerror}; run the experiment's config first"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DpmfError(f"{path}: damaged, or of another version of dpmf; run the config again") from None
    whole: dict[str, Any] = body
    return whole


def checksums_of(manifest: dict[str, Any]) -> tuple[str, str]:
    """(checksum of the ratings, of the fixed test set) that the tables beside a manifest are of."""
    return manifest["dataset"]["checksum"], manifest["dataset"]["test_checksum"]


@dataclass(frozen=True)
class Ran:
    """What was run: the config, the key, title and checksums of its data, and what its portions hold."""

    config: ExperimentConfig
    dataset: str
    title: str
    checksum: str
    test_checksum: str
    portions: tuple[Portion, ...]


def what_ran(folder: Path, warn: Callable[[str], None] = say) -> Ran:
    """What a results folder says was run. Raises DpmfError where it has no manifest that this version understands."""
    manifest = read_manifest(folder)
    try:
        config = config_of(manifest["config"])
        portions = tuple(Portion(**each) for each in manifest.get("portions", ()))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DpmfError(
            f"{folder / MANIFEST}: not a config of this version of dpmf ({what}); run the config again"
        ) from None
    except TypeError:
        raise DpmfError(
            f"{folder / MANIFEST}: damaged, or of another version of dpmf; run the config again"
        ) from None
    except DpmfError as error:
        raise DpmfError(f"{folder}: {error}") from None
    if manifest.get("plugins", {}) != config.plugin_sources:
        warn(f"{folder}: a plugin has changed since; `dpmf run` its config computes anew what it changes")
    dataset = manifest["dataset"]
    return Ran(config, dataset["key"], dataset["title"], *checksums_of(manifest), portions)


def refuse_changed_data(folder: Path, config: ExperimentConfig, dataset: Dataset, test_checksum: str) -> None:
    """Raises DpmfError where a results folder is of the same data set as `config`, but of other ratings.

    A config that asks for another data set than before is another experiment, and is not refused.
    """
    try:
        manifest = read_manifest(folder)
        before = config_of(manifest["config"])
    except (DpmfError, ValidationError):
        return
    theirs, ours = checksums_of(manifest), (dataset.checksum, test_checksum)
    if (before.dataset, before.test) != (config.dataset, config.test) or theirs == ours:
        return
    what, was, now = ("ratings", theirs[0], ours[0])
    if was == now:
        what, was, now = ("test set", theirs[1], ours[1])
    raise DpmfError(
        f"{folder}/: the {what} of {dataset.title} changed since these results were made (checksum {was[:12]}… "
        f"then, {now[:12]}… now); bring the old file back, or keep these results and name another folder with "
        "--results, or replace them with --new-data"
    )
