"""Signals that end a command: one line and an exit code, whatever the command is doing."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.cli.entry import INTERRUPTED

PATIENCE = 20
"""Seconds allowed on a busy machine for what takes some hundredths of a second; the interrupted work takes a
minute."""


def start(work: str, *, ignoring: tuple[signal.Signals, ...] = ()) -> subprocess.Popen[str]:
    """A supervised process that prints a line before it does `work`."""

    def dispositions() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a background job ignores it
        for number in ignoring:
            signal.signal(number, signal.SIG_IGN)

    code = (
        "import os, signal, subprocess, sys, time\nfrom dpmf_cli.cli import entry\n"
        f"def work():\n    print(os.getpid(), flush=True)\n    {work}\nentry.supervised(work)"
    )
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], text=True, preexec_fn=dispositions, **pipes)


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints; the first is the id of the process that does the work."""
    assert process.stdout is not None
    return process.stdout.readline()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """(exit code, output)"""
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


HOLDING = "import ctypes; ctypes.PyDLL(None).sleep(60)"
"""As a decomposition by LAPACK: no line of Python runs meanwhile, in any thread."""


@pytest.mark.parametrize(
    ("number", "work"),
    [
        *((number, "time.sleep(60)") for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)),
        (signal.SIGINT, HOLDING),
    ],
)
def test_a_signal_ends_a_command_with_a_line(number: signal.Signals, work: str) -> None:
    process = start(work)
    line_of(process)
    time.sleep(0.3 if work == HOLDING else 0)
    process.send_signal(number)
    assert ended(process) == (128 + number, f"{INTERRUPTED}\n")


def test_no_process_outlives_an_interrupted_command() -> None:
    """Even a process that was started a moment ago, or has a session of its own, is ended."""
    process = start(
        "print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True); time.sleep(60)"
    )
    line_of(process)
    left = Path(f"/proc/{int(line_of(process))}")
    assert left.exists()
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 130
    assert not left.exists()


@pytest.mark.parametrize("closed", ["0", "1", "2", "012"])
def test_closed_streams_are_as_dev_null(tmp_path: Path, closed: str) -> None:
    """No file, pipe or process that comes later gets the number of a standard stream."""
    code = (
        "import os, subprocess, sys\nfrom dpmf_cli.cli import entry\ndef work():\n"
        "    print('out'); print('err', file=sys.stderr, flush=True); sys.stdin.read()\n"
        "    subprocess.run([sys.executable, '-c', 'import os; list(map(os.fstat, range(3)))'], check=True)\n"
        "    with open('said', 'w') as file: file.write(str(file.fileno() > 2))\n"
        "entry.supervised(work)"
    )
    closing = " ".join(f"{number}<&-" for number in closed)
    shell = ["sh", "-c", f'exec "$0" -c "$1" {closing}', sys.executable, code]
    done = subprocess.run(shell, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, (tmp_path / "said").read_text()) == (0, "True"), done.stderr
    assert (done.stdout, done.stderr) == (b"out\n" * ("1" not in closed), b"err\n" * ("2" not in closed))


def test_the_code_of_a_command_that_ends_by_itself_is_passed_on_and_a_crash_is_a_line() -> None:
    assert ended(start("pass")) == (0, "")
    assert ended(start("sys.exit(3)")) == (3, "")
    code, said = ended(start("os.kill(os.getpid(), signal.SIGSEGV)"))
    assert code == 128 + signal.SIGSEGV
    assert said.startswith("dpmf: ended by SIGSEGV (out of memory, by hand, or a crash)")
    assert said.count("\n") == 1


def test_what_is_ignored_stays_ignored() -> None:
    """`nohup dpmf run` continues when its terminal is closed."""
    process = start("time.sleep(0.5)", ignoring=(signal.SIGHUP,))
    line_of(process)
    process.send_signal(signal.SIGHUP)
    assert ended(process) == (0, "")


def test_who_is_killed_takes_its_work_along() -> None:
    process = start("time.sleep(60)")
    child = int(line_of(process))
    process.kill()
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()
    process.communicate()


def test_a_signal_ends_a_command_whose_messages_nobody_reads() -> None:
    """As with `2>&1 | less`: the line itself cannot be written."""
    process = start(
        "os.set_blocking(2, False)\n    try:\n        while True: os.write(2, b'x' * 4096)\n    except BlockingIOError: os.set_blocking(2, True)\n    print('full', flush=True); time.sleep(60)"
    )
    line_of(process)
    assert line_of(process) == "full\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    process.communicate()


def test_processes_of_a_command_hear_no_signal() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGTERM)"
    assert ended(start(f"subprocess.run([sys.executable, '-c', {code!r}], check=True)")) == (0, "")


def test_short_memory_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(**_: object) -> None:
        raise MemoryError("Unable to allocate 16. TiB")

    monkeypatch.setattr(cli, "app", short)
    with pytest.raises(SystemExit) as error:
        cli.main()
    assert error.value.code == 2
    assert capsys.readouterr().err.startswith("dpmf: not enough memory (Unable to allocate 16. TiB); ")
