"""What runs: the daemon, a service that starts it, other daemons."""

from __future__ import annotations

from collections.abc import Sequence

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, check_of

__all__ = ["DaemonFacts", "OtherDaemon", "ServiceFacts", "check_daemon", "check_others", "check_service"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFacts:
    """
    The daemon of this state folder. *silence* says in words that it gave no sign of life, *trouble* what went wrong at
    work; *paused* that a person holds automatic runs; *last_run_failed* what the last run says of itself if it failed;
    *version* which it is, None where it does not say, beside *ours*.
    """

    alive: bool
    pid: int | None = None
    since: str | None = None
    activity: str | None = None
    silence: str | None = None
    trouble: str | None = None
    paused: bool = False
    last_run_failed: str | None = None
    version: str | None = None
    ours: str | None = None


def check_daemon(daemon: DaemonFacts) -> Check:
    """Return whether the daemon is well; that none runs is a note, since everything works by hand too."""
    issues = []
    if not daemon.alive:
        words = "no daemon runs on this state folder; what you run by hand works without one"
        issues.append(Issue(level="note", words=words, mend="curatord daemon, or a service (see there)"))
        summary = ""
    else:
        summary = ", ".join(
            part
            for part in (
                f"process {daemon.pid}" if daemon.pid else "it has just started",
                f"since {daemon.since}" if daemon.since else "",
                daemon.activity or "",
            )
            if part
        )
    if daemon.silence is not None:
        mend = "restart it (systemctl --user restart curatord); its log says what it was at"
        issues.append(Issue(level="failure", words=daemon.silence, mend=mend))
    if daemon.trouble is not None:
        mend = "its log says more (journalctl --user -u curatord); it goes on with everything else"
        issues.append(Issue(level="failure", words=f"in trouble: {daemon.trouble}", mend=mend))
    if daemon.last_run_failed is not None:
        words = f"the last run failed: {daemon.last_run_failed}"
        issues.append(Issue(level="failure", words=words, mend="curatord report last; then curatord run --dry-run"))
    if daemon.version is not None and daemon.version != daemon.ours:
        words = f"it is version {daemon.version} still, and {daemon.ours} is installed"
        issues.append(Issue(level="warning", words=words, mend="systemctl --user restart curatord"))
    if daemon.paused:
        issues.append(Issue(level="note", words="automatic runs are paused", mend="curatord resume"))
    return check_of("daemon", summary, issues)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDaemon:
    """Another running curatord daemon: its process, its state folder, and which of our libraries it curates too."""

    pid: int
    state_dir: str
    shared: Sequence[str] = ()


def check_others(others: Sequence[OtherDaemon], *, can_see: bool) -> Check:
    """Return whether other daemons are in the way; *can_see*: this system lets us look."""
    if not can_see:
        return check_of("others", "", [Issue(level="note", words="other programs cannot be looked for on this system")])
    if not others:
        return check_of("others", "no other curatord runs for this user", [])
    issues = []
    for other in others:
        words = f"another curatord (process {other.pid}) runs with the state folder {other.state_dir}"
        if other.shared:
            words += f" on the same {'library' if len(other.shared) == 1 else 'libraries'} {', '.join(other.shared)}"
            mend = "stop one of them, or give each library to one: neither sees what the other decides"
            issues.append(Issue(level="failure", words=words, mend=mend))
        else:
            issues.append(Issue(level="note", words=words))
    return check_of("others", "", issues)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """
    Which unit files, plists and compose files of curatord are *installed*, and the *command* that installs one here.

    *idle*: those that no manager starts by itself, each with the command that changes this.
    """

    installed: Sequence[str]
    command: str
    idle: Sequence[tuple[str, str]] = ()


def check_service(service: ServiceFacts) -> Check:
    """Return whether a service is installed; without one nothing is wrong."""
    if service.installed:
        issues = [
            Issue(level="note", words=f"{path} is not enabled, so nothing starts it by itself", mend=command)
            for path, command in service.idle
        ]
        told = {path for path, _ in service.idle}
        return check_of("service", ", ".join(path for path in service.installed if path not in told), issues)
    words = "none is installed, so nothing starts the daemon by itself"
    return check_of("service", "", [Issue(level="note", words=words, mend=service.command)])
