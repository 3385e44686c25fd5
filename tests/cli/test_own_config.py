"""`dpmf init`, `advise` and `recommend`: from ratings to a config, by looking at them, and to a page."""

import json
import random
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import yaml

from dpmf_cli.datasets import Folders
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.suggested import (
    GUESSED,
    config_text,
    fitting,
    grid_with,
    name_of,
    provable,
)
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.report.leaders import shipped
from dpmf_cli.studies.session import print_answer
from tests.command import dpmf
from tests.datasets.building import zipped

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = MagicMock(n_users=200, n_items=50, __len__=lambda _: 2500)
RNG = random.Random(5)
PAIRS = [(user, item) for user in range(1, 31) for item in RNG.sample(range(100, 118), 9)]
MINE = """\
dataset:
  kind: csv
  name: own-films
  path: films.csv
  separator: ";"
  decimal: ","
  columns: {user: kunde, item: film, rating: note}
  scale: {minimum: 0.5, maximum: 4, step: 0.5}
runs: 1
epsilons: [7]
algorithms: [psgd]
"""


def rows(
    form: str = "{u},{i},{r}", low: float = 1, high: float = 5, step: float = 1, header: str = ""
) -> bytes:
    """270 ratings. The first pairs have the lowest and the highest value, so that both occur."""
    steps = round((high - low) / step)
    taken = [0, steps, *(RNG.randint(0, steps) for _ in PAIRS)]
    lines = [
        form.format(u=user, i=item, r=f"{low + at * step:g}")
        for (user, item), at in zip(PAIRS, taken, strict=False)
    ]
    return ("\n".join([*[header] * bool(header), *lines]) + "\n").encode()


