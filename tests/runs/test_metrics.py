"""The distribution of errors, nDCG and recall, as a config asks for them: from the key to results, tables and figures."""

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.datasets import DataIdentity, open_cached
from dpmf_cli.evaluation.metrics import GROUPED, TopItems
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.experiment.results.task import tasks_of
from dpmf_cli.experiment.running.cutting import cut_ratings
from tests.evaluation.test_top_items import measured as of_scores
from tests.runs.tiny import TINY, Place

LIMITS = [0.5, 1.0, 2.0, 4.0]
CONFIG = f"""\
dataset: {{kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 900}}
folds: 3
runs: 2
seed: 5
twins: true
epsilons: [0.5, 4]
error_cdf: {LIMITS}
baselines: [ga, {{algorithm: als, factors: 2, iterations: 2, sweep: {{regularization: [0.1, 0.3]}}}}]
algorithms:
  - {{algorithm: pge, clip_predictions: true}}
  - {{algorithm: isgd, label: one, factors: 2, epochs: 2, sweep: {{regularization: [0.1, 0.3]}}}}
  - {{algorithm: isgd, label: two, factors: 2, epochs: 2, sweep: {{regularization: [0.1, 0.3]}}}}
"""


@pytest.fixture(scope="module")
def measured(undisturbed: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("cdf"), undisturbed.cache)
    place.run(CONFIG)
    return place


def cuts(place: Place, baseline: int) -> Iterator[tuple[Ratings, Ratings]]:
    """(training, test ratings) of each task of a baseline."""
    config, checksum = load_config(place.folder / "tiny.yaml"), place.manifest["dataset"]["checksum"]
    ratings, data = open_cached(checksum, place.cache), DataIdentity(config.dataset.key, "", checksum)
    for task in tasks_of(config, config.baselines[baseline], data):
        yield cut_ratings(ratings, task.cut, dataset=data.key, seed=task.seed)


def test_the_fractions_are_those_of_the_test_ratings(measured: Place) -> None:
    """The global average predicts one number, whose errors are counted here by hand."""
    fractions = []
    for train, test in cuts(measured, 0):
        errors = np.abs(test.values - train.values.mean(dtype=np.float64))
        fractions.append([(errors <= x).mean() for x in LIMITS])
    found = [row for row in measured.rows("error_cdf.csv") if row["label"] == "GA"]
    assert [float(row["x"]) for row in found] == LIMITS
    assert [float(row["mean"]) for row in found] == pytest.approx(np.mean(fractions, axis=0))
    assert [float(row["sd"]) for row in found] == pytest.approx(np.std(fractions, axis=0, ddof=1))
    assert {row["epsilon"] for row in found} == {"inf"}


def test_all_that_was_measured_is_in_the_table_of_noise_free_runs_too(measured: Place) -> None:
    found = [row["epsilon"] for row in measured.rows("error_cdf.csv") if row["label"] == "PGE"]
    assert found == ["0.5"] * 4 + ["4.0"] * 4 + ["inf"] * 4
    pge = collect_folder(measured.path("")).experiment.curves[0]
    assert pge.error_cdf is not None
    assert pge.error_cdf.shape == (3, 2, 2, 4)
    assert (pge.error_cdf[..., -1] == 1).all()  # clipped to the scale of 1 to 5
    assert (np.diff(pge.error_cdf, axis=-1) >= 0).all()
    assert pge.noise_free is not None
    assert (pge.noise_free["error_cdf"][:, 0, 0, 1] > pge.error_cdf[:, :, 0, 1].mean(axis=1)).all()


def test_sweeps_have_their_own_table_and_figures(measured: Place) -> None:
    found = measured.rows("error_cdf-regularization.csv")
    lines = list(dict.fromkeys((row["line"], row["epsilon"]) for row in found))
    private = [(name, epsilon) for name in ("one", "two") for epsilon in ("0.5", "4.0", "inf")]
    assert lines == [*private, ("Clean MF (ALS)", "inf")]
    for name in ("error_cdf", "error_cdf-regularization", "sweep-regularization"):
        for form, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
            assert measured.path(f"{name}.{form}").read_bytes().startswith(magic)


RANKED = (
    TINY.replace("runs: 3", "runs: 2")
    .replace("epochs: 1500", "epochs: 3")
    .replace("baselines: [ga", "twins: true\nbaselines: [popularity, ga")
    .replace("algorithms:\n", "algorithms:\n  - {algorithm: private_popularity, most_ratings: 80}\n")
    + "ranking: {threshold: 4, ndcg: 5, recall: 8}\ngroups: true\n"
)


