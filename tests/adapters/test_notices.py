"""Notices leave by a file and by a command: whole, bounded, and without our keys."""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from curatord.adapters.notices import run_command, write_file

ENVIRON = {
    **os.environ,
    "OPENAI_API_KEY": "hush",
    "CURATORD_LLM__PRIMARY__API_KEY": "hush",
    "LD_PRELOAD": "hush",
    "LC_TIME": "C",
}


def run(
    *code: str,
    text: str = "curatord: marked 2 stale ✓",
    timeout_s: float = 20.0,
    stop: bool = False,
    stop_if: Callable[[], bool] | None = None,
) -> str | None:
    """Run Python *code* as the user's command."""
    return run_command(
        [sys.executable, "-S", "-c", *code],
        text,
        environ=ENVIRON,
        facts={"CURATORD_RUN_ID": "1"},
        timeout_s=timeout_s,
        stop=stop_if or (lambda: stop),
    )


def test_the_file_has_one_line_and_is_private(tmp_path: Path) -> None:
    """Folders above it are made, what stood there is replaced, nothing is left beside it."""
    path = tmp_path / "deep" / "notice"

    write_file(path, "first")
    write_file(path, "second")

    assert "second\n" == path.read_text()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == list(path.parent.iterdir())


def test_a_file_that_cannot_be_leaves_nothing(tmp_path: Path) -> None:
    """A folder is in its place."""
    (tmp_path / "notice" / "kept").mkdir(parents=True)

    with pytest.raises(OSError, match="notice"):
        write_file(tmp_path / "notice", "text")

    assert ["notice"] == [path.name for path in tmp_path.iterdir()]


def test_the_command_reads_the_text(tmp_path: Path) -> None:
    """On its standard input, and the facts as variables."""
    out = tmp_path / "out"
    code = "import os, sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read() + os.environb[b'CURATORD_RUN_ID'])"

    assert run(code, str(out)) is None
    assert "curatord: marked 2 stale ✓\n1" == out.read_text()


def test_the_command_gets_no_keys(tmp_path: Path) -> None:
    """Of our variables it has those that a desktop needs."""
    out = tmp_path / "out"
    code = "import os, sys; open(sys.argv[1], 'w').write('\\n'.join(os.environ) + '\\n' + str(os.environ))"

    assert run(code, str(out)) is None
    names = set(out.read_text().partition("environ")[0].split())
    assert {"HOME", "PATH", "LC_TIME", "CURATORD_RUN_ID"} <= names
    assert set() == names & {"OPENAI_API_KEY", "CURATORD_LLM__PRIMARY__API_KEY", "LD_PRELOAD", "PYTHONPATH"}
    assert "hush" not in out.read_text()


def test_arguments_are_no_shells_words(tmp_path: Path) -> None:
    """What looks like a shell's line is an argument."""
    out = tmp_path / "out"
    words = f"$(touch {tmp_path}/bad); `touch {tmp_path}/bad` > {tmp_path}/bad"

    assert run("import sys; open(sys.argv[1], 'w').write(sys.argv[2])", str(out), words) is None
    assert words == out.read_text()
    assert [out] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(7)", "ended with 7"),
        ("import sys; sys.exit('no bus \\x1b[31m')", "ended with 1: no bus \\x1b[31m"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ("import os; os.kill(os.getpid(), 40)", "ended by signal 40"),
        ("import sys; sys.stdin.close(); sys.exit(3)", "ended with 3"),
        ("import sys; sys.exit('x' * 100000)", "ended with 1: xxx"),
    ],
)
def test_what_went_wrong_is_words(code: str, words: str) -> None:
    """Short and inert ones."""
    told = run(code)

    assert told is not None
    assert told.startswith(words)
    assert len(told) < 400


