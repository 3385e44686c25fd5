"""Runs on a Dask cluster of real processes: the bytes of a local run, whatever happens to workers and scheduler.

How a session handles each way in which futures end, and an executor whose sessions are lost.
"""

import json
import os
import random
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import KilledWorker
from threadpoolctl import threadpool_info, threadpool_limits

from dpmf_cli import __version__
from dpmf_cli.cli.entry import INTERRUPTED
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import cache as kept
from dpmf_cli.experiment.running import cluster as dask
from dpmf_cli.experiment.running.cluster import (
    FETCH_SECONDS,
    FRUITLESS,
    TRIES,
    ClusterExecutor,
    ConnectionLostError,
    RatingsAbsentError,
    Session,
)
from dpmf_cli.experiment.running.plan import cluster_executor
from tests import command
from tests.dask_cluster import DaskCluster, free_port, until
from tests.datasets.building import with_another_value
from tests.faults.tally import FULL
from tests.results.test_store import task

CONFIG = """\
dataset: {{kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}}
folds: {folds}
runs: {runs}
epsilons: [0.5, 2, 8]
baselines: [ia, ge]
algorithms:
  - algorithm: pge
  - {{algorithm: isgd, factors: 2, epochs: {epochs}}}
"""
KILLS, RESTARTS = (4, 2) if FULL else (2, 1)
"""What happens to each disturbed run: workers killed in the middle of a task, and schedulers killed."""

FAULTS = """\
from pathlib import Path
from dpmf_cli.algorithms.friedman2016.matrix_factorization import InputPerturbationSGD

if "fit" not in globals():  # Dask loads it twice
    fit = InputPerturbationSGD.fit
def fails_once(self, train, epsilons, *, streams, curator):
    if Path({flag!r}).exists() and (streams.fold, streams.run) == (1, 0):
        raise ZeroDivisionError("on purpose")
    return fit(self, train, epsilons, streams=streams, curator=curator)
InputPerturbationSGD.fit = fails_once
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configs, the cache of this machine, and the results of an undisturbed local run of the quick one.

    A fit of ISGD takes about 35 µs for each epoch: with many, it can be killed in the middle.
    """
    home = tmp_path_factory.mktemp("home")
    for name, folds, runs, epochs in (("quick", 3, 2, 100), ("slow", 4, 3, 20000)):
        (home / f"{name}.yaml").write_text(CONFIG.format(folds=folds, runs=runs, epochs=epochs))
    local(home, "quick.yaml", "undisturbed-quick")
    return home


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[DaskCluster]:
    """Three workers: one with this machine's cache, like a shared folder; two with their own. And undisturbed results
    of the slow config."""
    local(home, "slow.yaml", "undisturbed-slow")
    (home / "faults.py").write_text(FAULTS.format(flag=str(home / "flag")))
    # If there were more kills than Dask forgives one task by default (3), they could all hit the same task.
    with DaskCluster(home, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=str(max(KILLS, 3))) as cluster:
        for name, cache, threads in (("shared", "cache", 1), ("own", "cache-1", 2), ("other", "cache-2", 1)):
            cluster.join(name, home / cache, "--preload", str(home / "faults.py"), threads=threads)
        cluster.wait_for_workers()
        yield cluster


def local(home: Path, config: str, results: str) -> None:
    command.dpmf(home, home / "cache", "run", config, "-j", "1", "--results", results)


def on_cluster(home: Path, cluster: DaskCluster, config: str, results: str, expect: int = 0) -> str:
    """What a run says."""
    words = ("run", config, "--scheduler", cluster.address, "--results", results)
    return command.ended(command.start(home, home / "cache", *words), expect)[1]


