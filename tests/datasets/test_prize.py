"""The Netflix Prize's own test sets, on tiny files of their formats."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.datasets import Dataset, Folders, catalog, known, load, open_cached, publishers
from dpmf_cli.datasets.catalog import Counts
from dpmf_cli.datasets.spec import CatalogSpec, PrizeSet
from dpmf_cli.evaluation.metrics import errors_of
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.experiment.running.batches import opened_split
from dpmf_cli.testing import fit
from tests.command import here
from tests.datasets.building import faults, tarred, with_another_value

CUSTOMERS = [1000 + 7 * user for user in range(12)]
MOVIES = [2, 3, 5, 8, 9, 13, 14, 20]
#: Customer 1000 has not rated movie 2, and customer 1077 not movie 20: those are the answers kept back.
KEPT_BACK = {(2, 1000): 4, (20, 1077): 1}
RATED = {
    (movie, customer): 1 + (3 * movie + customer) % 5
    for movie in MOVIES
    for customer in CUSTOMERS
    if (movie, customer) not in KEPT_BACK
}
#: Not in canonical order, as in the publisher's file.
LISTED = [(3, 1077), (3, 1000), (20, 1007), (2, 1021)]
SPEC = CatalogSpec(name="netflix")
CONFIG = (
    "dataset: netflix\nruns: 2\nepsilons: [1, 100]\nbaselines: [ia, ge]\nalgorithms: [{algorithm: pge}]\n"
)


def grouped(lines: dict[int, list[str]]) -> str:
    return "".join(f"{movie}:\n" + "".join(f"{line}\n" for line in rows) for movie, rows in lines.items())


def probe_file(pairs: list[tuple[int, int]]) -> str:
    return grouped({movie: [str(c) for m, c in pairs if m == movie] for movie, _ in pairs})


def judging_file(answers: dict[tuple[int, int], int], date: str = ",2005-12-01") -> str:
    by_movie = {m: [f"{c},{r}{date}" for (n, c), r in answers.items() if n == m] for m, _ in answers}
    return grouped(by_movie)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a training set of 94 ratings, both lists, and a catalog that expects no more."""
    counts = Counts(len(CUSTOMERS), len(MOVIES), len(RATED), 3.0, 2.0)
    monkeypatch.setitem(catalog.ENTRIES, "netflix", replace(catalog.ENTRIES["netflix"], expected=counts))
    folder = tmp_path / "data"
    (folder / "training_set").mkdir(parents=True)
    for movie in MOVIES:
        rows = [f"{c},{rating},2004-01-01" for (m, c), rating in RATED.items() if m == movie]
        (folder / "training_set" / f"mv_{movie:07}.txt").write_text(grouped({movie: rows}))
    (folder / "probe.txt").write_text(probe_file(LISTED))
    (folder / "judging.txt").write_text(judging_file(KEPT_BACK))
    return folder


def rated(dataset: Dataset, ratings: Ratings) -> dict[tuple[int, int], float]:
    """The ratings by (movie, customer)."""
    movies, customers = dataset.item_ids[ratings.items].tolist(), dataset.user_ids[ratings.users].tolist()
    return dict(zip(zip(movies, customers, strict=True), ratings.values.tolist(), strict=True))


def find(which: PrizeSet, data: Path, cache: Path) -> tuple[Dataset, str]:
    dataset = load(SPEC, Folders(data, cache, data), which)
    return dataset, dataset.identity.test_checksum


def test_the_probe_set_is_cut_out_of_the_training_set(data: Path, cache: Path) -> None:
    dataset, checksum = find("probe", data, cache)
    train, test = opened_split(dataset.identity, 1, Cut(1, 0, split="probe"), cache)
    assert rated(dataset, test) == {pair: RATED[pair] for pair in LISTED}
    assert rated(dataset, train) == {pair: RATED[pair] for pair in RATED.keys() - LISTED}
    assert (train.n_users, train.n_items) == (len(CUSTOMERS), len(MOVIES))
    assert isinstance(open_cached(checksum, cache).values, np.memmap)


@pytest.mark.parametrize("date", [",2005-12-01", ""])
def test_the_judging_set_leaves_all_to_train_on(data: Path, cache: Path, date: str) -> None:
    (data / "judging.txt").write_text(judging_file(KEPT_BACK, date))
    dataset, _ = find("judging", data, cache)
    train, test = opened_split(dataset.identity, 1, Cut(1, 0, split="judging"), cache)
    assert rated(dataset, test) == KEPT_BACK
    assert len(train) == len(RATED)


@pytest.mark.parametrize("which", ["probe", "judging"])
def test_a_damaged_test_set_is_told_and_parsed_again(
    data: Path, cache: Path, capsys: pytest.CaptureFixture[str], which: PrizeSet
) -> None:
    _, checksum = find(which, data, cache)
    place = cache / "ratings" / f"{checksum}.dpmf"
    whole = place.read_bytes()
    place.unlink()
    place.write_bytes(with_another_value(whole))
    assert find(which, data, cache)[1] == checksum
    assert place.read_bytes() == whole
    assert f"{place}: damaged" in capsys.readouterr().err


