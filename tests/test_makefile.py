"""The Makefile runs every config of every paper, in whole and in small, and knows no other."""

import re
import subprocess
from pathlib import Path

import pytest

from dpmf_cli.findings import all_papers

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIGS = {path.stem for path in (REPOSITORY / "configs").glob("*.yaml")}
PAPERS = {
    "friedman": "friedman2016",
    "mcsherry": "mcsherry2009",
    "zhang": "zhang2018",
    "neera": "neera2020",
    "wang": "wang2017",
}
PARTS = (*PAPERS, "combined")


def commands(target: str) -> str:
    """What make would run for a target; nothing is run."""
    asked = ["make", "--no-print-directory", "-n", target, "PYTHON=true"]
    return subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def configs_run(target: str) -> set[str]:
    loops = re.findall(r"for config in ([^;]*);", commands(target))
    return {name for loop in loops for name in loop.split()}


@pytest.mark.parametrize("part", PAPERS)
def test_a_paper_is_run_whole(part: str) -> None:
    exhibits = all_papers()[PAPERS[part]].exhibits
    assert configs_run(f"reproduce-{part}") == {name for exhibit in exhibits for name in exhibit.configs}
    assert "--if-present" in commands(f"reproduce-{part}")


@pytest.mark.parametrize("part", PARTS)
def test_and_in_small_on_one_set_with_one_fold(part: str) -> None:
    small = configs_run(f"small-{part}")
    assert small
    assert small <= configs_run(f"reproduce-{part}")
    assert "--results results/small --dataset ml-100k --held-out 1 --runs 1" in commands(f"small-{part}")


@pytest.mark.parametrize(
    ("target", "prefix", "folder"),
    [("reproduce-all", "reproduce", "results"), ("reproduce-small", "small", "results/small")],
)
def test_all_parts_then_the_report_each_with_its_time(target: str, prefix: str, folder: str) -> None:
    said = commands(target)
    assert f"for part in {' '.join(f'{prefix}-{part}' for part in PARTS)};" in said
    assert said.index("for part in") < said.index(f"dpmf report --all --results {folder}")
    assert said.count("date +%s") >= 5
