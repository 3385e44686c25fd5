"""The committed records match the current spaces and claims, so the verdicts on the pages do too."""

from pathlib import Path

import pytest

from dpmf_cli.papers.claims import ANY, paper
from dpmf_cli.papers.record import FOLDER, Record, path_of, read_record
from dpmf_cli.papers.rules import RULES
from dpmf_cli.papers.rules.base import Theorem
from dpmf_cli.papers.space import explored, space

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers" / FOLDER


def record(key: str) -> Record:
    found = read_record(path_of(PAGES, key))
    assert found is not None
    return found


@pytest.mark.parametrize("key", explored())
def test_a_record_is_of_the_space_as_it_stands(key: str) -> None:
    found = record(key)
    assert "ml-100k" in found.data
    for data, tried in found.data.items():
        assert tried.is_of(space(key)), f"explore {key} on {data} again"
        on = space(key).on(data)
        assert (tried.configs, tried.folds, tried.runs) == (on.configs, on.folds, on.runs)
        assert (PAGES / f"{key}-{data}.png").is_file()


@pytest.mark.parametrize("key", explored())
def test_a_record_judges_the_claims_as_they_stand(key: str) -> None:
    found, claims = record(key), {claim.id: claim for claim in paper(key).claims}
    for data, tried in found.data.items():
        judged = {claim for setting in tried.tried for claim in setting.claims}
        assert judged <= {claim.id for claim in claims.values() if data in claim.data}
    theorems = {claim for claim, rule in RULES[key].items() if isinstance(rule, Theorem)}
    assert set(found.theorems) == theorems
    assert theorems <= {claim.id for claim in claims.values() if ANY in claim.data}
