"""Tells a planner, which must not wait, how large a data set is."""

import io
from pathlib import Path

from dpmf_cli.datasets import Sizes, catalog, loading, located
from dpmf_cli.datasets.folders import Folders
from dpmf_cli.datasets.formats import user_csv
from dpmf_cli.datasets.formats.parquet import is_parquet
from dpmf_cli.datasets.formats.unpacked import is_packed
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec, SyntheticSpec

# So many bytes are parsed in about a second. Of a larger text file, only so many are read.
_QUICK_BYTES = 32 << 20


def sizes_of(spec: AnySpec, folders: Folders) -> Sizes:
    """See `dpmf_cli.datasets.sizes`."""
    if isinstance(spec, SyntheticSpec):
        return expected(spec)
    if (
        isinstance(spec, CatalogSpec)
        and spec.path is None
        and located.present(catalog.entry(spec.name), folders.data) is None
    ):
        return expected(spec)
    kept = loading.already(spec, folders)
    if kept is None and isinstance(spec, CatalogSpec):
        return expected(spec)
    if kept is None and isinstance(spec, CsvSpec):
        path = folders.beside_config(spec.path)
        if path.stat().st_size > _QUICK_BYTES and not (is_packed(path) or is_parquet(path)):
            return _estimated(path, spec)
        kept = loading.cached(spec, folders)
    assert kept is not None
    return Sizes(kept.ratings.n_users, kept.ratings.n_items, len(kept.ratings), "counted")


def expected(spec: CatalogSpec | SyntheticSpec) -> Sizes:
    """Returns the sizes that the catalog or a synthetic spec states. A sample counts all items, and the share of the
    ratings that its users should have."""
    if isinstance(spec, SyntheticSpec):
        return Sizes(*spec.shape, "expected")
    whole = catalog.entry(spec.name).expected
    if spec.sample is None:
        return Sizes(whole.users, whole.items, whole.ratings, "expected")
    users = spec.sample.users
    return Sizes(
        users, whole.items, spec.sample.ratings or round(whole.ratings * users / whole.users), "expected"
    )


def _estimated(path: Path, spec: CsvSpec) -> Sizes:
    """Estimates sizes from the first 32 MiB. Ratings and users grow with the file; all items count as seen there."""
    import pandas as pd

    with path.open("rb") as file:
        head = file.read(_QUICK_BYTES)
    head = head[: head.rfind(b"\n") + 1]
    _, positions, _ = user_csv.layout(path, spec)
    frame = pd.read_csv(
        io.BytesIO(head),
        sep=spec.separator,
        header=0 if spec.header else None,
        dtype="category",
        na_filter=False,
        on_bad_lines="skip",
        encoding_errors="replace",
    )
    whole = path.stat().st_size / len(head)
    users, items = (frame[frame.columns[positions[role]]].nunique() for role in ("user", "item"))
    return Sizes(round(users * whole), items, round(len(frame) * whole), "estimated")
