"""`dpmf combined` from the command line: results, what is missing, refusals."""

import csv
import io
import json
from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.loading import reduced
from dpmf_cli.studies.experiment import run
from tests.command import dpmf
from tests.configs import SHIPPED

CONFIG = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 2
runs: 1
mode: corrected
epsilons: [0.5, 2, 8]
algorithms:
  - {algorithm: pge, neighbours: bounded, label: "PGE, bounded"}
  - {algorithm: pge, neighbours: unbounded, label: "PGE, unbounded"}
  - {algorithm: mm_averages, neighbours: user, label: averages}
  - {algorithm: local_mean, neighbours: local, label: mean}
  - {algorithm: personalized, neighbours: unbounded, base: pge, label: PGE around}
"""
GROUPS = ["rating value", "rating presence", "rating presence, personalised", "user", "local"]
JOINT = "  - {algorithm: public_knn, neighbours: bounded}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("combined")
    (folder / "all.yaml").write_text(CONFIG)
    (folder / "other.yaml").write_text(CONFIG)
    (folder / "one.yaml").write_text(CONFIG[: CONFIG.index("  - {algorithm: pge, neighbours: unb")])
    (folder / "joint.yaml").write_text((folder / "one.yaml").read_text() + JOINT)
    for name in ("all", "one", "joint"):
        run(
            load_config(folder / f"{name}.yaml"),
            Folders(folder, folder / "cache", folder, folder / "results"),
        )
    return folder


def test_a_row_for_every_algorithm_in_its_group(folder: Path) -> None:
    done = dpmf(folder, folder, "combined", "all.yaml", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["protects"] for row in rows] == GROUPS
    assert [row["towards"] for row in rows] == ["everybody"] * 3 + ["other users", "everybody"]
    assert {row["rank"] for row in rows} <= {"", "1"}
    around = "Zhang 2018 around Friedman 2016"
    assert [row["source"] for row in rows] == ["Friedman 2016", "Friedman 2016", around, "dpmf", "dpmf"]
    assert done.stderr == ""


def test_what_has_no_results_is_named_with_the_command_that_gets_them(folder: Path) -> None:
    command = "other.yaml has no results yet: `dpmf run other.yaml`"
    shown = dpmf(folder, folder, "combined", "all.yaml", "other.yaml")
    assert command in shown.stdout
    assert "PGE" in shown.stdout
    programs = dpmf(folder, folder, "combined", "all.yaml", "other.yaml", "--format", "json")
    assert command in programs.stderr
    assert len(json.loads(programs.stdout)) == len(GROUPS)
    assert command in dpmf(folder, folder, "combined", "other.yaml", expect=2).stderr
    elsewhere = dpmf(folder, folder, "combined", "other.yaml", "--results", "there", expect=2)
    assert "`dpmf run other.yaml --results there`" in elsewhere.stderr


def test_incomplete_curves_are_named_with_the_command_that_completes_them(
    folder: Path, tmp_path: Path
) -> None:
    config = load_config(folder / "all.yaml")
    results = tmp_path / "results"
    run(config, Folders(folder, folder / "cache", folder, results))
    for path in results.glob("tasks/**/*.json"):
        if '"local_mean"' in path.read_text() or "local_mean" in str(path):
            path.unlink()
    shown = dpmf(folder, folder, "combined", "all.yaml", "--results", str(results)).stdout
    assert f"all: incomplete: mean: `dpmf run all.yaml --results {results}` completes them" in shown
    by_folder = dpmf(folder, folder, "combined", str(results / "all")).stdout
    assert "all: incomplete: mean: `dpmf run` of its config completes them" in by_folder


def test_a_reduction_is_left_out_where_the_whole_is_there(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    whole = load_config(folder / "one.yaml")
    smaller = reduced(whole, held_out=1)
    for config in (whole, smaller):
        run(config, Folders(folder, folder / "cache", folder, results))
    where = ("combined", "--results", str(results))
    done = dpmf(folder, folder, *where, "--format", "csv")
    assert {row["experiment"] for row in csv.DictReader(io.StringIO(done.stdout))} == {"one"}
    said = "one.held-out-1: left out, because it is a reduction of one, which is here"
    assert said in done.stderr
    assert said in dpmf(folder, folder, *where).stdout
    alone = dpmf(folder, folder, "combined", str(results / smaller.name), "--format", "csv")
    assert {row["experiment"] for row in csv.DictReader(io.StringIO(alone.stdout))} == {"one.held-out-1"}
    assert "left out" not in alone.stderr


REFUSED = {
    "across": (
        ["all.yaml", "--rank", "across"],
        "no ranking across what is protected (rating value, rating presence",
    ),
    "across, csv": (
        ["all.yaml", "--rank", "across", "--format", "csv"],
        "no ranking across what is protected",
    ),
    "across, joint": (
        ["joint.yaml", "--rank", "across"],
        "no ranking across whom an ε protects from (rating value, towards everybody; rating value, towards other users",
    ),
    "rank": (["all.yaml", "--rank", "accross"], 'did you mean "across"'),
    "by": (["all.yaml", "--by", "ga"], '--by: unknown baseline "ga"'),
    "format": (["all.yaml", "--format", "xml"], 'unknown table format "xml"'),
    "figure": (["all.yaml", "--figure", "x.gif"], "x.gif: name a .png, .svg or .pdf file"),
    "figure's place": (["all.yaml", "--figure", "all.yaml/x.png"], "all.yaml/x.png: cannot be written"),
    "figure's device": (["all.yaml", "--figure", "/dev/full/y.png"], "/dev/full/y.png: cannot be written"),
    "no config": (["none.yaml"], "none.yaml: no such file"),
    "nothing": (["--results", "nowhere"], "nowhere: no results here"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_are_one_message_and_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    done = dpmf(folder, folder, "combined", *arguments, expect=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_figure_is_written_beside_the_table(folder: Path) -> None:
    done = dpmf(folder, folder, "combined", "all.yaml", "--figure", "figures/all.svg")
    assert "rating presence" in done.stdout
    assert (folder / "figures" / "all.svg").read_text().startswith("<?xml")


def test_one_kind_alone_may_be_ranked_as_one_list(folder: Path) -> None:
    across = dpmf(folder, folder, "combined", "one.yaml", "--rank", "across").stdout
    assert across == dpmf(folder, folder, "combined", "one.yaml").stdout
    assert "rating value" in across


def test_the_shipped_configs_have_every_private_algorithm() -> None:
    from dpmf_cli.algorithms.registry import PRIVATE

    for path in (path for path in SHIPPED if path.stem.startswith("combined_")):
        config = load_config(path)
        assert {entry.algorithm for entry in config.algorithms} == set(PRIVATE)
        assert {entry.protects.value for entry in config.algorithms} == set(GROUPS)
