"""The output of `dpmf run` with very many curves."""

from pathlib import Path

import pytest

from dpmf_cli.cli import run
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.experiment import Finished
from dpmf_cli.results.collect import Collected
from tests.report.conftest import make


def test_of_very_many_rows_the_first_are_printed_and_the_file_of_all_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = make(4)
    crossings = find_crossings(experiment, replicates=10)
    finished = Finished(Collected(experiment, {}), crossings, Path("results/made"), 0, 0, [])
    run._print_results(finished)
    whole = capsys.readouterr().out
    monkeypatch.setattr(run, "MOST_ROWS", 3)
    run._print_results(finished)
    cut = capsys.readouterr().out
    assert "left out" not in whole
    assert "\n5 of 8 rows are left out here; all of them: results/made/crossings.md\n" in cut
    assert "\n1 of 4 rows are left out here; all of them: results/made/curves.csv\n" in cut
    assert ("\npals " in whole, "\npals " in cut) == (True, False)
