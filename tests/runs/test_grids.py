"""Complete runs over θ, with noise-free runs and printed references, on growing portions, and on each user's latest ratings.

Runs that add ε where curves cross: the same ε whichever process computes them, however often it is interrupted.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.streams import OWN
from dpmf_cli.datasets import Dataset, Folders, load
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Cut, Task, TaskResult
from dpmf_cli.experiment.running.cutting import arrivals, cut_ratings, folds_of, portions_of
from tests.command import dpmf, fork, here, session_ended, wait_for_tasks
from tests.runs.tiny import TINY, Place

PLAIN = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 4
runs: 2
epsilons: [2, 8]
baselines: [ia, ge]
algorithms:
  - algorithm: pge
  - {algorithm: psgd, factors: 2, epochs: 2}
"""
GROWTH = "twins: true\ngrowth: {portions: [0.3, 0.6, 1], order: random}\n"


def test_where_theta_is_epsilon_the_results_are_those_of_epsilon(place: Place) -> None:
    assert "without noise" not in place.run(PLAIN, "x").stdout
    assert not any(place.path(name, "x").exists() for name in ("without_noise.md", "growth.csv"))
    before = place.tasks
    place.run(PLAIN.replace("epsilons", "thetas"), "y")
    assert place.tasks == before
    of_theta, of_epsilon = place.rows("curves.csv", "y"), place.rows("curves.csv", "x")
    assert [row["theta"] for row in of_theta] == ["2.0", "8.0", "2.0", "8.0", "", ""]
    assert [{**row, "theta": ""} for row in of_theta] == of_epsilon


def test_each_algorithm_has_epsilon_of_its_own(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PrivateGlobalEffects, "epsilon_of", lambda self, theta: 2 * theta)
    monkeypatch.setattr(PrivateGlobalEffects, "theta_of", lambda self, epsilon: epsilon / 2)
    monkeypatch.setattr(PrivateGlobalEffects, "spends_delta", property(lambda self: 1e-6))

    def run(text: str) -> dict[str, list[tuple[str, str]]]:
        """(ε, θ) of each point of a curve."""
        place.write(text, "x")
        assert here(monkeypatch, place.folder, place.cache, "run", "x.yaml", "-j", "1") == 0
        rows = place.rows("curves.csv", "x")
        assert {row["delta"] for row in rows if row["label"] == "PGE"} == {"1e-06"}
        return {
            label: [(row["epsilon"], row["theta"]) for row in rows if row["label"] == label]
            for label in ("PGE", "PSGD")
        }

    of_theta = run(PLAIN.replace("epsilons: [2, 8]", "thetas: [0.1, 2, 50]"))
    assert of_theta["PGE"] == [("0.2", "0.1"), ("4.0", "2.0"), ("100.0", "50.0")]
    assert of_theta["PSGD"] == [("0.1", "0.1"), ("2.0", "2.0"), ("50.0", "50.0")]
    drawn = capsys.readouterr().out
    assert "PGE§" in drawn
    assert "§ (ε, δ)-DP with δ = 1e-06" in drawn
    crossed = [cell for cell in place.json("crossings") if cell["reproduced"] is not None]
    assert {cell["label"] for cell in crossed} == {"PGE", "PSGD"}
    for cell in crossed:
        factor = 2 if cell["label"] == "PGE" else 1
        assert cell["reproduced"] == pytest.approx(factor * cell["theta"])
    # The same ε asked for by ε: nothing to compute, and θ is told where it is another number.
    of_epsilon = run(PLAIN.replace("epsilons: [2, 8]", "epsilons: [0.2, 4, 100]"))
    assert of_epsilon["PGE"] == of_theta["PGE"]
    assert {theta for _, theta in of_epsilon["PSGD"]} == {""}


