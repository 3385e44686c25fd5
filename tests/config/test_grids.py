"""Complete runs over θ, with twins and printed references, and on growing portions of the ratings."""

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.cli import main as cli
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.streams import OWN
from dpmf_cli.datasets import Folders, load
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Task, TaskResult
from dpmf_cli.experiment.running.cutting import arrivals, fold_assignment, portions_of
from tests.command import dpmf, task_files

pytestmark = pytest.mark.usefixtures("reference_machine")
DATA = "dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}\n"
ENTRIES = (
    "baselines: [ia, ge]\nalgorithms:\n  - algorithm: pge\n  - {algorithm: psgd, factors: 2, epochs: 2}\n"
)
PLAIN = DATA + "folds: 4\nruns: 2\nepsilons: [2, 8]\n" + ENTRIES
GROWTH = "twins: true\ngrowth: {portions: [0.3, 0.6, 1], order: random}\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def run(folder: Path, cache: Path, text: str, name: str = "x") -> str:
    (folder / f"{name}.yaml").write_text(text)
    return dpmf(folder, cache, "run", f"{name}.yaml", "-j", "1").stdout


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "results" / name).open()))


def run_inside(
    monkeypatch: pytest.MonkeyPatch, folder: Path, cache: Path, *arguments: str, data: str = "none"
) -> int:
    """Runs a command in this process, so that patches apply, and returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["dpmf", *arguments])
    monkeypatch.setenv("DPMF_CACHE", str(cache))
    monkeypatch.setenv("DPMF_DATA", str(folder / data))
    monkeypatch.chdir(folder)
    return cli.app(prog_name="dpmf", standalone_mode=False) or 0


def test_where_theta_is_epsilon_the_results_are_those_of_epsilon(tmp_path: Path, cache: Path) -> None:
    run(tmp_path, cache, PLAIN)
    before = task_files(tmp_path)
    run(tmp_path, cache, PLAIN.replace("epsilons", "thetas"), "y")
    assert task_files(tmp_path) == before
    of_theta, of_epsilon = table(tmp_path, "y/curves.csv"), table(tmp_path, "x/curves.csv")
    assert [row["theta"] for row in of_theta] == ["2.0", "8.0", "2.0", "8.0", "", ""]
    assert [{**row, "theta": ""} for row in of_theta] == of_epsilon


def test_each_algorithm_has_epsilon_of_its_own(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PrivateGlobalEffects, "epsilon_of", lambda self, theta: 2 * theta)
    monkeypatch.setattr(PrivateGlobalEffects, "theta_of", lambda self, epsilon: epsilon / 2)
    monkeypatch.setattr(PrivateGlobalEffects, "spends_delta", property(lambda self: 1e-6))
    (tmp_path / "x.yaml").write_text(PLAIN.replace("epsilons: [2, 8]", "thetas: [0.1, 2, 50]"))
    run_inside(monkeypatch, tmp_path, cache, "run", "x.yaml", "-j", "1")
    rows = table(tmp_path, "x/curves.csv")
    assert [(row["epsilon"], row["theta"], row["delta"]) for row in rows if row["label"] == "PGE"] == [
        ("0.2", "0.1", "1e-06"), ("4.0", "2.0", "1e-06"), ("100.0", "50.0", "1e-06"),
    ]  # fmt: skip
    assert [(row["epsilon"], row["theta"]) for row in rows if row["label"] == "PSGD"] == [
        ("0.1", "0.1"), ("2.0", "2.0"), ("50.0", "50.0"),
    ]  # fmt: skip
    drawn = capsys.readouterr().out
    assert "PGE§" in drawn
    assert "§ (ε, δ)-DP with δ = 1e-06" in drawn
    run_inside(monkeypatch, tmp_path, cache, "crossings", "--format", "json")
    crossings = json.loads(capsys.readouterr().out)
    crossed = [cell for cell in crossings if cell["reproduced"] is not None]
    assert {cell["label"] for cell in crossed} == {"PGE", "PSGD"}
    for cell in crossed:
        factor = 2 if cell["label"] == "PGE" else 1
        assert cell["reproduced"] == pytest.approx(factor * cell["theta"])
    # The same ε asked for by ε: nothing to compute, and θ is told where it is another number.
    (tmp_path / "x.yaml").write_text(PLAIN.replace("epsilons: [2, 8]", "epsilons: [0.2, 4, 100]"))
    run_inside(monkeypatch, tmp_path, cache, "run", "x.yaml", "-j", "1")
    rows = table(tmp_path, "x/curves.csv")
    assert [row["theta"] for row in rows if row["label"] == "PGE"] == ["0.1", "2.0", "50.0"]
    assert {row["theta"] for row in rows if row["label"] == "PSGD"} == {""}


def test_twins_are_one_fit_a_fold_and_meet_their_baseline(tmp_path: Path, cache: Path) -> None:
    drawn = run(tmp_path, cache, PLAIN + "twins: true\n")
    assert len(task_files(tmp_path)) == 4 * 2 + 2 * 4 * (2 + 1)
    rows = table(tmp_path, "x/curves.csv")
    by_label = {row["label"]: row for row in rows if row["epsilon"] == "inf"}
    assert by_label["PGE"]["rmse"] == by_label["GE"]["rmse"]
    assert (by_label["PGE"]["runs"], by_label["PSGD"]["runs"]) == ("1", "1")
    line = next(line for line in drawn.splitlines() if line.startswith("PSGD ") and len(line.split()) == 3)
    assert line.split()[1] == f"{float(by_label['PSGD']['rmse']):.4f}"
    assert line.split()[2] == f"{float(by_label['PSGD']['sd_folds']):.4f}"
    assert "RMSE without noise" in (tmp_path / "results" / "x" / "without_noise.md").read_text()
    twin = next(path for path, body in task_files(tmp_path).items() if "psgd" in path and b'["inf"]' in body)
    (tmp_path / "results" / twin).unlink()
    plan = json.loads(dpmf(tmp_path, cache, "plan", "x.yaml", "--json").stdout)
    assert {part["label"]: (part["tasks"], part["left"]) for part in plan["algorithms"]} == {
        "IA": (4, 0), "GE": (4, 0), "PGE": (12, 0), "PSGD": (12, 1),
    }  # fmt: skip
    rows = json.loads(dpmf(tmp_path, cache, "crossings", "--format", "json").stdout)
    assert {row["partial"] for row in rows} == {"3 of 4 folds"}


def test_without_twins_nothing_speaks_of_them(tmp_path: Path, cache: Path) -> None:
    assert "without noise" not in run(tmp_path, cache, PLAIN)
    assert not (tmp_path / "results" / "x" / "without_noise.md").exists()
    assert not (tmp_path / "results" / "x" / "growth.csv").exists()


def test_cinematch_beside_a_sample_of_netflix(tmp_path: Path, session_cache: Path, real_data: Path) -> None:
    text = "dataset: netflix-sample\nfolds: 5\nheld_out: 2\nruns: 1\nepsilons: [1, 20]\nreferences: [cinematch]\n"
    (tmp_path / "x.yaml").write_text(text + "algorithms: [{algorithm: pge}]\n")
    done = dpmf(tmp_path, session_cache, "run", "x.yaml", "-j", "1", "--data", str(real_data))
    assert "Cinematch probe, Cinematch quiz: Netflix's own recommender, as printed" in done.stdout
    assert (
        "Cinematch probe, Cinematch quiz: printed for that set of the complete data; only loosely comparable"
        in done.stdout
    )
    rows = table(tmp_path, "x/crossings.csv")
    assert [row["baseline"] for row in rows] == ["IA", "GE", "Cinematch probe", "Cinematch quiz"]
    assert [row["reference"] for row in rows] == ["False", "False", "True", "True"]


def test_growth_runs_everything_on_every_portion(tmp_path: Path, cache: Path) -> None:
    run(tmp_path, cache, PLAIN + "twins: true\n", "whole")
    whole = task_files(tmp_path)
    (tmp_path / "x.yaml").write_text(PLAIN + GROWTH)
    plan = json.loads(dpmf(tmp_path, cache, "plan", "x.yaml", "--json").stdout)
    assert {part["label"]: (part["tasks"], part["done"]) for part in plan["algorithms"]} == {
        "IA": (12, 4), "GE": (12, 4), "PGE": (36, 12), "PSGD": (36, 12),
    }  # fmt: skip
    run(tmp_path, cache, PLAIN + GROWTH)
    files = task_files(tmp_path)
    assert len(files) == 12 + 12 + 36 + 36
    assert {path: files[path] for path in whole} == whole
    for name in ("curves.csv", "crossings.csv", "ledger.csv"):
        of_growth = (tmp_path / "results" / "x" / name).read_text().replace(",x,", ",whole,")
        assert of_growth == (tmp_path / "results" / "whole" / name).read_text()
    assert (tmp_path / "results" / "x" / "growth.png").read_bytes().startswith(b"\x89PNG")
    rows = table(tmp_path, "x/growth.csv")
    assert len(rows) == 3 * (2 * 2 + 2)
    assert [row["ratings"] for row in rows[::6]] == ["720", "1440", "2400"]
    largest = {(row["label"], row["epsilon"]): row for row in rows if row["portion"] == "1.0"}
    for curve in table(tmp_path, "whole/curves.csv"):
        if curve["epsilon"] != "inf" or curve["neighbours"] == "none":
            assert largest[curve["label"], curve["epsilon"]]["rmse"] == curve["rmse"]
    for row in rows:
        if row["twin_rmse"]:
            assert float(row["loss"]) == pytest.approx(float(row["rmse"]) - float(row["twin_rmse"]))
    one = [float(row["loss"]) for row in rows if (row["label"], row["epsilon"]) == ("PGE", "2.0")]
    assert one == sorted(set(one), reverse=True)


@pytest.mark.slow
def test_a_growth_of_one_process_is_that_of_two(tmp_path: Path, cache: Path) -> None:
    run(tmp_path, cache, PLAIN + GROWTH)
    before = (tmp_path / "results" / "x" / "growth.csv").read_bytes(), task_files(tmp_path)
    shutil.rmtree(tmp_path / "results")
    dpmf(tmp_path, cache, "run", "x.yaml", "-j", "2")
    assert ((tmp_path / "results" / "x" / "growth.csv").read_bytes(), task_files(tmp_path)) == before


def test_a_result_of_a_small_portion_that_was_not_kept_is_missed(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Store.write

    def loses(self: Store, task: Task, result: TaskResult) -> None:
        if task.cut.portion == 1 or task.algorithm.algorithm != "psgd":
            write(self, task, result)

    monkeypatch.setattr(Store, "write", loses)
    (tmp_path / "x.yaml").write_text(PLAIN + GROWTH)
    assert run_inside(monkeypatch, tmp_path, cache, "run", "x.yaml", "-j", "1") == 1
    assert "24 tasks have no result though they were run" in capsys.readouterr().err
    rows = [row for row in table(tmp_path, "x/growth.csv") if row["label"] == "PSGD"]
    assert [bool(row["loss"]) for row in rows] == [False] * 4 + [True] * 2


def test_a_portion_needs_something_to_train_on_and_to_test_in_every_fold_held_out(
    tmp_path: Path, cache: Path
) -> None:
    (tmp_path / "shop.csv").write_text(shop(list(range(120))))
    text = SHOP + "held_out: 1\n" + GROWTH.replace("0.3", "0.02")
    outcomes = set()
    for seed in range(24):
        (tmp_path / "x.yaml").write_text(f"{text}seed: {seed}\n")
        config = load_config(tmp_path / "x.yaml")
        dataset = load(config.dataset, Folders(tmp_path, cache, tmp_path))
        first = arrivals(dataset.ratings, "random", dataset=OWN, seed=seed)[:2]
        folds = fold_assignment(OWN, seed, 3, 120)[first].tolist()
        possible = folds.count(0) == 1
        outcomes.add(tuple(folds.count(fold) for fold in range(3)))
        try:
            found = portions_of(config, dataset)
            assert possible
            assert [part.ratings for part in found] == [2, 72, 120]
        except DpmfError:
            assert not possible
    assert {(2, 0, 0), (0, 1, 1), (1, 1, 0)} <= outcomes


def test_a_missing_task_of_a_small_portion_is_missed(tmp_path: Path, cache: Path) -> None:
    run(tmp_path, cache, PLAIN + GROWTH)
    small = next(path for path, body in task_files(tmp_path).items() if b'"portion": 0.3' in body)
    (tmp_path / "results" / small).unlink()
    plan = json.loads(dpmf(tmp_path, cache, "plan", "x.yaml", "--json").stdout)
    assert sum(part["left"] for part in plan["algorithms"]) == 1
    again = dpmf(tmp_path, cache, "run", "x.yaml", "-j", "1")
    assert "computed 1 tasks" in again.stderr


def shop(times: list[int]) -> str:
    lines = [f"u{row % 12},i{row // 12},{1 + row * 7 % 5},{time}" for row, time in enumerate(times)]
    return "user,item,rating,time\n" + "\n".join(lines) + "\n"


SHOP = (
    "dataset: {kind: csv, name: shop, path: shop.csv, columns: {user: user, item: item, rating: rating, "
    "timestamp: time}, scale: {minimum: 1, maximum: 5, step: 1}}\n"
    "folds: 3\nruns: 1\nepsilons: [5]\nbaselines: [ia]\nalgorithms: [{algorithm: pge}]\n"
)


def test_growth_in_time_uses_the_oldest_ratings(tmp_path: Path, cache: Path) -> None:
    times = np.random.default_rng(0).permutation(120) * 86_400
    (tmp_path / "shop.csv").write_text(shop(times.tolist()))
    run(tmp_path, cache, SHOP + GROWTH.replace("random", "timestamp").replace(", 1]", "]"))
    rows = table(tmp_path, "x/growth.csv")
    assert [(row["portion"], row["ratings"], row["days"]) for row in rows[::2]] == [
        ("0.3", "36", "35.0"),
        ("0.6", "72", "71.0"),
    ]
    loaded = load(load_config(tmp_path / "x.yaml").dataset, Folders(tmp_path, cache, tmp_path))
    first = arrivals(loaded.ratings, "timestamp", dataset=OWN, seed=2016)[:36]
    assert sorted(loaded.ratings.columns["timestamp"][first] // 86_400) == list(range(36))
    assert int(rows[0]["users"]) == len(set(loaded.ratings.users[first].tolist()))
    curves = table(tmp_path, "x/curves.csv")
    assert curves[0]["rmse"] == rows[2]["rmse"]  # of the largest portion
    manifest = json.loads((tmp_path / "results" / "x" / "manifest.json").read_bytes())
    assert manifest["config"]["growth"] == {"portions": [0.3, 0.6], "order": "timestamp"}
    shown = dpmf(tmp_path, cache, "baselines", "--format", "table").stdout
    assert shown.startswith("shop, first 60 % of the ratings (x)\n")


def test_data_that_cannot_grow_as_asked_are_one_message(tmp_path: Path, cache: Path) -> None:
    timed = SHOP + GROWTH.replace("random", "timestamp")
    (tmp_path / "shop.csv").write_text(shop([7] * 120))
    (tmp_path / "x.yaml").write_text(timed)
    done = dpmf(tmp_path, cache, "run", "x.yaml", expect=2)
    assert "the same time stamp on every rating, so no first ones; use `order: random`" in done.stderr
    (tmp_path / "shop.csv").write_text(shop(list(range(120))))
    (tmp_path / "x.yaml").write_text(timed.replace("0.3", "0.01"))
    done = dpmf(tmp_path, cache, "run", "x.yaml", expect=2)
    assert (
        "0.01 of the ratings are 1, too few for a test and a training rating in each of 3 folds"
        in done.stderr
    )
    assert sum(not line.startswith("x: ") for line in done.stderr.strip().splitlines()) == 1
    assert task_files(tmp_path) == {}
