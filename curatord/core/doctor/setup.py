"""How the ground is that curatord stands on: versions, configuration, state folder, database, disk, clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from curatord.core.cheap import dataclass
from curatord.core.doctor.check import Check, Issue, check_of, fine
from curatord.core.words import plural

__all__ = [
    "DatabaseFacts",
    "DiskFacts",
    "StateFacts",
    "VersionFacts",
    "check_clock",
    "check_config",
    "check_database",
    "check_disk",
    "check_state",
    "check_unreadable_config",
    "check_version",
]

SHARED_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "fuse.glusterfs", "webdav"}
)
"""File systems of other machines, where SQLite's locks and its shared memory are not to be relied on (bugs B158)."""

LITTLE = 64 * 2**20
SCANT = 512 * 2**20

MIN_PYTHON = (3, 11)
MIN_SQLITE = (3, 37, 0)  # STRICT tables and the rest that readers of hosts' databases meet

# Clocks of one machine step by seconds; more is another clock.
STEP = timedelta(minutes=5)
AHEAD = timedelta(hours=48)  # of records: other machines and zones may have written them


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """Versions as numbers, and *lacking*: what cannot be done here for want of a module, in words."""

    curatord: str
    python: tuple[int, ...]
    sqlite: tuple[int, ...]
    platform: str
    lacking: Sequence[str] = ()


def check_version(version: VersionFacts) -> Check:
    """Return whether the programs are new enough."""
    python, sqlite = (".".join(str(part) for part in parts) for parts in (version.python, version.sqlite))
    summary = f"curatord {version.curatord}, Python {python}, SQLite {sqlite}, {version.platform}"
    issues = []
    if version.python < MIN_PYTHON:
        issues.append(
            Issue(level="failure", words="Python is too old", mend="install curatord with Python 3.11 or newer")
        )
    if version.sqlite < MIN_SQLITE:
        need = ".".join(str(part) for part in MIN_SQLITE)
        mend = "install curatord with a Python whose SQLite is newer"
        issues.append(Issue(level="warning", words=f"SQLite is older than {need}", mend=mend))
    if version.platform == "win32":
        words = "Windows is not supported: locks and renames work in another way there"
        issues.append(Issue(level="failure", words=words, mend="use the Windows Subsystem for Linux"))
    issues += [Issue(level="note", words=words) for words in version.lacking]
    return check_of("version", summary, issues)


def check_config(origin: str | None, notices: Sequence[str], looked_at: Sequence[str]) -> Check:
    """Return which configuration is in force; *notices* are what its reading had to say."""
    if origin is None:
        issue = Issue(level="note", words="no configuration file, so the defaults and the hosts found on this machine")
        check = check_of("config", "", [issue, *(_notice(words) for words in notices)])
        details = tuple(f"looked for: {path}" for path in looked_at)
        return Check(check="config", level=check.level, found=check.found, mend="curatord init", details=details)
    return check_of("config", origin, [_notice(words) for words in notices])


def _notice(words: str) -> Issue:
    return Issue(level="note", words=words)


def check_unreadable_config(error: str, hint: str) -> Check:
    """Return that the configuration is wrong; *error* may have a line for each mistake."""
    mend = hint or "correct what is named; `curatord config check` tells the same"
    return Check(check="config", level="failure", found="; ".join(error.split("\n")), mend=mend)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFacts:
    """
    The state folder.

    Attributes:
        makeable: Where it does not exist: why it could not be made, or None.
        error: Why it cannot be looked into, or None.
        mode: Its permission bits.
        owner, user: Ids of its owner and of this process.
        writable: Whether this process may write into it.
        file_system: Its type, as the kernel names it; empty where unknown.
        unfinished: Actions that a kill left half-way.
        decisions: Why the plain file of decisions cannot be read and what mends it, or None.
    """

    path: str
    exists: bool
    makeable: str | None = None
    error: str | None = None
    mode: int = 0o700
    owner: int = 0
    user: int = 0
    writable: bool = True
    file_system: str = ""
    unfinished: int = 0
    decisions: tuple[str, str] | None = None


def check_state(state: StateFacts) -> Check:
    """Return whether the state folder is there, private and writable."""
    if not state.exists:
        if state.makeable is not None:
            mend = "set `state_dir` to a folder that this user can write"
            words = f"{state.path} is not there and cannot be made: {state.makeable}"
            return check_of("state", "", [Issue(level="failure", words=words, mend=mend)])
        return check_of(
            "state", "", [Issue(level="note", words=f"{state.path} is not there yet; the first scan makes it")]
        )
    issues = []
    if state.error is not None:
        mend = "make `state_dir` a folder of this user"
        return check_of("state", "", [Issue(level="failure", words=f"{state.path}: {state.error}", mend=mend)])
    if state.owner != state.user and state.user != 0:
        words = f"it belongs to the user with the id {state.owner}, and this is {state.user}"
        mend = f"chown -R {state.user} {state.path}, or run curatord as its owner"
        issues.append(Issue(level="failure", words=words, mend=mend))
    elif not state.writable:
        words = f"it cannot be written by this user (id {state.user})"
        mend = "give it to this user, or set another `state_dir`; a service also needs it among its ReadWritePaths"
        issues.append(Issue(level="failure", words=words, mend=mend))
    if state.mode & 0o077:
        words = f"others may look into it (mode {state.mode:04o}), and it names all that agents worked on"
        issues.append(Issue(level="failure", words=words, mend=f"chmod 700 {state.path}"))
    if state.file_system in SHARED_FILE_SYSTEMS:
        words = (
            f"it lies on a file system of another machine ({state.file_system}), where locks are not to be relied on"
        )
        issues.append(Issue(level="failure", words=words, mend="set `state_dir` to a folder on a disk of this machine"))
    if state.decisions is not None:
        words, mend = state.decisions
        words = f"the file of what people decided cannot be read: {words}"
        issues.append(Issue(level="failure", words=words, mend=mend))
    if state.unfinished:
        words = f"{plural(state.unfinished, 'action')} left half-way by a kill or at work just now"
        mend = "any command that writes brings it to its end (curatord scan)"
        issues.append(Issue(level="note", words=words, mend=mend))
    return check_of("state", state.path, issues)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """
    The database file.

    Attributes:
        schema: Its version; None where there is no database or it cannot be asked.
        newest: The version that this curatord writes.
        damage: What says that its content is broken, or None.
        error: Why it cannot be opened or read, or None.
        looked_whole: Whether every page was looked at; a bounded look may end before.
        size, wal: Bytes of the file and of what was not yet brought into it.
    """

    path: str
    exists: bool
    schema: int | None = None
    newest: int = 0
    damage: str | None = None
    error: str | None = None
    looked_whole: bool = True
    size: int = 0
    wal: int = 0


