"""`dpmf combined` and `dpmf frontier` from the command line: results, what is missing, files, refusals."""

import csv
import io
import json
from pathlib import Path

import pytest

from docs.makers.leaders import main
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.loading import reduced
from dpmf_cli.studies.experiment import run
from tests.command import dpmf, run_config
from tests.configs import SHIPPED

CONFIG = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 2
runs: 1
mode: corrected
epsilons: [1.0e-6, 0.5, 2, 8]
twins: available
baselines: [ga, ia, ge, {algorithm: ge, label: tuned GE, tuned: true}]
algorithms:
  - {algorithm: pge, neighbours: bounded, label: "PGE, bounded"}
  - {algorithm: pge, neighbours: unbounded, label: "PGE, unbounded"}
  - {algorithm: mm_averages, neighbours: user, label: averages}
  - {algorithm: local_mean, neighbours: local, label: mean}
  - {algorithm: personalized, neighbours: unbounded, base: pge, label: PGE around}
"""
GROUPS = ["rating value", "rating presence", "rating presence, personalised", "user", "local"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("combined")
    one = CONFIG[: CONFIG.index("  - {algorithm: pge, neighbours: unb")]
    joint = f"{one}  - {{algorithm: public_knn, neighbours: bounded}}\n"
    (folder / "other.yaml").write_text(CONFIG)
    for name, text in {"all": CONFIG, "one": one, "joint": joint}.items():
        run_config(folder, name, text)
    return folder


def rows(folder: Path, *words: str) -> tuple[list[dict[str, str]], str]:
    """The rows of a table, and what is said beside it."""
    done = dpmf(folder, folder, *words, "--format", "csv")
    return list(csv.DictReader(io.StringIO(done.stdout))), done.stderr


def test_a_row_for_every_algorithm_in_its_group(folder: Path) -> None:
    found, said = rows(folder, "combined", "all.yaml")
    assert [row["protects"] for row in found] == GROUPS
    assert [row["towards"] for row in found] == ["everybody"] * 3 + ["other users", "everybody"]
    assert {row["rank"] for row in found} <= {"", "1"}
    around = "Zhang 2018 around Friedman 2016"
    assert [row["source"] for row in found] == ["Friedman 2016", "Friedman 2016", around, "dpmf", "dpmf"]
    assert said == ""


def test_a_row_for_each_epsilon_of_each_guarantee(folder: Path) -> None:
    found, said = rows(folder, "frontier", "all.yaml")
    assert len({(row["protects"], row["towards"]) for row in found}) == 5
    assert [row["epsilon"] for row in found[:4]] == ["1e-06", "0.5", "2.0", "8.0"]
    assert {row["label"] for row in found if not row["cost"]} == {"PGE around"}
    assert all(float(row["to_ge_tuned"]) > float(row["to_ge"]) for row in found)
    assert {row["label"] for row in found} == {
        entry.name for entry in load_config(folder / "all.yaml").algorithms
    }
    assert said == ""


def test_what_has_no_results_is_named_with_the_command_that_gets_them(folder: Path) -> None:
    command = "other.yaml has no results yet: `dpmf run other.yaml`"
    shown = dpmf(folder, folder, "combined", "all.yaml", "other.yaml")
    assert command in shown.stdout
    programs = dpmf(folder, folder, "combined", "all.yaml", "other.yaml", "--format", "json")
    assert command in programs.stderr
    assert len(json.loads(programs.stdout)) == len(GROUPS)
    assert command in dpmf(folder, folder, "combined", "other.yaml", expect=2).stderr
    elsewhere = dpmf(folder, folder, "combined", "other.yaml", "--results", "there", expect=2)
    assert "`dpmf run other.yaml --results there`" in elsewhere.stderr


def test_incomplete_curves_and_reductions_are_named(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    for name in ("all", "one"):
        run(load_config(folder / f"{name}.yaml"), Folders(folder, folder / "cache", folder, results))
    smaller = reduced(load_config(folder / "one.yaml"), held_out=1)
    run(smaller, Folders(folder, folder / "cache", folder, results))
    for path in results.glob("tasks/*/local_mean-*/*.json"):
        path.unlink()
    command = f"`dpmf run all.yaml --results {results}` completes them"
    shown = dpmf(folder, folder, "combined", "all.yaml", "--results", str(results)).stdout
    assert f"all: incomplete: mean: {command}" in shown
    by_folder = dpmf(folder, folder, "combined", str(results / "all")).stdout
    assert "all: incomplete: mean: `dpmf run` of its config completes them" in by_folder
    found, said = rows(folder, "combined", "--results", str(results))
    assert {row["experiment"] for row in found} == {"all", "one"}
    left_out = "one.held-out-1: left out, because it is a reduction of one, which is here"
    assert left_out in said
    assert left_out in dpmf(folder, folder, "combined", "--results", str(results)).stdout
    found, said = rows(folder, "combined", str(results / smaller.name))
    assert {row["experiment"] for row in found} == {"one.held-out-1"}
    assert "left out" not in said


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "combined all.yaml --rank across",
            "no ranking across what is protected (rating value, rating presence",
        ),
        (
            "combined joint.yaml --rank across",
            "no ranking across whom an ε protects from (rating value, against everybody; rating value, against other users",
        ),
        ("combined all.yaml --rank accross", 'did you mean "across"'),
        ("combined all.yaml --by ga", '--by: unknown baseline "ga"'),
        ("combined all.yaml --format xml", 'unknown table format "xml"'),
        ("combined all.yaml --figure x.gif", "x.gif: name a .png, .svg or .pdf file"),
        ("combined all.yaml --figure all.yaml/x.png", "all.yaml/x.png: cannot be written"),
        ("combined all.yaml --figure /dev/full/y.png", "/dev/full/y.png: cannot be written"),
        ("combined none.yaml", "none.yaml: no such file"),
        ("combined --results nowhere", "nowhere: no results here"),
    ],
)
def test_refusals_are_one_message_and_exit_code_2(folder: Path, command: str, message: str) -> None:
    done = dpmf(folder, folder, *command.split(), expect=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_figures_are_files_beside_the_table_and_leaders_are_of_the_guarantees_to_ask_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "rating presence" in dpmf(folder, folder, "combined", "all.yaml", "--figure", "sub/all.svg").stdout
    dpmf(folder, folder, "frontier", "all.yaml", "--figure", "f.svg")
    for name in ("sub/all.svg", "f.svg"):
        assert "<svg" in (folder / name).read_text()[:500]
    main([folder / "all.yaml"], folder / "results")
    text = capsys.readouterr().out
    assert "PGE, bounded" in text
    assert "personalised" not in text
    assert "epsilon: 0.5" in text
    assert "epsilon: 1.0e-06" not in text


def test_one_kind_alone_may_be_ranked_as_one_list(folder: Path) -> None:
    across = dpmf(folder, folder, "combined", "one.yaml", "--rank", "across").stdout
    assert across == dpmf(folder, folder, "combined", "one.yaml").stdout
    assert "rating value" in across


def test_the_shipped_configs_have_every_private_algorithm_with_errors() -> None:
    combined = [path for path in SHIPPED if path.stem.startswith("combined_")]
    assert [path.stem for path in combined] == ["combined_ml100k", "combined_ml1m"]
    for path in combined:
        config = load_config(path)
        assert {entry.algorithm for entry in config.algorithms} == {
            key for key, of in PRIVATE.items() if not of.scores_only
        }
        assert {entry.protects.value for entry in config.algorithms} == set(GROUPS)