def result_files(results: Path) -> dict[str, bytes]:
    """Everything whose bytes a run guarantees: every file except the manifest, which has times."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in results.rglob("[!.]*")
        if path.is_file() and path.name != "manifest.json"
    }


@pytest.mark.slow
def test_the_bytes_are_those_of_a_local_run_and_the_data_travel_once(
    home: Path, cluster: DaskCluster
) -> None:
    said = on_cluster(home, cluster, "quick.yaml", "cluster")
    assert result_files(home / "cluster") == result_files(home / "undisturbed-quick")
    assert said.count("a worker lacks the ratings") == 1
    manifest = json.loads((home / "cluster" / "quick" / "manifest.json").read_bytes())
    assert manifest["last_run"]["processes"] == 4
    assert len(manifest["last_run"]["peak_bytes_of_processes"]) >= 2
    ours, *theirs = (
        {path.name: path.read_bytes() for path in (home / cache / "ratings").glob("*")}
        for cache in ("cache", "cache-1", "cache-2")
    )
    assert theirs == [ours, ours]


@pytest.mark.slow
def test_a_workers_damaged_cache_is_noticed_and_the_ratings_are_sent_again(home: Path) -> None:
    shutil.copytree(home / "cache", home / "cache-damaged")
    (place,) = (home / "cache-damaged").glob("ratings/*")
    whole = place.read_bytes()
    place.write_bytes(with_another_value(whole))
    with DaskCluster(home) as alone:
        alone.join("damaged", home / "cache-damaged")
        alone.wait_for_workers()
        said = on_cluster(home, alone, "quick.yaml", "undamaged")
    assert said.count("a worker lacks the ratings") == 1
    assert result_files(home / "undamaged") == result_files(home / "undisturbed-quick")
    assert place.read_bytes() == whole


def test_a_process_reads_ratings_to_check_them_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(home / "cache", tmp_path / "cache")
    (place,) = (tmp_path / "cache").glob("ratings/*")
    read: list[str] = []

    def intact(name: str, *_: object) -> bool:
        read.append(name)
        return len(read) > 1

    monkeypatch.setattr(kept, "intact", intact)
    for _ in range(3):
        with suppress(DpmfError):
            dask._verify(place.stem, tmp_path / "cache")
    assert read == [place.stem] * 2  # once as damaged, which the worker does not cache


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6) if FULL else [1])
def test_kills_mid_task_and_new_schedulers_cost_time_alone(
    home: Path, cluster: DaskCluster, seed: int
) -> None:
    """In random order. `make test-cluster` does it over and over."""
    rng, results = random.Random(seed), f"seed{seed}"
    faults = ["kill"] * KILLS + ["restart"] * RESTARTS
    rng.shuffle(faults)
    words = ("run", "slow.yaml", "--scheduler", cluster.address, "--results", results)
    process = command.start(home, home / "cache", *words)
    try:
        for fault in faults:
            if fault == "kill":
                assert cluster.kill_worker_mid_task(lambda: process.poll() is None)
            else:
                time.sleep(rng.uniform(0.2, 1.0))
                assert process.poll() is None
                cluster.restart_scheduler()
        _, said = command.ended(process)
    finally:
        process.kill()
    assert result_files(home / results) == result_files(home / "undisturbed-slow")
    assert "the connection to tcp://" in said
    assert seed > 1 or "a worker lacks the ratings" not in said
    print(f"seed {seed}: {KILLS} kills mid-task, {RESTARTS} new schedulers, no file differs")


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_a_local_run_goes_on(home: Path, cluster: DaskCluster) -> None:
    words = ("run", "slow.yaml", "--scheduler", cluster.address, "--results", "stopped")
    process = command.start(home, home / "cache", *words)
    until(lambda: len(result_files(home / "stopped")) > 3 or process.poll() is not None, "some results")
    os.killpg(process.pid, signal.SIGINT)
    _, errors = command.ended(process, 130)
    assert INTERRUPTED in errors
    with cluster.client() as client:
        idle = lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))  # noqa: E731
        until(idle, "the scheduler forgets what was not finished", 10)
    assert len(result_files(home / "stopped")) < len(result_files(home / "undisturbed-slow"))
    local(home, "slow.yaml", "stopped")
    assert result_files(home / "stopped") == result_files(home / "undisturbed-slow")


@pytest.mark.slow
def test_a_task_that_raises_is_a_failure_and_not_tried_again(home: Path, cluster: DaskCluster) -> None:
    (home / "flag").touch()
    try:
        said = on_cluster(home, cluster, "quick.yaml", "failed", expect=1)
    finally:
        (home / "flag").unlink()
    assert "1 tasks failed" in said
    assert "ZeroDivisionError: on purpose" in said
    ours, theirs = (command.task_files(home, each) for each in ("failed", "undisturbed-quick"))
    assert len(ours) == len(theirs) - 1
    assert ours.items() <= theirs.items()


def refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> list[str]:
    """The lines that `dpmf run quick.yaml` says in this process, after which it must end with exit code 2."""
    words = ("run", "quick.yaml", "--results", "refused", *arguments)
    assert command.here(monkeypatch, home, home / "cache", *words) == 2
    return capsys.readouterr().err.strip().splitlines()


@pytest.mark.slow
def test_a_worker_of_another_version_is_refused_by_name(
    home: Path, cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = dask.fingerprint()
    for name, theirs, said in (
        ("dpmf", "0.0.1", f"dpmf {__version__} instead of 0.0.1"),
        ("dpmf's code", "0123", f"""dpmf's code {ours["dpmf's code"]} instead of 0123"""),
    ):
        monkeypatch.setattr(dask, "fingerprint", lambda name=name, theirs=theirs: {**ours, name: theirs})
        (message,) = refused(home, monkeypatch, capsys, "--scheduler", cluster.address)[1:]
        assert message.startswith("dpmf: worker tcp://127.0.0.1:")
        assert f": {said}; " in message


