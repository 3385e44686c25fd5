"""A small exploration of each paper on the real MovieLens 100K: what `make explore` does, with few settings."""

from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.exploring.explore import exploration, explore
from dpmf_cli.papers.space import explored
from dpmf_cli.papers.verdicts import judged
from dpmf_cli.running.processes import LocalProcesses
from tests.configs import SHIPPED


@pytest.mark.slow
@pytest.mark.parametrize("key", explored())
def test_a_paper_is_explored(key: str, real_data: Path, session_cache: Path, tmp_path: Path) -> None:
    wanted = exploration(key, "ml-100k", SHIPPED[0].parent, 3)
    folders = Folders(real_data, session_cache, results=tmp_path)
    found = explore(wanted, folders, LocalProcesses(2))
    assert len(found.tried) >= 2
    claims = [claim.id for claim in wanted.paper.claims if "ml-100k" in claim.data]
    tested = [claim for claim in claims if judged(found, claim).word != "not tested"]
    assert len(tested) > len(claims) / 2
    assert all(found.measured[claim] for claim in tested if claim in found.measured)
