"""`dpmf init`: from a file of ratings to a config, by looking at it."""

import random
from pathlib import Path

import pytest
import yaml

from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.experiment.config import load_config
from tests.command import dpmf
from tests.datasets.building import zipped

RNG = random.Random(5)
PAIRS = [(user, item) for user in range(1, 31) for item in RNG.sample(range(100, 118), 9)]


def rows(form: str, low: float = 1, high: float = 5, step: float = 1, header: str = "") -> bytes:
    """270 ratings. The first pairs have the lowest and the highest value, so that both occur."""
    steps = round((high - low) / step)
    taken = [0, steps, *(RNG.randint(0, steps) for _ in PAIRS)]
    lines = [
        form.format(u=user, i=item, r=f"{low + at * step:g}")
        for (user, item), at in zip(PAIRS, taken, strict=False)
    ]
    return ("\n".join([*[header] * bool(header), *lines]) + "\n").encode()


NUMBERED = {"user": 0, "item": 1, "rating": 2}
ODD: dict[str, tuple[bytes, dict[str, object], tuple[float, float, float]]] = {
    "half stars": (rows("{u},{i},{r}", 0.5, 5, 0.5), {"header": False, "columns": NUMBERED}, (0.5, 5, 0.5)),
    "0 to 100": (rows("{u},{i},{r}", 0, 100), {"header": False, "columns": NUMBERED}, (0, 100, 1)),
    "Jester's": (rows("{u},{i},{r}", -10, 10, 0.01), {"header": False, "columns": NUMBERED}, (-10, 10, 0)),
    "packed": (
        zipped({"r.csv": rows("{u},{i},{r}", header="user,item,rating")}),
        {"columns": {"user": "user", "item": "item", "rating": "rating"}},
        (1, 5, 1),
    ),
    "a name twice": (
        rows("{u},{i},x,{r},x", header="user,item,note,score,note"),
        {"columns": {"user": "user", "item": "item", "rating": "score"}},
        (1, 5, 1),
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files(name: str, tmp_path: Path, session_cache: Path) -> None:
    data, expected, scale = ODD[name]
    (tmp_path / "r.csv").write_bytes(data)
    done = dpmf(tmp_path, session_cache, "init", "r.csv")
    dataset = yaml.safe_load((tmp_path / "r-value.yaml").read_text())["dataset"]
    assert {key: dataset.get(key) for key in expected} == expected
    assert dataset["scale"].pop("guessed") is True
    assert tuple(dataset["scale"].values()) == pytest.approx(scale)
    assert "the scale is guessed from the ratings" in done.stderr
    spec = load_config(tmp_path / "r-value.yaml").dataset
    assert isinstance(spec, CsvSpec)


def test_repeated_rows_are_told_and_only_then_is_there_a_rule_for_them(
    tmp_path: Path, session_cache: Path
) -> None:
    (tmp_path / "r.csv").write_bytes(rows("{u},{i},{r}") + b"1,107,3\n" * 60)
    done = dpmf(tmp_path, session_cache, "init", "r.csv")
    told = (
        "of 330 rows repeat a (user, item) pair; each pair keeps its last rating (`duplicates: last`), and 27"
    )
    assert told in done.stderr
    assert "warning: 18% of the rows repeat a (user, item) pair; check that `columns`" in done.stderr
    assert yaml.safe_load((tmp_path / "r-value.yaml").read_text())["dataset"]["duplicates"] == "last"
    (tmp_path / "r.csv").write_bytes(rows("{u},{i},{r}"))
    done = dpmf(tmp_path, session_cache, "init", "r.csv", "--force")
    assert "270 ratings by 30 users of 18 items" in done.stderr
    assert "repeat" not in done.stderr
    assert "duplicates" not in (tmp_path / "r-value.yaml").read_text()


def test_the_next_commands_are_said_and_do(tmp_path: Path, session_cache: Path) -> None:
    (tmp_path / "my ratings.csv").write_bytes(rows("{u},{i},{r}"))
    done = dpmf(tmp_path, session_cache, "init", "my ratings.csv", "--scale", "1:5:1")
    commands = [line.partition("  #")[0].strip() for line in done.stdout.splitlines()]
    name = "'my ratings-value.yaml'"
    assert commands == [f"dpmf plan {name}", f"dpmf run {name}", f"dpmf explain {name}"]
    assert "the scale is guessed from the ratings" not in done.stderr
    assert "guessed" not in (tmp_path / "my ratings-value.yaml").read_text()
    planned = dpmf(tmp_path, session_cache, "plan", "my ratings-value.yaml")
    assert "270 ratings by 30 users of 18 items" in planned.stdout


def test_what_is_said_stands_in_place_of_the_guess(tmp_path: Path, session_cache: Path) -> None:
    """Columns in the other order, a header line that is taken for a rating, and another scale."""
    (tmp_path / "r.csv").write_bytes(b"7;8;2;900000000\n" + rows("{u};{i};{r};900000000"))
    said = ["--user", "1", "--item", "0", "--timestamp", "3", "--scale", "0:10:0.5", "--header"]
    more = ["--separator", "semicolon", "--decimal", ",", "--to", "mine.yaml", "--epsilon", "2"]
    done = dpmf(tmp_path, session_cache, "init", "r.csv", *said, *more)
    config = load_config(tmp_path / "mine.yaml")
    assert isinstance(config.dataset, CsvSpec)
    assert config.dataset.columns.by_role == {
        "user": "8",
        "item": "7",
        "rating": "2",
        "timestamp": "900000000",
    }
    assert (config.dataset.separator, config.dataset.header, config.dataset.decimal) == (";", True, ",")
    assert tuple(config.dataset.scale.model_dump().values()) == (0, 10, 0.5)
    assert config.epsilons is not None
    assert 2 in config.epsilons
    assert 'user: column "8", as told' in done.stderr
    text = (tmp_path / "mine.yaml").read_text()
    again = text.partition("`dpmf init r.csv ")[2].partition("`")[0].split()
    dpmf(tmp_path, session_cache, "init", "r.csv", *again, "--to", "again.yaml")
    assert (tmp_path / "again.yaml").read_text() == text


def test_a_config_is_overwritten_by_force_alone(tmp_path: Path, session_cache: Path) -> None:
    (tmp_path / "r.csv").write_bytes(rows("{u},{i},{r}"))
    (tmp_path / "r-value.yaml").write_text("mine: true\n")
    done = dpmf(tmp_path, session_cache, "init", "r.csv", expect=2)
    assert "r-value.yaml: exists already and differs" in done.stderr
    assert "--force" in done.stderr
    assert (tmp_path / "r-value.yaml").read_text() == "mine: true\n"
    dpmf(tmp_path, session_cache, "init", "r.csv", "--force")
    dpmf(tmp_path, session_cache, "init", "r.csv")  # it says the same
    assert load_config(tmp_path / "r-value.yaml").algorithms


def test_advise_goes_on_with_the_config_of_init(tmp_path: Path, session_cache: Path) -> None:
    (tmp_path / "r.csv").write_bytes(rows("{u},{i},{r}"))
    dpmf(tmp_path, session_cache, "init", "r.csv", "--protects", "local", "--no-header")
    text = (tmp_path / "r-local.yaml").read_text()
    done = dpmf(tmp_path, session_cache, "advise", "r.csv", "--protects", "local", "--no-header")
    assert "which private method to take" in done.stdout
    assert (tmp_path / "r-local.yaml").read_text() == text


@pytest.mark.parametrize(
    ("data", "words", "said"),
    [
        (None, (), "r.csv: cannot be read (No such file or directory); name a file of ratings"),
        (b"", (), "r.csv: the file is empty; write a line for each rating"),
        (
            b"user,item\n1,2\n3,4\n",
            (),
            "r.csv:1: its lines have two columns, comma-separated; a rating takes three",
        ),
        (b"1,2,3\n1,\x00\x01,4\n", (), "r.csv:2: holds bytes that are not text; write the ratings as CSV"),
        ("1,2,3\n".encode("utf-16"), (), "r.csv:1: looks like UTF-16; save the file as UTF-8"),
        (
            b"user,item,rating\n",
            (),
            "r.csv: the column of ratings has no numbers; correct the file, or name the column with --rating",
        ),
        (
            rows("{u},{i},{r}"),
            ("--to", "r.csv", "--force"),
            "--to r.csv: this is the file of ratings; name another file",
        ),
        (rows("{u},{i},{r}"), ("--scale", ""), "--scale : write minimum:maximum:step, like 0.5:5:0.5"),
        (
            rows("{u},{i},{r}") + b"1,2,1e300\n",
            (),
            "from 1 to 1e+300 is wider than ±1e+09",
        ),
        (rows("{u},{i},{r}"), ("--scale", "1:3:1"), "off the scale from 1 to 3"),
        (rows("{u},{i},{r}"), ("--scale", "1:5:3"), "--scale 1:5:3: no whole number of steps"),
        (rows("{u},{i},{r}"), ("--user", "9"), 'r.csv:1: no column "9" (user); known: 0, 1, 2'),
        (
            rows("{u},{i},{r}"),
            ("--user", "1", "--item", "1"),
            'column "1" is named for two roles; name another',
        ),
        (rows("{u},{i},{r}"), ("--separator", "::"), "--separator ::: give one character, or one of tab"),
        (rows("{u},{i},{r}"), ("--decimal", ";"), "--decimal ;: choose one of . and ,"),
        (rows("{u},{i},{r}"), ("--to", "no/such.yaml"), "no/such.yaml"),
    ],
)
def test_mistakes_name_place_and_fix(
    tmp_path: Path, session_cache: Path, data: bytes | None, words: tuple[str, ...], said: str
) -> None:
    if data is not None:
        (tmp_path / "r.csv").write_bytes(data)
    (tmp_path / "no").write_text("")
    done = dpmf(tmp_path, session_cache, "init", "r.csv", *words, expect=2)
    assert said in done.stderr
    assert not list(tmp_path.glob("*.yaml"))
