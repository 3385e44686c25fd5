"""The Netflix Prize's own test sets, on tiny files of their formats."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Dataset, Folders, catalog, known, load, open_cached
from dpmf_cli.datasets.catalog import Counts
from dpmf_cli.datasets.formats import netflix
from dpmf_cli.datasets.spec import CatalogSpec, PrizeSet
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.experiment.running.batches import _split
from tests.command import here
from tests.datasets.building import tarred

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


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def pairs(dataset: Dataset, users: np.ndarray, items: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(dataset.item_ids[items].tolist(), dataset.user_ids[users].tolist(), strict=True))


def find(which: PrizeSet, data: Path, cache: Path) -> tuple[Dataset, str]:
    dataset = load(SPEC, Folders(data, cache, data), which)
    return dataset, dataset.identity.test_checksum


def test_the_probe_set_is_cut_out_of_the_training_set(data: Path, cache: Path) -> None:
    dataset, checksum = find("probe", data, cache)
    train, test = _split(dataset.identity, 1, Cut(1, 0, test="probe"), cache)
    assert sorted(pairs(dataset, test.users, test.items)) == sorted(LISTED)
    values = dict(zip(pairs(dataset, test.users, test.items), test.values.tolist(), strict=True))
    assert values == {pair: RATED[pair] for pair in LISTED}
    assert set(pairs(dataset, train.users, train.items)) == set(RATED) - set(LISTED)
    assert (train.n_users, train.n_items) == (len(CUSTOMERS), len(MOVIES))
    assert isinstance(open_cached(checksum, cache).values, np.memmap)


@pytest.mark.parametrize("date", [",2005-12-01", ""])
def test_the_judging_set_leaves_all_to_train_on(data: Path, cache: Path, date: str) -> None:
    (data / "judging.txt").write_text(judging_file(KEPT_BACK, date))
    dataset, _ = find("judging", data, cache)
    train, test = _split(dataset.identity, 1, Cut(1, 0, test="judging"), cache)
    assert dict(zip(pairs(dataset, test.users, test.items), test.values.tolist(), strict=True)) == KEPT_BACK
    assert len(train) == len(RATED)


@pytest.mark.parametrize("which", ["probe", "judging"])
def test_a_damaged_test_set_is_told_and_parsed_again(
    data: Path, cache: Path, capsys: pytest.CaptureFixture[str], which: PrizeSet
) -> None:
    _, checksum = find(which, data, cache)
    values = cache / "ratings" / checksum / "values.npy"
    whole = values.read_bytes()
    values.unlink()
    values.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert find(which, data, cache)[1] == checksum
    assert values.read_bytes() == whole
    assert f"{values.parent}: damaged" in capsys.readouterr().err


def test_a_list_is_parsed_once_and_again_when_it_changes(
    data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, checksum = find("probe", data, cache)
    with monkeypatch.context() as forbidden:
        forbidden.setattr(netflix, "read_probe", lambda path: pytest.fail("parsed again"))
        assert find("probe", data, cache)[1] == checksum
        found = known(SPEC, Folders(data, cache, data), "probe")
        assert found is not None
        assert found.identity == dataset.identity
        assert known(SPEC, Folders(data, cache, data), "judging") is None
    (data / "probe.txt").write_text(probe_file(LISTED[:2]))
    assert find("probe", data, cache)[1] != checksum


@pytest.mark.parametrize(
    ("which", "place"),
    [
        ("probe", "training_set/probe.txt"),
        ("judging", "grand_prize/judging.txt"),
        ("judging", "grand_prize.tar.gz"),
    ],
)
def test_a_list_may_stand_elsewhere(data: Path, cache: Path, which: PrizeSet, place: str) -> None:
    wanted = find(which, data, cache)[1]
    text = (data / f"{which}.txt").read_bytes()
    (data / f"{which}.txt").unlink()
    (data / place).parent.mkdir(exist_ok=True)
    packed = place.endswith(".gz")
    (data / place).write_bytes(tarred({f"grand_prize/{which}.txt": text}, "w:gz") if packed else text)
    assert find(which, data, cache)[1] == wanted


def test_the_probe_set_may_be_in_the_archive_of_the_training_set(
    data: Path, cache: Path, tmp_path: Path
) -> None:
    wanted = find("probe", data, cache)[1]
    movies = {
        f"download/training_set/{path.name}": path.read_bytes() for path in (data / "training_set").iterdir()
    }
    nested = {
        "download/training_set.tar": tarred(movies),
        "download/probe.txt": (data / "probe.txt").read_bytes(),
    }
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "netflix.tar.gz").write_bytes(tarred(nested, "w:gz"))
    assert find("probe", whole, cache)[1] == wanted
    judged = {
        "download/training_set.tar": tarred(movies),
        "more.tar": tarred({"judging.txt": judging_file(KEPT_BACK).encode()}),
    }
    expected = find("judging", data, cache)[1]
    (whole / "netflix.tar.gz").write_bytes(tarred(judged, "w:gz"))
    assert find("judging", whole, cache)[1] == expected


def test_two_lists_of_one_archive_are_two_sets(data: Path, cache: Path, tmp_path: Path) -> None:
    wanted = [find(which, data, cache)[1] for which in ("probe", "judging")]
    names = [*(data / "training_set").iterdir(), data / "probe.txt", data / "judging.txt"]
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "netflix.tar.gz").write_bytes(tarred({path.name: path.read_bytes() for path in names}, "w:gz"))
    assert [find(which, whole, cache)[1] for which in ("probe", "judging")] == wanted


BAD = {
    "no probe": ("probe", None, r"data: the probe set is not there \(no probe\.txt, and none in .*\); it is in the archive of the training set"),
    "no judging": ("judging", None, r"data: the judging set is not there \(no judging\.txt or grand_prize\.tar\.gz .*\); put grand_prize\.tar\.gz, .* into .*data$"),
    "empty": ("probe", "", r"probe\.txt: holds no probe\.txt, or an empty one"),
    "no list": ("probe", "3:\n1000,4\n", r'probe\.txt:2: "1000,4" is not customer'),
    "unknown customer": ("probe", "3:\n1001\n", r"probe\.txt: customer 1001 has no ratings in the training set"),
    "unknown movie": ("probe", "4:\n1000\n", r"probe\.txt: movie 4 has no ratings in the training set"),
    "a customer beyond all": ("probe", "3:\n999999\n", r"probe\.txt: customer 999999 has no ratings"),
    "not rated": ("probe", "3:\n1007\n2:\n1000\n", r"probe\.txt: customer 1000 has no rating of movie 2 in Netflix Prize; get the probe\.txt of these"),
    "listed twice": ("probe", "3:\n1000\n1000\n", r"probe\.txt: customer 1000 stands twice under movie 3"),
    "off the scale": ("judging", "2:\n1000,6,2005-12-01\n", r"judging\.txt: the rating 6 is off the scale from 1 to 5"),
    "trained on": ("judging", "3:\n1000,3,2005-12-01\n", r"judging\.txt: the rating of movie 3 by customer 1000 is in the training set"),
}  # fmt: skip


@pytest.mark.parametrize(("which", "text", "message"), BAD.values(), ids=BAD)
def test_a_list_that_cannot_be_used_says_why(
    data: Path, cache: Path, which: PrizeSet, text: str | None, message: str
) -> None:
    if text is None:
        (data / f"{which}.txt").unlink()
    else:
        (data / f"{which}.txt").write_text(text)
    with pytest.raises(DpmfError, match=message) as caught:
        find(which, data, cache)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("reference_machine")
@pytest.mark.parametrize("which", ["probe", "judging"])
def test_a_whole_run_on_a_fixed_test_set(
    tmp_path: Path,
    data: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    which: str,
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
    assert float(item_average["rmse"]) == pytest.approx(item_average_error(which, tmp_path))
    manifest = json.loads((tmp_path / "results" / "x" / "manifest.json").read_bytes())
    assert manifest["config"]["test"] == which
    here(monkeypatch, tmp_path, cache, "crossings", "--format", "csv", data="data")
    crossings = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert "incomplete" not in {row["status"] for row in crossings}
    assert [row["baseline"] for row in crossings] == ["IA", "GE", "Cinematch probe", "Cinematch quiz"]


def item_average_error(which: str, folder: Path) -> float:
    """RMSE of shrunk item averages (beta_m of the config), computed with a dictionary and a loop."""
    beta = load_config(folder / "x.yaml").baselines[0].effects.beta_m  # type: ignore[attr-defined]
    tested = {pair: RATED[pair] for pair in LISTED} if which == "probe" else KEPT_BACK
    train = {pair: rating for pair, rating in RATED.items() if pair not in tested}
    overall = sum(train.values()) / len(train)
    errors = []
    for (movie, _), rating in tested.items():
        own = [value for (other, _), value in train.items() if other == movie]
        errors.append((sum(own) + beta * overall) / (len(own) + beta) - rating)
    return float(np.sqrt(np.mean(np.square(errors))))