def test_noise_free_runs_are_one_fit_a_fold_and_meet_their_baseline(place: Place) -> None:
    drawn = place.run(PLAIN + "twins: true\n", "x").stdout
    assert len(place.tasks) == 4 * 2 + 2 * 4 * (2 + 1)
    by_label = {row["label"]: row for row in place.rows("curves.csv", "x") if row["epsilon"] == "inf"}
    assert by_label["PGE"]["rmse"] == by_label["GE"]["rmse"]
    assert (by_label["PGE"]["runs"], by_label["PSGD"]["runs"]) == ("1", "1")
    line = next(line for line in drawn.splitlines() if line.startswith("PSGD ") and len(line.split()) == 3)
    assert line.split()[1:] == [f"{float(by_label['PSGD'][key]):.4f}" for key in ("rmse", "sd_folds")]
    assert "RMSE without noise" in place.path("without_noise.md", "x").read_text()
    noise_free = next(path for path, body in place.tasks.items() if "psgd" in path and b'["inf"]' in body)
    (place.folder / "results" / noise_free).unlink()
    assert place.planned("x") == {"IA": (4, 0), "GE": (4, 0), "PGE": (12, 0), "PSGD": (12, 1)}
    assert {row["partial"] for row in place.json("crossings")} == {"3 of 4 folds"}


def test_cinematch_beside_a_sample_of_netflix(tmp_path: Path, session_cache: Path, real_data: Path) -> None:
    place = Place(tmp_path, session_cache)
    text = "dataset: netflix-sample\nfolds: 5\nheld_out: 2\nruns: 1\nepsilons: [1, 20]\nreferences: [cinematch]\n"
    place.write(text + "algorithms: [{algorithm: pge}]\n", "x")
    drawn = place.dpmf("run", "x.yaml", "-j", "1", "--data", str(real_data)).stdout
    assert "Cinematch probe, Cinematch quiz: Netflix's own recommender, as printed" in drawn
    loosely = "printed for that set of the complete data; only loosely comparable"
    assert f"Cinematch probe, Cinematch quiz: {loosely}" in drawn
    assert [(row["baseline"], row["reference"]) for row in place.rows("crossings.csv", "x")] == [
        ("IA", "False"), ("GE", "False"), ("Cinematch probe", "True"), ("Cinematch quiz", "True")
    ]  # fmt: skip


def test_growth_runs_everything_on_every_portion(drawing: Place) -> None:
    drawing.run(PLAIN + "twins: true\n", "whole")
    whole = drawing.tasks
    drawing.write(PLAIN + GROWTH, "x")
    assert drawing.planned("x") == {"IA": (12, 8), "GE": (12, 8), "PGE": (36, 24), "PSGD": (36, 24)}
    drawing.run(name="x")
    files = drawing.tasks
    assert len(files) == 12 + 12 + 36 + 36
    assert whole.items() <= files.items()
    for name in ("curves.csv", "crossings.csv", "ledger.csv"):
        of_growth = drawing.path(name, "x").read_text().replace(",x,", ",whole,")
        assert of_growth == drawing.path(name, "whole").read_text()
    assert drawing.path("growth.png", "x").read_bytes().startswith(b"\x89PNG")
    rows = drawing.rows("growth.csv", "x")
    assert len(rows) == 3 * (2 * 2 + 2)
    assert [row["ratings"] for row in rows[::6]] == ["720", "1440", "2400"]
    largest = {(row["label"], row["epsilon"]): row for row in rows if row["portion"] == "1.0"}
    for curve in drawing.rows("curves.csv", "whole"):
        if curve["epsilon"] != "inf" or curve["neighbours"] == "none":
            assert largest[curve["label"], curve["epsilon"]]["rmse"] == curve["rmse"]
    for row in rows:
        if row["twin_rmse"]:
            assert float(row["loss"]) == pytest.approx(float(row["rmse"]) - float(row["twin_rmse"]))
    one = [float(row["loss"]) for row in rows if (row["label"], row["epsilon"]) == ("PGE", "2.0")]
    assert one == sorted(set(one), reverse=True)
    small = next(path for path, body in files.items() if b'"portion": 0.3' in body)
    (drawing.folder / "results" / small).unlink()
    assert sum(left for _, left in drawing.planned("x").values()) == 1
    assert "computed 1 tasks" in drawing.run(name="x").stderr
    assert drawing.tasks == files


