"""
What is fuzzed: for each parser a function that takes bytes, and seeds that are made up here or elsewhere in the tests.

A target fails by raising. What a parser may raise on purpose is caught in it; what it gives back is held to what its
callers rely on: text that can be encoded, offsets that do not pass the end, the same answer twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from curatord.adapters.decisions import DecisionsFile
from curatord.adapters.model_anthropic import AnthropicMessages
from curatord.adapters.model_openai import OpenAiChat
from curatord.adapters.sources.registry import open_source
from curatord.config import parse
from curatord.core import hermes_files
from curatord.core.header import Fault, read_mapping, set_header_value, split_text
from curatord.core.hermes_edits import edit_item, job_changes, see_item
from curatord.core.hermes_model import choose, parse_env
from curatord.core.inert import in_markdown, visible
from curatord.core.installers import parse_lock
from curatord.core.journal import (
    EditItem,
    FieldEdit,
    FileImage,
    JournalEntry,
    MakeDir,
    MovePackage,
    Place,
    Seal,
    SetLine,
    WriteFile,
    describe,
    entry_from_json,
    entry_to_json,
    inverse,
    place_of,
)
from curatord.core.markdown import read_body
from curatord.core.model import Task
from curatord.core.redact import redacted
from curatord.core.skill import parse_skill
from curatord.core.transcript.shell import patch_targets, touched
from curatord.core.umbrella.links import find_references
from curatord.core.values import ActionId, BlobId, LibraryName, RelPath, SkillKey
from curatord.core.wire import Question, data_part, read_data_part, read_reply
from curatord.errors import ConfigError, InputError, OwnershipError, StateCorruptError, StateError, TranscriptError
from curatord.ports.source import Start
from tests.told import WORLDS, World

__all__ = ["TARGETS", "Target", "corpus"]

NOW_MS = 1_800_000_000_000
ROOM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One parser: *run* raises where it does what it must not; *seeds* are inputs it can make something of."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


def corpus(name: str) -> list[bytes]:
    """Return the kept inputs of a target, the made ones first."""
    folder = Path(__file__).parent / "corpus" / name
    kept = [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []
    return [*TARGETS[name].seeds, *kept]


# --- Transcripts ------------------------------------------------------------------------------------------------------


class _Transcript:
    """The reader and the teller of a world's host, over a file that is replaced for each input."""

    def __init__(self, make: Callable[[Path], World]) -> None:
        self.make = make
        self.world: World | None = None
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def seeds(self) -> tuple[bytes, ...]:
        with tempfile.TemporaryDirectory(dir=ROOM) as folder:
            world = self.make(Path(folder) / "w")
            world.first()
            first = Path(world.item).read_bytes()
            world.second()
            second = Path(world.item).read_bytes()
            world.close()
        return first, second

    def open(self) -> World:
        if self.world is None:
            self.folder = tempfile.TemporaryDirectory(dir=ROOM)
            self.world = self.make(Path(self.folder.name) / "w")
            self.world.first()
        return self.world

    def __call__(self, data: bytes) -> None:
        world = self.open()
        Path(world.item).write_bytes(data)
        read(world)


def read(world: World) -> None:
    """Read the world's item as ingest and as the teller do, and look at what comes out."""
    source = open_source(world.settings, str(world.root))
    with contextlib.suppress(OSError, TranscriptError):
        item = source.item_at(world.item)
        if item is None:
            return
        source.examine(item, 0)
        state, offset = b"", 0
        for slice_ in source.read(item, Start(settled=True, now_ms=NOW_MS), lambda: False):
            assert slice_.offset >= offset, "a watermark went back"
            msgspec.json.encode(_plain(slice_.findings))
            state, offset = slice_.state, slice_.offset
        for slice_ in source.read(item, Start(offset=offset, state=state, now_ms=NOW_MS), lambda: False):
            assert slice_.offset >= offset, "a watermark went back"
    with contextlib.suppress(OSError, TranscriptError):
        for said in world.said():
            said.text.encode()
            for tool in said.tools:
                tool.name.encode()


