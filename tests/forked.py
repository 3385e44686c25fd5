"""Runs the command in a process forked from this one, which has imported everything: one second instead of four."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NoReturn


class Forked:
    """The parts of `subprocess.Popen` that the tests use, for a forked run of `dpmf` with these arguments."""

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.returncode: int | None = None
        self._said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self.pid = os.fork()
        if not self.pid:
            _become(arguments, folder, environment, *(file.fileno() for file in self._said))

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Waits for the end, and returns standard output and standard error."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(f"dpmf, process {self.pid}", timeout)
            time.sleep(0.005)
        texts = []
        for file in self._said:
            with file:
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return texts[0], texts[1]


def _become(
    arguments: list[str], folder: Path, environment: dict[str, str], stdout: int, stderr: int
) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.stdout = os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace")
        os.chdir(folder)
        os.environ.update(environment)
        places = environment.get("PYTHONPATH", "").split(
            os.pathsep
        )  # Python would have read these at its start
        sys.path[:0] = [place for place in places if place and place not in sys.path]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from dpmf_cli.cli.entry import main

        sys.argv = ["dpmf", *arguments]
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
