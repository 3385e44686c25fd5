"""`dpmf recommend`: a config that runs, chosen by ranks on public ratings, and by errors only on request."""

from pathlib import Path

import pytest

from dpmf_cli.experiment.config import load_config
from dpmf_cli.report.leaders import shipped
from tests.cli.test_advise import films
from tests.command import dpmf

MINE = """\
dataset:
  kind: csv
  name: own-films
  path: films.csv
  separator: ";"
  decimal: ","
  columns: {user: kunde, item: film, rating: note}
  scale: {minimum: 0.5, maximum: 4, step: 0.5}
runs: 1
epsilons: [7]
algorithms: [psgd]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    films(tmp_path / "films.csv")
    (tmp_path / "my.yaml").write_text(MINE)
    return tmp_path


def test_what_leads_on_public_ratings_is_run_and_its_config_written(
    folder: Path, session_cache: Path
) -> None:
    done = dpmf(folder, session_cache, "recommend", "my.yaml", "--epsilon", "1")
    (ranking,) = [
        each
        for each in shipped().rankings
        if (each.protects, each.joint, each.delta) == ("rating value", False, 0.0)
    ]
    first = ranking.nearest(1.0).methods[0]
    config = load_config(folder / "my-value-recommended.yaml")
    assert [entry.name for entry in config.algorithms] == [first.method]
    assert config.epsilons is not None
    assert (config.runs, 1.0 in config.epsilons, 7 in config.epsilons) == (1, True, False)
    said = " ".join(done.stdout.split())
    assert f"Chosen by its rank on public ratings: {first.method}." in said
    assert "The choice did not use your ratings." in said
    assert "Privacy raises the error by" in said
    assert "so was the choice of the method" not in said
    assert f"dpmf release my-value-recommended.yaml --method '{first.method}' --epsilon 1" in said
    again = dpmf(folder, session_cache, "run", "my-value-recommended.yaml")
    assert "nothing to compute" in again.stderr


def test_by_errors_runs_all_and_says_what_that_costs(folder: Path, session_cache: Path) -> None:
    words = "--protects", "local", "--by-errors", "--to", "sub/chosen.yaml"
    (folder / "sub").mkdir()
    done = dpmf(folder, session_cache, "recommend", "my.yaml", *words)
    config = load_config(folder / "sub" / "chosen.yaml")
    assert len(config.algorithms) > 1
    assert not any(entry.joint for entry in config.algorithms)
    assert "so was the choice of the method" in " ".join(done.stdout.split())
    assert "Chosen by its rank" not in done.stdout


def test_a_delta_and_the_others_are_asked_for(folder: Path, session_cache: Path) -> None:
    words = "--protects", "user", "--towards", "others", "--delta", "1e-5"
    dpmf(folder, session_cache, "recommend", "my.yaml", *words)
    (entry,) = load_config(folder / "my-user-recommended.yaml").algorithms
    assert entry.joint
    assert entry.spends_delta in (0.0, 1e-5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("my.yaml", "--towards", "me"), "choose one of everybody, others"),
        (("my.yaml", "--delta", "2"), "give 0, or one from 1e-15 to 0.01"),
        (("my.yaml", "--protects", "user"), "; add `--towards others`, or `--towards others --delta 1e-06`"),
        (
            ("my.yaml", "--protects", "user", "--by-errors"),
            "provable ε for these options; add `--towards others`, or `",
        ),
        (("films.csv",), "films.csv: not a config (.yaml); `dpmf advise` takes a file of ratings"),
        (("none.yaml",), "none.yaml: no such file"),
        (("bare.yaml",), "dataset"),
        (("typo.yaml",), "typo.yaml:9:1: fold: unknown key"),
        (("few.yaml",), "too few to tell methods apart"),
    ],
)
def test_mistakes_name_the_fix(folder: Path, session_cache: Path, words: tuple[str, ...], said: str) -> None:
    (folder / "bare.yaml").write_text("runs: 1\n")
    (folder / "typo.yaml").write_text(MINE.replace("runs: 1", "fold: 1").replace("\nepsilons: [7]", ""))
    few = folder / "few"
    few.mkdir()
    films(few / "films.csv", users=3)
    (folder / "few.yaml").write_text(MINE.replace("films.csv", "few/films.csv"))
    done = dpmf(folder, session_cache, "recommend", *words, expect=2)
    assert said in done.stderr
    assert not list(folder.glob("*-recommended.yaml"))
