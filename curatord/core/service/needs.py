"""
What a service needs besides libraries and its state: where it tells others, and what it consults and reads.

A file lies in a folder, and a folder is what a service manager can open or mount. One that holds much more than that
file is not opened (`core.service.wide`), and the user is told what to do instead: a service that quietly never gives a
notice would be worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from curatord.core.cheap import dataclass
from curatord.core.service.wide import wideness, within

__all__ = ["Kind", "Need", "made_first", "needs_notes", "openable"]

Kind = Literal["user", "system", "launchd", "docker"]
"""The form of a service: the two of systemd, an agent of launchd, a container."""

# Both forms of systemd give the service folders for temporary files of its own in the place of these (PrivateTmp).
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - names, nothing is made there
_RUNTIME = "/run"  # made anew at each start of the machine or login, by whoever keeps order there

_OWN_PLACE = {
    "notices.file": "{home}/.cache/curatord/notice",
    "metrics.listen": "unix:{home}/.cache/curatord/metrics.sock",
    "prompts": "{home}/.config/curatord/prompts",
    "api_key": "{home}/.config/curatord/keys/NAME",
    "llm.from_host": "{home}/.hermes",
    "sources": "{home}/transcripts",
}
_BRING = {"api_key": "put the key into it, mode 0600,", "prompts": "make it", "llm.from_host": "start Hermes once"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """
    One file or folder outside of libraries and state.

    Attributes:
        key: What names it: `notices.file`, `metrics.listen`, `prompts`, `api_key`, `llm.from_host` or `sources`.
        path: As the configuration has it, absolute.
        folder: The folder to open for it, links resolved.
        written: It is written, else only read.
        there: What is read, or the folder of what is written, is there.
    """

    key: str
    path: str
    folder: str
    written: bool
    there: bool


def openable(needs: Iterable[Need], *, home: str, written: bool) -> tuple[str, ...]:
    """Return the folders that are opened for what is *written*, or shown for what is read, each once; no wide ones."""
    found = (need.folder for need in needs if need.written is written and _wideness(need, home) is None)
    return tuple(dict.fromkeys(found))


def made_first(needs: Iterable[Need], kind: Kind, *, home: str) -> tuple[str, ...]:
    """Return the folders that must be made before the service starts, since what is missing can be opened by none."""
    return tuple(
        dict.fromkeys(
            need.folder
            for need in needs
            if need.written
            and not need.there
            and _wideness(need, home) is None
            and not _hidden(need.folder, kind)
            and not within(need.folder, _RUNTIME)
        )
    )


def needs_notes(
    needs: Iterable[Need], kind: Kind, *, home: str, writable: Sequence[str], seen: Sequence[str]
) -> list[str]:
    """
    Return what the user should know of *needs*, a line each.

    Args:
        needs: Of `ServiceFacts`.
        kind: The form of the service.
        home: Of the user whose agents it serves.
        writable: All folders that the service may write.
        seen: All that a container sees.
    """
    notes = [note for need in needs if (note := _note(need, kind, home=home, writable=writable, seen=seen))]
    return list(dict.fromkeys(notes))


def _note(need: Need, kind: Kind, *, home: str, writable: Sequence[str], seen: Sequence[str]) -> str | None:
    what = f"{need.key}: {need.path}"
    elsewhere = f"put it into a folder of its own, such as {_OWN_PLACE[need.key].format(home=home)}"
    if _hidden(need.folder, kind):
        return f"{what} lies in a folder for temporary files, which the service does not see: {elsewhere}"
    if need.written:
        if kind != "launchd" and not any(within(need.folder, one) for one in writable):
            holds = _wideness(need, home)
            return f"{what} cannot be written by the service, since {need.folder} holds {holds}: {elsewhere}"
        if within(need.folder, _RUNTIME) and (kind == "system" or not need.there):
            return (
                f"{what} can only be written while {need.folder} is there when the service starts, "
                f"and others make it, at a login for one: {elsewhere}"
            )
        return None
    if not need.there:
        again = ", then install again" if kind == "docker" else ""
        return f"{what} is not there: {_BRING[need.key]} before the start{again}"
    if kind == "docker" and not any(within(need.folder, one) for one in seen):
        holds = _wideness(need, home) or "what it may write"
        return f"{what} is not seen by the container, since {need.folder} holds {holds}: {elsewhere}"
    return None


def _wideness(need: Need, home: str) -> str | None:
    return wideness(need.folder, home, written=need.written)


def _hidden(folder: str, kind: Kind) -> bool:
    return kind in ("user", "system") and any(within(folder, one) for one in _TEMPORARY)