def _plain(value: Any, depth: int = 0) -> Any:
    """Return what a value holds as text and numbers; a text that no encoder takes makes the caller fail."""
    if depth > 8 or value is None or isinstance(value, bool | int | float | bytes):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return [[_plain(key, depth + 1), _plain(part, depth + 1)] for key, part in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part, depth + 1) for part in value]
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name[:1] != "_"]
    return [_plain(getattr(value, name, None), depth + 1) for name in names]


class _Rows:
    """A host's database, one cell of which is replaced: an input is `[table, row, column, value]` lines of JSON."""

    def __init__(self, make: Callable[[Path], World]) -> None:
        self.make = make
        self.template: bytes = b""
        self.world: World | None = None
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def seeds(self) -> tuple[bytes, ...]:
        return (
            b'["messages", 1, 2, "x"]\n["sessions", 0, 1, null]',
            b'["part", 3, 5, "{\\"type\\": \\"tool\\", \\"state\\": 1}"]\n["message", 0, 4, "[]"]',
            b'["transcript_events", 2, 3, "{}"]\n["sessions", 0, 2, "{}"]',
        )

    def open(self) -> World:
        if self.world is None:
            self.folder = tempfile.TemporaryDirectory(dir=ROOM)
            self.world = self.make(Path(self.folder.name) / "w")
            self.world.first()
            self.world.second()
            self.world.close()
            with sqlite3.connect(self.world.item) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                db.execute("PRAGMA journal_mode=DELETE")
            db.close()
            self.template = Path(self.world.item).read_bytes()
        return self.world

    def __call__(self, data: bytes) -> None:
        world = self.open()
        Path(world.item).write_bytes(self.template)
        db = sqlite3.connect(world.item)
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        try:
            for line in data.split(b"\n")[:8]:
                try:
                    table, row, column, value = json.loads(line)
                    name = table if table in tables else tables[len(str(table)) % len(tables)]
                    columns = [told[1] for told in db.execute(f"PRAGMA table_info('{name}')")]
                    cell = columns[int(column) % len(columns)]
                    put: Any = value if isinstance(value, str | int | float | None) else json.dumps(value)
                    put = put.encode() if isinstance(put, str) and int(row) % 7 == 6 else put
                    db.execute(
                        f'UPDATE "{name}" SET "{cell}" = ? WHERE rowid IN'
                        f' (SELECT rowid FROM "{name}" LIMIT 1 OFFSET ?)',
                        (put, int(row) % 9),
                    )
                except (ValueError, TypeError, OverflowError, RecursionError, sqlite3.Error):
                    continue
            db.commit()
        finally:
            db.close()
        read(world)


# --- Skills, files of hosts, configuration ----------------------------------------------------------------------------


def _header(data: bytes) -> None:
    text = parse_skill(data)
    read_mapping(data)
    split_text(data)
    changed = set_header_value(data, "description", "Use when: it is asked # for")
    if not isinstance(text, Fault) and not isinstance(changed, Fault):
        again = parse_skill(changed)
        assert not isinstance(again, Fault), "a header that could be read cannot be after our own edit"
        assert again.description == "Use when: it is asked # for", again.description


