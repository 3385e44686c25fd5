"""The paper: its bibliography, the table of question 1, LaTeX; descriptions of data sets and licences beside it."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from docs.makers import bibliography, croissant, latex
from docs.makers.combined import PAGE, rows
from docs.makers.pages import outside_of_tables
from docs.makers.paper_tables import KINDS
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.catalog import ENTRIES
from dpmf_cli.papers.record import Record

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


def test_every_work_is_cited_and_complete() -> None:
    entries = bibliography.entries()
    assert bibliography.cited(outside_of_tables(TEXT)[0]) == set(entries)
    assert len(entries) == (ROOT / "docs" / "paper.bib").read_text().count("\n@") + 1
    for key, entry in entries.items():
        assert {"author", "title", "year"} <= set(entry), key
        assert all(set(some) & set(entry) for some in ({"doi", "url"}, bibliography.VENUES)), key


def test_the_table_of_crossings_has_what_the_page_of_all_methods_has() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = KINDS["matches"](lambda key: Record(paper=key, version=""))
    found = {(group.title, *row[:2]): row[2:] for group in table.groups for row in group.rows}
    presence = "rating presence, against everybody"
    published, corrected = (
        next(row for row in rows(page) if (row.method, row.mode, row.protects) == ("PALS", mode, presence))
        for mode in ("published", "corrected")
    )
    unproved = [f"{published.met[name].claimed} (∞)" for name in ("IA", "GE")]
    proved = [corrected.met[name].claimed for name in ("IA", "GE")]
    expected = ("2.00", unproved[0], proved[0], "8.00", unproved[1], proved[1])
    assert found[presence, "PALS", "Friedman 2016"] == expected
    user = "user, against other users (joint DP)"
    assert found[user, "DPPS-PNBM‡", "Wang 2017"] == ("–", "needs no ε (∞)", "–") * 2


def test_the_page_becomes_latex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("docs.makers.latex.say", said.append)
    latex.main(tmp_path)
    assert said[-1].startswith("no PDF: latexmk is missing")
    text = (tmp_path / "paper.tex").read_text(encoding="utf-8")
    cited = {key for keys in re.findall(r"\\cite\{(.+?)\}", text) for key in keys.split(",")}
    assert cited == set(bibliography.entries())
    assert not re.search(r"\]\(|\*\*|<!--|^#|\| ", text, re.MULTILINE)
    tables = re.findall(r"^\|[ :|-]+\|$", latex.with_tables(TEXT), re.MULTILINE)[
        :-1
    ]  # without that of references
    assert text.count(r"\begin{tabularx}") == len(tables)
    assert "- name: The dpmf developers\n" in (tmp_path / "paper.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", ENTRIES)
def test_a_data_set_is_described_for_machines(key: str) -> None:
    text = (ROOT / "datasets" / "croissant" / f"{key}.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert found == croissant.described(ENTRIES[key])
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert all(
        found[name] for name in ("@type", "name", "description", "url", "license", "creator", "datePublished")
    )
    digests = [
        each.get("sha256") or each.get("md5") for each in found["distribution"] if "contentUrl" in each
    ]
    assert len(digests) == len(ENTRIES[key].parts)
    assert all(re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{32}", each) for each in digests)
    assert not re.search(r"pypi|pythonhosted|recbole|scikit|\"/", text)


def test_a_description_of_another_catalog_is_found(tmp_path: Path) -> None:
    croissant.main(tmp_path)
    croissant.main(tmp_path, check=True)
    (tmp_path / "ml-1m.json").write_text("{}\n")
    with pytest.raises(DpmfError, match="ml-1m"):
        croissant.main(tmp_path, check=True)


def test_every_file_has_a_licence() -> None:
    (every,) = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    assert (every["path"], every["SPDX-License-Identifier"]) == ("**", "Apache-2.0")
    assert (ROOT / "LICENSES" / "Apache-2.0.txt").read_text() == (ROOT / "LICENSE").read_text()