def check_database(database: DatabaseFacts) -> Check:
    """Return whether the database can be used."""
    if not database.exists:
        return check_of("database", "", [Issue(level="note", words="none yet; the first scan makes it")])
    if database.damage is not None:
        words = f"{database.path} is damaged: {database.damage}"
        mend = (
            "curatord scan: it sets the file aside and begins a new one from transcripts, libraries and "
            "decisions.json; nothing is aged by the first run after that"
        )
        return check_of("database", "", [Issue(level="failure", words=words, mend=mend)])
    if database.error is not None:
        mend = "look at its permissions and the free space; curatord runs as the user that owns it"
        words = f"{database.path} cannot be read: {database.error}"
        return check_of("database", "", [Issue(level="failure", words=words, mend=mend)])
    summary = f"{_size(database.size + database.wal)}, schema {database.schema}"
    issues = []
    if database.schema is not None and database.schema > database.newest:
        words = f"a newer curatord wrote it: this one knows up to schema {database.newest}"
        mend = "install that newer curatord again; nothing was changed"
        issues.append(Issue(level="failure", words=words, mend=mend))
    elif database.schema is not None and database.schema < database.newest:
        words = f"any command that writes brings it to schema {database.newest}"
        issues.append(Issue(level="note", words=words))
    if database.wal > max(256 * 2**20, database.size):
        words = f"{_size(database.wal)} wait to be brought into it: some program holds it open"
        issues.append(Issue(level="warning", words=words, mend="end what reads curatord.db, or restart the daemon"))
    if not issues or all(issue.level == "note" for issue in issues):
        summary += ", sound" if database.looked_whole else ", sound as far as it was looked at"
    return check_of("database", summary, issues)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """One file system: *holds* what of ours, *free* and *size* in bytes, *inodes_free* None where it has none."""

    holds: tuple[str, ...]
    free: int
    size: int
    inodes_free: int | None = None


def check_disk(disks: Sequence[DiskFacts]) -> Check:
    """Return whether there is room for what is written."""
    if not disks:
        return fine("disk", "nothing is on a disk yet")
    issues = []
    for disk in disks:
        what = _and(disk.holds)
        mend = f"make room where {what} lies; nothing is lost until then, and nothing is done"
        if disk.free < LITTLE:
            issues.append(Issue(level="failure", words=f"only {_size(disk.free)} are free for {what}", mend=mend))
        elif disk.free < SCANT:
            issues.append(Issue(level="warning", words=f"only {_size(disk.free)} are free for {what}", mend=mend))
        if disk.inodes_free is not None and disk.inodes_free < 1000:
            words = f"only {plural(disk.inodes_free, 'more file')} can be made for {what}"
            issues.append(Issue(level="failure", words=words, mend=mend))
    told = "; ".join(f"{_size(disk.free)} free for {_and(disk.holds)}" for disk in disks)
    return check_of("disk", "" if issues else told, issues)


def check_clock(
    now: datetime,
    *,
    newest_record_at: datetime | None,
    newest_stored: tuple[datetime, str] | None,
    forgotten: bool = False,
) -> Check:
    """
    Return whether the clock can be right.

    *newest_stored* is the latest time that curatord itself ever wrote down, with what it was of; *forgotten*: the
    database cannot be used, so neither is known.
    """
    if forgotten:
        words = f"{now:%Y-%m-%d %H:%M} UTC; what was written earlier is not known while the database cannot be used"
        return check_of("clock", "", [Issue(level="note", words=words)])
    issues = []
    if newest_stored is not None and newest_stored[0] > now + STEP:
        words = (
            f"it says {now:%Y-%m-%d %H:%M} UTC, and {newest_stored[1]} was at {newest_stored[0]:%Y-%m-%d %H:%M} UTC: "
            "it was set back, or was wrong then"
        )
        mend = "set the clock (timedatectl); while it stands before its own past nothing is aged"
        issues.append(Issue(level="failure", words=words, mend=mend))
    if newest_record_at is not None and newest_record_at > now + AHEAD:
        words = f"it stands before the newest record of a transcript ({newest_record_at:%Y-%m-%d %H:%M} UTC)"
        issues.append(
            Issue(level="failure", words=words, mend="set the clock of this machine, or of the one that wrote it")
        )
    return check_of(
        "clock", "" if issues else f"{now:%Y-%m-%d %H:%M} UTC, later than everything that was written", issues
    )


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            value = count / size
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{count} bytes"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
