"""The shipped catalog: properties that its reader cannot check."""

import re
from pathlib import Path

import pytest

from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.catalog import Download
from dpmf_cli.datasets.formats import PARSERS


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
