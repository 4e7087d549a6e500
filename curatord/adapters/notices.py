"""
The ways by which a notice leaves: a file of one line, or a command of the user's.

The file is replaced as a whole, so that a prompt which reads it in that moment sees the old line or the new one. The
command is a program and its arguments, never a shell's line; it gets the text on its standard input and of our
environment only what a desktop or a chat hook needs to run: keys of models stay here. Its failure is words for the log
and nothing else.

What is ended, and when: the command leads a process group of its own, and all of it has the same time. Where the
command ends well and leaves something at work (`mail` delivers behind its own back), that may finish within the time
that is left. Whatever of the group is there when the time is over, when curatord stops, or when the command fails is
ended (SIGKILL), so that nothing piles up behind notices. A process that left the group (`setsid`) is not looked for:
whoever wants something to outlive the command says so by that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from curatord.core.inert import shorten
from curatord.core.redact import redact

__all__ = ["run_command", "write_file"]

LOOK_EVERY_S = 0.05
SAID_BYTES = 4096  # of what a command complains about
SHOWN_CHARS = 300
_PASSED_ON = frozenset(
    {
        "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
        "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "XDG_CACHE_HOME", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS",
    }
)  # fmt: skip


def write_file(path: Path, line: str) -> None:
    """
    Make *line* the content of *path*, readable by its user alone.

    Raises:
        OSError: It cannot be written; what stood there stands.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{line}\n")
        os.replace(made, path)  # noqa: PTH105 - text in, as mkstemp gives it
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(made)  # noqa: PTH108 - as above
        raise


def run_command(
    command: Sequence[str],
    text: str,
    *,
    environ: Mapping[str, str],
    facts: Mapping[str, str],
    timeout_s: float,
    stop: Callable[[], bool],
) -> str | None:
    """
    Give *text* to *command* and return what went wrong in words, or None; nothing of its process group is left then.

    Args:
        command: The program, by its path or found on PATH, and its arguments.
        text: For its standard input.
        environ: Our own variables, of which few are passed on.
        facts: Variables for it.
        timeout_s: After how many seconds it and what it left at work are ended.
        stop: Asked meanwhile; once true they are ended too.
    """
    passed = {name: value for name, value in environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own words, from the user's own file; no shell
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**passed, **facts},
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"cannot be started: {getattr(error, 'strerror', None) or error}"
    assert process.stderr is not None, "it was asked for"
    with process.stderr as errors:
        os.set_blocking(errors.fileno(), False)
        said = bytearray()
        why = _waited(process, text, timeout_s, stop, lambda: _taken(errors.fileno(), said))
        _taken(errors.fileno(), said)  # the last it said; a process that left its group may hold the pipe open
    if why is None and process.returncode == 0:
        return None
    if why is None:
        code = process.returncode
        why = f"ended with {code}" if code >= 0 else f"ended by {_signal(-code)}"
    words = shorten(redact(said.decode("utf-8", "replace")), SHOWN_CHARS)
    return f"{why}: {words}" if words else why


def _taken(descriptor: int, said: bytearray) -> None:
    """Take what a command complains about off its pipe, once; the beginning is kept, the rest goes nowhere."""
    with contextlib.suppress(OSError):
        said += os.read(descriptor, 65_536)[: SAID_BYTES - len(said)]


def _signal(number: int) -> str:
    """Return a signal's name; real-time ones have none here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _waited(
    process: subprocess.Popen[bytes], text: str, timeout_s: float, stop: Callable[[], bool], drain: Callable[[], None]
) -> str | None:
    """
    Feed *process* and wait for its end and, where that is a good one, that of its group, draining what it says; end
    what is left.

    Returns:
        Why something had to be ended, or None.
    """
    until = time.monotonic() + timeout_s
    assert process.stdin is not None, "it was asked for"
    why = None
    with process.stdin as pipe:  # nothing is ever left in its buffer: what goes there goes by the descriptor
        os.set_blocking(pipe.fileno(), False)
        left = _given(pipe, memoryview(text.encode("utf-8", "replace") + b"\n"))
        while process.poll() is None or (process.returncode == 0 and _is_anybody_left(process.pid)):
            left = _given(pipe, left)
            drain()
            stopping = stop()
            if stopping or time.monotonic() >= until:
                what = "ended" if process.poll() is None else "it ended well, and what it left at work was ended"
                why = f"{what}, since curatord stops" if stopping else f"{what} after {timeout_s:g} s"
                break
            time.sleep(LOOK_EVERY_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left, or one who became another user
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return why


def _given(pipe: IO[bytes], left: memoryview) -> memoryview:
    """
    Write of *left* what *pipe* takes now, and close it after the last; return what is still to be written.

    A command need not read: a pipe that is full is tried again at the next look, and one that nobody reads any more
    takes the rest.
    """
    try:
        while left:
            left = left[os.write(pipe.fileno(), left) :]
    except BlockingIOError:
        return left
    except OSError:
        left = left[:0]
    pipe.close()
    return left


def _is_anybody_left(group: int) -> bool:
    """
    Return whether a process is in *group*, whose leader has ended.

    The kernel gives the number to nobody else while somebody is, and hardly within the moment between two looks.
    """
    with contextlib.suppress(
        ChildProcessError
    ):  # the first process of a container inherits what is left, and buries it
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # only the dead (macOS), or one who became another user: not ours to wait for
    return True