def films(path: Path, users: int = 80) -> None:
    """Half stars from 0.5 to 4 between semicolons, with decimal commas."""
    rng = np.random.default_rng(1)
    lines = ["kunde;film;note"]
    for user in range(users):
        for item in rng.choice(25, 15, replace=False):
            value = np.clip(2.2 + 0.04 * (item - 15) + 0.3 * np.sin(user) + rng.normal(0, 0.6), 0.5, 4)
            lines.append(f"k{user};{item};{np.rint(2 * value) / 2:.1f}".replace(".", ","))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Films, a config of theirs, and other ratings."""
    films(tmp_path / "films.csv")
    (tmp_path / "my.yaml").write_text(MINE)
    (tmp_path / "r.csv").write_bytes(rows())
    return tmp_path


NUMBERED = {"user": 0, "item": 1, "rating": 2}
ODD: dict[str, tuple[bytes, dict[str, object], tuple[float, float, float]]] = {
    "half stars": (rows(low=0.5, step=0.5), {"header": False, "columns": NUMBERED}, (0.5, 5, 0.5)),
    "0 to 100": (rows(low=0, high=100), {"header": False, "columns": NUMBERED}, (0, 100, 1)),
    "Jester's": (rows(low=-10, high=10, step=0.01), {"header": False, "columns": NUMBERED}, (-10, 10, 0)),
    "packed": (
        zipped({"r.csv": rows(header="user,item,rating")}),
        {"columns": {"user": "user", "item": "item", "rating": "rating"}},
        (1, 5, 1),
    ),
    "JSON": (
        b"[" + rows('{{"user": "{u}", "item": {i}, "rating": {r}}},').strip()[:-1] + b"]",
        {"header": None, "columns": {"user": "user", "item": "item", "rating": "rating"}},
        (1, 5, 1),
    ),
    "a name twice": (
        rows("{u},{i},x,{r},x", header="user,item,note,score,note"),
        {"columns": {"user": "user", "item": "item", "rating": "score"}},
        (1, 5, 1),
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files(name: str, folder: Path, session_cache: Path) -> None:
    data, expected, scale = ODD[name]
    (folder / "r.csv").write_bytes(data)
    done = dpmf(folder, session_cache, "init", "r.csv")
    dataset = yaml.safe_load((folder / "r-value.yaml").read_text())["dataset"]
    assert {key: dataset.get(key) for key in expected} == expected
    assert dataset["scale"].pop("guessed") is True
    assert tuple(dataset["scale"].values()) == pytest.approx(scale)
    assert "the scale is guessed from the ratings" in done.stderr
    assert isinstance(load_config(folder / "r-value.yaml").dataset, CsvSpec)


def test_repeated_rows_are_told_and_only_then_is_there_a_rule_for_them(
    folder: Path, session_cache: Path
) -> None:
    (folder / "r.csv").write_bytes(rows() + b"1,107,3\n" * 60)
    said = dpmf(folder, session_cache, "init", "r.csv").stderr
    assert (
        "of 330 rows repeat a (user, item) pair; each pair keeps its last rating (`duplicates: last`)" in said
    )
    assert "warning: 18% of the rows repeat a (user, item) pair; check that `columns`" in said
    assert yaml.safe_load((folder / "r-value.yaml").read_text())["dataset"]["duplicates"] == "last"
    (folder / "r.csv").write_bytes(rows())
    said = dpmf(folder, session_cache, "init", "r.csv", "--force").stderr
    assert "270 ratings by 30 users of 18 items" in said
    assert "repeat" not in said
    assert "duplicates" not in (folder / "r-value.yaml").read_text()


def test_rows_without_a_rating_are_told_and_only_then_left_out(folder: Path, session_cache: Path) -> None:
    zeros = b"".join(b"%d,%d,0\n" % pair for pair in PAIRS[100:200])
    (folder / "r.csv").write_bytes(
        b"# of May\n" + rows(header="user,item,rating") + b"1,200,\n2,200,NaN\n" + zeros
    )
    words = ("init", "r.csv", "--zero-is-missing")
    said = dpmf(folder, session_cache, *words).stderr
    assert "comma-separated, a header line, below 1 line of comments" in said
    assert "`drop_missing` leaves out 2 of the rows" in said
    assert "`zero_is_missing` leaves out 100 of the rows" in said
    text = (folder / "r-value.yaml").read_text()
    dataset = yaml.safe_load(text)["dataset"]
    assert (dataset["drop_missing"], dataset["zero_is_missing"]) == (True, True)
    assert dataset["scale"] == {"minimum": 1, "maximum": 5, "step": 1, "guessed": True}
    assert "--epsilon 1 --zero-is-missing`" in text
    (folder / "r.csv").write_bytes(rows())
    dpmf(folder, session_cache, "init", "r.csv", "--force")
    assert "drop_missing" not in (folder / "r-value.yaml").read_text()


def test_the_next_commands_are_said_and_do(folder: Path, session_cache: Path) -> None:
    (folder / "my ratings.csv").write_bytes(rows())
    done = dpmf(folder, session_cache, "init", "my ratings.csv", "--scale", "1:5:1")
    commands = [line.partition("  #")[0].strip() for line in done.stdout.splitlines()]
    name = "'my ratings-value.yaml'"
    assert commands == [f"dpmf plan {name}", f"dpmf run {name}", f"dpmf explain {name}"]
    assert "guessed" not in (folder / "my ratings-value.yaml").read_text()
    planned = dpmf(folder, session_cache, "plan", "my ratings-value.yaml")
    assert "270 ratings by 30 users of 18 items" in planned.stdout


def test_what_is_said_stands_in_place_of_the_guess(folder: Path, session_cache: Path) -> None:
    """Columns in the other order, a header line that is taken for a rating, and another scale."""
    (folder / "r.csv").write_bytes(b"7;8;2;900000000\n" + rows("{u};{i};{r};900000000"))
    said = ["--user", "1", "--item", "0", "--timestamp", "3", "--scale", "0:10:0.5", "--header"]
    more = ["--separator", "semicolon", "--decimal", ",", "--to", "mine.yaml", "--epsilon", "2"]
    done = dpmf(folder, session_cache, "init", "r.csv", *said, *more)
    config = load_config(folder / "mine.yaml")
    assert isinstance(config.dataset, CsvSpec)
    roles = {"user": "8", "item": "7", "rating": "2", "timestamp": "900000000"}
    assert config.dataset.columns.by_role == roles
    assert (config.dataset.separator, config.dataset.header, config.dataset.decimal) == (";", True, ",")
    assert tuple(config.dataset.scale.model_dump().values()) == (0, 10, 0.5)
    assert config.epsilons is not None
    assert 2 in config.epsilons
    assert 'user: column "8", as told' in done.stderr
    text = (folder / "mine.yaml").read_text()
    again = text.partition("`dpmf init r.csv ")[2].partition("`")[0].split()
    dpmf(folder, session_cache, "init", "r.csv", *again, "--to", "again.yaml")
    assert (folder / "again.yaml").read_text() == text


def test_a_config_is_overwritten_by_force_alone(folder: Path, session_cache: Path) -> None:
    (folder / "r-value.yaml").write_text("mine: true\n")
    said = dpmf(folder, session_cache, "init", "r.csv", expect=2).stderr
    assert "r-value.yaml: exists already and differs" in said
    assert (folder / "r-value.yaml").read_text() == "mine: true\n"
    dpmf(folder, session_cache, "init", "r.csv", "--force")
    dpmf(folder, session_cache, "init", "r.csv")  # it says the same
    assert load_config(folder / "r-value.yaml").algorithms


def test_advise_writes_the_config_of_init_and_a_page(folder: Path, session_cache: Path) -> None:
    words = "films.csv", "--protects", "local", "--epsilon", "2"
    dpmf(folder, session_cache, "init", *words)
    text = (folder / "films-local.yaml").read_text()
    done = dpmf(folder, session_cache, "advise", *words, "-j", "1")
    assert (folder / "films-local.yaml").read_text() == text
    assert "semicolon-separated" in done.stderr
    assert "which private method to take at ε = 2" in done.stdout
    assert "`dpmf levels films-local.yaml --at 2`" in done.stdout
    config = load_config(folder / "films-local.yaml")
    assert isinstance(config.dataset, CsvSpec)
    assert (config.dataset.separator, config.dataset.decimal) == (";", ",")
    assert {entry.mode for entry in config.algorithms} == {Mode.CORRECTED}
    again = dpmf(folder, session_cache, "advise", *words, "-j", "1")
    assert again.stdout == done.stdout
    assert "computed" not in again.stderr


def test_fewer_folds_runs_and_methods_are_run_where_asked(folder: Path, session_cache: Path) -> None:
    words = "advise films.csv --protects local --epsilon 1 --folds 2 --runs 1 --methods local_mean,isgd_local"
    done = dpmf(folder, session_cache, *words.split(), "--json", "-j", "1")
    config = load_config(folder / "films-local.yaml")
    assert (config.folds, config.runs) == (2, 1)
    assert [entry.algorithm for entry in config.algorithms] == ["local_mean", "isgd_local"]
    assert f"`dpmf {words}`" in (folder / "films-local.yaml").read_text()
    found = json.loads(done.stdout)
    assert "which private method to take at ε = 1" in found["text"]
    assert {row["epsilon"] for row in found["levels"]} == {1.0, "inf"}


def test_a_first_page_is_of_a_few_leading_methods_whose_tasks_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dpmf_cli.studies.session.FIRST_SECONDS", 0.05)
    (path := tmp_path / "my.yaml").write_text(
        "dataset: {kind: synthetic, like: ml-100k, users: 150, items: 40, ratings: 900}\nfolds: 5\nruns: 2\n"
        "epsilons: [1, 3]\nbaselines: [ga, ia]\nmode: corrected\nalgorithms: [pge, isgd, psgd, public_pattern]\n"
    )
    folders = Folders(tmp_path, tmp_path / "cache", tmp_path, tmp_path / "results")
    print_answer(load_config(path), path, folders, 1, 1.0, only_first=True, as_json=True)
    quick = json.loads(capsys.readouterr().out)
    before, _, then = quick["text"].partition(" Not run: ")
    assert before.endswith("A FIRST ANSWER, from 2 of 4 methods, on 2 of 5 folds: others may be better.")
    not_run, _, then = then.partition(", and what privacy costs. ")
    assert then.startswith(f"`dpmf run {path}` runs the whole.\n\n")
    labels = {row["label"] for row in quick["crossings"]}
    every = [entry.name for entry in load_config(path).algorithms]
    assert sorted([*not_run.split(", "), *labels]) == sorted(every)
    assert {row["label"] for row in quick["levels"]} == labels | {"GA", "IA"}
    print_answer(load_config(path), path, folders, 1, 1.0)
    printed = capsys.readouterr()
    assert printed.out.count("which private method to take") == 2
    assert "A FIRST ANSWER, from 2 of 4 methods, on 2 of 5 folds" in printed.out
    assert "50 tasks, 8 done, 42 left" in printed.err
    print_answer(load_config(path), path, folders, 1, 1.0)
    assert "FIRST" not in capsys.readouterr().out


def test_a_delta_that_is_too_large_for_the_ratings_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "my.yaml").write_text(
        "dataset: {kind: synthetic, like: ml-100k, users: 150, items: 40, ratings: 900}\nfolds: 2\nruns: 1\n"
        "epsilons: [1]\nbaselines: [ga]\nmode: corrected\ndelta: 0.01\n"
        "algorithms: [{algorithm: mm_averages, neighbours: user}]\n"
    )
    folders = Folders(tmp_path, tmp_path / "cache", tmp_path, tmp_path / "results")
    print_answer(load_config(path), path, folders, 1, 1.0)
    assert "warning: δ = 0.01 is not below one over the number of users, 150" in capsys.readouterr().err


def test_what_leads_on_public_ratings_is_run_and_its_config_written(
    folder: Path, session_cache: Path
) -> None:
    done = dpmf(folder, session_cache, "recommend", "my.yaml", "--epsilon", "1", "-j", "1")
    wanted = ("rating value", False, 0.0)
    (ranking,) = [each for each in shipped().rankings if (each.protects, each.joint, each.delta) == wanted]
    first = ranking.nearest(1.0).methods[0]
    config = load_config(folder / "my-value-recommended.yaml")
    assert [entry.name for entry in config.algorithms] == [first.method]
    assert config.epsilons is not None
    assert (config.runs, 1.0 in config.epsilons, 7 in config.epsilons) == (1, True, False)
    said = " ".join(done.stdout.split())
    assert f"Chosen by its rank on public ratings: {first.method}." in said
    assert "The choice did not use your ratings." in said
    assert "so was the choice of the method" not in said
    assert f"dpmf release my-value-recommended.yaml --method '{first.method}' --epsilon 1" in said
    assert "nothing to compute" in dpmf(folder, session_cache, "run", "my-value-recommended.yaml").stderr


def test_by_errors_runs_all_and_says_what_that_costs(folder: Path, session_cache: Path) -> None:
    words = "--protects", "local", "--by-errors", "--to", "sub/chosen.yaml"
    (folder / "sub").mkdir()
    said = dpmf(folder, session_cache, "recommend", "my.yaml", *words, "-j", "1").stdout
    config = load_config(folder / "sub" / "chosen.yaml")
    assert len(config.algorithms) > 1
    assert not any(entry.joint for entry in config.algorithms)
    assert "so was the choice of the method" in " ".join(said.split())
    assert "Chosen by its rank" not in said


def test_a_delta_and_the_others_are_asked_for(folder: Path, session_cache: Path) -> None:
    words = "--protects", "user", "--towards", "others", "--delta", "1e-5"
    dpmf(folder, session_cache, "recommend", "my.yaml", *words, "-j", "1")
    (entry,) = load_config(folder / "my-user-recommended.yaml").algorithms
    assert entry.joint
    assert entry.spends_delta in (0.0, 1e-5)


FILES: dict[str, bytes] = {
    "empty.csv": b"",
    "two.csv": b"user,item\n1,2\n3,4\n",
    "binary.csv": b"1,2,3\n1,\x00\x01,4\n",
    "utf16.csv": "1,2,3\n".encode("utf-16"),
    "header.csv": b"user,item,rating\n",
    "wide.csv": rows() + b"1,2,1e300\n",
    "alike.csv": b"user,item,rating\n" + b"".join(b"%d,%d,4\n" % (n, n % 7) for n in range(40)),
    "when.csv": b"when,film,rating\n" + b"".join(b"2020-01-%02d,f%d,%d\n" % (n % 28 + 1, n % 3, n % 5 + 1) for n in range(40)),
    "bare.yaml": b"runs: 1\n",
    "typo.yaml": MINE.replace("runs: 1", "fold: 1").replace("\nepsilons: [7]", "").encode(),
    "few.yaml": MINE.replace("films.csv", "few.csv").encode(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("init no.csv", "no.csv: cannot be read (No such file or directory); name a file of ratings"),
        ("init empty.csv", "empty.csv: the file is empty; write a line for each rating"),
        ("init two.csv", "two.csv:1: its lines have two columns, comma-separated; a rating takes three"),
        ("init binary.csv", "binary.csv:2: holds bytes that are not text; write the ratings as CSV"),
        ("init utf16.csv", "utf16.csv:1: looks like UTF-16; save the file as UTF-8"),
        ("init header.csv", "header.csv: the column of ratings has no numbers; correct the file, or name the column"),
        ("init wide.csv", "from 1 to 1e+300 is wider than ±1e+09"),
        ("init r.csv --to r.csv --force", "--to r.csv: this is the file of ratings; name another file"),
        ("init r.csv --scale=", "--scale : write minimum:maximum:step, like 0.5:5:0.5"),
        ("init r.csv --scale 1:3:1", "off the scale from 1 to 3"),
        ("init r.csv --scale 1:5:3", "--scale 1:5:3: no whole number of steps"),
        ("init r.csv --scale 4:1:1", "--scale 4:1:1: minimum 4 is not below maximum 1"),
        ("init r.csv --user 9", 'r.csv:1: no column "9" (user); known: 0, 1, 2'),
        ("init r.csv --user 1 --item 1", 'column "1" is named for two roles; name another'),
        ("init r.csv --separator ::", "--separator ::: give one character, or one of tab"),
        ("init r.csv --decimal ;", "--decimal ;: choose one of . and ,"),
        ("init r.csv --to r.csv/such.yaml", "r.csv/such.yaml"),
        ("advise r.csv --protects everything", "choose one of value, presence, user, local"),
        ("advise r.csv --epsilon 0", "give one from 0.001 to 10000"),
        ("advise r.csv --methods pge,isdg", '--methods: "isdg" is no provable method here; did you mean "isgd"'),
        ("advise alike.csv", "all ratings are 4: the scale cannot be guessed"),
        ("advise when.csv", "no column looks like the user; add --user COLUMN"),
        ("advise few.csv", "45 ratings are too few to tell methods apart; give 50 or more"),
        ("recommend my.yaml --towards me", "choose one of everybody, others"),
        ("recommend my.yaml --delta 2", "give 0, or one from 1e-15 to 0.01"),
        ("recommend my.yaml --protects user", "add `--delta 1e-06`, or `--towards others`, or `--towards others --d"),
        ("recommend my.yaml --protects user --by-errors", "provable ε for these options; add `--delta 1e-06`, or `"),
        ("recommend films.csv", "films.csv: not a config (.yaml); `dpmf advise` takes a file of ratings"),
        ("recommend none.yaml", "none.yaml: no such file"),
        ("recommend bare.yaml", "dataset"),
        ("recommend typo.yaml", "typo.yaml:9:1: fold: unknown key"),
        ("recommend few.yaml", "too few to tell methods apart"),
    ],
)  # fmt: skip
def test_mistakes_name_place_and_fix(folder: Path, session_cache: Path, command: str, said: str) -> None:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    films(folder / "few.csv", users=3)
    before = set(folder.iterdir())
    assert said in dpmf(folder, session_cache, *command.split(), expect=2).stderr
    assert not {path for path in folder.iterdir() if path.suffix == ".yaml"} - before


def test_the_config_says_how_it_came_about_and_what_to_mend_before_a_release() -> None:
    methods = fitting(provable(Neighbours.BOUNDED), SMALL, 1.0, "x.csv")
    guessed, given = (
        config_text({"folds": 5}, Neighbours.BOUNDED, 1.0, methods, "dpmf advise x.csv", note=each)
        for each in (GUESSED, "")
    )
    assert "The scale is guessed from the file" in guessed
    assert "The scale is" not in given


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_every_kind_of_privacy_has_candidates_and_what_takes_too_long_is_left_out(
    neighbours: Neighbours,
) -> None:
    many = MagicMock(n_users=10**5, n_items=30_000, __len__=lambda _: 5 * 10**7)
    small, large = (fitting(provable(neighbours), each, 1.0, "x.csv") for each in (SMALL, many))
    assert small.taken
    assert len(large.taken) < len(small.taken)
    assert len(large.left_out) == len(small.taken) + len(small.left_out) - len(large.taken)
    assert all("one fit takes about" in each for each in large.left_out)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.5, 30.0, 500.0])
def test_the_asked_epsilon_lies_inside_of_the_grid(epsilon: float) -> None:
    grid = grid_with(epsilon)
    assert grid[0] < epsilon < grid[-1]
    assert list(grid) == sorted(set(grid))


def test_names_are_those_of_no_catalog() -> None:
    assert (name_of("ml-1m"), name_of("ü $")) == ("own-ml-1m", "own-ratings")
