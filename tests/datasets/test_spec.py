"""What a config may say about data, and the messages for anything else."""

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, DatasetSpec, SyntheticSpec

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
        ("ml-10k", ("dataset", "catalog", "name"), 'no data set "ml-10k" in the catalog; did you mean "ml-1'),
        (
            {"kind": "catalog", "name": "ml-1m", "nam": 1},
            ("dataset", "catalog"),
            'unknown key; did you mean "name"',
        ),
        ({"kind": "cvs"}, ("dataset",), "'catalog', 'csv', 'synthetic'"),
        ({**SHOP, "name": "ml-1m"}, ("dataset", "csv"), "means another data set"),
        ({**SHOP, "name": "synthetic-x"}, ("dataset", "csv"), "means another data set"),
        ({**SHOP, "name": "a/b"}, ("dataset", "csv", "name"), "pattern"),
        ({**SHOP, "header": False}, ("dataset", "csv"), "0-based numbers"),
        (
            {**SHOP, "columns": {**SHOP["columns"], "item": "customer"}},
            ("dataset", "csv"),
            "is named for two roles",
        ),
        ({**SHOP, "separator": "::"}, ("dataset", "csv", "separator"), "pattern"),
        ({**SHOP, "duplicates": "first"}, ("dataset", "csv", "duplicates"), "'error', 'last' or 'mean'"),
        ({**SHOP, "scale": {"minimum": 5, "maximum": 1}}, ("dataset", "csv", "scale"), "is not below"),
        (
            {**SHOP, "scale": {"minimum": 1, "maximum": 5, "step": 3}},
            ("dataset", "csv", "scale"),
            "no whole number of steps",
        ),
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
