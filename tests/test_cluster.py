"""Runs on a Dask cluster of real processes: the bytes of a local run, whatever happens to workers and scheduler."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from tests.cluster_suite import disturb, dpmf, environment, result_files, start, write_config
from tests.dask_cluster import DaskCluster, free_port, until

FAULTS = """\
from pathlib import Path
from dpmf_cli.algorithms.input_perturbation import InputPerturbationSGD

if "fit" not in globals():  # Dask loads it twice
    fit = InputPerturbationSGD.fit
def fails_once(self, train, *, streams, ledger):
    if Path({flag!r}).exists() and (streams.fold, streams.run) == (1, 0):
        raise ZeroDivisionError("on purpose")
    return fit(self, train, streams=streams, ledger=ledger)
InputPerturbationSGD.fit = fails_once
"""
OTHER_VERSION = "import dpmf_cli.provenance\ndpmf_cli.provenance.__version__ = '0.0.1'\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config, the cache of this machine, and the results of an undisturbed local run."""
    home = tmp_path_factory.mktemp("home")
    write_config(home, epochs=25000)
    dpmf(home, "run", "slow.yaml", "-j", "2", "--results", "undisturbed")
    return home


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[DaskCluster]:
    """Three workers: one with this machine's cache, as a shared folder would be; two with their own."""
    (home / "faults.py").write_text(FAULTS.format(flag=str(home / "flag")))
    with DaskCluster(home) as cluster:
        for name, cache, threads in (("shared", "cache", 1), ("own", "cache-1", 2), ("other", "cache-2", 1)):
            cluster.join(name, home / cache, "--preload", str(home / "faults.py"), threads=threads)
        cluster.wait_for_workers()
        yield cluster


def test_the_bytes_are_those_of_a_local_run_and_the_data_travel_once(
    home: Path, cluster: DaskCluster
) -> None:
    done = dpmf(home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", "cluster")
    assert result_files(home / "cluster") == result_files(home / "undisturbed")
    assert done.stderr.count("a worker has not the ratings") == 1
    manifest = json.loads((home / "cluster" / "slow" / "manifest.json").read_bytes())
    assert manifest["last_run"]["processes"] == 4
    assert len(manifest["last_run"]["peak_bytes_of_processes"]) >= 2
    for cache in ("cache-1", "cache-2"):
        ours, theirs = (
            {path.name: path.read_bytes() for path in (home / each / "ratings").glob("*/*")}
            for each in ("cache", cache)
        )
        assert ours == theirs
    again = dpmf(home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", "again")
    assert "a worker has not the ratings" not in again.stderr


def test_two_kills_mid_task_and_a_new_scheduler_cost_time_alone(home: Path, cluster: DaskCluster) -> None:
    done = disturb(home, cluster, results="disturbed", seed=1, kills=2, restarts=1)
    assert (done.kills, done.restarts) == (2, 1)
    assert done.differing == 0
    assert "the connection to tcp://" in done.stderr


def test_ctrl_c_keeps_what_is_finished_and_a_local_run_goes_on(home: Path, cluster: DaskCluster) -> None:
    process = start(home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", "stopped")
    until(lambda: len(result_files(home / "stopped")) > 3 or process.poll() is not None, "some results")
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted: finished tasks are kept" in errors
    assert "Traceback" not in errors
    with cluster.client() as client:
        idle = lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))  # noqa: E731
        until(idle, "the scheduler forgets what was not finished", 10)
    before = len(result_files(home / "stopped"))
    assert before < len(result_files(home / "undisturbed"))
    dpmf(home, "run", "slow.yaml", "-j", "2", "--results", "stopped")
    assert result_files(home / "stopped") == result_files(home / "undisturbed")


def test_a_task_that_raises_is_a_failure_and_not_tried_again(home: Path, cluster: DaskCluster) -> None:
    (home / "flag").touch()
    try:
        done = dpmf(home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", "failed", expect=1)
    finally:
        (home / "flag").unlink()
    assert "1 tasks failed" in done.stderr
    assert "ZeroDivisionError: on purpose" in done.stderr
    dpmf(home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", "failed")
    assert result_files(home / "failed") == result_files(home / "undisturbed")


def test_a_worker_of_another_version_is_refused_by_name(home: Path, cluster: DaskCluster) -> None:
    (home / "old.py").write_text(OTHER_VERSION)
    cluster.join("old", home / "cache", "--preload", str(home / "old.py"))
    try:
        cluster.wait_for_workers()
        done = dpmf(
            home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", "refused", expect=2
        )
    finally:
        cluster.leave("old")
    assert "dpmf 0.0.1 instead of" in done.stderr
    assert "install the same versions there" in done.stderr


def test_no_workers_are_waited_for_and_then_said(home: Path) -> None:
    with DaskCluster(home) as empty:
        arguments = ("run", "slow.yaml", "--scheduler", empty.address, "--wait", "1", "--results", "none")
        done = dpmf(home, *arguments, expect=2)
    assert "no workers there: waiting up to 1 s for one" in done.stderr
    assert "no worker came within 1 s; start some" in done.stderr


@pytest.mark.parametrize(
    "address",
    [
        f"tcp://127.0.0.1:{free_port()}",
        "tcp://127.0.0.1:x",
        "foo://127.0.0.1:1",
        "tcp://",
        "tls://127.0.0.1:1",
    ],
)
def test_a_bad_address_is_one_message(
    home: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpmf_cli import cli
    from dpmf_cli.cluster import executor

    monkeypatch.setattr(executor, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(sys, "argv", ["dpmf", "run", "slow.yaml", "--scheduler", address, "--results", "bad"])
    monkeypatch.chdir(home)
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as exited:
        cli.main()
    assert exited.value.code == 2
    assert f"{address}: no scheduler answers there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        ("import sys; sys.modules['distributed'] = None; ", [], 'pip install "dpmf[cluster]"'),
        ("", ["-j", "2"], "give one of them"),
    ],
    ids=["extra", "jobs"],
)
def test_what_cannot_be_is_said_before_any_work(
    home: Path, code: str, arguments: list[str], message: str
) -> None:
    command = [
        sys.executable,
        "-c",
        f"{code}from dpmf_cli.cli import main; main()",
        "run",
        "slow.yaml",
        *arguments,
    ]
    done = subprocess.run(
        [*command, "--scheduler", "tcp://127.0.0.1:1"],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
