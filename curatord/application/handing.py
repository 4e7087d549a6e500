"""
Handing a command to the running daemon, so that the two never fight for a lock; without one it is done here.

Why it is done here is said in one line, unless it is what anybody would expect. The answer of a run is its id: what
it came to is read from its folder, as any later reader would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from curatord.adapters.instance import running_daemon
from curatord.errors import BusyError, ConfigError, CuratorError, StateError, StoppedError, UsageError

if TYPE_CHECKING:
    from curatord.wiring import Parts

__all__ = ["Handed", "hand_over"]

_KINDS: Mapping[str, type[CuratorError]] = {
    kind.__name__: kind for kind in (BusyError, ConfigError, StateError, UsageError, CuratorError)
}
_STOPPED_BY_HAND = 2  # SIGINT, unless the command line knows better


class Handed:
    """What the daemon did for us; *value* is the result."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def hand_over(parts: Parts, command: str, arguments: Mapping[str, Any], *, same_config: bool = True) -> Handed | None:
    """
    Have the running daemon do *command*, and return what came of it; None: it is to be done here.

    Args:
        parts: Whose daemon, what asks us to stop, and who hears how far it is.
        command, arguments: As in `curatord.core.control`.
        same_config: The daemon may only do it with the configuration that we have.

    Raises:
        CuratorError: Whatever the daemon met, as if it had been met here.
        StoppedError: Somebody stopped us before it was begun.
    """
    daemon = running_daemon(parts.state_dir)
    if not daemon["alive"]:
        return None
    from curatord import __version__
    from curatord.adapters.control_client import Declined, ask
    from curatord.core.control import Ask

    who = f"the daemon (process {daemon['pid']})" if daemon.get("pid") else "the daemon"
    say, stop, progress = parts.surroundings.say, parts.surroundings.stop, parts.surroundings.progress
    question = Ask(
        command=command,
        arguments=arguments,
        version=__version__,
        config=parts.config.fingerprint if same_config else None,
    )
    answer = ask(
        parts.state_dir,
        question,
        stop=stop,
        progress=progress,
        waiting=lambda activity: say(f"{who} does it, once it is done with: {activity}"),
        stopping=lambda: say(f"asking {who} to stop after the current action; ^C again leaves it to that"),
    )
    if isinstance(answer, Declined):
        if stop():
            raise StoppedError("stopped before it was begun", signal=_STOPPED_BY_HAND)
        if not answer.quiet:
            say(f"{who} was asked and did not do it: {answer.reason}; so it is done here")
        return None
    if answer.key == "error":
        raise _error(answer.value)
    return Handed(answer.value)


def _error(told: Any) -> CuratorError:
    """Return the error that the daemon met, of its own class where that is one of ours."""
    error = _KINDS.get(str(told.get("kind")), CuratorError)(str(told.get("message")), hint=str(told.get("hint") or ""))
    code = told.get("exit_code")
    if isinstance(code, int):
        error.exit_code = code
    return error
