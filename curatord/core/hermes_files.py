"""
Hermes' own files as values: who owns a skill, what it was used for, what is scheduled, what its curator is doing.

All of these are other programs' data: they are input here and never rewritten from what was read (bugs B039). Each
field is taken by itself, so one odd value costs that value and a warning. Files that say what must *not* be touched are
another matter: when one of them cannot be read, `OwnershipError` is raised and the library is protected as a whole,
since an ownership file read as empty once cost somebody all pins (bugs B047 and Hermes' own page, section 0).

Facts about the files: NousResearch/hermes-agent, its docs and behaviour in autumn 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeAlias

import msgspec

from curatord.core.cheap import dataclass, field
from curatord.errors import OwnershipError

__all__ = [
    "CLAIM_STALE_AFTER",
    "CuratorState",
    "HermesConfig",
    "HermesFacts",
    "HubEntry",
    "LedgerEntry",
    "RunClaim",
    "ScheduleReference",
    "UsageRow",
    "parse_claim",
    "parse_config",
    "parse_curator_state",
    "parse_hub_lock",
    "parse_ledger_line",
    "parse_manifest",
    "parse_schedule",
    "parse_suppressed",
    "parse_time",
    "parse_usage",
]

CLAIM_STALE_AFTER = timedelta(seconds=3600)  # Hermes takes over an older claim
MAX_WARNINGS = 50

Aware: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]

_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_MANIFEST_LINE = re.compile(r"(?P<name>.+?)(?::(?P<hash>[0-9a-fA-F]{32}))?\Z")


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What Hermes recorded of one skill; None where it said nothing that could be read.

    A struct and no dataclass, since five thousand of them are decoded for every look at a library.
    """

    created_by: str | None = None
    agent_created: bool | None = None
    use_count: int = 0
    view_count: int = 0
    patch_count: int = 0
    last_used_at: Aware | None = None
    last_viewed_at: Aware | None = None
    last_patched_at: Aware | None = None
    created_at: Aware | None = None
    state: str | None = None
    pinned: bool = False
    archived_at: Aware | None = None

    @property
    def agent_made(self) -> bool:
        """Whether its policy flag hands the skill to curation: `created_by: agent`, or the older `agent_created`."""
        return self.created_by == "agent" or self.agent_created is True

    @property
    def last_activity_at(self) -> datetime | None:
        """Newest of use, view and patch, or None."""
        return max(
            (at for at in (self.last_used_at, self.last_viewed_at, self.last_patched_at) if at is not None),
            default=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEntry:
    """One hub-installed skill; *install_path* is relative to the library, or None where the file does not say."""

    name: str
    source: str
    install_path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorState:
    """What `.curator_state` says of Hermes' own curator."""

    paused: bool = False
    last_run_at: datetime | None = None
    run_count: int = 0
    last_run_summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaim:
    """Hermes' curator says that it is at work; *pid* is None where the file does not name one."""

    pid: int | None
    at: datetime

    def holds(self, now: datetime) -> bool:
        """Return whether the claim still stands."""
        return now - self.at < CLAIM_STALE_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """
    One change that Hermes recorded.

    *before* and *after* are (absolute path, SHA-256 or None) of the files it touched; actor is `curator`, `agent` or
    `user`.
    """

    id: str
    at: datetime
    actor: str
    action: str
    skill: str
    session_id: str | None = None
    before: tuple[tuple[str, str | None], ...] = ()
    after: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReference:
    """
    A job that names a skill, by name or absolute path, paused or not (bugs B019).

    *index* is the job's place in the file, *place* the field: `skills` or the older `skill`.
    """

    job: str
    index: int
    place: str
    target: str
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HermesConfig:
    """As much of Hermes' `config.yaml` as concerns its skills."""

    curator_enabled: bool = True
    external_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HermesFacts:
    """
    All that a Hermes home says about its library.

    Attributes:
        usage: By the name that Hermes uses, its header's where there is one.
        protected: Words for each ownership file that cannot be read; not empty: nothing in the library may change.
        schedule_unreadable: Words where `cron/jobs.json` is there and cannot be read: who is scheduled is not known,
            so nothing may be archived.
        warnings: What was odd and passed over.
    """

    home: str
    usage: Mapping[str, UsageRow] = field(default_factory=dict)
    bundled: frozenset[str] = frozenset()
    hub: tuple[HubEntry, ...] = ()
    suppressed: frozenset[str] = frozenset()
    curator: CuratorState = field(default_factory=CuratorState)
    claim: RunClaim | None = None
    schedule: tuple[ScheduleReference, ...] = ()
    config: HermesConfig = field(default_factory=HermesConfig)
    protected: tuple[str, ...] = ()
    schedule_unreadable: str | None = None
    warnings: tuple[str, ...] = ()


def parse_time(value: object) -> datetime | None:
    """
    Return a time as any program may have written it: ISO text, with or without zone, or seconds or milliseconds.

    A text without zone is UTC, as Hermes reads it itself. None for None.

    Raises:
        ValueError: It is no time, or one before 2000 or after 2200.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        at = datetime.fromisoformat(value)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e14:
        at = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    else:
        raise ValueError(f"no time: {value!r}")
    if not _EARLIEST <= at < _LATEST:
        raise ValueError(f"no likely time: {value!r}")
    return at.astimezone(UTC)


def parse_usage(data: bytes) -> tuple[dict[str, UsageRow], list[str]]:
    """
    Return the rows of `.usage.json` by name, and what was odd in them.

    Raises:
        OwnershipError: It is no JSON object.
    """
    try:
        rows = _decode_usage(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # something in it is odd: field by field then
    else:
        if all(_likely(row) for row in rows.values()):
            return rows, []
    whole = _object(data, ".usage.json")
    warnings: list[str] = []
    rows = {}
    for name, raw in whole.items():
        if isinstance(raw, dict):
            rows[name] = _usage_row(name, raw, warnings)
        else:
            warnings.append(f".usage.json: `{name}` is no record and is passed over")
    return rows, warnings[:MAX_WARNINGS]


_decode_usage = msgspec.json.Decoder(dict[str, UsageRow]).decode


def _likely(row: UsageRow) -> bool:
    for at in (row.last_used_at, row.last_viewed_at, row.last_patched_at, row.created_at):
        if at is not None and not 2000 <= at.year < 2200:
            return False
    return True


def _usage_row(name: str, raw: dict[str, Any], warnings: list[str]) -> UsageRow:
    def time(key: str) -> datetime | None:
        try:
            return parse_time(raw.get(key))
        except (ValueError, OverflowError):
            warnings.append(f".usage.json: `{name}.{key}` is no time: {str(raw.get(key))[:60]!r}")
            return None

    def count(key: str) -> int:
        value = raw.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
            return int(value)
        if value is not None:
            warnings.append(f".usage.json: `{name}.{key}` is no count: {str(value)[:60]!r}")
        return 0

    created_by, state = raw.get("created_by"), raw.get("state")
    return UsageRow(
        created_by=created_by if isinstance(created_by, str) else None,
        agent_created=raw.get("agent_created") is True,
        use_count=count("use_count"),
        view_count=count("view_count"),
        patch_count=count("patch_count"),
        last_used_at=time("last_used_at"),
        last_viewed_at=time("last_viewed_at"),
        last_patched_at=time("last_patched_at"),
        created_at=time("created_at"),
        state=state if isinstance(state, str) else None,
        pinned=_flag(raw.get("pinned")),
        archived_at=time("archived_at"),
    )


def _flag(value: object) -> bool:
    """Return whether *value* says yes; whatever is not clearly no does, since the flag protects."""
    return value not in (None, False, 0, "", "false", "False", "no")


def parse_manifest(data: bytes) -> frozenset[str]:
    """
    Return the names of bundled skills from `.bundled_manifest`, with (`name:md5`) or without hashes.

    Raises:
        OwnershipError: It is no text.
    """
    names: set[str] = set()
    for line in (line.strip() for line in _text(data, ".bundled_manifest").splitlines()):
        if not line or line.startswith("#"):
            continue
        match = _MANIFEST_LINE.match(line)
        names.add(match["name"].strip() if match else line)
        # A hash of another kind or length may be a newer form: what stands before the colon is protected as well.
        names.add(line.rpartition(":")[0].strip() or line)
    return frozenset(names)


def parse_suppressed(data: bytes) -> frozenset[str]:
    """Return the names in `.curator_suppressed`; lines that begin with `#` are comments."""
    lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


def parse_hub_lock(data: bytes) -> tuple[HubEntry, ...]:
    """
    Return the hub-installed skills from `.hub/lock.json`, sorted by name.

    Raises:
        OwnershipError: It is no JSON object, or `installed` is no mapping.
    """
    # Bad bytes are replaced, as Hermes does itself: a source's description in another encoding must not lock the rest.
    whole = _object(data.decode("utf-8", "replace").encode(), ".hub/lock.json")
    installed = whole.get("installed", {})
    if not isinstance(installed, dict):
        raise OwnershipError(".hub/lock.json: `installed` is no mapping", hint="`hermes skills` writes it anew")
    entries: list[HubEntry] = []
    for name, raw in sorted(installed.items()):
        fields = raw if isinstance(raw, dict) else {}
        path = fields.get("install_path")
        entries.append(
            HubEntry(
                name=name,
                source=str(fields.get("identifier") or fields.get("source") or "a hub")[:200],
                install_path=path.strip("/") if isinstance(path, str) and path.strip("/") else None,
            )
        )
    return tuple(entries)


def parse_curator_state(data: bytes) -> tuple[CuratorState, list[str]]:
    """Return what `.curator_state` says; a damaged one says nothing, as for Hermes itself, and is told."""
    try:
        whole = _object(data, ".curator_state")
    except OwnershipError as error:
        return CuratorState(), [str(error)]
    warnings: list[str] = []
    try:
        last_run_at = parse_time(whole.get("last_run_at"))
    except (ValueError, OverflowError):
        last_run_at = None
        warnings.append(f".curator_state: `last_run_at` is no time: {str(whole.get('last_run_at'))[:60]!r}")
    count = whole.get("run_count")
    summary = whole.get("last_run_summary")
    return (
        CuratorState(
            paused=whole.get("paused") is True,
            last_run_at=last_run_at,
            run_count=count if isinstance(count, int) else 0,
            last_run_summary=summary if isinstance(summary, str) else "",
        ),
        warnings,
    )


def parse_claim(data: bytes, modified_at: datetime) -> RunClaim:
    """Return the claim in `.locks/curator-run`, whose age is that of its file."""
    found = re.search(rb"\d{1,10}", data[:4096])
    return RunClaim(pid=int(found[0]) if found else None, at=modified_at)


def parse_ledger_line(line: bytes) -> LedgerEntry | None:
    """Return the change that one line of `.curator_ledger.jsonl` records, or None where it cannot be read."""
    try:
        raw = msgspec.json.decode(line)
        if not isinstance(raw, dict):
            return None
        at = parse_time(raw.get("ts"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError):
        return None
    skill, action = raw.get("skill"), raw.get("action")
    if at is None or not isinstance(skill, str) or not isinstance(action, str):
        return None
    evidence = raw.get("evidence")
    session = evidence.get("session_id") if isinstance(evidence, dict) else None
    return LedgerEntry(
        id=str(raw.get("id", "")),
        at=at,
        actor=str(raw.get("actor", "")),
        action=action,
        skill=skill,
        session_id=session if isinstance(session, str) else None,
        before=tuple(_files(raw.get("before"))),
        after=tuple(_files(raw.get("after"))),
    )


def _files(raw: object) -> Iterator[tuple[str, str | None]]:
    for item in raw if isinstance(raw, list) else ():
        if isinstance(item, dict) and isinstance(item.get("path"), str):
            digest = item.get("sha256")
            yield item["path"], digest if isinstance(digest, str) else None


def parse_schedule(data: bytes) -> tuple[tuple[ScheduleReference, ...], list[str]]:
    """
    Return who is named by `cron/jobs.json`, in the order of the file, and what was odd.

    Paused jobs count like others: a quarterly job may be paused for the quarter. The file may be a bare list and may
    begin with a byte-order mark.

    Raises:
        OwnershipError: It is no JSON, or holds no list of jobs.
    """
    whole = _json(data, "cron/jobs.json")
    jobs = whole.get("jobs", []) if isinstance(whole, dict) else whole
    if not isinstance(jobs, list):
        raise OwnershipError("cron/jobs.json: there is no list of jobs", hint="mend it; until then nothing is archived")
    references: list[ScheduleReference] = []
    warnings: list[str] = []
    for index, job in enumerate(jobs):
        if not isinstance(job, dict):
            warnings.append(f"cron/jobs.json: entry {index + 1} is no job and is passed over")
            continue
        label = str(job.get("name") or job.get("id") or f"job {index + 1}")[:120]
        for place in ("skills", "skill"):
            value = job.get(place)
            names = value if isinstance(value, list) else [value]
            for target in names:
                if isinstance(target, str) and target.strip():
                    references.append(
                        ScheduleReference(
                            job=label,
                            index=index,
                            place=place,
                            target=target.strip(),
                            enabled=_flag(job.get("enabled", True)),
                        )
                    )
                elif target not in (None, ""):
                    warnings.append(f"cron/jobs.json: `{place}` of `{label}` holds no name: {str(target)[:60]!r}")
    return tuple(references), warnings[:MAX_WARNINGS]


def parse_config(data: bytes) -> HermesConfig:
    """
    Return what `config.yaml` says about skills and the curator.

    Raises:
        OwnershipError: It cannot be read, so what is external is not known.
    """
    quick = _plain_config(data)
    if quick is not None:
        return quick
    from curatord.core.header import Fault, read_mapping  # a YAML reader, for this one file

    values = read_mapping(data)
    if isinstance(values, Fault):
        raise OwnershipError(
            f"config.yaml of Hermes cannot be read: {values}",
            hint="mend it; until then its external folders are not known and nothing in its library changes",
        )
    skills, curator = values.get("skills"), values.get("curator")
    external = skills.get("external_dirs") if isinstance(skills, Mapping) else None
    enabled = curator.get("enabled", "true") if isinstance(curator, Mapping) else "true"
    return HermesConfig(
        curator_enabled=str(enabled).lower() not in ("false", "no", "off", "0"),
        external_dirs=tuple(_texts(external)),
    )


_EXTERNAL = re.compile(r"external_dirs(.*)")
_NO_EXTERNAL = re.compile(r"[ \t]*:[ \t]*\[[ \t]*\][ \t]*(?:#.*)?\r?\Z")
_CURATOR = re.compile(r"^curator:[ \t]*(?:#.*)?\r?\n(?P<block>(?:(?:[ \t]+.*|#.*|[ \t]*)\r?\n)*)", re.MULTILINE)
_FIRST_KEY = re.compile(r"^([ \t]+)[a-z_]+:", re.MULTILINE)


def _plain_config(data: bytes) -> HermesConfig | None:
    """
    Return the configuration where it can be told without a YAML reader, as in nearly every home, else None.

    To load that reader and read hundreds of lines for two keys would be a fifth of a whole look at a large library.
    """
    try:
        text = data.decode() + "\n"
    except UnicodeDecodeError:
        return None
    if not all(_NO_EXTERNAL.match(rest) for rest in _EXTERNAL.findall(text)):
        return None
    if "curator" not in text:
        return HermesConfig()
    section = _CURATOR.search(text)
    first = _FIRST_KEY.search(section["block"]) if section else None
    if section is None or first is None:
        return None
    enabled = re.findall(rf"^{first[1]}enabled:[ \t]*([A-Za-z]+)[ \t]*(?:#.*)?\r?$", section["block"], re.MULTILINE)
    mentioned = re.findall(rf"^{first[1]}enabled\b", section["block"], re.MULTILINE)
    if len(enabled) != len(mentioned) or len(enabled) > 1:
        return None
    return HermesConfig(curator_enabled=not enabled or enabled[0].lower() not in ("false", "no", "off"))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence):
        yield from (item for item in value if isinstance(item, str) and item)


def _object(data: bytes, name: str) -> dict[str, Any]:
    whole = _json(data, name)
    if not isinstance(whole, dict):
        raise OwnershipError(
            f"{name} is no JSON object", hint=f"mend {name}; until then nothing in its library changes"
        )
    return whole


def _json(data: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OwnershipError(
            f"{name} cannot be read: {error}", hint=f"mend {name}; until then nothing in its library changes"
        ) from error


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OwnershipError(
            f"{name} cannot be read: {error}", hint=f"mend {name}; until then nothing in its library changes"
        ) from error
