"""Whether changes of transcripts will be heard of at once, and whether the kernel lets us watch that much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, check_of
from curatord.core.silent_mounts import is_silent
from curatord.core.words import plural

__all__ = ["EventFacts", "InotifyFacts", "WatchedPlace", "check_events", "check_inotify"]

POLLED = "such places are listed at every `daemon.rescan_every` instead: later, and nothing is missed"
SHOWN = 3


class WatchedPlace(NamedTuple):
    """How one place is watched: *how* with the *reason*, and the *file_system* it lies on (empty: unknown)."""

    path: str
    how: Literal["events", "poll", "waiting"]
    reason: str = ""
    file_system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """
    Attributes:
        probe_s: Seconds until a file made in the state folder was told of; None where it never was, or not tried.
        unprobed: Why it was not tried, or None.
        waited_s: How long was waited.
        places: The folders and files of transcripts.
        by_daemon: They are as the running daemon says, else as a trial found.
        mode: The setting `daemon.watch`.
        links: Folders within the places that are links to others, which no watch follows.
    """

    probe_s: float | None
    unprobed: str | None
    waited_s: float
    places: Sequence[WatchedPlace]
    by_daemon: bool
    mode: str
    links: Sequence[str] = ()


def check_events(events: EventFacts) -> Check:
    """Return whether changes arrive as events."""
    if events.mode == "poll":
        return check_of("events", "", [Issue(level="note", words=f"`daemon.watch: poll`; {POLLED}")])
    issues = []
    if events.probe_s is not None:
        soon = "at once" if events.probe_s < 0.1 else f"after {events.probe_s:.1f} s"
        probed = f"a file made in the state folder was told of {soon}"
    elif events.unprobed is not None:
        probed = ""
        issues.append(Issue(level="note", words=events.unprobed))
    else:
        probed = ""
        words = f"a file made in the state folder was not told of within {events.waited_s:.0f} s"
        issues.append(
            Issue(level="warning", words=words, mend=f"is the state folder a mount of another system? {POLLED}")
        )
    watched = [place for place in events.places if place.how == "events"]
    polled = [place for place in events.places if place.how == "poll"]
    waiting = [place for place in events.places if place.how == "waiting"]
    for place in polled[:SHOWN]:
        words = f"{place.path} is not watched: {place.reason or 'unknown why'}"
        issues.append(Issue(level="warning", words=words, mend=_mend_of(place.reason)))
    if len(polled) > SHOWN:
        words = f"{len(polled) - SHOWN} more places are not watched"
        issues.append(Issue(level="warning", words=words, mend=_mend_of(polled[SHOWN].reason)))
    for place in watched:
        if is_silent(place.file_system):
            words = f"{place.path} lies on {place.file_system}, which tells nothing of changes made on its other side"
            issues.append(Issue(level="note", words=f"{words}; {POLLED}"))
    who = "by the daemon" if events.by_daemon else "in a trial"
    summary = f"{plural(len(watched), 'place')} watched {who}" + (f", {len(waiting)} not there yet" if waiting else "")
    details = [f"{place.path}: {place.how}" + (f", {place.reason}" if place.reason else "") for place in events.places]
    details += [f"{link}: a link, so what changes behind it is found by the next rescan" for link in events.links]
    return check_of("events", ", ".join(part for part in (probed, summary) if part), issues, details)


def _mend_of(reason: str) -> str:
    if "max_user_watches" in reason or "max_user_instances" in reason:
        return f"see the check `inotify`; {POLLED}"
    return f"nothing need be done: {POLLED}. `daemon.watch: poll` says that this is so on purpose"


@dataclass(frozen=True, slots=True, kw_only=True)
class InotifyFacts:
    """
    The kernel's limits for this user, and the need.

    Attributes:
        max_watches, max_instances: The limits; None: this system has none.
        folders: Folders below the places of transcripts, a watch each; *counted_whole*: none was left out.
        used_watches, used_instances: What all programs of this user hold now, as far as it can be seen.
        ours: How many of the watches are the running daemon's own.
    """

    max_watches: int | None
    max_instances: int | None
    folders: int
    counted_whole: bool = True
    used_watches: int = 0
    used_instances: int = 0
    ours: int = 0


def check_inotify(inotify: InotifyFacts) -> Check:
    """Return whether the kernel's limits leave room for a watch on every folder."""
    if inotify.max_watches is None or inotify.max_instances is None:
        return check_of("inotify", "", [Issue(level="note", words="this system has no such limits")])
    folders = ("" if inotify.counted_whole else "more than ") + f"{inotify.folders:,}"
    others = max(inotify.used_watches - inotify.ours, 0)
    noun = "folder" if folders == "1" else "folders"
    summary = f"{folders} {noun} to watch; {others:,} of {inotify.max_watches:,} watches are in use by others"
    free = inotify.max_watches - others
    need = inotify.folders + inotify.folders // 4 + 64
    issues = []
    raised = 1 << max(need + others, 65_536).bit_length()
    mend = f"echo fs.inotify.max_user_watches={raised} | sudo tee /etc/sysctl.d/50-inotify.conf && sudo sysctl --system"
    if inotify.folders > free:
        issues.append(Issue(level="failure", words="that is more than there is", mend=mend))
    elif need > free:
        issues.append(Issue(level="warning", words="that is nearly all there is", mend=mend))
    if not inotify.ours and inotify.used_instances >= inotify.max_instances:
        words = f"all {inotify.max_instances} inotify instances of this user are in use"
        mend = (
            "echo fs.inotify.max_user_instances=1024 | sudo tee /etc/sysctl.d/51-inotify.conf && sudo sysctl --system"
        )
        issues.append(Issue(level="failure", words=words, mend=mend))
    return check_of("inotify", summary, issues)
