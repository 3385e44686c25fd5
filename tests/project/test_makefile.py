"""The Makefile runs every config of every paper, in whole and in small, and knows no other."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.papers.claims import all_papers
from tests.configs import SHIPPED

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = {path.stem for path in SHIPPED}
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
    """By name, where the target runs them; those of a paper are what `dpmf configs` says."""
    said = commands(target)
    loops = re.findall(r"for config in ([^;$]*); do [^;]*/dpmf run ", said)
    asked = re.findall(
        r"dpmf configs ([^)]*)\) \|\| exit 1; for config in \$configs; do [^;]*/dpmf run ", said
    )
    told = [CliRunner().invoke(app, ["configs", *words.split()]) for words in asked]
    assert all(each.exit_code == 0 for each in told)
    return {name for text in (*loops, *(each.stdout for each in told)) for name in text.split()}


@pytest.mark.parametrize("part", PAPERS)
def test_a_paper_is_run_whole(part: str) -> None:
    exhibits = all_papers()[PAPERS[part]].exhibits
    assert configs_run(f"reproduce-{part}") == {name for exhibit in exhibits for name in exhibit.configs}
    assert "--if-present" in commands(f"reproduce-{part}")


def test_the_frontier_is_of_all_private_methods() -> None:
    wanted = {name for name in CONFIGS if name.startswith(("combined_", "frontier_"))}
    assert configs_run("reproduce-frontier") == wanted
    said = commands("reproduce-frontier")
    assert "dpmf docs docs/frontier.md --results results > docs/frontier.md.part" in said
    assert "dpmf frontier --leaders dpmf_cli/report/leaders.yaml $found" in commands("leaders")


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


def test_every_test_is_run_by_one_of_two_targets_and_whole_suites_by_theirs() -> None:
    assert '-m pytest -m "not slow" -n 2 --dist loadfile' in commands("test")
    assert "-m pytest -m slow" in commands("test-slow")
    for suite in ("faults", "fuzz"):
        assert commands(f"test-{suite}").endswith(f"-m pytest tests/{suite}\n")


STANDS_IN = """\
#!/bin/sh
# As dpmf without any data but those of the configs in $HERE; $FAIL fails.
case "$*" in *"$FAIL"*) echo broken; exit 2;; esac
if [ "$1" = configs ]; then exec "$PYTHON" -m dpmf_cli "$@"; fi
if [ "$1" = run ]; then
    name=$(basename "$2" .yaml)
    case " $HERE " in *" $name "*) mkdir -p "results/$name";; esac
else
    echo "dpmf $*" | tee -a said
fi
"""


def made(
    folder: Path, target: str, *, here: str = "", fail: str = "nothing"
) -> subprocess.CompletedProcess[str]:
    """Makes a target with a stand-in for dpmf, in a folder of its own."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder)
    (folder / "results").mkdir(exist_ok=True)
    (folder / "dpmf").write_text(STANDS_IN)
    (folder / "dpmf").chmod(0o755)
    (folder / "installed").touch()
    return subprocess.run(
        ["make", "--no-print-directory", target, "BIN=.", "STAMP=installed"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHON": sys.executable,
            "HERE": here,
            "FAIL": fail,
        },
        capture_output=True,
        text=True,
        check=False,
    )


TABLES = ("crossings", "baselines", "combined", "local improvements", "local traffic")


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_without_data_no_table_of_other_results(part: str, tmp_path: Path) -> None:
    """dpmf without a folder would print every result there is."""
    (tmp_path / "results" / "quickstart").mkdir(parents=True)
    done = made(tmp_path, f"reproduce-{part}")
    assert done.returncode == 0, done.stderr
    assert f"reproduce-{part}: none of its experiments was run" in done.stdout
    said = (tmp_path / "said").read_text() if (tmp_path / "said").exists() else ""
    assert not any(f"dpmf {table}" in said for table in TABLES)
    assert {path.name for path in (tmp_path / "results").iterdir()} <= {"quickstart", "table2.txt"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "config", "file"),
    [
        ("friedman", "ml1m_bounded", "tables4and5.md"),
        ("friedman", "netflix_unbounded", "table3.md"),
        ("mcsherry", "mcsherry_fig2_ml1m", "mcsherry.md"),
        ("neera", "neera_fig4_ml100k", "neera_improvements.md"),
        ("wang", "wang_mf_ml100k", "wang.md"),
        ("wang", "wang_fig2_ml1m", "wang_fig3_ml1m.txt"),
        ("combined", "combined_ml1m", "combined.md"),
    ],
)
def test_a_table_is_of_what_was_run_and_whole_or_not_at_all(
    part: str, config: str, file: str, tmp_path: Path
) -> None:
    (tmp_path / "results" / "quickstart").mkdir(parents=True)
    done = made(tmp_path, f"reproduce-{part}", here=config)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "results" / file).read_text()
    assert re.findall(r"results/[a-z0-9_]+(?= |$)", table.strip()) == [f"results/{config}"]
    broken = made(tmp_path, f"reproduce-{part}", here=config, fail=table.removeprefix("dpmf ").strip())
    assert broken.returncode != 0
    assert (tmp_path / "results" / file).read_text() == table
    (tmp_path / "results" / file).unlink()
    made(tmp_path, f"reproduce-{part}", here=config, fail=table.removeprefix("dpmf ").strip())
    assert not [path for path in (tmp_path / "results").iterdir() if path.name.startswith(file)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "folder", "ran"),
    [
        ("reproduce-neera", "results", "neera_fig3_ml100k"),
        ("small-neera", "results/small", "small/neera_fig3_ml100k.held-out-1.runs-1"),
    ],
)
def test_traffic_where_its_experiment_was_run(target: str, folder: str, ran: str, tmp_path: Path) -> None:
    table = tmp_path / folder / "neera_table1.csv"
    done = made(tmp_path, target)
    assert done.returncode == 0, done.stderr
    assert f"no {folder}/neera_table1.csv" in done.stdout
    assert not table.exists()
    (tmp_path / "results" / ran).mkdir(parents=True)
    assert made(tmp_path, target).returncode == 0
    assert "local traffic" in table.read_text()
    table.unlink()
    assert made(tmp_path, target, fail="local traffic").returncode != 0
    assert not list(table.parent.glob("neera_table1*"))
