"""Signals that end a command: a message and an exit code; processes that are being started never see Ctrl-C."""

import os
import signal
import subprocess
import sys

import pytest
from numba.core.compiler_lock import global_compiler_lock

from dpmf_cli.cli import main as cli
from dpmf_cli.running.interrupts import interrupts_held, resumable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_says_how_to_go_on(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    @resumable
    def command(code: int) -> None:
        os.kill(os.getpid(), number)
        signal.pause()

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with pytest.raises(SystemExit) as ended:
        command(1)
    assert ended.value.code == 128 + number
    assert "interrupted: finished tasks are kept; run the same command again" in capsys.readouterr().err
    assert before == {each: signal.getsignal(each) for each in before}


def test_a_command_that_ends_by_itself_gives_its_value() -> None:
    assert resumable(lambda: 7)() == 7


def test_what_is_ignored_stays_ignored() -> None:
    """`nohup dpmf run` goes on when its terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        resumable(lambda: os.kill(os.getpid(), signal.SIGHUP))()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_process_that_is_started_meanwhile_does_not_hear_ctrl_c() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"
    with interrupts_held():
        said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == "alive\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_short_memory_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(**_: object) -> None:
        raise MemoryError("Unable to allocate 16. TiB")

    monkeypatch.setattr(cli, "app", short)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("dpmf: not enough memory (Unable to allocate 16. TiB); ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_waits_until_a_kernel_is_compiled(number: signal.Signals) -> None:
    """LLVM calls back into Python while it compiles: an exception there would be lost, and the process crash."""
    seen = []

    @resumable
    def command() -> None:
        with global_compiler_lock:
            with global_compiler_lock:
                signal.raise_signal(number)
                seen.append("compiling")
            seen.append("compiling still")
        seen.append("compiled")

    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 128 + number
    assert seen == ["compiling", "compiling still"]
    assert not global_compiler_lock.is_locked()
    with global_compiler_lock:
        pass  # nothing is left to be raised
