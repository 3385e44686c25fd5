"""`dpmf verify`: finds damage in results, caches and data, names the fix, and changes nothing."""

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.experiment.results.manifest import read_manifest, write_manifest
from dpmf_cli.experiment.results.store import encode, sealed, unsealed
from dpmf_cli.experiment.results.task import Task, TaskResult
from dpmf_cli.experiment.running import verify as verifying
from dpmf_cli.experiment.running.batches import execute
from tests.command import in_process, run_config

CONFIG = """\
dataset: {kind: csv, name: made, path: ratings.csv, columns: {user: user, item: item, rating: stars},
          scale: {minimum: 1, maximum: 5, step: 1}}
folds: 2
runs: 1
epsilons: [0.5, 8]
baselines: [ga]
algorithms: [pge]
"""
RATINGS = "user,item,stars\n" + "".join(
    f"{user},{item},{1 + (user * item) % 5}\n"
    for user in range(20)
    for item in range(12)
    if (user + item) % 3
)
SOUND = {
    "task files": 4, "manifests": 1, "tables, figures, reports": 8, "parsed ratings, ids": 2, "data files": 1
}  # fmt: skip
TASK, GA, TABLE = "results/tasks/made/pge-", "results/tasks/made/ga-", "results/tiny/curves.csv"
Verify = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "ratings.csv").write_text(RATINGS)
    run_config(folder, "tiny", CONFIG, command="dpmf run tiny.yaml")
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DPMF_CACHE", str(folder / "cache"))
    monkeypatch.setenv("DPMF_STATE", str(folder / "state"))
    return folder


@pytest.fixture
def verify(here: Path) -> Verify:
    """The exit code, standard output and standard error."""
    return partial(in_process, "verify")


def all_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, b"" if path.is_dir() else path.read_bytes())
        for path in [folder, *folder.rglob("*")]
    }


def the(pattern: str) -> Path:
    """The first file whose path begins with this."""
    return sorted(path for path in Path().rglob("*.*") if str(path).startswith(pattern))[0]


def counts(printed: str) -> dict[str, int]:
    return {name: check["sound"] for name, check in json.loads(printed)["checks"].items() if not check["off"]}


def test_what_is_sound_is_counted_and_nothing_is_written(verify: Verify, here: Path) -> None:
    (here / "results" / ".writing-1").write_bytes(b"of a killed run")
    before = all_of(here)
    code, printed, said = verify("--recompute", "3", "--json")
    assert (code, counts(printed)) == (0, {**SOUND, "computed anew": 3})
    assert said.startswith("tasks are drawn by --seed ")
    code, printed, said = verify()
    assert (code, said) == (0, "")
    assert [line.split() for line in printed.splitlines()] == [
        ["sound", "off"], *([*kind.split(), str(count), "0"] for kind, count in SOUND.items())
    ]  # fmt: skip
    assert all_of(here) == before


@pytest.mark.parametrize("named", ["results", "results/tiny", "tiny.yaml"])
def test_what_is_named_is_looked_at(verify: Verify, named: str) -> None:
    code, printed, _ = verify(named, "--json")
    assert (code, counts(printed)) == (0, SOUND)


def test_an_experiment_is_looked_at_without_the_others(verify: Verify) -> None:
    shutil.copytree("results/tiny", "results/other")
    Path("results/other/curves.csv").unlink()
    other = Path("results/tasks/made/ga-0000000000000000")
    other.mkdir()
    (other / "fold000-run000-00000000.json").write_bytes(b"")
    assert verify("tiny.yaml")[0] == 0
    code, printed, _ = verify()
    assert code == 1
    assert len(printed.splitlines()) == 6 + 2


@pytest.mark.parametrize("named", ["nowhere", "empty", "tiny.yaml"])
def test_what_is_no_result_is_refused(verify: Verify, named: str) -> None:
    shutil.rmtree("results")
    Path("empty").mkdir()
    code, printed, said = verify(named)
    assert (code, printed) == (2, "")
    assert said.startswith("dpmf: ")


