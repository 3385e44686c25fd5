"""`dpmf tune`: the same settings at any time and in any number of processes; what it writes can be run."""

import csv
import json
import os
import signal
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.beyond.comparisons import PrivateBatchGradientDescent
from dpmf_cli.algorithms.field.chien2021 import PrivateAlternatingMinimization
from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects
from dpmf_cli.studies.tune import settings_of
from tests.command import fork, here, wait_for_tasks
from tests.runs.tiny import Place

SEARCHED = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 1200}
folds: 3
runs: 2
epsilons: [0.1, 0.5, 2, 8, 40]
baselines: [ga, ia, ge]
crossings: [ge]
twins: true
effects: {beta_m: 0, beta_u: 0}
algorithms:
  - pge
  - {algorithm: isgd, sweep: {factors: [2]}, epochs: 2}
  - {algorithm: isgd, label: mine, epochs: 2}
  - local_mean
search:
  pge: {effects.beta_m: {first: 1, last: 100, count: 9}, effects.beta_u: [5, 50], effects.sum_share: [0.3]}
  isgd: {budget.factorization: [0.2, 0.3, 0.4, 0.5], regularization: [0.1, 0.2]}
  mine: {epochs: [2, 4]}
"""
AXES = ("0.1", "2", "40")


@pytest.fixture
def place(place: Place) -> Place:
    place.write(SEARCHED)
    return place


def tuned(place: Place, *more: str, trials: int = 4) -> list[dict[str, str]]:
    """The rows of a search without the time that it took."""
    place.dpmf("tune", "tiny.yaml", "--trials", str(trials), "-j", "1", *more)
    return [{key: value for key, value in row.items() if key != "seconds"} for row in place.rows("tuned.csv")]


def test_what_is_chosen_is_the_best_and_runs_as_it_was_tried(place: Place) -> None:
    rows = tuned(place, "--to", "tuned.yaml")
    assert [row["label"] for row in rows] == ["PGE", "isgd, factors 2", "mine"]
    assert [row["trials"] + row["failed"] + row["refused"] for row in rows] == ["400", "400", "200"]
    assert "effects.beta_m" in rows[0]["chosen"]
    assert "sum_share" not in rows[0]["chosen"]
    assert float(rows[0]["tuned_2"]) < 0.99 * float(rows[0]["written_2"])
    assert all(float(row[f"tuned_{at}"]) <= float(row[f"written_{at}"]) for row in rows for at in AXES)
    chosen = [json.loads(row["chosen"]) for row in rows]
    assert any(first != last for first, _, last in chosen)  # another setting at another ε
    tried = place.tasks
    place.dpmf("run", "tuned.yaml", "-j", "1")
    with place.path("curves.csv", "tuned").open() as file:
        curves = {(row["label"], f"{float(row['epsilon']):g}"): row["rmse"] for row in csv.DictReader(file)}
    for row in rows:
        best = f"{row['label']}, tuned" if row["chosen"] != "[{}, {}, {}]" else row["label"]
        for at in AXES:
            assert float(row[f"written_{at}"]) == pytest.approx(float(curves[row["label"], at]), abs=1e-9)
            assert float(row[f"tuned_{at}"]) == pytest.approx(float(curves[best, at]), abs=1e-9)
    assert tried.items() <= place.tasks.items()  # no trial was computed again
    assert "exists already" in place.dpmf("tune", "tiny.yaml", "--to", "tuned.yaml", expect=2).stderr


ORDERED = (
    SEARCHED.replace("  - pge\n", "  - {algorithm: private_popularity, most_ratings: 1}\n  - pge\n")
    + "  private_popularity: {most_ratings: [2, 5, 20], noise: [laplace, gaussian]}\n"
    + "ranking: {threshold: 4, ndcg: 5, recall: 8}\n"
)


def test_a_config_that_shows_an_order_of_items_is_tuned_for_it(place: Place) -> None:
    place.write(ORDERED + "metric: ndcg@5\n")
    rows = tuned(place, "--at", "8,20", "--to", "tuned.yaml")
    assert [row["label"] for row in rows] == ["Private popularity", "PGE", "isgd, factors 2", "mine"]
    means = [[float(row[f"{part}_{at}"]) for at in (8, 20)] for row in rows for part in ("written", "tuned")]
    gains = np.diff(np.reshape(means, (4, 2, 2)).mean(axis=2))
    assert (gains >= 0).all()
    assert (gains > 0).any()
    assert "setting of the highest nDCG@5" in place.path("tuned.md").read_text()
    place.dpmf("run", "tuned.yaml", "-j", "1")
    with place.path("curves.csv", "tuned").open() as file:
        curves = {row["label"]: row["ndcg@5"] for row in csv.DictReader(file) if row["epsilon"] == "8.0"}
    assert float(rows[0]["written_8"]) == pytest.approx(float(curves["Private popularity"]), abs=1e-9)
    place.write(ORDERED)  # what has no RMSE cannot be tuned by it
    assert [row["label"] for row in tuned(place, trials=2)] == ["PGE", "isgd, factors 2", "mine"]
    place.write(ORDERED.partition("  - pge\n")[0] + "ranking: {threshold: 4, ndcg: 5}\n")
    said = place.dpmf("tune", "tiny.yaml", expect=2).stderr
    assert "no method has an RMSE; set `metric: ndcg@5`" in said


def test_an_interrupted_search_continues_to_the_same_table(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    process = fork(place.folder, place.cache, "tune", "tiny.yaml", "--trials", "3", "-j", "1")
    wait_for_tasks(place.folder, process, 4)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    begun = place.tasks
    rows = tuned(place, trials=6)
    assert begun.items() <= place.tasks.items()
    other = Place(tmp_path_factory.mktemp("other"), place.cache)
    other.write(SEARCHED)
    assert (tuned(other, "-j", "2", trials=6), other.tasks) == (rows, place.tasks)
    assert place.dpmf("tune", "tiny.yaml", "--trials", "3").stderr.count(" 0 left") == 1


DPAM = PrivateAlternatingMinimization(algorithm="dpam")
PBGD = PrivateBatchGradientDescent(algorithm="pbgd")


def test_draws_that_are_invalid_are_replaced_and_counted() -> None:
    space = {"learning_rate": [0.01, 0.02, 1.0], "item_ridge": [3.0, 20.0, 40.0]}
    settings, refused = settings_of(DPAM, space, 6, "search", 1)
    assert refused > 0
    assert len({str(entry.parameters()) for entry, _ in settings}) == 6
    assert settings_of(DPAM, space, 4, "search", 1)[0] == settings[:4]
    assert settings_of(DPAM, space, 6, "search", 2)[0] != settings
    assert len(settings_of(DPAM, space, 50, "search", 1)[0]) == 6  # of nine, three diverge
    for entry, alone in (
        (DPAM, {"learning_rate": [1.0]}),
        (PBGD, {"epochs": [5]}),
    ):  # that diverges, and alike
        assert [each for each, _ in settings_of(entry, alone, 2, "search", 1)[0]] == [entry]


def test_a_trial_that_fails_is_said_and_never_chosen(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = PrivateGlobalEffects.fit

    def fails(self: PrivateGlobalEffects, *of: Any, **more: Any) -> Any:
        if self.effects.beta_u == 50:
            raise ArithmeticError("no fit")
        return fit(self, *of, **more)

    monkeypatch.setattr(PrivateGlobalEffects, "fit", fails)
    words = "tune tiny.yaml --trials 8 -j 1 --at 4,0.7 --runs 1 --held-out 1"
    assert here(monkeypatch, place.folder, place.cache, *words.split()) == 0
    out, said = capsys.readouterr()
    assert "a trial of PGE failed: ArithmeticError: no fit" in said
    assert "written, ε = 0.7  written, ε = 4" in out
    row = place.rows("tuned.csv", "tiny.held-out-1.runs-1")[0]
    assert 0 < int(row["failed"]) < 8
    assert '"effects.beta_u": 5}' in row["chosen"]
    assert '"effects.beta_u": 50' not in row["chosen"]


@pytest.mark.parametrize(("at", "said"), [("1,x", "write numbers"), ("0,1", "--at: must be above 0")])
def test_a_grid_that_none_can_have_is_refused(place: Place, at: str, said: str) -> None:
    assert said in place.dpmf("tune", "tiny.yaml", "--at", at, expect=2).stderr
    to = place.dpmf("tune", "tiny.yaml", "--to", "tiny.yaml/x.yaml", expect=2).stderr
    assert "tiny.yaml/x.yaml: cannot be written (File exists); name another file with --to" in to
    assert "left" not in to
    place.write(SEARCHED.partition("search:")[0])
    assert "no method has a space" in place.dpmf("tune", "tiny.yaml", expect=2).stderr