@pytest.mark.parametrize("command", [["/nowhere/notify"], ["curatord-no-such-program"], ["a\0b"]])
def test_a_program_that_is_not_there_is_told(command: list[str]) -> None:
    """It never raises."""
    told = run_command(command, "x", environ=ENVIRON, facts={}, timeout_s=5, stop=lambda: False)

    assert told is not None
    assert told.startswith("cannot be started")


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """After its time."""
    pid = tmp_path / "pid"
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n    open(sys.argv[1], 'w').write(str(os.getpid()))\n    time.sleep(600)\ntime.sleep(600)"
    )

    assert "ended after 2 s" == run(code, str(pid), timeout_s=2)
    deadline = time.monotonic() + 10
    while _alive(int(pid.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_command_that_complains_without_end_costs_neither_disk_nor_memory() -> None:
    """It is not read faster than it is waited for, and what is kept of it is short."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = run("import os\nwhile True: os.write(2, b'x' * 1_000_000)", timeout_s=1)

    assert told is not None
    assert told.startswith("ended after 1 s: xxx")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


LEAVES = (
    "import subprocess, sys\n"
    "left = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'], start_new_session={apart})\n"
    "open(sys.argv[1], 'w').write(str(left.pid))\n"
    "sys.exit({code})"
)


@pytest.mark.parametrize(
    ("code", "timeout_s", "words"),
    [(0, 2, "it ended well, and what it left at work was ended after 2 s"), (3, 300, "ended with 3")],
)
def test_what_it_left_running_is_ended_with_it(tmp_path: Path, code: int, timeout_s: float, words: str) -> None:
    """After its time where it ended well, at once where it failed; that the left one holds a pipe is no matter."""
    pid = tmp_path / "pid"

    assert words == run(LEAVES.format(apart=False, code=code), str(pid), timeout_s=timeout_s)
    deadline = time.monotonic() + 10
    while _alive(int(pid.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_it_left_at_work_may_finish(tmp_path: Path) -> None:
    """`mail` hands the letter to a process that delivers it, and is gone before that."""
    letter = tmp_path / "letter"
    work = f"import time; time.sleep(1); open({str(letter)!r}, 'w').write('delivered')"
    code = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-S', '-c', {work!r}], stderr=subprocess.DEVNULL)"
    )

    assert run(code, timeout_s=300) is None
    assert "delivered" == letter.read_text()


def test_what_it_left_at_work_holds_up_no_stop(tmp_path: Path) -> None:
    """A daemon that is to stop does not wait for it either."""
    pid = tmp_path / "pid"
    told = run(LEAVES.format(apart=False, code=0), str(pid), timeout_s=300, stop_if=pid.exists)

    assert told is not None
    assert told.endswith("ended, since curatord stops")


def test_what_left_its_group_on_purpose_goes_on(tmp_path: Path) -> None:
    """A command may start something that is to stay, in a session of its own."""
    pid = tmp_path / "pid"
    try:
        assert run(LEAVES.format(apart=True, code=0), str(pid), timeout_s=300) is None
        assert _alive(int(pid.read_text()))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def _alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self").exists():
        return False
    return state.exists() and " Z " not in state.read_text()


def test_a_stop_ends_it_at_once() -> None:
    """A daemon that is to stop does not wait for a chat room."""
    assert "ended, since curatord stops" == run("import time; time.sleep(600)", stop=True)


LARGE = "x" * 1_000_000  # more than any pipe takes


@pytest.mark.parametrize(("stop", "words"), [(False, "ended after 1 s"), (True, "ended, since curatord stops")])
def test_a_command_that_reads_nothing_is_ended_too(tmp_path: Path, stop: bool, words: str) -> None:
    """After its time and at a stop, where the text is larger than its pipe."""
    code = "import sys, time; time.sleep(20); open(sys.argv[1], 'w')"

    assert words == run(code, str(tmp_path / "lived"), text=LARGE, timeout_s=1, stop=stop)
    assert [] == list(tmp_path.iterdir())


def test_a_large_text_reaches_a_slow_reader_whole(tmp_path: Path) -> None:
    """What a pipe does not take at once follows."""
    out = tmp_path / "out"
    code = "import sys, time; time.sleep(0.2); open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"

    assert run(code, str(out), text=LARGE, timeout_s=300) is None
    assert f"{LARGE}\n" == out.read_text()


def test_a_command_that_closes_its_input_is_no_trouble() -> None:
    """Though most of the text is still to come."""
    assert run("import os, time; os.close(0); time.sleep(0.2)", text=LARGE) is None
