"""The pictures of the documentation are those that `python -m docs.makers.pictures` draws from what is committed."""

from pathlib import Path

import pytest

from docs.makers.pictures import pictures

DOCS = Path(__file__).resolve().parents[2] / "docs"
DRAWN = pictures(DOCS / "papers" / "explored")


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_drawn_from_what_is_committed_and_shown_on_a_page(name: str) -> None:
    assert (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8") == DRAWN[name]
    assert any(f"figures/{name}.svg" in page.read_text(encoding="utf-8") for page in DOCS.glob("**/*.md"))
