"""
How a source of transcripts is: there, readable, read, understood, and of sound times.

The counts are over all that was ever read, so that they match `sessions`; what is unusual of late is `core.drift`'s
answer. A place that does not exist is no fault: hosts make theirs when they are first used. One that was there before
is, since a mount that is away looks like a host that nobody uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from curatord.core.cheap import dataclass, field
from curatord.core.doctor.check import Check, Issue, check_of
from curatord.core.drift import Drift, Stretch, drift_of, percent
from curatord.core.words import plural

__all__ = ["Counted", "Retention", "SourceFacts", "check_source", "check_sources"]

FUTURE = timedelta(hours=48)  # zones and clocks of other machines explain a day (bugs B106)
UNREADABLE_SHARE = 0.01
FEW = 10
SHOWN = 5

_UPDATE = (
    "install a newer curatord if there is one, and report the types named here if there is none; until then "
    "`curatord pause`: a use that is not understood makes its skill look idle"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What is stored of a source; the fields are those of `SourceState` (ports)."""

    sessions: int
    records: int
    unreadable: int
    oversize: int
    naive_times: int
    future_times: int
    unknown: Mapping[str, int]
    versions: Sequence[str]
    scanned_at: datetime | None
    newest_record_at: datetime | None
    problems: Sequence[str] = ()
    failing: int = 0
    bad: Sequence[tuple[str, int, str]] = ()
    stretches: Sequence[Stretch] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """A host deletes transcripts after *days*, as *where* says; *at_risk* unread files go within three days."""

    days: int
    where: str
    at_risk: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """
    One place of one source.

    Attributes:
        why: How it was chosen: `configured`, `default`, or the host's own variable.
        exists: Whether the place is there.
        error: Why it cannot be listed, or None.
        files: How many transcripts (or databases) are there; None where that was not found out.
        unread: How many of them have something that was not read yet, or None.
        unseen: What of it could not be listed, in words.
        near: Where nothing was found, names there that look like transcripts and are not listed.
        counted: What is stored of it; None: it was never scanned.
        forgotten: The database cannot be used, so what was read of it is not known.
        at_work: The running daemon reads transcripts just now.
    """

    host: str
    path: str
    why: str
    exists: bool
    error: str | None = None
    files: int | None = None
    unread: int | None = None
    unseen: Sequence[str] = ()
    near: Sequence[str] = ()
    counted: Counted | None = None
    retention: Retention | None = None
    forgotten: bool = False
    at_work: bool = False


def check_sources(sources: Sequence[SourceFacts], now: datetime) -> list[Check]:
    """Return one check a source, or the one that there is none."""
    if not sources:
        issue = Issue(
            level="warning",
            words="no source of transcripts is configured and no host was found, so no use of any skill is seen",
            mend="name one under `sources`, or run `curatord init` where an agent host is installed",
        )
        return [check_of("sources", "", [issue])]
    there = {source.host for source in sources if source.exists}
    spare = [source for source in sources if _is_spare(source, there)]
    return [
        check_source(source, now, [other.path for other in spare if other.host == source.host])
        for source in sources
        if source not in spare
    ]


def _is_spare(source: SourceFacts, there: Collection[str]) -> bool:
    """Return whether *source* is a default place that its host does not use: it has another one, or a better name."""
    unused = not source.exists and source.error is None and source.why != "configured"
    return unused and source.host in there and not (source.counted is not None and source.counted.sessions)


def check_source(source: SourceFacts, now: datetime, spare: Sequence[str] = ()) -> Check:
    """Return how *source* is; *now* is for times in the future, *spare* are places its host does not use."""
    name = f"source {source.host}"
    if source.error is not None:
        mend = f"let this user read {source.path} and the folders below it; reading is all curatord does there"
        return check_of(
            name, "", [Issue(level="failure", words=f"{source.path} cannot be read: {source.error}", mend=mend)]
        )
    if not source.exists:
        return _absent(name, source)
    counted = source.counted
    if source.forgotten:
        issue = Issue(level="note", words="what was read of it is not known while the database cannot be used")
        found = f"{source.path}: {_files(source)}"
        return check_of(name, found, [issue, *_trouble(source, None)], [f"place: {source.why}"])
    if (counted is None or counted.scanned_at is None) and source.at_work:
        found = f"{source.path}: {_files(source)}, the daemon reads them for the first time just now"
        issues = [Issue(level="note", words=""), *_trouble(source, None), *_misses(source)]
        return check_of(name, found, issues, [f"place: {source.why}"])
    if counted is None or counted.scanned_at is None:
        found = f"{source.path}: {_files(source)}, never scanned; `curatord scan` reads it"
        issues = [Issue(level="note", words="", mend="curatord scan"), *_trouble(source, None), *_misses(source)]
        return check_of(name, found, issues, [f"place: {source.why}"])
    summary = (
        f"{source.path}: {_files(source)}, {plural(counted.sessions, 'session')}, "
        f"{counted.records:,} records up to {_moment(counted.newest_record_at)}; unknown {_unknown(counted)}, "
        f"unreadable {percent(_unreadable_share(counted))}"
    )
    issues = [*_drift(counted), *_unreadable(counted), *_trouble(source, counted), *_times(counted, now)]
    issues += [*_retention(source), *_misses(source)]
    details = [*_details(source, counted), *(f"not used by the host: {path}" for path in spare)]
    return check_of(name, summary, issues, details)


