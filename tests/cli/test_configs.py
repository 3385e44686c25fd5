"""`dpmf configs`: all shipped configs, by paper."""

from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.papers.claims import all_papers
from tests.configs import SHIPPED


def test_every_config_is_listed_with_its_data_under_its_paper() -> None:
    listed = CliRunner().invoke(app, ["configs"])
    assert listed.exit_code == 0
    rows = {row.split()[0]: row for row in listed.stdout.splitlines() if row.strip()}
    assert {path.stem for path in SHIPPED} <= set(rows)
    assert "ml-1m" in rows["ml1m_bounded"]
    assert "Table 4" in rows["ml1m_bounded"]
    assert all(findings.title in listed.stdout for findings in all_papers().values())


def test_what_is_asked_of_a_paper_needs_one() -> None:
    refused = CliRunner().invoke(app, ["configs", "--small"])
    assert "name it, e.g. `dpmf configs friedman2016 --small`" in str(refused.exception)