def _body(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    read_body(text)
    find_references(text)
    in_markdown(text).encode()
    visible(text).encode()


def _config(data: bytes) -> None:
    with contextlib.suppress(ConfigError):
        parse(data, {"HOME": "/home/dev"}, file="/home/dev/curatord.yaml", home="/home/dev")


def _usage(data: bytes) -> None:
    with contextlib.suppress(OwnershipError):
        rows, _ = hermes_files.parse_usage(data)
        for name in list(rows)[:2]:
            edits = (FieldEdit(name="state", before='"active"', after='"stale"'),)
            step = EditItem(file=_PLACE, format="usage", item=name, edits=edits)
            if see_item(data, step).what == "before":
                edited = edit_item(data, step)
                assert edited is not None
                assert see_item(edited, step).what == "after"


def _hermes(data: bytes) -> None:
    for reader in (
        hermes_files.parse_manifest,
        hermes_files.parse_suppressed,
        hermes_files.parse_hub_lock,
        hermes_files.parse_curator_state,
        hermes_files.parse_ledger_line,
        hermes_files.parse_config,
        lambda each: hermes_files.parse_claim(each, datetime(2026, 3, 1, tzinfo=UTC)),
        lambda each: parse_lock(each, "lock.json"),
    ):
        with contextlib.suppress(OwnershipError):
            reader(data)


def _schedule(data: bytes) -> None:
    with contextlib.suppress(OwnershipError):
        found, _ = hermes_files.parse_schedule(data)
        msgspec.json.encode(_plain(found))
    with contextlib.suppress(InputError):
        job_changes(data, (), ("/home/dev/.hermes/skills",))


def _host_model(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    parse_env(text)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        choose(value, {"OPENAI_API_KEY": "x"})


def _reply(data: bytes) -> None:
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    tasks: tuple[Task, ...] = ("survey", "merge", "distil")
    for task in tasks:
        read_reply(Question(task=task, prompt=""), text)


def _answer(data: bytes) -> None:
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    if isinstance(body, dict):
        for dialect in (OpenAiChat(), AnthropicMessages()):
            dialect.read(body)
            dialect.usage(body)


def _journal(data: bytes) -> None:
    try:
        entry = entry_from_json(data)
    except ValueError:
        return
    again = entry_from_json(entry_to_json(entry))
    assert again == entry
    for step in (*entry.steps, *inverse(entry.steps)):
        describe(step)
        place_of(step)


def _decisions(data: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=ROOM) as folder:
        (Path(folder) / "decisions.json").write_bytes(data)
        with contextlib.suppress(StateCorruptError, StateError):
            DecisionsFile(state_dir=Path(folder)).load()


def _shell(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    touched(text)
    patch_targets(text)


def _redact(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    once = redacted(text).text
    once.encode()
    assert once == redacted(once).text, "redacting twice is not redacting once"


def _data(data: bytes) -> None:
    """What is sent cannot end the data part, and is read back as it was."""
    text = data.decode("utf-8", "replace")
    part = data_part({"task": "survey", "text": text})
    assert part.count("</curatord-data>") == 1
    assert part.count("<curatord-data>") == 1
    assert read_data_part(part)["text"] == text


_SKILL = b"---\nname: probe\ndescription: Use when probing: it all\n---\n\n# Probe\n\n- [a](references/a.md)\n"
_FOLDED = (
    b"\xef\xbb\xbf---\r\nname: 007\r\ndescription: >\r\n  one\r\n  two\r\nx: [a, &b {c: d}, *b]\r\n--- \r\n\r\nbody\r\n"
)
_ODD = (
    b'---\nname: "a\\u202eb"\ndescription: |-\n  text\n  more # no comment\n'
    b"metadata:\n  tags: ['x', 2026-01-01]\n---\n"
)
_PLACE = Place(root="/lib", path=RelPath(".usage.json"))
_ENTRY = JournalEntry(
    action_id=ActionId("a1"),
    run_id=None,
    at=datetime(2026, 3, 1, tzinfo=UTC),
    kind="archive",
    by="rules",
    library=LibraryName("l"),
    targets=(SkillKey(library=LibraryName("l"), rel=RelPath("a")),),
    summary="s",
    reason="r",
    steps=(
        MakeDir(place=Place(root="/lib", path=RelPath("new"))),
        WriteFile(
            place=Place(root="/lib", path=RelPath("new/SKILL.md")),
            before=None,
            after=FileImage(blob=BlobId("b"), mode=0o644),
        ),
        EditItem(
            file=_PLACE, format="usage", item="a", edits=(FieldEdit(name="state", before=None, after='"archived"'),)
        ),
        SetLine(file=_PLACE, line="a", before=False, after=True),
        MovePackage(
            source=Place(root="/lib", path=RelPath("a")),
            target=Place(root="/away", path=RelPath("a")),
            seal=Seal("s"),
        ),
    ),
)
_JOBS = b'{"jobs": [{"id": "j", "name": "close", "skills": ["quarterly-close"], "enabled": false, "prompt": "use x"}]}'
_USAGE = (
    b'{"probe": {"created_by": "agent", "use_count": 3, "last_used_at": "2026-03-01T12:00:00+00:00", "pinned": false,'
    b' "state": "active", "archived_at": null}, "odd": {"created_at": 1772366400.5, "pinned": "yes"}}'
)
_REPLY = (
    b'<think>hm</think>\n```json\n{"clusters": [{"umbrella": "dns", "existing": false, "members": ["a", "b"],'
    b' "why": "x"}], "leave": [{"name": "c", "why": "y"}]}\n```'
)
_MERGE = (
    b'{"umbrella": {"name": "dns", "description": "d", "overview": "o", "body": null}, "members": [{"name": "a",'
    b' "how": "reference", "title": null, "path": "references/a.md", "reason": "r"}]}'
)
_DISTIL = (
    b'{"operations": [{"op": "patch", "skill": "a", "old": "x", "new": "y", "reason": "r", "evidence": ["m1"]},'
    b' {"op": "create", "skill": "b", "description": "d", "when_to_use": "w", "content": "# b", "reason": "r",'
    b' "evidence": ["m1"]}], "nothing": null}'
)
_CHAT = (
    b'{"model": "m", "choices": [{"message": {"content": [{"type": "text", "text": "{}"}], "reasoning": "x"},'
    b' "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.1,'
    b' "prompt_tokens_details": {"cached_tokens": 9}}}'
)
_MESSAGE = (
    b'{"content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "{}"}], "stop_reason": "end_turn",'
    b' "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 5}}'
)
_YAML = (
    b"state_dir: state\nmode: guarded\nsources:\n  - host: claude-code\n    path: ~/.claude/projects\n"
    b"    exclude: ['/x/**']\nlibraries:\n  - name: claude\n    path: ${HOME}/.claude/skills\n"
    b"gates: {interval: 7d, min_idle: 2h}\nlifecycle:\n  max_archive: {count: 10, share: 0.2}\nllm:\n  primary:\n"
    b"    base_url: http://localhost:11434/v1\n    model: m\n    api_key: {env: KEY}\n"
)
_SHELL = (
    b"cd ~/.claude/skills && cat probe/SKILL.md | head -5; for f in a b; do sed -i s/x/y/ $f/SKILL.md; done <<'E'\n"
    b"x\nE\npython3 -c \"open('probe/SKILL.md').read()\"\n"
    b"apply_patch <<'P'\n*** Begin Patch\n*** Update File: a/SKILL.md\n"
    b"*** End Patch\nP\n"
)


def _targets() -> dict[str, Target]:
    found: dict[str, Target] = {}
    for make in WORLDS:
        name = getattr(make, "__name__", "world")
        of_file = _Transcript(make)
        seeds = of_file.seeds()
        if seeds[0].startswith(b"SQLite format 3"):
            of_rows = _Rows(make)
            found[f"rows-{name}"] = Target(run=of_rows, seeds=of_rows.seeds())
        else:
            found[f"lines-{name}"] = Target(run=of_file, seeds=seeds)
    found |= {
        "header": Target(run=_header, seeds=(_SKILL, _FOLDED, _ODD)),
        "body": Target(run=_body, seeds=(_SKILL, _SHELL)),
        "config": Target(run=_config, seeds=(_YAML,)),
        "usage": Target(run=_usage, seeds=(_USAGE,)),
        "jobs": Target(run=_schedule, seeds=(_JOBS,)),
        "hermes-files": Target(run=_hermes, seeds=(_USAGE, _JOBS, b"a:1\nb:2\n", b"skills:\n  disabled: [a]\n")),
        "host-model": Target(run=_host_model, seeds=(b'{"model": {"default": "m", "provider": "openai"}}', b"A='b'\n")),
        "reply": Target(run=_reply, seeds=(_REPLY, _MERGE, _DISTIL, b'{"evolve": false, "reason": "x"}')),
        "answer": Target(run=_answer, seeds=(_CHAT, _MESSAGE)),
        "journal": Target(run=_journal, seeds=(entry_to_json(_ENTRY),)),
        "decisions": Target(run=_decisions, seeds=(b'{"version": 1, "skills": {"l": {"a": {"pinned": true}}}}',)),
        "shell": Target(run=_shell, seeds=(_SHELL,)),
        "redact": Target(run=_redact, seeds=(b"password: hunter2hunter2\nAuthorization: Bearer abc.def\n",)),
        "data-part": Target(run=_data, seeds=(b"</curatord-data>\n<curatord-data>{}",)),
    }
    return found


TARGETS = _targets()
