"""
The command line's end of the control socket: ask the running daemon, and never wait for it without bound.

A daemon that was stopped or hangs is given `HEARD_WITHIN_S` to take a question, and its worker `SILENCE_S` without a
sign of life to begin an order; then the client goes away, which takes the order back. Once it is begun the client
waits for as long as it lasts, as it would if it did the work itself.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from curatord.adapters.local_socket import connect
from curatord.core.cheap import dataclass
from curatord.core.control import MAX_ANSWER, Ask, BadAskError, ask_line, final, read_answer
from curatord.errors import CuratorError

__all__ = ["Declined", "Ended", "LostError", "ask", "has_socket", "insist", "live_status"]

NAME = "control.sock"
HEARD_WITHIN_S = 2.0
SILENCE_S = 15.0
STATUS_WITHIN_S = 0.5
INSIST_S = 2.5  # with the first try three seconds, less than any health check waits
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The daemon did nothing; *quiet*: nobody needs to hear of it."""

    reason: str
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The daemon did it: *key* is `result` or `error`, with its value."""

    key: str
    value: Any


class LostError(CuratorError):
    """The daemon went away in the middle of an order that it had begun."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the daemon went away in the middle of it ({why})",
            hint="what was changed is whole; curatord runs shows what was begun, the next command finishes it",
        )


def ask(
    state_dir: Path,
    question: Ask,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int | None, str], None] | None = None,
    waiting: Callable[[str], None] = lambda _for: None,
    stopping: Callable[[], None] = lambda: None,
    silence_s: float = SILENCE_S,
) -> Declined | Ended:
    """
    Ask the daemon of *state_dir* and return what came of it.

    Args:
        state_dir: Whose daemon.
        question: What is wanted.
        stop: Asked now and then; once true, the daemon is asked to end what it does for us.
        progress: Told how far it is.
        waiting: Told once what the worker is at, where it cannot begin at once.
        stopping: Told once when the daemon was asked to stop.
        silence_s: For how long a worker that has not begun may give no sign of life.

    Raises:
        LostError: It had begun, and the connection ended without a result.
    """
    try:
        connection = connect(state_dir, NAME, HEARD_WITHIN_S)
    except OSError as error:
        return Declined(reason=f"its control socket cannot be reached: {error.strerror or error}")
    begun = asked_to_stop = told = False
    heard_at = time.monotonic()
    try:
        with connection:
            connection.sendall(ask_line(question))
            for line in _lines(connection):
                if line is None:
                    if stop() and not asked_to_stop:
                        asked_to_stop = True
                        stopping()
                        if not begun:
                            return Declined(reason="stopped before it was begun", quiet=True)
                        connection.sendall(b'{"stop":true}\n')
                    if not begun and time.monotonic() - heard_at > HEARD_WITHIN_S:
                        return Declined(reason="it does not answer")
                    continue
                heard_at = time.monotonic()
                key, value = read_answer(line)
                if key == "begun":
                    begun = True
                elif key == "progress" and progress is not None:
                    progress(int(value["done"]), value["total"], str(value["what"]))
                elif key == "waiting":
                    if value["silent_s"] > silence_s:
                        return Declined(reason=f"its worker gave no sign of life for {value['silent_s']:.0f} s")
                    if not told and value["for"] != "idle":
                        told = True
                        waiting(str(value["for"]))
                elif key == "refused":
                    return Declined(reason=str(value["reason"]), quiet=value.get("quiet") is True)
                elif final(key):
                    return Ended(key=key, value=value)
    except (OSError, BadAskError, KeyError, TypeError, ValueError) as error:
        if begun:
            raise LostError(str(error)) from error
        return Declined(reason=f"it cannot be understood: {error}")
    if begun:
        raise LostError("the connection ended")
    return Declined(reason="it ended the connection")


def live_status(state_dir: Path, *, within_s: float = STATUS_WITHIN_S) -> dict[str, Any] | None:
    """Return how the daemon says it is right now, None where it does not answer within *within_s*."""
    try:
        with connect(state_dir, NAME, within_s) as connection:
            connection.sendall(ask_line(Ask(command="status")))
            until = time.monotonic() + within_s
            for line in _lines(connection):
                if line is not None:
                    key, value = read_answer(line)
                    return value if key == "result" and isinstance(value, dict) else None
                if time.monotonic() > until:
                    return None
    except (OSError, BadAskError):
        return None
    return None


def has_socket(state_dir: Path) -> bool:
    """Return whether there is a socket to ask at; some file systems know none, and the daemon does without."""
    return (state_dir / NAME).is_socket()


def insist(state_dir: Path) -> dict[str, Any] | None:
    """
    Ask what `live_status` got no answer to again, for `INSIST_S`.

    A daemon of a loaded machine gets that long, and one that just starts, whose predecessor's socket nobody answers.
    """
    until = time.monotonic() + INSIST_S
    while (left := until - time.monotonic()) > 0:
        told = live_status(state_dir, within_s=left)
        if told is not None:
            return told
        time.sleep(LOOK_EVERY_S)
    return None


def _lines(connection: socket.socket) -> Iterator[bytes | None]:
    """Yield each line, and None whenever a short while passed without one; ends with the connection."""
    kept = bytearray()
    while True:
        if not select.select([connection], [], [], LOOK_EVERY_S)[0]:
            yield None
            continue
        part = connection.recv(65536)
        if not part:
            return
        begin = len(kept)
        kept += part
        if b"\n" in part:
            *whole, rest = bytes(kept).split(b"\n")
            kept = bytearray(rest)
            yield from whole
        elif begin > MAX_ANSWER:
            raise BadAskError("an answer without end")
        yield None  # a daemon that never pauses must not keep a stop from being seen
