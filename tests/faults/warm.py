"""The command in a process forked from this one, which has imported all it needs: a run of a second, not of four."""

import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn


class Forked:
    """What of `subprocess.Popen` the suite uses, for a forked run of `dpmf` with these arguments."""

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.returncode: int | None = None
        read, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(read)
            _become(arguments, folder, environment, write)
        os.close(write)
        self._stderr = read

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[None, str]:
        """Waits for the end: (None, what was said)."""
        deadline, said = time.monotonic() + timeout, b""
        os.set_blocking(self._stderr, False)
        while self.poll() is None:
            said += self._read()
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"dpmf, process {self.pid}", timeout)
            time.sleep(0.005)
        said += self._read()
        os.close(self._stderr)
        return None, said.decode(errors="replace")

    def _read(self) -> bytes:
        try:
            return os.read(self._stderr, 1 << 20)
        except BlockingIOError:
            return b""


def _become(arguments: list[str], folder: Path, environment: dict[str, str], stderr: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(stderr, 2)
        sys.stdout = os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace")
        os.chdir(folder)
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import dpmf_cli.__main__ as main

        sys.modules["__main__"] = main  # what processes that this one starts import
        sys.argv = ["dpmf", *arguments]
        main.main()
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
