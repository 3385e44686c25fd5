"""nDCG and recall in a config: from the key to results, tables and figures."""

import json

import numpy as np
import pytest

from dpmf_cli.datasets import DataIdentity, open_cached
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.experiment.running.batches import cut_ratings
from tests.runs.tiny import TINY, Place

RANKED = (
    TINY.replace("runs: 3", "runs: 2")
    .replace("epochs: 1500", "epochs: 3")
    .replace("baselines: [ga", "twins: true\nbaselines: [popularity, ga")
    + "ranking: {threshold: 4, ndcg: 5, recall: 8}\n"
)


@pytest.fixture(scope="module")
def ranked(undisturbed: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("ranked"), undisturbed.cache)
    place.run(RANKED)
    return place


def test_the_most_rated_items_first_counted_by_hand(ranked: Place) -> None:
    config, checksum = load_config(ranked.folder / "tiny.yaml"), ranked.manifest["dataset"]["checksum"]
    ratings, found = open_cached(checksum, ranked.cache), []
    for task in tasks_of(config, config.baselines[0], DataIdentity(config.dataset.key, "", checksum)):
        train, test = cut_ratings(ratings, task.cut, dataset=task.data.key, seed=task.seed)
        counts = np.bincount(train.items, minlength=train.n_items)
        recalls = []
        for user in np.unique(test.users[test.values >= 4]):
            relevant = test.items[(test.users == user) & (test.values >= 4)]
            others = np.delete(counts, train.items[train.users == user])
            above = np.array([(others > counts[item]).sum() for item in relevant])
            equal = np.array([(others == counts[item]).sum() for item in relevant])
            recalls.append((np.clip(8 - above, 0, equal) / equal).sum() / min(8, len(relevant)))
        found.append(np.mean(recalls))
    of_folds = [row for row in ranked.rows("folds.csv") if row["label"] == "Popularity"]
    assert [float(row["recall@8"]) for row in of_folds] == pytest.approx(found)
    assert {(row["rmse"], row["status"]) for row in of_folds} == {("", "measured")}


def test_curves_show_rmse_unless_asked_and_have_the_others_beside(ranked: Place) -> None:
    curves = ranked.rows("curves.csv")
    assert list(curves[0])[-3:] == ["mae", "ndcg@5", "recall@8"]
    assert "Popularity" not in {row["label"] for row in curves}
    assert {row["epsilon"] for row in curves if row["label"] == "PGE"} == {"0.5", "2.0", "8.0", "inf"}
    pge, ia = (
        [float(row["ndcg@5"]) for row in curves if row["label"] == label][-1] for label in ("PGE", "IA")
    )
    assert pge == pytest.approx(ia)  # without noise and users its order is theirs
    table = {row["baseline"]: row for row in ranked.json("baselines", "--metric", "ndcg@5")}
    assert table["IA"]["reproduced"] == pytest.approx(ia)
    assert table["Popularity"]["metric"] == "ndcg@5"
    assert "metric" not in ranked.json("baselines")[0]


def test_crossings_levels_and_figures_by_metric(ranked: Place) -> None:
    text = ranked.dpmf("crossings", "tiny.yaml", "--metric", "ndcg@5").stdout
    assert "bounded, published, nDCG@5" in text
    assert "more is better" in text
    of_pge = [line.split()[:2] for line in text.splitlines() if line.startswith("PGE")]
    assert of_pge == [["PGE", name] for name in ("Popularity", "IA", "GE")]
    assert "Popularity" not in ranked.dpmf("crossings", "tiny.yaml").stdout
    levels = ranked.json("levels", "--at", "2", "--metric", "recall@8")
    assert all(0 < level["recall@8"] < 1 for level in levels)
    assert [level["label"] for level in levels if level["mae"] is None] == ["Popularity"]
    refused = ranked.dpmf("crossings", "tiny.yaml", "--metric", "ndcg@10", expect=2).stderr
    assert '"ndcg@10" is not measured; did you mean "ndcg@5"?' in refused
    assert "tiny" in ranked.dpmf("combined").stdout
    ranked.dpmf("plot", "tiny.yaml", "--metric", "ndcg@5", "--format", "svg")
    drawn = ranked.path("curves-ndcg@5.svg").read_text()
    assert "<!-- nDCG@5 -->" in drawn
    assert "<!-- Popularity 0" in drawn
    assert "<!-- RMSE -->" in ranked.path("curves.svg").read_text()
    ranked.dpmf("verify", "results", "--recompute", "3", "--seed", "1")


@pytest.mark.slow
def test_the_metric_of_the_config_is_shown_and_changes_no_task(ranked: Place) -> None:
    before = ranked.outputs
    ran = ranked.run(f"{RANKED}metric: ndcg@5\n")
    assert "nothing to compute" in ran.stderr
    assert "nDCG@5; ± the standard deviation" in ran.stdout
    curves = ranked.rows("curves.csv")
    shown = [name for name in curves[0] if name in ("rmse", "ndcg@5", "recall@8")]
    assert shown == ["ndcg@5", "rmse", "recall@8"]
    assert "Popularity" in {row["label"] for row in curves}
    assert {row["metric"] for row in ranked.rows("crossings.csv")} == {"ndcg@5"}
    ranked.dpmf("report", "tiny.yaml")
    assert "nDCG@5 of the baselines" in ranked.path("report.html").read_text()
    ranked.run(RANKED)
    assert ranked.outputs == before


def test_it_is_a_setting_of_results_that_have_it(ranked: Place, undisturbed: Place) -> None:
    asked = {"threshold": 4.0, "ndcg": 5, "recall": 8}
    assert all(json.loads(body)["settings"]["ranking"] == asked for body in ranked.tasks.values())
    assert not any("ranking" in json.loads(body)["settings"] for body in undisturbed.tasks.values())
