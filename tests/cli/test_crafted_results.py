"""Task files that somebody wrote by hand, with a valid checksum: each command names them, and none ends in a traceback."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpmf_cli.experiment.results.store import encode, sealed, unsealed
from tests.cli.test_verify import CONFIG, RATINGS
from tests.command import in_process, run_config

MEASURED = "ranking: {threshold: 4}\nerror_cdf: [0.5, 1]\ngroups: true\ncrossings: [ga]\ntwins: true\n"
Body = dict[str, Any]
Commands = Callable[[bytes], dict[str, tuple[int, str]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "ratings.csv").write_text(RATINGS)
    run_config(folder, "tiny", CONFIG.replace("[ga]", "[ga, popularity]") + MEASURED)
    return folder


@pytest.fixture
def task(made: Path) -> Path:
    """The file of the first fold's private fit: two ε, with errors, rankings and a ledger of four steps."""
    (path,) = (
        path
        for path in made.glob("results/tasks/made/pge-*/fold000-*")
        if (unsealed(path.read_bytes()) or {})["epsilons"] == [0.5, 8]
    )
    return path


@pytest.fixture
def body(task: Path) -> Body:
    body = unsealed(task.read_bytes())
    assert body is not None
    return body


@pytest.fixture
def commands(made: Path, task: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commands]:
    """Exit code and output of each command, with other content in the file of `task`."""
    monkeypatch.chdir(made)
    monkeypatch.setenv("DPMF_CACHE", str(made / "cache"))
    whole = task.read_bytes()

    def call(content: bytes) -> dict[str, tuple[int, str]]:
        task.write_bytes(content)
        ended = {name: in_process(name, "results/tiny") for name in ("crossings", "report", "verify")}
        return {name: (code, printed + said) for name, (code, printed, said) in ended.items()}

    yield call
    task.write_bytes(whole)


def put(*place: str | int, value: Any) -> Callable[[Body], object]:
    """Puts a value at a place of a body, or takes the place away if the value is ...; the place need not exist."""

    def change(body: Body) -> None:
        part: Any = body
        for key in place[:-1]:
            part = part[key]
        if value is ...:
            del part[place[-1]]
        else:
            part[place[-1]] = value

    return change


RECORDS = {"threshold": [1, 1], "kept": [1, 1], "least": [1, 1], "median": [1, 1], "largest": [1, 1]}
CRAFTED: dict[str, Callable[[Body], object]] = {
    "an RMSE below 0": put("rmse", 0, value=-1.0),
    "an RMSE in quotes": put("rmse", 0, value="0.9"),
    "an RMSE that is true": put("rmse", 0, value=True),
    "an RMSE beyond floats": put("rmse", 0, value=10**400),
    "an RMSE too few": put("rmse", value=[0.9]),
    "RMSEs of null": put("rmse", value=None),
    "an RMSE below all": put("rmse", 1, value="-inf"),
    "a claim of null": put("claimed", 1, value=None),
    "no proof": put("provable", value=...),
    "a proof that is a list": put("provable", 0, value=[1.0]),
    "a number as ledger": put("ledger", value=5),
    "an empty step": put("ledger", 0, value={}),
    "a step with a claim too few": put("ledger", 0, "claimed", value=[0.1]),
    "a step with μ for one ε": put("ledger", 0, "mu", value=[0.1]),
    "a step with other neighbours": put("ledger", 0, "neighbours", value="x"),
    "a step with another key": put("ledger", 0, "note", value=""),
    "another key": put("note", value=1),
    "a number as settings": put("settings", value=5),
    "other settings": put("settings", "seed", value=1),
    "a fold that is true": put("fold", value=False),
    "a run of null": put("run", value=None),
    "a format that is text": put("format", value="1"),
    "other ε": put("epsilons", value=[0.5, 9.0]),
    "MAEs that are text": put("mae", value="ab"),
    "a ranking of three": put("ranking", 0, value=[0.1, 0.1, 0.1]),
    "a ranking above 1": put("ranking", 0, value=[5, 0.1]),
    "no error of a group": put("rmse_least_active", value=...),
    "a distribution of one limit": put("error_cdf", value=[[0.5], [0.5]]),
    "a distribution above 1": put("error_cdf", 0, 0, value=2.0),
    "records without a column": put("records", value={"kept": [1, 1]}),
    "records that are no numbers": put("records", value={**RECORDS, "least": ["nan", 1]}),
}  # fmt: skip


@pytest.mark.parametrize("what", CRAFTED)
def test_what_is_no_result_is_named_by_each_command(
    commands: Commands, body: Body, task: Path, made: Path, what: str
) -> None:
    CRAFTED[what](body)
    path = task.relative_to(made)
    for command, (code, said) in commands(encode(sealed(body))).items():
        assert (code, f"{path}: damaged" in said) == (command == "verify", True), said


@pytest.mark.parametrize(
    "change", [put("mae", value=...), put("records", value=RECORDS), put("rmse", 0, value="inf")]
)
def test_what_another_version_or_method_writes_is_a_result(
    commands: Commands, body: Body, change: Callable[[Body], object]
) -> None:
    change(body)
    found = commands(encode(sealed(body)))
    assert not any("damaged" in said for _, said in found.values())
    assert [code for code, _ in found.values()] == [0, 0, 0]


def places(value: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """All places in a body, those of its parts included."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield *above, key
        if isinstance(part, dict | list):
            yield from places(part, *above, key)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES | st.sampled_from(["inf", "nan", 1e308, 5e-324, 0, -0.0, 10**400]),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=5,
)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_at_any_place_is_refused_or_shown(
    commands: Commands, body: Body, data: st.DataObject
) -> None:
    changed = copy.deepcopy(body)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(places(changed))))
        put(*place, value=data.draw(VALUES))(changed)
    for command, (code, said) in commands(encode(sealed(changed))).items():
        assert code in ((0, 1) if command == "verify" else (0, 2)), said
        assert "Traceback" not in said
