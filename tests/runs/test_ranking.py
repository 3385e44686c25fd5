"""nDCG and recall in a config: from the key to results, tables and figures."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import DataIdentity, open_cached
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.experiment.running.cutting import cut_ratings
from tests.command import dpmf, task_files
from tests.configs import load
from tests.runs.tiny import TINY, outputs, rows

ASKED = "ranking: {threshold: 4, ndcg: 5, recall: 8}\n"
RANKED = (
    TINY.replace("runs: 3", "runs: 2")
    .replace("epochs: 1500", "epochs: 3")
    .replace("baselines: [ga", "twins: true\nbaselines: [popularity, ga")
    + ASKED
)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("ranked")
    (folder / "tiny.yaml").write_text(RANKED)
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    return folder


TABLES = Path("results", "tiny")


def test_the_most_rated_items_first_counted_by_hand(ranked: Path, cache: Path) -> None:
    config = load_config(ranked / "tiny.yaml")
    (checksum,) = {json.loads(body)["settings"]["checksum"] for body in task_files(ranked).values()}
    ratings, found = open_cached(checksum, cache), []
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
    of_folds = [row for row in rows(ranked / TABLES / "folds.csv") if row["label"] == "Popularity"]
    assert [float(row["recall@8"]) for row in of_folds] == pytest.approx(found)
    assert {(row["rmse"], row["status"]) for row in of_folds} == {("", "measured")}


def test_curves_show_rmse_unless_asked_and_have_the_others_beside(ranked: Path, cache: Path) -> None:
    curves = rows(ranked / TABLES / "curves.csv")
    assert list(curves[0])[-3:] == ["mae", "ndcg@5", "recall@8"]
    assert "Popularity" not in {row["label"] for row in curves}
    assert {row["epsilon"] for row in curves if row["label"] == "PGE"} == {"0.5", "2.0", "8.0", "inf"}
    pge, ia = ([row for row in curves if row["label"] == label][-1] for label in ("PGE", "IA"))
    assert float(pge["ndcg@5"]) == pytest.approx(
        float(ia["ndcg@5"])
    )  # without noise and users its order is theirs
    shown = dpmf(ranked, cache, "baselines", "--metric", "ndcg@5", "--format", "json").stdout
    table = {row["baseline"]: row for row in json.loads(shown)}
    assert table["IA"]["reproduced"] == pytest.approx(float(ia["ndcg@5"]))
    assert table["Popularity"]["metric"] == "ndcg@5"
    assert "metric" not in json.loads(dpmf(ranked, cache, "baselines", "--format", "json").stdout)[0]


def test_crossings_and_levels_by_metric(ranked: Path, cache: Path) -> None:
    text = dpmf(ranked, cache, "crossings", "tiny.yaml", "--metric", "ndcg@5").stdout
    assert "bounded, published, nDCG@5" in text
    assert "more is better" in text
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("PGE")] == [
        ["PGE", name] for name in ("Popularity", "IA", "GE")
    ]
    assert "Popularity" not in dpmf(ranked, cache, "crossings", "tiny.yaml").stdout
    levels = json.loads(
        dpmf(ranked, cache, "levels", "--at", "2", "--metric", "recall@8", "--format", "json").stdout
    )
    assert all(0 < level["recall@8"] < 1 for level in levels)
    assert [level["label"] for level in levels if level["mae"] is None] == ["Popularity"]
    refused = dpmf(ranked, cache, "crossings", "tiny.yaml", "--metric", "ndcg@10", expect=2).stderr
    assert '"ndcg@10" is not measured; did you mean "ndcg@5"?' in refused
    assert "tiny" in dpmf(ranked, cache, "combined").stdout


def test_figures_and_the_page_by_metric(ranked: Path, cache: Path) -> None:
    dpmf(ranked, cache, "plot", "tiny.yaml", "--metric", "ndcg@5", "--format", "svg")
    drawn = (ranked / "results/tiny/curves-ndcg@5.svg").read_text()
    assert "<!-- nDCG@5 -->" in drawn
    assert "<!-- Popularity 0" in drawn
    assert "<!-- RMSE -->" in (ranked / "results/tiny/curves.svg").read_text()
    dpmf(ranked, cache, "verify", "results", "--recompute", "3", "--seed", "1")


@pytest.mark.slow
def test_the_metric_of_the_config_is_shown_and_changes_no_task(
    ranked: Path, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "tiny.yaml").write_text(f"{RANKED}metric: ndcg@5\n")
    (tmp_path / "results").symlink_to(ranked / "results")
    before = outputs(ranked)
    ran = dpmf(tmp_path, cache, "run", "tiny.yaml")
    assert "nothing to compute" in ran.stderr
    assert "nDCG@5; ± the standard deviation" in ran.stdout
    curves = rows(ranked / TABLES / "curves.csv")
    assert [name for name in curves[0] if name in ("rmse", "ndcg@5", "recall@8")] == [
        "ndcg@5",
        "rmse",
        "recall@8",
    ]
    assert "Popularity" in {row["label"] for row in curves}
    assert {row["metric"] for row in rows(ranked / TABLES / "crossings.csv")} == {"ndcg@5"}
    dpmf(tmp_path, cache, "report", "tiny.yaml")
    assert "nDCG@5 of the baselines" in (ranked / "results/tiny/report.html").read_text()
    dpmf(ranked, cache, "run", "tiny.yaml")
    assert outputs(ranked) == before


def test_without_the_key_results_keep_their_names(tmp_path: Path) -> None:
    def settings(text: str) -> dict[str, object]:
        config = load(tmp_path, text)
        return next(tasks_of(config, config.algorithms[0], DataIdentity("d", "", "c"))).settings

    assert "ranking" not in settings(TINY)
    assert settings(TINY + ASKED)["ranking"] == {"threshold": 4.0, "ndcg": 5, "recall": 8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RANKED.replace(ASKED, ""), "orders items and predicts no ratings; ask for `ranking"),
        (f"{TINY}metric: ndcg@10\n", '"ndcg@10" is not measured; ask for it by `ranking`'),
        (f"{RANKED}metric: ndcg@10\n", '"ndcg@10" is not measured; did you mean "ndcg@5"'),
        (f"{RANKED}growth: {{portions: [0.5, 1], order: random}}\n", "remove `growth`"),
        (RANKED.replace("ndcg: 5", "ndcg: 0"), "greater than or equal to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DpmfError, match=message):
        load(tmp_path, text)
