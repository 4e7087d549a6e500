"""
The ways by which a notice leaves: a file of one line, or a command of the user's.

The file is replaced as a whole, so that a prompt which reads it in that moment sees the old line or the new one. The
command is a program and its arguments, never a shell's line; it gets the text on its standard input and of our
environment only what a desktop or a chat hook needs to run: keys of models stay here. Its failure is words for the log
and nothing else.

What is ended, and when: the command leads a process group of its own. The whole group is ended (SIGKILL) as soon as
the command itself has ended, well or not; else after its time, or when curatord stops. So nothing piles up behind
notices. A process that left the group (`setsid`) is not looked for: whoever wants something to outlive the command says
so by that.
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
        timeout_s: After how many seconds it is ended.
        stop: Asked while it is waited for; once true it is ended too.
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
    """Feed *process*, wait for its end, draining what it says, and end its group; return why it had to be, or None."""
    assert process.stdin is not None, "it was asked for"
    with contextlib.suppress(OSError):  # it need not read; a line fits into any pipe
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()
    with contextlib.suppress(OSError):
        process.stdin.close()
    until = time.monotonic() + timeout_s
    why = None
    while not _has_ended(process):
        drain()
        stopping = stop()
        if stopping or time.monotonic() >= until:
            why = "ended, since curatord stops" if stopping else f"ended after {timeout_s:g} s"
            break
        time.sleep(LOOK_EVERY_S)
    # ProcessLookupError: nobody is left. PermissionError: nobody but the dead (macOS), or one who became another user.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return why


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether *process* has ended; its number stays its own where the system can tell without reaping it."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