@pytest.fixture(scope="module")
def ranked(undisturbed: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("ranked"), undisturbed.cache)
    place.run(RANKED)
    return place


def test_the_most_rated_items_come_first(ranked: Place) -> None:
    asked, found = TopItems(threshold=4, ndcg=5, recall=8), []
    for train, test in cuts(ranked, 0):
        by_count = np.tile(train.item_counts, (train.n_users, 1))
        found.append(of_scores(by_count, train, test, asked)[1])
    of_folds = [row for row in ranked.rows("folds.csv") if row["label"] == "Popularity"]
    assert [float(row["recall@8"]) for row in of_folds] == pytest.approx(found)
    private = [row for row in ranked.rows("folds.csv") if row["label"] == "Private popularity"]
    noise_free = [float(row["recall@8"]) for row in private if row["epsilon"] == "inf"]
    assert noise_free == pytest.approx(found)  # no user has more ratings than are counted
    assert np.mean([float(row["recall@8"]) for row in private if row["epsilon"] == "0.5"]) < np.mean(found)
    assert {(row["rmse"], row["status"]) for row in of_folds + private} == {("", "measured")}


def test_curves_show_rmse_unless_asked_and_have_the_others_beside(ranked: Place) -> None:
    curves = ranked.rows("curves.csv")
    groups = [metric.key for metric in GROUPED]
    assert list(curves[0])[-8:] == ["mae", "ndcg@5", "recall@8", *groups]
    assert not {"Popularity", "Private popularity"} & {row["label"] for row in curves}
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
    assert [level["label"] for level in levels if level["mae"] is None] == [
        "Private popularity",
        "Popularity",
    ]
    refused = ranked.dpmf("crossings", "tiny.yaml", "--metric", "ndcg@10", expect=2).stderr
    assert '"ndcg@10" is not measured; did you mean "ndcg@5"?' in refused
    assert "tiny" in ranked.dpmf("combined").stdout
    ranked.dpmf("plot", "tiny.yaml", "--metric", "ndcg@5", "--format", "svg")
    drawn = ranked.path("curves_value-ndcg@5.svg").read_text()
    assert "<!-- nDCG@5 -->" in drawn
    assert "<!-- Popularity 0" in drawn
    assert "<!-- RMSE -->" in ranked.path("curves.svg").read_text()
    ranked.dpmf("verify", "results", "--recompute", "3", "--seed", "1")


def test_where_no_method_has_an_rmse_the_metric_to_plot_is_named(place: Place) -> None:
    head, orders = CONFIG.partition("folds")[0], "[private_popularity]\nranking: {threshold: 4}\n"
    place.run(f"{head}folds: 2\nruns: 1\nepsilons: [1]\nbaselines: [popularity]\nalgorithms: {orders}")
    said = place.dpmf("plot", "tiny.yaml").stderr
    assert "tiny: no complete curve of rmse to plot; its methods have others; add `--metric ndcg@10`" in said
    assert "ndcg@10.svg" in place.dpmf("plot", "tiny.yaml", "--metric", "ndcg@10").stdout


def test_groups_have_columns_and_are_shown_by_their_metric(ranked: Place) -> None:
    rows = ranked.rows("folds.csv")
    found = {(row["label"], float(row["epsilon"])): row for row in rows if row["fold"] == row["run"] == "0"}
    assert {found["Popularity", math.inf][metric.key] for metric in GROUPED} == {""}
    assert found["IA", math.inf]["share_who_gain"] == "0.0"  # nobody gains over oneself
    train, test = next(cuts(ranked, 1))
    errors = test.values - train.values.mean(dtype=np.float64)
    active = np.isin(test.users, np.argsort(train.user_counts, kind="stable")[-30:])
    of_active = np.sqrt(np.square(errors)[active].mean())
    assert float(found["GA", math.inf]["rmse_most_active"]) == pytest.approx(of_active)
    table = {row["baseline"]: row for row in ranked.json("baselines", "--metric", "rmse_most_active")}
    assert "Popularity" not in table
    text = ranked.dpmf("crossings", "tiny.yaml", "--metric", "share_who_gain").stdout
    assert "share of users who gain over IA with its defaults: more is better" in text


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
    assert all(json.loads(body)["settings"]["groups"] is True for body in ranked.tasks.values())
    for body in map(json.loads, undisturbed.tasks.values()):
        assert not {"ranking", "groups", "error_cdf"} & body["settings"].keys()
        assert "share_who_gain" not in body
    assert not list(undisturbed.path("").glob("error_cdf*"))
