"""
Claude Code's transcripts: one JSON record a line, a session over its main file and the files of its sub-agents.

Wanted: per session the turns, the calls by tool and the skill events, each once, at the cost of little more than the
decoding. What can go wrong, and where it is met here (formats page, section 1):

- One API message is spread over several records: turns are distinct `message.id`s.
- Records of role user are mostly no person: results, meta records, summaries, notices (`said`).
- A slash command shows only by the record *behind* it whether it was built in, a command or a skill (`_slash`).
- A prompt typed while the agent works may exist only as a queue operation, or as an attachment, or as both (`_queue`).
- A call counts as a skill event only when its result, perhaps of a later scan, is no failure (`_pending`).
- `agent_progress` and `invoked_skills` repeat what was counted: both are read past.
- A copied history keeps its `uuid`s: they are the keys. Records without one are keyed by content and neighbour.

How it is made fast: one typed decode a record that touches only declared fields; `Raw` for what is seldom needed;
times compared as text, per hour, and only converted when the findings are taken; ids folded in bulk.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from curatord.core.transcript.accounts import Account, common_ms, tell_times
from curatord.core.transcript.claude_records import (
    Arguments,
    Block,
    Message,
    Outcome,
    Record,
    attachment_of,
    decode_record,
    from_ends,
    leniently,
    outcome_of,
    prompt_text,
)
from curatord.core.transcript.claude_shapes import NO_RESULT, SOURCE, result_shape, stamp_at
from curatord.core.transcript.events import (
    MAX_FOLDER,
    MAX_NAME,
    MAX_NAMES,
    MAX_SESSION,
    OWN_MARK,
    Findings,
    SessionKind,
    SessionTally,
    Sighting,
    short_ones,
)
from curatord.core.transcript.ids import ANCHOR_FIRST, KEY_BYTES, Guard, chained, content_key, fold_uuids, id_key
from curatord.core.transcript.kept_state import kept_state
from curatord.core.transcript.lines import Unreadable, objects
from curatord.core.transcript.packages import in_package, skill_of_path
from curatord.core.transcript.salvage import text_of_raw
from curatord.core.transcript.shell import touched
from curatord.core.transcript.times import FUTURE_MS, iso_of, ms_of_iso
from curatord.core.values import EventKind

__all__ = ["ClaudeCodeParser"]

KNOWN_TYPES = frozenset({
    "user", "assistant", "system", "attachment", "progress", "summary", "queue-operation", "file-history-snapshot",
    "file-history-delta", "custom-title", "ai-title", "agent-name", "agent-setting", "last-prompt", "permission-mode",
    "mode", "pr-link", "frame-link", "worktree-state", "relocated", "bridge-session", "atis-latch", "started", "result",
})  # fmt: skip

# Section 1.5: what stands in front of a real prompt, and what no person wrote.
IN_FRONT = ("system-reminder", "ide_opened_file", "ide_selection")
NOT_SAID = (
    "<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "Caveat: The messages below",
    "<bash-input>", "<bash-stdout>", "<bash-stderr>", "[Request interrupted", "<task-notification>",
    "<bash-notification>", "Stop hook feedback", "Operation stopped by hook",
    "This session is being continued from a previous conversation",
)  # fmt: skip
SLASH = ("<command-name>", "<command-message>", "<command-args>")
_COMMAND = re.compile(r"<command-name>\s*/?([^<]{1,200}?)\s*</command-name>")
BODY = "Base directory for this skill:"
QUEUED_BY_MACHINE = frozenset({"task-notification", "notification", "system", "schedule", "scheduled", "cron", "hook"})

FILE_TOOLS = {
    "Read": EventKind.VIEW,
    "Grep": EventKind.VIEW,
    "NotebookRead": EventKind.VIEW,
    "Edit": EventKind.PATCH,
    "MultiEdit": EventKind.PATCH,
    "Write": EventKind.PATCH,
    "NotebookEdit": EventKind.PATCH,
}
SHELL_TOOLS = frozenset({"Bash", "PowerShell"})
SKILL_TOOLS = frozenset({"Skill", "SlashCommand"})
TOOLS_THAT_TOUCH = SKILL_TOOLS | SHELL_TOOLS | FILE_TOOLS.keys()

FIRE = "scheduled_task_fire"

KEEP_MESSAGES = 8  # ids that the state carries over; parts of one message stand close together
KEEP_CALLS = 16
KEEP_QUEUE = 64
KEEP_PENDING = 256
LEARN = 100  # results of a slice that show no shape, before it is given up
WINDOW = 65_536  # ids held in memory; a copy from further back within one file shows by its anchors


class _Saved(msgspec.Struct, array_like=True):
    """The parser's state between two scans; new fields go to the end and have a default."""

    session: str = ""
    last_key: bytes = b""
    last_time: str = ""
    cwd: str = ""
    messages: list[str] = []
    calls: list[str] = []
    pending: dict[str, list[tuple[str, str, str, str, int | None, str | None, str | None]]] = {}
    released: list[str] = []
    queue: list[tuple[bytes, bool]] = []
    shown: dict[bytes, tuple[int, int]] = {}
    slash: tuple[str, str, str, str | None] | None = None
    prompted: bool = False
    scheduled: int = 0


