"""What a config and the shipped catalog may say about data, and the messages for anything else."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.catalog import Download
from dpmf_cli.datasets.formats import PARSERS
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, DatasetSpec, SyntheticSpec


@pytest.mark.parametrize("key", catalog.ENTRIES)
def test_digests_are_digests_formats_have_parsers_and_what_is_fetched_is_found(key: str) -> None:
    entry = catalog.entry(key)
    assert entry.key == key
    for part in entry.parts:
        assert {content.format for content in part.contents} <= set(PARSERS)
        digests = [*part.digests, *(digest for content in part.contents for digest in content.digests)]
        digests += [mirror.digest for mirror in part.mirrors]
        assert digests
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", digest) for digest in digests)
        for mirror in part.mirrors:
            assert mirror.filename in part.names
            if isinstance(mirror, Download):
                assert mirror.url.endswith(f"/{mirror.filename}")
                assert {mirror.digest} == part.digests


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("timestamps: false", "timestamp: false"),
        ("nested:", "nestled:"),
        ("pattern:", "patern:"),
        ("step:", "steps:"),
    ],
)
def test_a_misspelt_word_is_refused(tmp_path: Path, before: str, after: str) -> None:
    whole = Path(catalog.__file__).with_name("catalog.yaml").read_text()
    assert before in whole
    (tmp_path / "catalog.yaml").write_text(whole.replace(before, after, 1))
    with pytest.raises(TypeError, match=after.partition(":")[0]):
        catalog.read(tmp_path / "catalog.yaml")


SHOP: dict[str, Any] = {
    "kind": "csv",
    "name": "my-shop",
    "path": "ratings.csv",
    "columns": {"user": "customer", "item": "sku", "rating": "stars"},
    "scale": {"minimum": 1, "maximum": 5, "step": 1},
}


class Config(BaseModel):
    dataset: DatasetSpec


def parse(value: Any) -> AnySpec:
    return Config(dataset=value).dataset


def test_forms() -> None:
    assert parse("ml-100k") == CatalogSpec(name="ml-100k") == parse({"kind": "catalog", "name": "ml-100k"})
    made = parse({"kind": "synthetic", "like": "ml-100k", "seed": 1})
    assert made == parse("synthetic-ml-100k")
    assert isinstance(made, SyntheticSpec)
    assert (made.key, made.shape) == ("synthetic-ml-100k", (943, 1682, 100_000))
    assert parse(SHOP).key == "my-shop"


@pytest.mark.parametrize(
    ("value", "location", "message"),
    [
        ({**SHOP, "name": "ml-1m"}, ("dataset", "csv"), "means another data set"),
        ({**SHOP, "name": "synthetic-x"}, ("dataset", "csv"), "means another data set"),
        ({**SHOP, "header": False}, ("dataset", "csv"), "0-based numbers"),
        (
            {**SHOP, "columns": {**SHOP["columns"], "item": "customer"}},
            ("dataset", "csv"),
            "is named for two roles",
        ),
        ({**SHOP, "duplicates": "first"}, ("dataset", "csv", "duplicates"), "'error', 'last' or 'mean'"),
        (
            {**SHOP, "scale": {"minimum": float("nan"), "maximum": 5}},
            ("dataset", "csv", "scale", "minimum"),
            "finite",
        ),
        ({"kind": "synthetic", "like": "ml-100k", "ratings": 10}, ("dataset", "synthetic"), "do not fit"),
        ({"kind": "synthetic", "like": "ml-100k", "users": 2}, ("dataset", "synthetic"), "do not fit"),
        ({"kind": "synthetic", "like": "ml-100k", "seed": -1}, ("dataset", "synthetic", "seed"), "greater"),
    ],
)
def test_errors_have_place_and_reason(value: Any, location: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        parse(value)
    (only,) = error.value.errors()
    assert only["loc"] == location
    assert message in only["msg"]


def test_specs_are_frozen() -> None:
    with pytest.raises(ValidationError):
        CatalogSpec(name="ml-1m").name = "ml-100k"  # type: ignore[misc]


def test_schema_names_the_catalog() -> None:
    schema = TypeAdapter(DatasetSpec).json_schema()
    names, forms = schema["anyOf"]
    assert set(catalog.ENTRIES) < set(names["enum"])
    assert set(forms["discriminator"]["mapping"]) == {"catalog", "csv", "synthetic"}
    assert schema["$defs"]["CatalogSpec"]["properties"]["name"]["enum"] == list(catalog.ENTRIES)
