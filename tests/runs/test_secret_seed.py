"""A secret seed: each fit draws one, no file holds it, and the folds are the same for all."""

import hashlib
import json
import pickle
import secrets
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.core import streams
from dpmf_cli.experiment.results.task import Task, tasks_of
from dpmf_cli.experiment.running.batches import execute
from tests.command import dpmf, task_files
from tests.conftest import make_ratings
from tests.results.test_collect import CONFIG, DATA
from tests.runs.tiny import TASKS, TINY

pytestmark = pytest.mark.usefixtures("reference_machine")
SECRET = TINY.replace("epochs: 1500", "epochs: 20") + "seed: secret\n"
DETERMINISTIC = ("ga-", "ia-", "ge-")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(SECRET)
    return tmp_path


def by_name(files: dict[str, bytes]) -> dict[str, bytes]:
    """Results of tasks without the checksum of their settings, by algorithm, fold and run: the parts that two
    experiments have in common."""
    parts = ((name.split("/"), json.loads(body)) for name, body in files.items())
    return {f"{path[-2].split('-')[0]}-{path[-1]}": json.dumps(body["rmse"]).encode() for path, body in parts}


def test_no_file_and_no_message_holds_a_seed_or_the_digest_of_a_stream(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seeds: list[int] = []
    names: list[tuple[str | int, ...]] = []
    randbits, named_bits = secrets.randbits, streams.named_bits

    def drawn(bits: int) -> int:
        seeds.append(randbits(bits))
        return seeds[-1]

    def named(*name: str | int) -> np.random.PCG64:
        names.append(name)
        return named_bits(*name)

    monkeypatch.setattr(secrets, "randbits", drawn)
    monkeypatch.setattr(streams, "named_bits", named)
    monkeypatch.setattr(sys, "argv", ["dpmf", "run", "tiny.yaml", "-j", "1"])
    monkeypatch.setenv("DPMF_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as exited:
        cli.main()
    assert not exited.value.code
    monkeypatch.undo()
    assert len(set(seeds)) == TASKS
    assert 2**200 < min(seeds) < max(seeds) < 2**256
    used = {name for name in names if name[0] in seeds}
    assert {name[0] for name in used} == set(seeds)

    raw = [seed.to_bytes(32, "little") for seed in seeds]
    raw += [hashlib.sha256("\x1f".join(map(str, name)).encode()).digest() for name in used]
    numbers = [int.from_bytes(each, "little") for each in raw]
    looks = {*raw, *(each[::-1] for each in raw)}
    looks |= {text.encode() for each in tuple(looks) for text in (each.hex(), each.hex().upper())}
    looks |= {text.encode() for each in numbers for text in (str(each), f"{each:x}")}
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert len(paths) > TASKS
    texts = [path.read_bytes() for path in paths] + [str(paths).encode(), str(capfd.readouterr()).encode()]
    for text in texts:
        assert not [each for each in looks if each in text]
    assert json.loads((folder / "results" / "tiny" / "manifest.json").read_bytes())["seed"] == "secret"
    assert all(json.loads(body)["settings"]["seed"] == "secret" for body in task_files(folder).values())


@pytest.mark.slow
def test_experiments_draw_anew_on_the_same_folds_and_can_be_compared(folder: Path, cache: Path) -> None:
    (folder / "other.yaml").write_text(SECRET)
    for config in ("tiny.yaml", "other.yaml"):
        dpmf(folder, cache, "run", config, "-j", "2")
    files = task_files(folder)
    of: dict[str, dict[str, bytes]] = {name: {} for name in ("tiny", "other")}
    for path, body in files.items():
        of[json.loads(body)["settings"]["experiment"]][path] = body
    one, other = (by_name(each) for each in of.values())
    assert one.keys() == other.keys()
    assert len(one) == TASKS
    same = {name for name in one if one[name] == other[name]}
    assert same == {name for name in one if name.startswith(DETERMINISTIC)}
    told = dpmf(folder, cache, "compare", "results/tiny", "results/other", "--format", "json").stdout
    assert "pge" in told


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_what_is_finished_and_draws_the_rest_anew(folder: Path, cache: Path) -> None:
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    before = task_files(folder)
    lost = sorted(name for name in before if "/pge-" in name)[:5]
    for name in lost:
        (folder / "results" / name).unlink()
    told = dpmf(folder, cache, "run", "tiny.yaml", "-j", "2").stderr
    assert "computed 5 tasks" in told
    after = task_files(folder)
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] != after[name]} == set(lost)
    assert "nothing to compute" in dpmf(folder, cache, "run", "tiny.yaml").stderr


def secret_task() -> Task:
    config = CONFIG.model_copy(update={"seed": "secret"})
    return next(tasks_of(config, config.algorithms[0], DATA))


def test_a_task_travels_without_a_seed_and_each_fit_draws_its_own() -> None:
    """A task is sent to another process or a worker of a cluster: the seed is drawn where the fit is, and stays
    there."""
    task, ratings = secret_task(), make_ratings(2)
    there = pickle.loads(pickle.dumps(task))
    assert (there, there.seed, there.key) == (task, "secret", task.key)
    one, other = (execute([each], ratings, ratings)[0].rmse for each in (task, there))
    assert one != other


def test_what_holds_a_seed_does_not_show_it() -> None:
    made = secret_task().streams()
    assert str(made.seed) not in f"{made!r} {made}"