def test_a_result_of_a_small_portion_that_was_not_kept_is_missed(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Store.write

    def loses(self: Store, task: Task, result: TaskResult) -> None:
        if task.cut.portion == 1 or task.algorithm.algorithm != "psgd":
            write(self, task, result)

    monkeypatch.setattr(Store, "write", loses)
    place.write(PLAIN + GROWTH, "x")
    assert here(monkeypatch, place.folder, place.cache, "run", "x.yaml", "-j", "1") == 1
    assert "24 tasks have no result though they were run" in capsys.readouterr().err
    rows = [row for row in place.rows("growth.csv", "x") if row["label"] == "PSGD"]
    assert [bool(row["loss"]) for row in rows] == [False] * 4 + [True] * 2


SHOP = """\
dataset: {kind: csv, name: shop, path: shop.csv, columns: {user: user, item: item, rating: rating, timestamp: time},
          scale: {minimum: 1, maximum: 5, step: 1}}
folds: 3
runs: 1
epsilons: [5]
baselines: [ga, ia]
algorithms: [{algorithm: pge, mode: corrected}]
refine: false
"""
ONE_CUT = SHOP.replace("folds: 3\n", "")
RECENT = SHOP + "test: recent\nheld_out: 2\n"
IN_TIME = GROWTH.replace("random", "timestamp")


@pytest.fixture
def shop(place: Place) -> Place:
    """Ten ratings of each of twelve users, a day apart, in a random order."""
    write_shop(place, (np.random.default_rng(0).permutation(120) * 86_400).tolist())
    return place


def write_shop(place: Place, times: list[int]) -> None:
    lines = [f"u{row % 12},i{row // 12},{1 + row * 7 % 5},{time}" for row, time in enumerate(times)]
    (place.folder / "shop.csv").write_text("user,item,rating,time\n" + "\n".join(lines) + "\n")


def loaded(place: Place) -> Dataset:
    dataset = load_config(place.folder / "x.yaml").dataset
    return load(dataset, Folders(place.folder, place.cache, place.folder))


def test_growth_in_time_uses_the_oldest_ratings(shop: Place) -> None:
    shop.run(SHOP + IN_TIME.replace(", 1]", "]"), "x")
    rows = shop.rows("growth.csv", "x")
    first_of_each = [(row["portion"], row["ratings"], row["days"]) for row in rows[::3]]
    assert first_of_each == [("0.3", "36", "35.0"), ("0.6", "72", "71.0")]
    ratings = loaded(shop).ratings
    first = arrivals(ratings, "timestamp", dataset=OWN, seed=2016)[:36]
    assert sorted(ratings.columns["timestamp"][first] // 86_400) == list(range(36))
    assert int(rows[0]["users"]) == len(set(ratings.users[first].tolist()))
    curves, growth = (
        {(row["label"], row["epsilon"]): row["rmse"] for row in table}
        for table in (shop.rows("curves.csv", "x"), rows[3:])
    )
    assert growth.items() <= curves.items()
    shown = shop.dpmf("baselines", "--format", "table").stdout
    assert shown.startswith("shop, first 60 % of the ratings (x)\n")


def test_the_latest_are_predicted_on_every_portion(shop: Place) -> None:
    shop.write(RECENT + IN_TIME.replace("0.3, 0.6", "0.5"), "x")
    assert shop.planned("x") == {"GA": (4, 4), "IA": (4, 4), "PGE": (8, 8)}
    shop.run(name="x")
    assert shop.planned("x") == {"GA": (4, 0), "IA": (4, 0), "PGE": (8, 0)}
    assert all(json.loads(body)["settings"]["test"] == "recent" for body in shop.tasks.values())
    found = next(float(row["rmse"]) for row in shop.rows("curves.csv", "x") if row["label"] == "GA")
    errors = {}
    for portion in (0.5, 1.0):
        cuts = (
            cut_ratings(loaded(shop).ratings, Cut(3, fold, portion, split="recent"), dataset=OWN, seed=2016)
            for fold in range(2)
        )
        of_folds = [np.sqrt(np.mean((test.values - train.values.mean()) ** 2)) for train, test in cuts]
        errors[portion] = np.mean(of_folds)
    assert found == pytest.approx(errors[1.0], abs=1e-6)
    assert found != pytest.approx(errors[0.5], abs=1e-3)
    shown = shop.dpmf("baselines", "--format", "table").stdout
    assert shown.startswith("shop, each user's latest held out (x)\n")
    anew = shop.dpmf("verify", "--recompute", "4").stdout.splitlines()[-1]
    assert anew.split() == ["computed", "anew", "4", "0"]
    shop.dpmf("audit", "x.yaml", "--pairs", "2", "--trials", "20", "-j", "1")
    shop.dpmf("release", "x.yaml", "--method", "pge", "--epsilon", "5")


@pytest.mark.parametrize(
    ("times", "text", "message"),
    [
        ([7] * 120, RECENT, "shop: these ratings have the same time stamp on every rating"),
        (
            list(range(120)),
            RECENT + IN_TIME.replace("0.3", "0.001"),
            "shop: 0.001 of the ratings are 0, too few",
        ),
        ([7] * 120, SHOP + IN_TIME, "same time stamp on every rating, so no first ones; use `order: random`"),
        (
            list(range(120)),
            SHOP + IN_TIME.replace("0.3", "0.01"),
            "0.01 of the ratings are 1, too few for a test and a training rating in each of 3 folds",
        ),
        ([7] * 120, ONE_CUT + "split: {by: time}\n", "so no latest ones; use `split: folds`"),
        ([7] * 120, ONE_CUT + "split: {by: leave_out}\n", "so no last ones; use `which: random`"),
        ([*range(120)], ONE_CUT + "split: {by: leave_out, k: 10}\n", "which last: nothing to train on"),
        ([7] * 120, ONE_CUT + "split: {by: files, path: no.csv}\n", "correct `path` of `split`"),
    ],
)
def test_ratings_that_cannot_be_cut_as_asked_are_one_message(
    place: Place, times: list[int], text: str, message: str
) -> None:
    write_shop(place, times)
    place.write(text, "x")
    said = dpmf(place.folder, place.folder / "cache", "run", "x.yaml", expect=2).stderr
    assert message in said
    assert sum(not line.startswith("x: ") for line in said.strip().splitlines()) == 1
    assert place.tasks == {}


ONE_CUTS = ("files, path: test.csv", "time", "leave_out", "leave_out, k: 1, which: random", "new_users")


@pytest.mark.parametrize("by", ONE_CUTS)
def test_a_run_with_one_cut(shop: Place, by: str) -> None:
    tested = "".join(f"u{user},i10,{1 + user % 5},0.5\n" for user in (*range(11), 99))
    (shop.folder / "test.csv").write_text(f"user,item,rating,time\n{tested}")
    methods = (
        "epsilons: [2, 5]\nbaselines: [ga, ua, ge]\nalgorithms: [mm_knn, mm_averages]\ncrossings: [ge]\n"
    )
    split = f"split: {{by: {by}}}\nrefine: false\nruns: 1\n"
    shop.run(SHOP.partition("folds")[0] + methods + split, "x")
    assert list(shop.planned("x").values()) == 5 * [(1, 0)]
    assert {json.loads(body)["settings"]["test"].get("path") for body in shop.tasks.values()} == {None}
    title = f"shop, by {by.replace(':', '')}"
    assert shop.dpmf("baselines", "--format", "table").stdout.startswith(title)
    shop.dpmf("verify", "results", "--recompute", "4")
    if by == "new_users":
        cut = Cut(1, 0, split=load_config(shop.folder / "x.yaml").split)
        train, test = cut_ratings(loaded(shop).ratings, cut, dataset=OWN, seed=2016)
        fitted = train.values[test.user_counts[train.users] == 0]
        found = next(float(row["rmse"]) for row in shop.rows("curves.csv", "x") if row["label"] == "GA")
        assert found == pytest.approx(np.sqrt(np.mean((test.values - fitted.mean()) ** 2)), abs=1e-6)
    if by.startswith("files"):
        (shop.folder / "test.csv").write_text("user,item,rating,time\nu1,i0,3,0\n")
        said = shop.dpmf("run", "x.yaml", expect=2).stderr
        assert "test.csv:2: user 'u1' has rated item 'i0' before, at" in said


def test_a_portion_needs_something_to_train_on_and_to_test_in_every_fold_held_out(shop: Place) -> None:
    outcomes = set()
    for seed in range(24):
        shop.write(SHOP + "held_out: 1\n" + GROWTH.replace("0.3", "0.02") + f"seed: {seed}\n", "x")
        dataset = loaded(shop)
        first = arrivals(dataset.ratings, "random", dataset=OWN, seed=seed)[:2]
        folds = folds_of(dataset.ratings, Cut(3, 0), dataset=OWN, seed=seed)[first].tolist()
        possible = folds.count(0) == 1
        outcomes.add(tuple(folds.count(fold) for fold in range(3)))
        try:
            found = portions_of(load_config(shop.folder / "x.yaml"), dataset)
            assert possible
            assert [part.ratings for part in found] == [2, 72, 120]
        except DpmfError:
            assert not possible
    assert {(2, 0, 0), (0, 1, 1), (1, 1, 0)} <= outcomes


COARSE = (
    TINY.replace("[0.5, 2, 8]", "[0.1, 0.5, 8, 40]").replace("epochs: 1500", "epochs: 20") + "refine: true\n"
)


@pytest.fixture(scope="module")
def refined(undisturbed: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with the results of a run in one process, and what it said."""
    place = Place(tmp_path_factory.mktemp("refined"), undisturbed.cache)
    (place.folder / "said").write_text(place.run(COARSE).stderr)
    return place


def crossings(place: Place) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["algorithm"], row["baseline"]): row for row in place.json("crossings")}


def test_epsilons_are_added_where_curves_cross_until_crossings_are_settled(refined: Place) -> None:
    assert "refining crossings" in (refined.folder / "said").read_text()
    added, found = refined.manifest["added"], crossings(refined)
    assert not any(row["coarse"] for row in found.values())
    for key in (("pge", "IA"), ("isgd", "IA")):
        at = found[key]["reproduced"]
        assert any(abs(epsilon / at - 1) < 0.7 for epsilon in added[key[0].upper()])
    curves = {row["epsilon"] for row in refined.rows("curves.csv")}
    assert {repr(epsilon) for epsilons in added.values() for epsilon in epsilons} <= curves


def test_without_refine_nothing_is_added(place: Place, refined: Place) -> None:
    assert "refining" not in place.run(COARSE.replace("refine: true", "refine: false")).stderr
    assert len(place.tasks) < len(refined.tasks)
    ours, theirs = crossings(place), crossings(refined)
    assert [key for key in ours if ours[key]["reproduced"] != theirs[key]["reproduced"]]


@pytest.mark.slow
def test_two_processes_and_killed_runs_add_the_same(drawing: Place, refined: Place) -> None:
    drawing.write(COARSE)
    for jobs, count in (("1", 5), ("2", len(refined.tasks) - 5)):  # the second time while ε are added
        process = fork(drawing.folder, drawing.cache, "run", "tiny.yaml", "-j", jobs)
        wait_for_tasks(drawing.folder, process, count)
        (os.kill if jobs == "1" else os.killpg)(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert session_ended(process.pid)
    drawing.run()
    assert (drawing.outputs, drawing.tasks) == (refined.outputs, refined.tasks)


def test_the_other_commands_know_them(refined: Place) -> None:
    before = refined.path("manifest.json").read_bytes()
    assert "nothing to compute" in refined.run().stderr
    assert refined.path("manifest.json").read_bytes() == before
    assert "more may come" in refined.dpmf("plan", "tiny.yaml").stdout
    refined.dpmf("verify", "results/tiny", "--recompute", "200", "--seed", "1")
    victim = max((refined.folder / "results").glob("tasks/*/pge-*/*.json"), key=os.path.getmtime)
    whole = victim.read_bytes()
    victim.unlink()  # of an added ε
    told = refined.dpmf("verify", "results/tiny", expect=1).stdout
    victim.write_bytes(whole)
    assert "1 of its tasks have no sound result" in told
    refined.dpmf("report", "results/tiny")
