"""The provenance of a result from its folder's manifest: command, config, seed, data and time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.evaluation.numbers import duration

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Provenance:
    """`facts` are (name, value) in the order in which they are shown; `config` is the resolved one as YAML."""

    command: str
    checksum: str
    time: str
    facts: Facts
    config: str
    failures: int


def provenance_of(folder: Path, manifest: dict[str, Any]) -> Provenance:
    """Reads a manifest that `collect_folder` has accepted. Facts that an older manifest lacks are left out."""
    config, dataset = manifest["config"], manifest["dataset"]
    command = manifest.get("command") or f"dpmf run configs/{config['name']}.yaml"
    time = _time(manifest)
    git, versions = manifest.get("git"), manifest.get("versions", {})
    code = f"dpmf {versions.get('dpmf', '?')}"
    if git:
        code += f", commit {git['commit'][:12]}" + (" with changes" if git["modified"] else "")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "dpmf")
    facts = [
        ("command", command),
        ("results", f"{folder}/"),
        ("config, SHA-256", manifest["config_sha256"]),
        ("seed", str(config["seed"])),
        ("data", f"{dataset['title']}: {dataset['ratings']:,} ratings"),
        ("data, checksum of the ratings", dataset["checksum"]),
        ("time", time),
        ("code", code),
        ("with", packages),
        ("processor", str(manifest.get("cpu", ""))),
        ("written", str(manifest.get("written", ""))),
    ]
    if dataset.get("test_checksum"):
        facts.insert(6, ("test set, checksum", dataset["test_checksum"]))
    return Provenance(
        command,
        dataset["checksum"],
        time,
        tuple((name, value) for name, value in facts if value),
        yaml.safe_dump(config, allow_unicode=True, sort_keys=False, width=100),
        len(manifest.get("failures", ())),
    )


def _time(manifest: dict[str, Any]) -> str:
    """Says how long the experiment's tasks took, over all runs of the config that ended."""
    spent = manifest.get("spent")
    if not spent:
        last = manifest.get("last_run", {})
        return (
            f"{duration(last['wall_seconds'])} in its last run" if "wall_seconds" in last else "not recorded"
        )
    if not spent["tasks"]:
        return f"{duration(spent['wall_seconds'])}; another experiment, or an interrupted run, computed its tasks"
    tasks = "1 task" if spent["tasks"] == 1 else f"{spent['tasks']} tasks"
    # Older manifests have the time by the clock alone, on a busy machine far more than CPU time.
    cpu = f" in {duration(spent['cpu_seconds'])} of CPU time" if "cpu_seconds" in spent else ""
    return f"{duration(spent['wall_seconds'])}; {tasks} computed{cpu}"
