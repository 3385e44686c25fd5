"""What a run writes, what a second run of a config computes (what is missing, damaged, failed or new, and nothing else),
and the messages for commands that cannot work."""

import json
from pathlib import Path

import pytest

from dpmf_cli.algorithms.friedman2016.matrix_factorization import InputPerturbationSGD
from dpmf_cli.algorithms.shared.base import Model
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.experiment.results.store import encode, sealed
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from tests import command
from tests.runs.tiny import TASKS, TINY, Place


def test_a_run_writes_what_it_promises(undisturbed: Place) -> None:
    assert all(undisturbed.outputs.values())
    assert len(undisturbed.tasks) == TASKS
    manifest = undisturbed.manifest
    assert manifest["config"]["dataset"]["seed"] == 3
    assert manifest["dataset"]["ratings"] == 2400
    assert manifest["last_run"]["tasks"] == TASKS
    assert {"config_sha256", "git", "versions", "cpu", "seed"} <= manifest.keys()
    assert not list(undisturbed.folder.glob("results/**/.*"))


def test_two_processes_give_the_bytes_of_one(drawing: Place, undisturbed: Place) -> None:
    done = drawing.run(jobs=2)
    assert done.stdout.startswith("synthetic, shaped like MovieLens 100K")
    assert "results in results/tiny/" in done.stderr
    assert (drawing.outputs, drawing.tasks) == (undisturbed.outputs, undisturbed.tasks)


def test_crossings_of_a_config_a_folder_or_all_but_damaged_ones(undisturbed: Place, finished: Place) -> None:
    rows = undisturbed.json("crossings")
    assert [(row["algorithm"], row["baseline"]) for row in rows] == [
        ("pge", "IA"), ("pge", "GE"), ("isgd", "IA"), ("isgd", "GE")
    ]  # fmt: skip
    for row in rows:
        found = row["dataset"], row["neighbours"], row["mode"]
        assert found == ("synthetic-ml-100k", "bounded", "published")
        assert {"status", "printed", "reproduced", "low", "high"} <= row.keys()
        assert (row["reproduced"] is None) == (row["status"] != "crossed")
    for names in ((), ("tiny.yaml",), ("results/tiny",), (str(undisturbed.path("")),)):
        assert finished.json("crossings", *names) == rows
    finished.path("", "other").mkdir()
    finished.path("manifest.json", "other").write_text("{}")
    done = finished.dpmf("crossings", "--format", "json")
    assert json.loads(done.stdout) == rows
    assert "passed over: results/other/manifest.json: damaged" in done.stderr


def test_odd_labels_and_diverged_models_spoil_nothing(drawing: Place) -> None:
    odd = TINY.replace("isgd, factors: 2, epochs: 1500", 'isgd, label: "a$b_$x", factors: 2, epochs: 5')
    odd = odd.replace("runs: 3", "runs: 1").replace("folds: 4", "folds: 2")
    odd = odd.replace("factors: 2, iterations: 3", "factors: 40, regularization: 0")
    assert "a$b_$x" in drawing.run(odd).stdout
    assert all(drawing.outputs.values())


def test_plan_runs_nothing_and_calibrates_once(place: Place) -> None:
    apart = Place(place.folder, place.folder / "cache")
    told = apart.dpmf("plan", "tiny.yaml")
    assert f"left: {TASKS} of {TASKS} tasks" in told.stdout
    assert told.stderr.splitlines()[1].startswith("calibrated this machine in ")
    assert not (apart.folder / "results").exists()
    assert [path.name for path in apart.cache.iterdir()] == ["calibration"]
    again = apart.dpmf("plan", "tiny.yaml")
    assert (again.stdout, again.stderr) == (told.stdout, "")


def test_a_refined_grid_computes_only_the_new_epsilons(drawing: Place, undisturbed: Place) -> None:
    drawing.run(TINY.replace("[0.5, 2, 8]", "[2]"))
    drawing.write(TINY)
    parts = drawing.json("plan", "tiny.yaml")["algorithms"]
    left = {part["label"]: part["epsilons_left"] for part in parts if part["left"]}
    assert left == {"PGE": 2, "ISGD": 2}
    assert "48 tasks, 24 done, 24 left; 24 of them only compute new ε (0.5, 8)" in drawing.run().stderr
    assert drawing.outputs == undisturbed.outputs


def test_another_run_of_the_same_folds_adds_to_what_is_there(finished: Place) -> None:
    finished.write(TINY.replace("runs: 3", "runs: 4"))
    left = {label: left for label, (_, left) in finished.planned().items() if left}
    assert left == {"Clean MF (ALS)": 4, "PGE": 4, "ISGD": 4}


