"""A secret seed: each fit draws one, no file holds it, and the folds are the same for all."""

import hashlib
import json
import pickle
import secrets

import numpy as np
import pytest

from dpmf_cli.core import streams
from dpmf_cli.experiment.results.task import Task, tasks_of
from dpmf_cli.experiment.running.batches import execute
from tests.command import here
from tests.conftest import make_ratings
from tests.results.test_collect import CONFIG, DATA
from tests.runs.tiny import TASKS, TINY, Place

SECRET = TINY.replace("epochs: 1500", "epochs: 20") + "seed: secret\n"
DETERMINISTIC = ("ga-", "ia-", "ge-")


@pytest.fixture
def secret(drawing: Place) -> Place:
    drawing.write(SECRET)
    return drawing


def test_no_file_and_no_message_holds_a_seed_or_the_digest_of_a_stream(
    secret: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
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
    assert here(monkeypatch, secret.folder, secret.folder / "cache", "run", "tiny.yaml", "-j", "1") == 0
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
    paths = [path for path in secret.folder.rglob("*") if path.is_file()]
    assert len(paths) > TASKS
    texts = [path.read_bytes() for path in paths] + [str(paths).encode(), str(capfd.readouterr()).encode()]
    for text in texts:
        assert not [each for each in looks if each in text]
    assert secret.manifest["seed"] == "secret"
    assert all(json.loads(body)["settings"]["seed"] == "secret" for body in secret.tasks.values())


@pytest.mark.slow
def test_experiments_draw_anew_on_the_same_folds_and_can_be_compared(secret: Place) -> None:
    secret.run(jobs=2)
    secret.run(SECRET, "other", jobs=2)
    of: dict[str, dict[str, list[float]]] = {"tiny": {}, "other": {}}
    for path, body in secret.tasks.items():
        result, (*_, algorithm, name) = json.loads(body), path.split("/")
        of[result["settings"]["experiment"]][f"{algorithm.split('-')[0]}-{name}"] = result["rmse"]
    one, other = of.values()
    assert one.keys() == other.keys()
    assert len(one) == TASKS
    same = {name for name in one if one[name] == other[name]}
    assert same == {name for name in one if name.startswith(DETERMINISTIC)}
    assert "pge" in secret.dpmf("compare", "results/tiny", "results/other", "--format", "json").stdout


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_what_is_finished_and_draws_the_rest_anew(secret: Place) -> None:
    secret.run()
    before = secret.tasks
    lost = sorted(name for name in before if "/pge-" in name)[:5]
    for name in lost:
        (secret.folder / "results" / name).unlink()
    assert "computed 5 tasks" in secret.run(jobs=2).stderr
    after = secret.tasks
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] != after[name]} == set(lost)
    assert "nothing to compute" in secret.run().stderr


def secret_task() -> Task:
    config = CONFIG.model_copy(update={"seed": "secret"})
    return next(tasks_of(config, config.algorithms[0], DATA))


def test_a_task_travels_without_a_seed_and_each_fit_draws_its_own() -> None:
    """A task is sent to another process: the seed is drawn where the fit is, and stays there."""
    task, ratings = secret_task(), make_ratings(2)
    there = pickle.loads(pickle.dumps(task))
    assert (there, there.seed, there.key) == (task, "secret", task.key)
    one, other = (execute([each], ratings, ratings)[0].rmse for each in (task, there))
    assert one != other


def test_what_holds_a_seed_does_not_show_it() -> None:
    made = secret_task().streams()
    assert str(made.seed) not in f"{made!r} {made}"