_encode = msgspec.msgpack.Encoder().encode


class ClaudeCodeParser:
    """
    The `LineParser` of one file.

    Args:
        path: Below the source's folder; says whether the file is a sub-agent's and, where no record does, whose.
        state: Of the reading before, or empty.
        fresh: Reading begins at the start of the file; of *state* only what waits for a result is kept.
        guard: Keys of records that are counted already, here or elsewhere.
        before: Keys of this file's records before the place where reading begins.
        now_ms: For times in the future.
    """

    __slots__ = (
        "_accounts", "_before", "_begun", "_calls", "_current", "_cwd", "_findings", "_guard", "_heads", "_hour",
        "_hour_from", "_hour_to", "_last_id", "_last_key", "_latest", "_messages", "_new", "_now_ms", "_other_keys",
        "_pending", "_prompted", "_queue", "_released", "_scheduled", "_seen", "_session", "_shown",
        "_side", "_slash", "_time", "_version",
    )  # fmt: skip

    def __init__(self, path: str, *, state: bytes, fresh: bool, guard: Guard, before: Guard, now_ms: int) -> None:
        parts = path.split("/")
        stem = parts[-1].removesuffix(".jsonl")
        # Folder, name and flag together: the flag alone was unreliable, and the layout changed (bugs B092).
        self._side = "subagents" in parts[:-1] or stem.startswith("agent-")
        if "subagents" in parts[1:-1]:
            stem = parts[parts.index("subagents", 1) - 1]
        saved = kept_state(state, _Saved)
        if fresh:
            saved = _Saved(pending=saved.pending, released=saved.released)
        self._guard = guard or None  # asked for each record: None is told quicker from something than emptiness
        self._before = before or None
        self._now_ms = now_ms
        self._latest = _latest(now_ms)
        self._session = saved.session or stem
        self._last_key = saved.last_key  # of the last record, where that had no uuid …
        self._last_id: str | None = None  # … else its uuid
        self._time = saved.last_time
        self._cwd = saved.cwd
        self._version = ""
        self._messages: dict[str, None] = dict.fromkeys(saved.messages)
        self._calls: dict[str, None] = dict.fromkeys(saved.calls)
        self._pending: dict[str, list[tuple[str, Sighting]]] = {
            call: [
                (session, Sighting(skill=skill, kind=EventKind(kind), via=via, at_ms=at, path=path, cwd=cwd, ref=call))
                for session, skill, kind, via, at, path, cwd in sightings
            ]
            for call, sightings in saved.pending.items()
        }
        self._released = saved.released
        self._queue = saved.queue
        self._shown = saved.shown
        self._slash = saved.slash
        self._prompted = saved.prompted
        self._scheduled = saved.scheduled
        self._hour_from = ""  # the hour that `_hour` is of, as text: no time lies between two empty ones
        self._hour_to = ""
        self._heads: list[bytes] | None = [] if fresh else None  # known ones at the file's beginning; None: not there
        self._new: dict[str, None] = {}  # uuids of this slice, in order
        self._seen: set[str] = set()  # of those before, and of known ones
        self._findings = Findings()
        self._begin()

    # -- the LineParser protocol

    def feed(self, lines: Iterable[tuple[bytes, int]]) -> None:
        """
        Take whole lines with the offset at which each begins.

        Nine of ten records are further words of the model or a further result of a tool, in the same session, folder
        and hour as those before: they are counted here, in locals, and all others by `_take`. Both say the same; a test
        feeds each file through either.
        """
        if not self._begun:
            self._begin()
        is_new, is_seen, messages, calls = self._new, self._seen, self._messages, self._calls
        quick, side = not self._guard and not self._before, self._side
        session, cwd, version, low, high, tally, hour, rest, waiting = self._bearings()
        first, last, counts = hour[0], hour[1], tally.tool_calls
        records = turns = 0
        uuid = time = ""
        learning = LEARN
        shape = NO_RESULT
        head, begin, tail, front, ends = shape
        for line, offset in lines:
            # A tool's output that nobody waits for: only what stands around it is looked at (`claude_shapes`).
            if line[51:begin] == head and not waiting:
                stamp = stamp_at(line, line.find(b'}]},"uuid":"', begin) + 1)
                if (
                    stamp is not None
                    and line.endswith(SOURCE + line[15:51] + tail if tail else ends)
                    and line.find(front, begin) < 0
                ):
                    ident, told = stamp.groups()
                    ident, told = ident.decode(), told.decode()
                    if low <= told < high and ident not in is_new and ident not in is_seen:
                        uuid, time = ident, told
                        is_new[uuid] = None
                        records += 1
                        if time > last:
                            last = time
                        elif time < first:
                            first = time
                        continue
            try:
                record = decode_record(line)
            except (msgspec.MsgspecError, RecursionError):
                record = _NOTHING
            told = record.timestamp or ""
            ident = record.uuid or ""
            if (
                low <= told < high
                and record.cwd == cwd
                and record.sessionId == session
                and record.version == version
                and record.isSidechain is side
                and quick
                and ident
                and ident not in is_new
                and ident not in is_seen
                and told[23:] == "Z"
            ):
                kind = record.type
                message = record.message
                if message is None:
                    if rest is not None and (kind == "progress" or (kind == "system" and record.subtype != FIRE)):
                        uuid, time = ident, told
                        is_new[uuid] = None
                        records += 1
                        if time > rest[1]:
                            rest[1] = time
                        elif time < rest[0]:
                            rest[0] = time
                        continue
                elif type(message.content) is list:
                    blocks = message.content
                    if kind == "assistant":
                        answer = message.id
                        if answer not in messages and message.model != "<synthetic>":
                            turns += 1
                            if answer is not None:
                                messages[answer] = None
                        for block in blocks:
                            if block.type != "tool_use" or block.id in calls:
                                continue
                            if block.id:
                                calls[block.id] = None
                            name = block.name or "(unnamed)"
                            if name in counts:
                                counts[name] += 1
                            else:
                                tally.called(name)
                            given = block.input
                            if given is None:
                                continue
                            if name in FILE_TOOLS:
                                named = given.file_path or given.notebook_path or given.path
                            elif name == "Bash":
                                named = given.command
                            elif name in TOOLS_THAT_TOUCH:
                                named = None
                            else:
                                continue
                            if type(named) is not str or "skill" in named or "SKILL.md" in named:
                                self._time = told
                                self._touch(name, given, block.id, cwd, tally)
                                if self._pending:
                                    waiting = True
                    elif kind != "user" or waiting or not blocks or blocks[0].type != "tool_result":
                        kind = ""
                    elif learning and (shape is NO_RESULT or line[51:begin] != head):
                        shape = head, begin, tail, front, ends = result_shape(line)
                        learning -= shape is NO_RESULT
                    if kind:
                        uuid, time = ident, told
                        is_new[uuid] = None
                        records += 1
                        if time > last:
                            last = time
                        elif time < first:
                            first = time
                        continue
            if records:
                self._add_up(tally, hour, records, turns, first, last, uuid, time)
                records = turns = 0
            if record is _NOTHING:
                self._odd(line, offset)
            else:
                self._take(record, line)
            before = session, cwd, version
            session, cwd, version, low, high, tally, hour, rest, waiting = self._bearings()
            first, last, counts = hour[0], hour[1], tally.tool_calls
            if before != (session, cwd, version):
                shape = head, begin, tail, front, ends = NO_RESULT
        if records:
            self._add_up(tally, hour, records, turns, first, last, uuid, time)

    def _bearings(self) -> tuple[str, str, str, str, str, SessionTally, list[Any], list[Any] | None, bool]:
        """
        Return what a quick record must agree with, and where it is counted.

        The last two: the hour's entry of what is no work (None: made by the first of its kind, or there is no other),
        and whether a call waits for its result.
        """
        current = self._current
        return (
            self._session,
            self._cwd,
            self._version,
            self._hour_from,
            self._hour_to,
            current.tally,
            self._hour,
            None if self._side else current.rest.get(self._hour_from),
            bool(self._pending or self._released),
        )

    def _add_up(
        self,
        tally: SessionTally,
        hour: list[Any],
        records: int,
        turns: int,
        first: str,
        last: str,
        uuid: str,
        time: str,
    ) -> None:
        """Add what was counted in locals; *uuid* and *time* are the last record's."""
        tally.records += records
        tally.assistant_turns += turns
        hour[0] = first
        hour[1] = last
        hour[2] += turns
        self._last_id = uuid
        self._time = time

    def oversize(self, head: bytes, tail: bytes, size: int, offset: int) -> None:
        """Count a line too long to hold by what its ends show: its id, time, kind, and the first call."""
        if not self._begun:
            self._begin()
        self._findings.oversize += 1
        if len(self._findings.notes) < MAX_NAMES:
            self._findings.notes.append(f"a line of {size} bytes at offset {offset}: only its ends were read")
        self._take(from_ends(head, tail), content_key(head, tail, size.to_bytes(8, "big")))

    def settle(self) -> None:
        """Take calls without a result as done; a failure that shows later takes them back by their ids."""
        if not self._begun:
            self._begin()
        for call, sightings in self._pending.items():
            if sightings[0][1].via == "SlashCommand":
                continue  # no body came: a plain command
            for session, sighting in sightings:
                self._account(session).tally.sightings.append(sighting)
            self._released.append(call)
        self._pending.clear()
        del self._released[:-KEEP_PENDING]

    def findings(self) -> Findings:
        """Return what was found since the last call, and begin anew."""
        found = self._findings
        for session, account in self._accounts.items():
            tally = account.tally
            told = tally.records or tally.unreadable or tally.sightings or tally.retracted or tally.amended
            if told or tally.user_turns or account.rest:
                tell_times(account)
                found.sessions[session] = tally
        keys = fold_uuids(list(self._new))
        if self._heads is not None:
            found.heads = b"".join((*self._heads, keys[: ANCHOR_FIRST * KEY_BYTES], *self._other_keys[:ANCHOR_FIRST]))
            self._heads = None
        found.keys = b"".join((keys, *self._other_keys))
        self._begun = False
        return found

    def state(self) -> bytes:
        """Return what must be known to go on after the last line fed."""
        return _encode(
            _Saved(
                session=self._session,
                last_key=self._key_before(),
                last_time=self._time,
                cwd=self._cwd,
                messages=short_ones(list(self._messages)[-KEEP_MESSAGES:]),
                calls=short_ones(list(self._calls)[-KEEP_CALLS:]),
                pending={
                    call: [(session, s.skill, s.kind.value, s.via, s.at_ms, s.path, s.cwd) for session, s in sightings]
                    for call, sightings in self._pending.items()
                },
                released=self._released,
                queue=self._queue[-KEEP_QUEUE:],
                shown=dict(list(self._shown.items())[-KEEP_QUEUE:]),
                slash=self._slash,
                prompted=self._prompted,
                scheduled=self._scheduled,
            )
        )

    @property
    def waiting(self) -> bool:
        """Whether a call waits for its result."""
        return bool(self._pending)

    # -- one record

    def _begin(self) -> None:
        """Begin a slice; not before something comes, since most files have but one."""
        if self._new:
            if len(self._messages) > WINDOW:
                self._messages = dict.fromkeys(list(self._messages)[-KEEP_MESSAGES:])
            if len(self._calls) > WINDOW:
                self._calls = dict.fromkeys(list(self._calls)[-KEEP_CALLS:])
            if len(self._seen) >= WINDOW:
                self._seen = set()
            self._seen.update(self._new)
            self._new = {}
        self._begun = True
        self._findings = Findings()
        self._accounts: dict[str, Account] = {}
        self._other_keys: list[bytes] = []
        self._current = self._account(self._session)
        self._hour: list[Any] = ["", "", 0]
        self._hour_from, self._hour_to = "", ""  # no time lies in here
        if self._version:
            self._findings.of_version(self._version)

    def _account(self, session: str) -> Account:
        account = self._accounts.get(session)
        if account is None:
            tally = SessionTally(session_id=session, side=self._side)
            if self._cwd and session == self._session:
                tally.cwds.append(self._cwd)
            account = self._accounts[session] = Account(tally)
        return account

    def _take(self, record: Record, content: bytes) -> None:
        """Count one record; *content* is what it is known by where it has no uuid."""
        known = copy = False
        uuid = record.uuid
        if uuid and (uuid in self._new or uuid in self._seen):
            copy = True  # written twice into this file: a record more, but nothing new
        elif uuid and self._guard is not None and id_key(uuid) in self._guard:
            known = True  # also where it is one of before: the file was cut once, and grows again
            self._seen.add(uuid)
        elif uuid and self._before is not None and id_key(uuid) in self._before:
            copy = True
        elif uuid:
            self._new[uuid] = None
        if not uuid or copy:
            key = chained(self._key_before(), content.rstrip(b"\n"))
            if self._guard is not None and key in self._guard:
                known = True
            else:
                self._other_keys.append(key)
            self._last_key = key
            self._last_id = None
        else:
            self._last_id = uuid
        session = record.sessionId
        if session and session != self._session:
            self._session = session[:MAX_SESSION]
            self._current = self._account(self._session)
            self._hour_to = ""
        time = record.timestamp or (record.snapshot.timestamp if record.snapshot is not None else None)
        if time:
            # The common form is compared as text; anything else is brought into it.
            if len(time) != 24 or time[23] != "Z" or time > self._latest or time[10] != "T":
                time = self._odd_time(time)
            if time:
                self._time = time
        if known:
            self._findings.repeated += 1
            if self._heads is not None and len(self._heads) < ANCHOR_FIRST:
                self._heads.append(self._key_before())
            if record.message is not None and record.message.id is not None:
                # Counted where it stands first; a further part of it that is new may follow here all the same.
                self._messages[record.message.id] = None
            return

        account = self._current
        tally = account.tally
        tally.records += 1
        if copy:
            return
        cwd = record.cwd
        if cwd and cwd != self._cwd and len(cwd) <= MAX_FOLDER:
            self._cwd = cwd
            tally.was_in(cwd)
        if record.version != self._version and record.version:
            self._version = record.version
            self._findings.of_version(record.version)

        kind = record.type
        turns = 0
        side = self._side or record.isSidechain is True
        if kind == "assistant":
            if record.message is not None:
                turns = self._assistant(record, record.message, tally)
        elif kind == "user":
            if record.message is not None:
                self._user(record, record.message, tally, side)
        elif kind == "queue-operation":
            self._queue_operation(record, tally)
        else:
            if kind == "attachment":
                self._attachment(record, tally, side)
            elif kind == "system":
                if record.subtype == FIRE:
                    self._scheduled = 2
                    self._hour_to = ""
            elif kind not in KNOWN_TYPES:
                self._findings.unknown_type(kind or "(none)")
            side = True  # bookkeeping, progress of sub-agents, summaries while away: no sign that somebody works

        if time:
            hours = account.rest if side or self._scheduled else account.work
            prefix = time[:13]
            hour = hours.get(prefix)
            if hour is None:
                hour = hours[prefix] = [time, time, turns]
            else:
                if time > hour[1]:
                    hour[1] = time
                elif time < hour[0]:
                    hour[0] = time
                hour[2] += turns
            if side is self._side:
                self._hour = hour
                self._hour_from = prefix
                self._hour_to = prefix + "~"
        elif turns:
            self._untimed(account, turns)

    def _key_before(self) -> bytes:
        return id_key(self._last_id) if self._last_id else self._last_key

    def _odd_time(self, text: str) -> str | None:
        told = ms_of_iso(text, now_ms=self._now_ms)
        self._findings.naive_times += told.naive
        self._findings.future_times += told.future
        return None if told.ms is None else iso_of(told.ms)

    def _untimed(self, account: Account, turns: int) -> None:
        """Count turns of a record without a time at its neighbour's."""
        if self._time:
            hour = account.rest.setdefault(self._time[:13], [self._time, self._time, 0])
            hour[2] += turns

    def _now_here(self) -> int | None:
        """Return the time (ms) of the record at hand, else of the one before it."""
        return common_ms(self._time) if self._time else None

    # -- the model

    def _assistant(self, record: Record, message: Message, tally: SessionTally) -> int:
        turns = 0
        ident = message.id
        if (ident is None or ident not in self._messages) and message.model != "<synthetic>":
            if ident is not None:
                self._messages[ident] = None
            tally.assistant_turns += 1
            turns = 1
        blocks = message.content
        if type(blocks) is list:
            for block in blocks:
                if block.type == "tool_use" and block.id not in self._calls:
                    self._call(block, record.cwd or self._cwd or None, tally)
        return turns

    def _call(self, block: Block, cwd: str | None, tally: SessionTally) -> None:
        """Count the call in *block*, one that was not seen, and see whether it touches a skill."""
        if block.id:
            self._calls[block.id] = None
        name = block.name or "(unnamed)"
        tally.called(name)
        if name in TOOLS_THAT_TOUCH and block.input is not None:
            self._touch(name, block.input, block.id, cwd, tally)

    def _touch(self, name: str, given: Arguments, ident: str | None, cwd: str | None, tally: SessionTally) -> None:
        """Note what a call touches of a skill; it happens, or not, when its result comes."""
        found = self._sightings(name, given, ident, cwd)
        if not found:
            return
        if ident is None:
            tally.sightings.extend(found)
            return
        ident = ident[:MAX_NAME]
        if len(self._pending) >= KEEP_PENDING:
            oldest = next(iter(self._pending))
            for session, sighting in self._pending.pop(oldest):
                self._account(session).tally.sightings.append(sighting)
        self._pending[ident] = [(tally.session_id, sighting) for sighting in found]

    def _sightings(self, tool: str, given: Arguments, call: str | None, cwd: str | None) -> list[Sighting]:
        if tool in FILE_TOOLS:
            path = given.file_path or given.notebook_path or given.path
            skill = skill_of_path(path) if isinstance(path, str) and len(path) <= MAX_FOLDER else None
            return [self._sighting(skill, FILE_TOOLS[tool], tool, call, cwd, path)] if skill else []
        command = given.command if isinstance(given.command, str) else ""
        if tool in SHELL_TOOLS:
            if "/skill" not in command and "SKILL.md" not in command and "\\skill" not in command:
                return []
            return [
                self._sighting(skill, touch.kind, "shell", call, cwd, touch.path)
                for touch in touched(command, cwd=cwd, in_package=in_package)
                if (skill := skill_of_path(touch.path))
            ]
        name = (given.skill if isinstance(given.skill, str) else command).strip().lstrip("/")
        if tool == "SlashCommand":  # a command; only a body behind it shows that it is a skill
            name = name.partition(" ")[0]
        return [self._sighting(name[:200], EventKind.USE, tool, call, cwd, None)] if name else []

    def _sighting(
        self, skill: str, kind: EventKind, via: str, call: str | None, cwd: str | None, path: str | None
    ) -> Sighting:
        where = cwd if cwd is None or len(cwd) <= MAX_FOLDER else None
        ref = None if call is None else call[:MAX_NAME]
        return Sighting(skill=skill, kind=kind, via=via, at_ms=self._now_here(), path=path, cwd=where, ref=ref)

    def _result(self, block: Block, record: Record) -> None:
        """Let the events of the call that *block* answers happen, or not."""
        call = (block.tool_use_id or "")[:MAX_NAME]
        if call in self._released:
            self._released.remove(call)
            if _failed(block, outcome_of(record.toolUseResult)):
                self._current.tally.retracted.append(call)
            return
        sightings = self._pending.get(call)
        if sightings is None:
            return
        outcome = outcome_of(record.toolUseResult)
        if _failed(block, outcome):
            del self._pending[call]
            return
        if sightings[0][1].via == "SlashCommand":
            return  # waits on for its body
        del self._pending[call]
        for session, sighting in sightings:
            created = isinstance(outcome, Outcome) and outcome.type == "create" and sighting.kind is EventKind.PATCH
            if created and (sighting.path or "").replace("\\", "/").endswith("/SKILL.md"):
                sighting.kind = EventKind.CREATE
            self._account(session).tally.sightings.append(sighting)

    # -- the user, and what looks like one

    def _user(self, record: Record, message: Message, tally: SessionTally, side: bool) -> None:
        content = message.content
        if type(content) is list:
            results = False
            for block in content:
                if block.type == "tool_result":
                    results = True
                    if self._pending or self._released:
                        self._result(block, record)
            if results:
                return
        if record.isMeta:
            self._meta(record, content, tally, side)
            return
        if side or record.isCompactSummary or record.isVisibleInTranscriptOnly:
            return
        if isinstance(content, list):
            text = "\n".join(text_of_raw(block.text) for block in content if block.type == "text")
            other = any(block.type != "text" for block in content)
        else:
            text = content or ""
            other = False
        said = _without_front(text)
        if said.startswith(NOT_SAID):
            return
        if said.startswith(SLASH):
            self._slash = None
            command = _COMMAND.search(said)
            if command and record.uuid and len(record.uuid) <= MAX_NAME:
                cwd = record.cwd if record.cwd and len(record.cwd) <= MAX_FOLDER else self._cwd
                self._slash = (record.uuid, command[1], self._time, cwd or None)
            return
        if said or other:
            self._slash = None
            self._turn(record, tally, said)

    def _turn(self, record: Record, tally: SessionTally, text: str) -> None:
        tally.user_turns += 1
        if self._scheduled:
            self._scheduled -= 1
        kind = SessionKind.PROGRAM if (record.entrypoint or "").startswith("sdk") else SessionKind.PERSON
        if tally.kind is not kind:
            tally.kind = tally.kind.stronger(kind)
        if not self._prompted:
            self._prompted = True
            if OWN_MARK in text:
                tally.kind = SessionKind.OWN

    def _meta(self, record: Record, content: str | list[Block] | None, tally: SessionTally, side: bool) -> None:
        """Take a meta record: the text that a slash command or a skill tool put before the model, or nothing to us."""
        if isinstance(content, list):
            text = next((text_of_raw(block.text) for block in content if block.type == "text"), "")
        else:
            text = content or ""
        folder = None
        if text.startswith(BODY):
            folder = text[len(BODY) :].partition("\n")[0].strip() or None
            if folder and len(folder) > MAX_FOLDER:
                folder = None
        call = record.sourceToolUseID
        if call:
            if folder:
                self._body(call[:MAX_NAME], folder, tally)
            return
        slash = self._slash
        if slash is None or record.parentUuid != slash[0]:
            return
        self._slash = None
        _, name, time, cwd = slash
        if not side:
            self._turn(record, tally, "")
        if folder:
            tally.sightings.append(
                Sighting(
                    skill=name,
                    kind=EventKind.USE,
                    via="slash",
                    at_ms=common_ms(time) if time else self._now_here(),
                    path=folder,
                    cwd=cwd,
                    ref=slash[0],
                )
            )

    def _body(self, call: str, folder: str, tally: SessionTally) -> None:
        """Note from which folder the skill of *call* came."""
        waiting = self._pending.get(call)
        if waiting is not None:
            for session, sighting in waiting:
                sighting.path = folder
                if sighting.via == "SlashCommand":
                    self._account(session).tally.sightings.append(sighting)
            if waiting[0][1].via == "SlashCommand":
                del self._pending[call]
            return
        for sighting in reversed(tally.sightings[-8:]):
            if sighting.ref == call:
                sighting.path = folder
                return
        tally.amended[call] = folder

    # -- prompts typed while the agent works

    def _queue_operation(self, record: Record, tally: SessionTally) -> None:
        operation = record.operation
        if operation == "enqueue":
            text = text_of_raw(record.content).lstrip()
            shown = content_key(text.encode("utf-8", "replace")) if text else content_key(bytes(record.content))
            self._queue.append((shown, text.startswith("<")))
            del self._queue[:-KEEP_QUEUE]
        elif operation == "popAll":
            self._queue.clear()
        elif operation in ("dequeue", "remove") and self._queue:
            shown, notice = self._queue.pop(0)
            if operation == "remove" and not notice:
                removed, attached = self._shown.pop(shown, (0, 0))
                self._shown[shown] = (removed + 1, attached)
                if removed + 1 > attached:
                    self._turn(record, tally, "")

    def _attachment(self, record: Record, tally: SessionTally, side: bool) -> None:
        attachment = attachment_of(record.attachment)
        if attachment.type != "queued_command" or attachment.commandMode not in (None, "prompt") or side:
            return
        if attachment.origin is not None and attachment.origin.kind in QUEUED_BY_MACHINE:
            return
        text = prompt_text(attachment.prompt).lstrip()
        if not text or text.startswith("<"):
            return
        shown = content_key(text.encode("utf-8", "replace"))
        removed, attached = self._shown.pop(shown, (0, 0))
        self._shown[shown] = (removed, attached + 1)
        while len(self._shown) > KEEP_QUEUE:
            del self._shown[next(iter(self._shown))]
        if attached + 1 > removed:
            self._turn(record, tally, "")

    # -- lines that the typed decoder refused

    def _odd(self, line: bytes, offset: int) -> None:
        """Take a line apart that holds several objects, none, or one with values of other types than usual."""
        for value in objects(line):
            if isinstance(value, Unreadable):
                key = chained(self._key_before(), line.rstrip(b"\n"))
                self._last_key, self._last_id = key, None
                if self._guard is not None and key in self._guard:
                    self._findings.repeated += 1
                    continue
                self._other_keys.append(key)
                self._current.tally.unreadable += 1
                self._findings.note_bad(offset, value.reason)
            else:
                content = json.dumps(value, sort_keys=True).encode("ascii")
                self._take(leniently(value), content)


@functools.lru_cache(maxsize=4)
def _latest(now_ms: int) -> str:
    """Return the latest time that is believed, as text."""
    return iso_of(now_ms + FUTURE_MS) if now_ms else "9999"


_NOTHING = Record()  # of a line that could not be decoded as one record


def _without_front(text: str) -> str:
    """Return *text* without the reminders and editor notices that the program put in front of a prompt."""
    text = text.lstrip()
    at = 0  # cut once: a hostile prompt may be nothing but such tags, megabytes of them
    while text.startswith("<", at):
        for tag in IN_FRONT:
            if text.startswith(f"<{tag}>", at):
                end = text.find(f"</{tag}>", at)
                if end < 0:
                    return ""
                at = end + len(tag) + 3
                while text[at : at + 1].isspace():
                    at += 1
                break
        else:
            break
    return text[at:]


def _failed(block: Block, outcome: Outcome | str | None) -> bool:
    if block.is_error:
        return True
    if isinstance(outcome, str):
        return outcome.startswith("Error:")
    return outcome is not None and outcome.success is False
