"""Checks whether the data of a config are present, by a look at the folders only."""

from pathlib import Path

from dpmf_cli.datasets import catalog, located
from dpmf_cli.datasets.folders import Folders
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec


def what_is_missing(spec: AnySpec, folders: Folders) -> str | None:
    """Says in words what a data set lacks and how to get it; None if it is present."""
    if isinstance(spec, CsvSpec):
        path = folders.beside_config(spec.path)
        return None if path.is_file() else f"{spec.name}: {path} is not there"
    if not isinstance(spec, CatalogSpec):
        return None
    entry = catalog.entry(spec.name)
    if spec.path is not None:
        path = folders.beside_config(spec.path)
        return None if path.exists() else f"{entry.title}: {path} is not there"
    if located.present(entry, folders.data) is not None:
        return None
    return f"{entry.title} is not present; {located.how_to_get(entry)}"


def present_keys(data: Path) -> set[str]:
    """Returns the keys of the catalog's data sets whose files are in the data folder."""
    return {key for key, entry in catalog.ENTRIES.items() if located.present(entry, data) is not None}
