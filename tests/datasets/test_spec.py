"""What a config and the shipped catalog may say about data, and the messages for anything else."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.publishers import PARSERS
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, DatasetSpec, SyntheticSpec
from tests.datasets.building import faults
from tests.datasets.test_own_files import SPEC


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
            if mirror.url:
                assert mirror.url.endswith(f"/{mirror.filename}")
                assert {mirror.digest} == part.digests


@pytest.mark.parametrize(
    "before",
    ["timestamps: false", "nested:", "pattern:", "step:", "url:", "requirement:", "users:", "user_spread:"],
)
def test_a_misspelt_word_is_refused(tmp_path: Path, before: str) -> None:
    whole = Path(catalog.__file__).with_name("catalog.yaml").read_text()
    assert before in whole
    (tmp_path / "catalog.yaml").write_text(whole.replace(before, f"x{before}", 1))
    with pytest.raises((TypeError, ValidationError), match="x" + before.partition(":")[0]):
        catalog.read(tmp_path / "catalog.yaml")


SHOP = {"kind": "csv", **SPEC}


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
    assert parse(SHOP).key == "shop"


@pytest.mark.parametrize("case", faults("specs"), ids=lambda case: case["says"])
def test_errors_have_place_and_reason(case: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        parse(case["value"] if "kind" in case["value"] else {**SHOP, **case["value"]})
    (only,) = error.value.errors()
    assert only["loc"] == ("dataset", *case["at"])
    assert case["says"] in only["msg"]


def test_schema_names_the_catalog() -> None:
    schema = TypeAdapter(DatasetSpec).json_schema()
    names, forms = schema["anyOf"]
    assert set(catalog.ENTRIES) < set(names["enum"])
    assert set(forms["discriminator"]["mapping"]) == {"catalog", "csv", "synthetic"}
    assert schema["$defs"]["CatalogSpec"]["properties"]["name"]["enum"] == list(catalog.ENTRIES)