def test_a_list_is_parsed_once_and_again_when_it_changes(
    data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, checksum = find("probe", data, cache)
    with monkeypatch.context() as forbidden:
        forbidden.setattr(publishers, "read_list", lambda *_: pytest.fail("parsed again"))
        assert find("probe", data, cache)[1] == checksum
        found = known(SPEC, Folders(data, cache, data), "probe")
        assert found is not None
        assert found.identity == dataset.identity
        assert known(SPEC, Folders(data, cache, data), "judging") is None
    (data / "probe.txt").write_text(probe_file(LISTED[:2]))
    assert find("probe", data, cache)[1] != checksum


@pytest.mark.parametrize("which", ["probe", "judging"])
def test_a_list_may_stand_elsewhere(data: Path, cache: Path, tmp_path: Path, which: PrizeSet) -> None:
    wanted = find(which, data, cache)[1]
    lists = {f"{each}.txt": (data / f"{each}.txt").read_bytes() for each in ("probe", "judging")}
    movies = {f"training_set/{path.name}": path.read_bytes() for path in (data / "training_set").iterdir()}
    whole = tmp_path / "whole"
    whole.mkdir()
    for content in (
        movies | lists,
        {"download/training_set.tar": tarred(movies), "download/probe.txt": lists["probe.txt"], "more.tar": tarred({"judging.txt": lists["judging.txt"]})},
    ):  # fmt: skip
        (whole / "netflix.tar.gz").write_bytes(tarred(content, "w:gz"))
        assert find(which, whole, cache)[1] == wanted
    (data / f"{which}.txt").unlink()
    folder = data / {"probe": "training_set", "judging": "grand_prize"}[which]
    folder.mkdir(exist_ok=True)
    (folder / f"{which}.txt").write_bytes(lists[f"{which}.txt"])
    assert find(which, data, cache)[1] == wanted
    if which == "judging":
        (folder / "judging.txt").unlink()
        (data / "grand_prize.tar.gz").write_bytes(
            tarred({"grand_prize/judging.txt": lists["judging.txt"]}, "w:gz")
        )
        assert find(which, data, cache)[1] == wanted


@pytest.mark.parametrize("case", faults("prize"), ids=lambda case: case["says"])
def test_a_list_that_cannot_be_used_says_why(data: Path, cache: Path, case: dict[str, Any]) -> None:
    path = data / f"{case['which']}.txt"
    if case.get("gone"):
        path.unlink()
    else:
        path.write_bytes(case["text"])
    with pytest.raises(DpmfError, match=case["says"]) as caught:
        find(case["which"], data, cache)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("which", ["probe", "judging"])
def test_a_whole_run_on_a_fixed_test_set(
    tmp_path: Path,
    data: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    which: PrizeSet,
) -> None:
    (tmp_path / "x.yaml").write_text(CONFIG + f"test: {which}\nreferences: [cinematch]\ntwins: true\n")

    def planned() -> dict[str, tuple[int, int]]:
        capsys.readouterr()
        here(monkeypatch, tmp_path, cache, "plan", "x.yaml", "--json", data="data")
        plan = json.loads(capsys.readouterr().out)
        return {part["label"]: (part["tasks"], part["left"]) for part in plan["algorithms"]}

    assert planned() == {"IA": (1, 1), "GE": (1, 1), "PGE": (3, 3)}
    here(monkeypatch, tmp_path, cache, "run", "x.yaml", "-j", "1", data="data")
    drawn = capsys.readouterr().out
    assert "* one fold: the interval is over runs only" in drawn
    loose = next(
        line for line in drawn.splitlines() if line.endswith("loosely comparable with the test set here")
    )
    assert ("Cinematch probe" in loose) == (which == "judging")
    assert "Cinematch quiz" in loose
    assert planned() == {"IA": (1, 0), "GE": (1, 0), "PGE": (3, 0)}
    rows = list(csv.DictReader((tmp_path / "results" / "x" / "curves.csv").open()))
    assert {row["folds"] for row in rows} == {"1"}
    item_average = next(row for row in rows if row["label"] == "IA")
    dataset, _ = find(which, data, cache)
    train, test = opened_split(dataset.identity, 1, Cut(1, 0, split=which), cache)
    model, _ = fit(load_config(tmp_path / "x.yaml").baselines[0], train, [])
    error = errors_of(model.predict(test.users, test.items), test.values)["rmse"][0]
    assert float(item_average["rmse"]) == pytest.approx(error)
    manifest = json.loads((tmp_path / "results" / "x" / "manifest.json").read_bytes())
    assert manifest["config"]["test"] == which
    here(monkeypatch, tmp_path, cache, "crossings", "--format", "csv", data="data")
    crossings = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert "incomplete" not in {row["status"] for row in crossings}
    assert [row["baseline"] for row in crossings] == ["IA", "GE", "Cinematch probe", "Cinematch quiz"]
