"""Too little address space, or too few open files, is reported as an error at once."""

import os
import resource
import subprocess
import sys

import pytest

from dpmf_cli.cli.main import LIBRARIES, OF_A_THREAD
from dpmf_cli.cli.main import check_limits as check
from dpmf_cli.errors import DpmfError


def limited(mebibytes: int, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    most = mebibytes << 20
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )


def test_a_small_limit_is_refused() -> None:
    code = "import sys; sys.argv = ['dpmf', 'doctor']; from dpmf_cli.cli.main import main; main()"
    ended = limited(390, code, OPENBLAS_NUM_THREADS="3")
    assert ended.returncode == 2
    assert ended.stderr == (
        "dpmf: address space is limited to 390 MiB (ulimit -v), but the libraries need 672 MiB with 3 threads; "
        "raise the limit, or set OPENBLAS_NUM_THREADS=1 (512 MiB)\n"
    )


def test_few_open_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (10 if kind == resource.RLIMIT_NOFILE else unlimited,) * 2
    )
    with pytest.raises(DpmfError, match=r"^open files are limited to 10 \(ulimit -n\), but dpmf needs 64"):
        check()


@pytest.mark.slow
def test_what_is_not_refused_suffices() -> None:
    code = "import dpmf_cli.experiment, dpmf_cli.kernels.sgd, matplotlib.pyplot"
    ended = limited(LIBRARIES >> 20, code, OPENBLAS_NUM_THREADS="1")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("limit", [resource.RLIM_INFINITY, LIBRARIES + OF_A_THREAD])
def test_enough_is_enough(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    check()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (LIBRARIES + OF_A_THREAD - 1, limit))
    with pytest.raises(DpmfError):
        check()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    check()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "not a number")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(DpmfError, match="with 2 threads"):
        check()