@pytest.mark.slow
def test_no_workers_are_waited_for_and_then_said(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with DaskCluster(home) as empty:
        said = refused(home, monkeypatch, capsys, "--scheduler", empty.address, "--wait", "1")
    assert "the scheduler has no workers: waiting up to 1 s for one" in said
    assert said[-1].startswith("dpmf: no worker came within 1 s; start some")


NO_ADDRESS = [
    "8786",
    "127.0.0.1:8786",
    "tcp://",
    "tcp://h",
    "tcp://h:x",
    "tcp://h:99999",
    "tcp://:8786",
    "tcp://h:1/x",
]


@pytest.mark.parametrize("address", ["", *NO_ADDRESS])
def test_what_is_no_address_is_refused_before_dask_is_asked(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "ClusterExecutor", lambda *_: pytest.fail("asked"))
    with pytest.raises(DpmfError, match=rf'"{address}" is not the address .* tcp://host:8786'):
        cluster_executor(address, 1, print)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{}", "tcp://[::1]:{}", "tls://127.0.0.1:1"])
def test_an_address_without_a_scheduler_is_one_message_and_so_are_processes_beside_it(
    home: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = address.format(free_port())
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.3)
    (message,) = refused(home, monkeypatch, capsys, "--scheduler", address)[1:]
    assert message.startswith(f"dpmf: {address}: no scheduler answers there")
    assert "give one of them" in refused(home, monkeypatch, capsys, "-j", "2", "--scheduler", address)[-1]


class Recording:
    """A client that records what it is asked to do."""

    def __init__(self) -> None:
        self.loop, self.status = SimpleNamespace(add_callback=lambda *arguments: None), "running"
        self.submitted: list[str] = []
        self.registered: list[str] = []

    def map(self, function: Any, payloads: list[bytes], *, key: list[str], **options: Any) -> list[Any]:
        self.submitted += key
        return [SimpleNamespace(key=each) for each in key]

    def register_plugin(self, plugin: Any) -> None:
        self.registered.append(plugin.name)


@pytest.fixture
def client() -> Recording:
    return Recording()


@pytest.fixture
def session(client: Any, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(kept, "packed", lambda checksum, cache: b"12345")
    of = ClusterExecutor("tcp://a:1", 1.0, lambda message: None)
    session = Session(of, client, {0: (task(),), 1: (task(),)}, Path("cache"))
    monkeypatch.setattr(session, "_ended", SimpleNamespace(update=lambda futures: None))
    return session


def ended(session: Session, error: Exception, number: int = 0) -> Any:
    future: Any = SimpleNamespace(status="error")
    return session._outcomes_of(number, future, (type(error), error, None))


def test_a_task_that_kills_its_workers_is_a_failure(session: Session) -> None:
    last: Any = SimpleNamespace(address="tcp://a:1")
    (outcome,) = ended(session, KilledWorker("key", last, 3))
    assert outcome.result is None
    assert "perhaps out of memory" in outcome.failure


def test_a_workers_own_trouble_is_tried_again_within_bounds(session: Session, client: Recording) -> None:
    for number in range(1, TRIES):
        assert ended(session, SystemError("two threads imported at once")) is None
        assert len(set(client.submitted)) == number
    with pytest.raises(DpmfError, match=r"cannot run dpmf's tasks \(SystemError: two threads"):
        ended(session, SystemError("two threads imported at once"))


def test_absent_ratings_are_sent_once_for_all_batches(session: Session, client: Recording) -> None:
    for number in (0, 1):
        assert ended(session, RatingsAbsentError("not there"), number) is None
    assert (len(client.registered), len(client.submitted)) == (1, 2)
    ended(session, RatingsAbsentError("not there"))
    with pytest.raises(RatingsAbsentError):
        ended(session, RatingsAbsentError("not there"))


def test_what_a_user_has_to_mend_is_not_tried_again_nor_what_was_cancelled(
    session: Session, client: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "LARGEST_DELIVERY", 4)
    with pytest.raises(DpmfError, match=r"too much to send: set \$DPMF_CACHE, .* to a folder"):
        ended(session, RatingsAbsentError("not there"))
    with pytest.raises(DpmfError, match="other versions"):
        ended(session, DpmfError("other versions"))
    future: Any = SimpleNamespace(status="cancelled")
    with pytest.raises(ConnectionLostError):
        session._outcomes_of(0, future, None)
    assert client.submitted == []


def test_a_result_that_is_there_but_never_comes_is_a_lost_connection(session: Session) -> None:
    future: Any = SimpleNamespace(done=lambda: True)
    session._running = {"a": (0, future)}
    session._watch_results(0.0)
    session._running["b"] = (1, future)
    session._watch_results(FETCH_SECONDS - 1)
    with pytest.raises(ConnectionLostError):
        session._watch_results(FETCH_SECONDS)
    del session._running["a"]
    session._watch_results(FETCH_SECONDS + 1)


def test_a_task_that_ends_leaves_the_others_of_a_worker_with_one_blas_thread() -> None:
    with threadpool_limits(2):
        dask._limit_threads.cache_clear()
        dask._limit_threads(1)
        with threadpool_limits(1):  # a task's
            pass
        threads = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    assert threads == {1}


@pytest.mark.parametrize("each", [0, 1], ids=["nothing ends", "one batch ends in each session"])
def test_sessions_lost_in_a_row_are_bounded_unless_something_ends_in_them(
    monkeypatch: pytest.MonkeyPatch, each: int
) -> None:
    class Losing:
        def __init__(self, of: Any, client: Any, batches: dict[int, Any], *rest: Any) -> None:
            self.numbers = list(batches)[:each]

        def outcomes(self) -> Iterator[tuple[int, list[Any]]]:
            for number in self.numbers:
                yield number, []
            raise ConnectionLostError

    said: list[str] = []
    monkeypatch.setattr(dask, "Session", Losing)
    monkeypatch.setattr(ClusterExecutor, "_connected", lambda self, seconds: nullcontext())
    batches = [(task(),)] * (2 * FRUITLESS)
    outcomes = ClusterExecutor("tcp://a:1", 1.0, said.append)._outcomes(batches, Path("cache"))
    if each:
        assert len(list(outcomes)) == len(batches)
    else:
        with pytest.raises(DpmfError, match=f"lost {FRUITLESS + 1} times without a task finished"):
            list(outcomes)
        assert len(said) == FRUITLESS


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.0 400 Bad request\r\n\r\n<html></html>"])
def test_a_peer_that_is_no_scheduler_is_refused(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    """A peer that never answers, one that hangs up, and a web server."""
    held: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = server.accept()
                held.append(peer)
                if answer is not None:
                    peer.sendall(answer)
                    peer.close()

    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(DpmfError, match="no scheduler answers there"):
            list(ClusterExecutor(address, 1.0, lambda line: None)._outcomes([(task(),)], Path("cache")))
        server.shutdown(socket.SHUT_RDWR)