def test_a_failing_task_is_recorded_and_the_others_go_on(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = InputPerturbationSGD.fit

    def fails_once(
        self: InputPerturbationSGD, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> Model:
        if (streams.fold, streams.run) == (2, 1):
            raise ZeroDivisionError("on purpose")
        return fit(self, train, epsilons, streams=streams, curator=curator)

    monkeypatch.setattr(InputPerturbationSGD, "fit", fails_once)
    assert command.here(monkeypatch, place.folder, place.cache, "run", "tiny.yaml", "-j", "1") == 1
    assert "1 tasks failed" in capsys.readouterr().err
    (failure,) = place.manifest["failures"]
    assert (failure["algorithm"], failure["fold"], failure["run"]) == ("ISGD", 2, 1)
    assert "ZeroDivisionError: on purpose" in failure["traceback"]
    assert len(place.tasks) == TASKS - 1
    assert {row["algorithm"]: row["status"] for row in place.json("crossings")}["isgd"] == "incomplete"
    monkeypatch.undo()
    place.run()
    assert len(place.tasks) == TASKS


def test_the_manifest_follows_the_config_though_nothing_is_computed(finished: Place) -> None:
    finished.write(TINY.replace("  - {algorithm: isgd, factors: 2, epochs: 1500}\n", ""))
    stale = finished.dpmf("crossings", "tiny.yaml", "--format", "json")
    assert "`dpmf run tiny.yaml` brings the results up to date" in stale.stderr
    again = finished.run()
    assert "nothing to compute" in again.stderr
    assert "held results of another form of this config" in again.stderr
    shown = finished.dpmf("crossings", "--format", "json")
    assert {row["algorithm"] for row in json.loads(shown.stdout)} == {"pge"}
    assert shown.stderr == ""


def test_mae_is_measured_beside_rmse(finished: Place) -> None:
    curves = finished.rows("curves.csv")
    assert all(0 < float(row["mae"]) < float(row["rmse"]) for row in curves)
    (ia,) = (float(row["mae"]) for row in curves if row["label"] == "IA")
    stored = [json.loads(body)["mae"] for name, body in finished.tasks.items() if "/ia-" in name]
    assert ia == sum(mae for (mae,) in stored) / len(stored)
    assert {row["label"]: row["mae"] for row in finished.json("levels", "--at", "2")}["IA"] == ia


def test_results_of_before_there_was_mae_are_kept_and_read(finished: Place) -> None:
    for name, body in finished.tasks.items():
        whole = json.loads(body)
        del whole["mae"], whole["sha256"]
        (finished.folder / "results" / name).write_bytes(encode(sealed(whole)))
    old = finished.tasks
    assert "nothing to compute" in finished.run().stderr
    assert finished.tasks == old
    assert "mae" not in finished.rows("curves.csv")[0]
    assert "–" in finished.dpmf("levels", "--at", "2").stdout
    finished.dpmf("verify", "results", "--recompute", "4", "--seed", "1")
    for path in (finished.folder / "results").glob("tasks/*/ia-*/*.json"):
        path.unlink()
    finished.run()
    assert {row["label"] for row in finished.rows("curves.csv") if row["mae"]} == {"IA"}


def test_json_is_short_for_its_format_and_has_what_is_said_as_text(finished: Place) -> None:
    crossings = finished.json("crossings")
    for words in ("crossings", "levels", "baselines", "combined", "frontier"):
        assert json.loads(finished.dpmf(words, "--json").stdout) == finished.json(words)
    assert finished.dpmf("levels", "--json", "--format", "md").stdout.startswith("**")
    explained = json.loads(finished.dpmf("explain", "--json").stdout)
    assert (explained["text"], explained["crossings"]) == (finished.dpmf("explain").stdout, crossings)
    for _ in range(2):  # the second run remembers what the first has printed
        assert finished.run().stdout.startswith("synthetic, shaped")
        done = json.loads(finished.dpmf("run", "tiny.yaml", "--json").stdout)
        assert done["crossings"] == crossings
        assert {row["mechanism"] for row in done["ledger"]} == {"Laplace", ""}  # and the sums


BAD = {
    "run none.yaml": "none.yaml: no such file",
    "run absent.yaml": "dpmf datasets fetch ml-1m",
    "crossings --results nowhere": "nowhere: no results here",
    "crossings tiny.yaml": "run the experiment's config first",
    "crossings tiny.txt": "neither a config nor a results folder",
    "crossings --format xml": "",
    "run tiny.yaml --results tiny.yaml": "cannot be written",
    "run few.yaml": "fewer than the 100 folds",
}


@pytest.mark.parametrize(("words", "message"), BAD.items(), ids=BAD)
def test_bad_input_is_one_message_and_exit_code_2(place: Place, words: str, message: str) -> None:
    place.write(TINY.replace(TINY.splitlines()[0], "dataset: ml-1m"), "absent")
    few = "dataset: {kind: synthetic, like: ml-100k, users: 9, items: 9, ratings: 60}"
    place.write(TINY.replace(TINY.splitlines()[0], few).replace("folds: 4", "folds: 100"), "few")
    done = place.dpmf(*words.split(), expect=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


SHOP = """\
dataset: {{kind: csv, name: {name}, path: ratings.csv, columns: {{user: user, item: item, rating: rating}},
          scale: {{minimum: {low}, maximum: {high}, step: {low}}}}}
folds: 3
runs: 2
refine: false
epsilons: [0.3, 3, 30]
baselines: [ga, {{algorithm: ge, effects: {{beta_u: 5}}}}]
crossings: [ga, ge]
neighbours: [bounded, unbounded]
mode: corrected
algorithms: [pge]
"""


def test_neither_the_name_of_own_ratings_nor_their_unit_changes_a_crossing(
    tmp_path: Path, session_cache: Path, ratings: Ratings, undrawn: None
) -> None:
    def crossings(name: str, unit: int) -> list[list[float | None]]:
        place = Place(tmp_path / name, session_cache)
        place.folder.mkdir()
        rows = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
        lines = ["user,item,rating", *(f"u{user},i{item},{unit * value:g}" for user, item, value in rows)]
        (place.folder / "ratings.csv").write_text("\n".join(lines) + "\n")
        place.run(SHOP.format(name=name, low=unit, high=5 * unit))
        return [[row[key] for key in ("reproduced", "low", "high")] for row in place.json("crossings")]

    first = crossings("shop", 1)
    assert any(reproduced for reproduced, *_ in first)
    assert crossings("another", 1) == first
    for row, other in zip(first, crossings("wide", 20), strict=True):
        assert other == [each and pytest.approx(each, rel=1e-3) for each in row]