def _absent(name: str, source: SourceFacts) -> Check:
    if source.counted is not None and source.counted.sessions:
        words = (
            f"{source.path} is not there, and was: {plural(source.counted.sessions, 'session')} of it are known; "
            "nothing is lost, and nothing new is seen"
        )
        mend = "mount it again, or name the place where the host keeps its transcripts now (`sources`, `path`)"
        return check_of(name, "", [Issue(level="failure", words=words, mend=mend)])
    if source.why == "configured":
        words = f"{source.path} does not exist; it is waited for"
        mend = "correct `path` under `sources` if the host keeps its transcripts elsewhere"
        return check_of(name, "", [Issue(level="warning", words=words, mend=mend)])
    return check_of(name, "", [Issue(level="note", words=f"{source.path} ({source.why}) does not exist yet")])


def _files(source: SourceFacts) -> str:
    if source.files is None:
        return "files not counted"
    unread = f" ({source.unread} with something unread)" if source.unread else ""
    return plural(source.files, "file") + unread


def _moment(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def _unknown(counted: Counted) -> str:
    records = sum(counted.unknown.values())
    share = min(records / counted.records, 1.0) if counted.records else float(bool(records))
    return percent(share)


def _unreadable_share(counted: Counted) -> float:
    seen = counted.records + counted.unreadable
    return counted.unreadable / seen if seen else 0.0


def _drift(counted: Counted) -> list[Issue]:
    return [Issue(level="failure", words=drift.sentence, mend=_mend(drift)) for drift in drift_of(counted.stretches)]


def _mend(drift: Drift) -> str:
    if drift.what == "unreadable":
        return (
            "look at the first offsets below (`doctor --json`): a host that is killed leaves half a line, many of them "
            f"are another format. {_UPDATE[0].upper()}{_UPDATE[1:]}"
        )
    return _UPDATE


def _unreadable(counted: Counted) -> list[Issue]:
    """Say that much of it could never be read, where that is not news."""
    if counted.unreadable < FEW or _unreadable_share(counted) < UNREADABLE_SHARE:
        return []
    words = f"{counted.unreadable:,} records could not be read"
    return [Issue(level="warning", words=words, mend="look at the offsets in the details; what is whole was counted")]


def _trouble(source: SourceFacts, counted: Counted | None) -> list[Issue]:
    """Say what could not be listed now, or not be read by the last scan."""
    told = list(dict.fromkeys([*source.unseen, *(counted.problems if counted is not None else ())]))
    failing = counted.failing if counted is not None else 0
    if not told and not failing:
        return []
    count = max(failing, len(told))
    whole = bool(source.files) and failing >= (source.files or 0)
    shown = "; ".join(told[:2]) + (f"; and {count - 2} more" if count > 2 else "")
    words = f"{plural(count, 'place')} in it cannot be read: {shown}"
    mend = "let this user read what is named; it is tried again by itself"
    return [Issue(level="failure" if whole else "warning", words=words, mend=mend)]


def _times(counted: Counted, now: datetime) -> list[Issue]:
    issues = []
    if counted.newest_record_at is not None and counted.newest_record_at > now + FUTURE:
        words = f"its newest record is of {_moment(counted.newest_record_at)}, which is still to come"
        issues.append(
            Issue(level="warning", words=words, mend="set the clock of the machine that wrote it, or of this")
        )
    if counted.future_times >= FEW and counted.future_times >= UNREADABLE_SHARE * counted.records:
        words = f"{counted.future_times:,} records had a time in the future, which was taken as unknown"
        issues.append(Issue(level="warning", words=words, mend="set the clock of the machine that wrote them"))
    return issues


def _retention(source: SourceFacts) -> list[Issue]:
    kept = source.retention
    if kept is None or not kept.at_risk:
        return []
    words = f"{plural(kept.at_risk, 'unread file')} will be deleted by the host within three days ({kept.where})"
    return [Issue(level="warning", words=words, mend="curatord scan, and let the daemon run")]


def _misses(source: SourceFacts) -> list[Issue]:
    """Say that a place holds no transcript, but files that look like some (bugs B102)."""
    if source.files != 0 or not source.near:
        return []
    words = f"no transcript of {source.host} is there, but {plural(len(source.near), 'file')} of such a kind"
    mend = "is `path` the folder that the host writes into, and `host` the right one?"
    return [Issue(level="warning", words=words, mend=mend)]


def _details(source: SourceFacts, counted: Counted) -> list[str]:
    details = [f"place: {source.why}"]
    if counted.scanned_at is not None:
        details.append(f"last scan: {_moment(counted.scanned_at)}")
    if counted.versions:
        shown = list(counted.versions)[-SHOWN:]
        more = f" and {len(counted.versions) - len(shown)} more" if len(counted.versions) > len(shown) else ""
        details.append(f"versions seen: {', '.join(shown)}{more}")
    for name, count in sorted(counted.unknown.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]:
        share = count / counted.records if counted.records else 1.0
        details.append(f"unknown type {name}: {count:,} records, {percent(share)}")
    for path, offset, why in counted.bad[:SHOWN]:
        details.append(f"unreadable: {path} at offset {offset}: {why}")
    if counted.oversize:
        details.append(f"{counted.oversize:,} records were too long to hold, and read by their ends")
    if counted.naive_times:
        details.append(f"{counted.naive_times:,} times without a zone, taken as UTC")
    if counted.future_times:
        details.append(f"{counted.future_times:,} times in the future, taken as unknown")
    if source.retention is not None:
        details.append(f"the host deletes transcripts after {source.retention.days} days ({source.retention.where})")
    return details + [f"looks like a transcript and is not one of this host: {name}" for name in source.near[:SHOWN]]