def changed(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def made_into_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def resealed(path: Path, **changes: object) -> None:
    body = unsealed(path.read_bytes())
    assert body is not None
    path.write_bytes(encode(sealed({**body, **changes})))


def manifest(**changes: object) -> None:
    folder = Path("results/tiny")
    body = read_manifest(folder)
    body.pop("sha256", None)
    write_manifest(folder, {**body, **changes})


AGAIN = "run the same command again: dpmf run tiny.yaml"
NO_RESULT = f"results/tiny/manifest.json: 1 of its tasks have no sound result; {AGAIN}"
NOT_ITS_CHECKSUM = "incomplete, or its content does not fit its checksum; the next run that needs it *"
DAMAGES: dict[str, tuple[Callable[[], object], list[str]]] = {
    "a task's byte": (
        lambda: changed(the(TASK), b'"fold": 0', b'"fold":  0'),
        [f"{TASK}*: damaged: its content does not fit its checksum; `dpmf run` its config: *", NO_RESULT],
    ),
    "a task of nobody": (
        lambda: the(TASK).write_bytes(encode(sealed({"format": 1}))),
        [f"{TASK}*: damaged: it is not the result of a task; *", NO_RESULT],
    ),
    "a task of another version": (
        lambda: resealed(the(TASK), format=7),
        [f"{TASK}*: written in format 7 by another version of dpmf *; use that version, or name another folder *", NO_RESULT],
    ),
    "a task under another name": (
        lambda: the(TASK).rename(str(the(TASK)).replace("fold000", "fold009")),
        [f"{TASK}*/fold009*: damaged: it belongs to another task; * if it is of no config, delete it", NO_RESULT],
    ),
    "a task that is gone": (lambda: the(TASK).unlink(), [NO_RESULT]),
    "a FIFO as a task": (
        lambda: made_into_a_fifo(the(TASK)),
        [f"{TASK}*: cannot be read: not a file; make it readable, or delete it", NO_RESULT],
    ),
    "a changed table": (
        lambda: changed(Path(TABLE), b"0.5", b"0.6"),
        [f"{TABLE}: damaged: its content does not fit its hash; {AGAIN}"],
    ),
    "a figure that is gone": (
        lambda: Path("results/tiny/curves.png").unlink(),
        [f"results/tiny/curves.png: missing; {AGAIN}"],
    ),
    "a FIFO as a table": (
        lambda: made_into_a_fifo(Path(TABLE)),
        [f"{TABLE}: cannot be read: not a file; run the same command *"],
    ),
    "a table that was being written": (
        lambda: manifest(files={"curves.csv": None}),
        [f"{TABLE}: interrupted while it was written; {AGAIN}"],
    ),
    "a changed manifest": (
        lambda: changed(Path("results/tiny/manifest.json"), b'"folds": 2', b'"folds": 3'),
        ["results/tiny/manifest.json: damaged, or of another version of dpmf; * run its config again"],
    ),
    "parsed ratings with another bit": (
        lambda: changed(the("cache/ratings/"), b"\x01\x00\x00\x00", b"\x02\x00\x00\x00"),
        ["*/cache/ratings/*: its content does not fit its checksum; the next run that needs it parses its source again"],
    ),
    "parsed ratings cut off": (
        lambda: next(Path("cache/ratings").iterdir()).write_bytes(b""),
        ["*/cache/ratings/*: cannot be read (* again"],
    ),
    "ids cut off": (
        lambda: next(Path("cache/sources").iterdir()).write_bytes(b""),
        [f"*/cache/sources/*: {NOT_ITS_CHECKSUM}"],
    ),
    "ids with another bit": (
        lambda: changed(next(Path("cache/sources").iterdir()), b"\x05", b"\x04"),
        [f"*/cache/sources/*: {NOT_ITS_CHECKSUM}"],
    ),
    "a cache that others may write to": (
        lambda: Path("cache").chmod(0o777),
        ["*/cache: parsed ratings are not kept there: it is a link, belongs to another user, or lets others write *"],
    ),
    "changed data": (
        lambda: changed(Path("ratings.csv"), b"1,1,2", b"1,1,3"),
        ["ratings.csv: its ratings changed since (checksum *; bring the old file back, or run the config with --new-data"],
    ),
    "broken data": (
        lambda: changed(Path("ratings.csv"), b"1,1,2", b"1,1,x"),
        ["ratings.csv: *ratings.csv*; bring the old file back, *"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_off_is_listed_with_its_fix(verify: Verify, what: str) -> None:
    damage, expected = DAMAGES[what]
    damage()
    code, printed, _ = verify()
    lines = printed.splitlines()[6:]
    assert code == 1
    assert len(lines) == len(expected), printed
    assert all(fits(line, each) for line, each in zip(lines, expected, strict=True)), printed


def fits(line: str, pattern: str) -> bool:
    """Whether a line matches a pattern in which only * is special."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), line) is not None


def test_what_is_no_damage(verify: Verify) -> None:
    the(TASK).with_suffix(".damaged").write_bytes(b"leftover")
    Path("results/tiny/mine.txt").write_text("of the user")
    assert verify()[::2] == (0, "results/tiny: no hashes of mine.txt\n")
    the(TASK).unlink()
    manifest(failures=[{"algorithm": "PGE", "portion": 1.0, "fold": 0, "run": 0, "traceback": "…"}])
    assert verify()[0] == 0


def test_of_an_older_manifest_no_table_is_covered_which_is_said(verify: Verify) -> None:
    body = read_manifest(Path("results/tiny"))
    del body["files"]
    write_manifest(Path("results/tiny"), body)
    code, printed, said = verify("--json")
    assert code == 0
    assert counts(printed)["tables, figures, reports"] == 0
    assert "results/tiny: no hashes of crossings.csv" in said
    assert "made by an older version: run its config again to cover tables" in said


def test_data_beside_a_config_are_found_by_its_command(verify: Verify) -> None:
    Path("sub").mkdir()
    for name in ("tiny.yaml", "ratings.csv"):
        Path(name).rename(f"sub/{name}")
    manifest(command="dpmf run sub/tiny.yaml -j 2")
    for named in ("results", "results/tiny", "sub/tiny.yaml"):
        assert counts(verify(named, "--json")[1])["data files"] == 1
    manifest(command="dpmf run 'unclosed")
    assert counts(verify("sub/tiny.yaml", "--json")[1])["data files"] == 1
    code, printed, said = verify("--json")
    assert (code, counts(printed)["data files"]) == (0, 0)
    assert "ratings.csv is not there" in said


def test_data_that_are_not_at_hand_are_named_and_ratings_parsed_again_are_kept_nowhere(
    verify: Verify, here: Path
) -> None:
    shutil.move("ratings.csv", "away.csv")
    code, _, said = verify("--recompute", "1")
    assert code == 0
    assert "made: ratings.csv is not there; only its parsed ratings in the cache are checked" in said
    shutil.rmtree("cache")
    code, printed, said = verify("--recompute", "9", "--json")
    assert (code, counts(printed)["computed anew"]) == (0, 0)
    assert said.count("not computed anew, because its ratings are not available") == 4
    shutil.move("away.csv", "ratings.csv")
    before = all_of(here)
    code, printed, _ = verify("--recompute", "2", "--json")
    assert (code, counts(printed)["computed anew"]) == (0, 2)
    assert all_of(here) == before


def other_error(by: float) -> None:
    body = unsealed(the(TASK).read_bytes())
    assert body is not None
    resealed(the(TASK), rmse=[body["rmse"][0] + by, *body["rmse"][1:]])


def test_another_result_under_its_own_checksum_is_found_by_computing(verify: Verify) -> None:
    other_error(0.25)
    manifest(versions={**read_manifest(Path("results/tiny"))["versions"], "numpy": "0.9"})
    assert verify()[0] == 0
    code, printed, _ = verify("--recompute", "9")
    assert code == 1
    off = f"{TASK}*: when computed anew, its bytes differ; RMSEs differ by at most 0.25; *numpy 0.9 then, *"
    assert fits(printed.splitlines()[-1], off)


def test_only_between_processors_rounding_is_let_be_and_said(verify: Verify) -> None:
    other_error(1e-8)
    assert verify("--recompute", "9")[0] == 1
    manifest(cpu="Abacus", last_run={"cpus": ["Abacus"]})
    code, _, said = verify("--recompute", "9")
    assert code == 0
    assert "RMSEs differ by at most 1e-08; made on Abacus, this is " in said
    other_error(1e-3)
    code, printed, _ = verify("--recompute", "9")
    assert code == 1
    assert "RMSEs differ by at most 0.001; made on Abacus, this is " in printed


def test_a_computation_that_fails_is_off(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "execute", lambda *_: 1 / 0)
    code, printed, _ = verify("--recompute", "1")
    assert code == 1
    assert "computing it anew fails: ZeroDivisionError" in printed


def test_a_seed_draws_the_same_tasks(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []

    def noted(tasks: Sequence[Task], train: Ratings, test: Ratings) -> list[TaskResult]:
        drawn.append(tasks[0].key)
        return execute(tasks, train, test)

    monkeypatch.setattr(verifying, "execute", noted)
    for seed in ("1", "1", "2"):
        verify("--recompute", "2", "--seed", seed)
    assert drawn[:2] == drawn[2:4]
    assert drawn[4:] != drawn[:2]
    verify("--recompute", "9")
    assert len(set(drawn[6:])) == 4
    said = verify("--recompute", "2")[2]
    verify("--recompute", "2", "--seed", said.split()[-1])
    assert drawn[10:12] == drawn[12:14]


def test_what_nobody_knows_the_seed_of_is_said_and_not_counted(verify: Verify, here: Path) -> None:
    run_config(here, "secret", CONFIG + "seed: secret\n")
    code, printed, said = verify("secret.yaml", "--recompute", "9", "--json")
    assert (code, counts(printed)["computed anew"]) == (0, 0)
    assert "4 tasks have a secret seed, which was not kept: they cannot be computed anew" in said


def test_a_refined_grid_is_computed_by_its_parts(verify: Verify, here: Path) -> None:
    run_config(here, "tiny", CONFIG.replace("[0.5, 8]", "[0.5, 2, 8]"))
    assert counts(verify("--recompute", "9", "--json")[1])["computed anew"] == 6
