"""How a session handles each way in which futures end, and an executor whose sessions are lost."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import KilledWorker
from threadpoolctl import threadpool_info, threadpool_limits

from dpmf_cli.datasets import cache as kept
from dpmf_cli.errors import DpmfError
from dpmf_cli.running.cluster import executor as module
from dpmf_cli.running.cluster import session as sessions
from dpmf_cli.running.cluster import worker
from dpmf_cli.running.cluster.executor import FRUITLESS, ClusterExecutor
from dpmf_cli.running.cluster.session import FETCH_SECONDS, TRIES, ConnectionLostError, Session
from dpmf_cli.running.cluster.worker import RatingsAbsentError
from tests.results.test_store import task


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
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(kept, "packed", lambda checksum, cache: {"users.npy": b"12345"})
    session = Session(Recording(), {0: (task(),), 1: (task(),)}, Path("cache"), 1.0, lambda message: None)  # type: ignore[arg-type]
    monkeypatch.setattr(session, "_ended", SimpleNamespace(update=lambda futures: None))
    return session


def recorded(session: Session) -> Recording:
    return cast(Recording, session._client)


def ended(session: Session, error: Exception, number: int = 0) -> Any:
    return session._outcomes_of(number, SimpleNamespace(status="error"), (type(error), error, None))  # type: ignore[arg-type]


def test_a_task_that_kills_its_workers_is_a_failure(session: Session) -> None:
    (outcome,) = ended(session, KilledWorker("key", SimpleNamespace(address="tcp://a:1"), 3))  # type: ignore[arg-type]
    assert outcome.result is None
    assert "perhaps out of memory" in outcome.failure


def test_a_workers_own_trouble_is_tried_again_within_bounds(session: Session) -> None:
    for number in range(1, TRIES):
        assert ended(session, SystemError("two threads imported at once")) is None
        assert len(recorded(session).submitted) == number
    with pytest.raises(DpmfError, match=r"cannot run dpmf's tasks \(SystemError: two threads"):
        ended(session, SystemError("two threads imported at once"))
    assert len(set(recorded(session).submitted)) == TRIES - 1


def test_absent_ratings_are_sent_once_for_all_batches(session: Session) -> None:
    for number in (0, 1):
        assert ended(session, RatingsAbsentError("not there"), number) is None
    assert len(recorded(session).registered) == 1
    assert len(recorded(session).submitted) == 2
    ended(session, RatingsAbsentError("not there"))
    with pytest.raises(RatingsAbsentError):
        ended(session, RatingsAbsentError("not there"))


def test_ratings_too_large_to_send_are_said_with_the_fix(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LARGEST_DELIVERY", 4)
    with pytest.raises(DpmfError, match=r"too much to send: set \$DPMF_CACHE, .* to a folder"):
        ended(session, RatingsAbsentError("not there"))


def test_what_a_user_has_to_mend_is_not_tried_again_nor_what_was_cancelled(session: Session) -> None:
    with pytest.raises(DpmfError, match="other versions"):
        ended(session, DpmfError("other versions"))
    with pytest.raises(ConnectionLostError):
        session._outcomes_of(0, SimpleNamespace(status="cancelled"), None)  # type: ignore[arg-type]
    assert recorded(session).submitted == []


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
        worker._one_thread_each.cache_clear()
        worker._one_thread_each()
        with threadpool_limits(1):  # a task's
            pass
        threads = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    assert threads == {1}


@pytest.mark.parametrize("each", [0, 1], ids=["nothing ends", "one batch ends in each session"])
def test_sessions_lost_in_a_row_are_bounded_unless_something_ends_in_them(
    monkeypatch: pytest.MonkeyPatch, each: int
) -> None:
    class Losing:
        processes = 1

        def __init__(self, client: Any, batches: dict[int, Any], *rest: Any) -> None:
            self.numbers = list(batches)[:each]

        def outcomes(self) -> Iterator[tuple[int, list[Any]]]:
            for number in self.numbers:
                yield number, []
            raise ConnectionLostError

    @contextmanager
    def connected(self: ClusterExecutor, seconds: float) -> Iterator[None]:
        yield None

    said: list[str] = []
    monkeypatch.setattr(module, "Session", Losing)
    monkeypatch.setattr(ClusterExecutor, "_connected", connected)
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
        with contextlib.suppress(OSError):
            while True:
                peer, _ = server.accept()
                held.append(peer)
                if answer is not None:
                    peer.sendall(answer)
                    peer.close()

    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(DpmfError, match="no scheduler answers there"):
            list(ClusterExecutor(address, 1.0, lambda line: None)._outcomes([(task(),)], Path("cache")))
        server.shutdown(socket.SHUT_RDWR)
