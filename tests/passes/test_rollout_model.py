"""
Codex' rollouts against a small model: appended to, torn, cut, archived, packed, kept in two forms and forked at random.

The model only knows which turns were ever written. Whatever happened to the files in between, and whenever they were
scanned, each turn, call and event of the skill counts once in the end, and so does each session's own.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import SourceSettings
from curatord.passes.ingest import scan

zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SKILL = "/home/dev/.codex/skills/notes/SKILL.md"
PACKING = {"": bytes, ".zst": zstd.compress, ".gz": gzip.compress}


@dataclass
class Rollout:
    """One file: where it is, in which form, and its lines; *own* turns are those written for this session."""

    number: int
    folder: str
    lines: list[dict[str, Any]]
    form: str = ""
    half: bytes = b""  # the beginning of a line whose rest is still to come
    rest: dict[str, Any] | None = None
    own: set[int] = field(default_factory=set)

    @property
    def ident(self) -> str:
        return f"019a0000-0000-7000-8000-{self.number:012x}"

    @property
    def name(self) -> str:
        hours, minutes = divmod(self.number, 60)
        return f"rollout-2026-03-01T{hours:02d}-{minutes:02d}-00-{self.ident}.jsonl"

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines) + self.half


class Clock:
    """Moves an hour a scan."""

    def __init__(self) -> None:
        self.at = START + timedelta(days=3)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


class Rollouts(RuleBasedStateMachine):
    """The host at work, and a scan now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.tmp = tempfile.TemporaryDirectory()
        self.root = Path(self.tmp.name) / "codex"
        for folder in ("sessions/2026/03/01", "archived_sessions"):
            (self.root / folder).mkdir(parents=True)
        self.clock = Clock()
        self.database = open_database(Path(self.tmp.name), now=self.clock.now())
        self.store = IngestStore(self.database)
        self.files: list[Rollout] = []
        self.turns = 0
        self.second = 0
        self.tick = 0
        self.fresh = True  # all that is written was scanned
        self.begin()

    def teardown(self) -> None:
        self.database.close()
        self.tmp.cleanup()

    # -- the host

    def line(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        self.second += 1
        return {"timestamp": f"{START + timedelta(seconds=self.second):%Y-%m-%dT%H:%M:%S}.000Z", "type": kind,
                "payload": payload}  # fmt: skip

    def a_turn(self, file: Rollout) -> list[dict[str, Any]]:
        self.turns += 1
        file.own.add(self.turns)
        call = f"call_{self.turns:024x}"
        said = [{"type": "input_text", "text": f"prompt {self.turns}"}]
        arguments = json.dumps({"cmd": f"cat {SKILL}"})
        return [
            self.line("response_item", {"type": "message", "role": "user", "content": said}),
            self.line("response_item", {"type": "function_call", "name": "exec_command", "arguments": arguments,
                                        "call_id": call}),
            self.line("response_item", {"type": "function_call_output", "call_id": call, "output": "ok"}),
            self.line("event_msg", {"type": "token_count", "info": {"total": self.turns}}),
        ]  # fmt: skip

    def write(self, file: Rollout, data: bytes | None = None) -> None:
        path = self.root / file.folder / (file.name + file.form)
        path.write_bytes(PACKING[file.form](file.data() if data is None else data))
        self.tick += 1
        at = (START + timedelta(seconds=self.tick)).timestamp()
        os.utime(path, (at, at))
        self.fresh = False

    def path(self, file: Rollout) -> Path:
        return self.root / file.folder / (file.name + file.form)

    @rule()
    def begin(self) -> None:
        """A new session, with its first turn."""
        if len(self.files) >= 6:
            return
        file = Rollout(len(self.files) + 1, "sessions/2026/03/01", [])
        file.lines.append(self.line("session_meta", {"id": file.ident, "cwd": "/home/dev/app", "source": "cli"}))
        file.lines += self.a_turn(file)
        self.files.append(file)
        self.write(file)

    @rule(which=st.integers(0, 5), cut=st.integers(0, 200))
    def append(self, which: int, cut: int) -> None:
        """A turn more; sometimes its last line is only half there. A packed file is unpacked by that."""
        file = self.files[which % len(self.files)]
        if file.rest is not None:
            file.lines.append(file.rest)
            file.half, file.rest = b"", None
        if file.form:
            self.path(file).unlink()
            file.form = ""
        lines = self.a_turn(file)
        if cut % 3 == 0:
            file.rest = lines.pop()
            file.half = json.dumps(file.rest).encode()[:cut]
        file.lines += lines
        self.write(file)

    @rule(which=st.integers(0, 5))
    def fork(self, which: int) -> None:
        """A copy of a session under a new id, with new times, and a turn of its own."""
        if len(self.files) >= 6:
            return
        parent = self.files[which % len(self.files)]
        file = Rollout(len(self.files) + 1, "sessions/2026/03/01", [])
        meta = {"id": file.ident, "cwd": "/home/dev/app", "source": "cli", "forked_from_id": parent.ident}
        file.lines.append(self.line("session_meta", meta))
        file.lines += [self.line(line["type"], line["payload"]) for line in parent.lines]
        file.lines += self.a_turn(file)
        self.files.append(file)
        self.write(file)

    @rule(which=st.integers(0, 5))
    def archive(self, which: int) -> None:
        """The file is moved."""
        file = self.files[which % len(self.files)]
        before = self.path(file)
        file.folder = "archived_sessions" if file.folder != "archived_sessions" else "sessions/2026/03/01"
        before.rename(self.path(file))

    @rule(which=st.integers(0, 5), form=st.sampled_from([".zst", ".gz"]), keep=st.booleans())
    def pack(self, which: int, form: str, keep: bool) -> None:
        """The file is packed; for a while both forms may be there."""
        file = self.files[which % len(self.files)]
        if file.form or file.rest is not None:
            return
        before = self.path(file)
        file.form = form
        self.write(file)
        if keep:
            self.look()
        before.unlink()

    @rule(which=st.integers(0, 5), share=st.floats(0, 1))
    def cut_and_write_again(self, which: int, share: float) -> None:
        """After all was seen, a file is cut short, looked at, and written whole again."""
        file = self.files[which % len(self.files)]
        self.look()
        data = file.data()
        self.write(file, data[: int(len(data) * share)])
        self.look()
        self.write(file)

    @rule()
    def look(self) -> None:
        """A scan."""
        self.clock.at += timedelta(hours=1)
        source = open_source(SourceSettings(host="codex"), str(self.root))
        report = scan([source], self.store, clock=self.clock, quiet=timedelta(days=30))

        assert [] == [note for note in report.notes if note.kind == "failed"]
        self.fresh = True

    # -- what must hold

    @invariant()
    def nothing_twice(self) -> None:
        """At no time more is counted than was written."""
        rows = IngestQueries(self.database).sessions()
        assert sum(row.user_turns for row in rows) <= self.turns
        assert sum(row.skill_events for row in rows) <= self.turns
        if self.fresh:
            assert self.turns == sum(row.user_turns for row in rows)
            assert self.turns == sum(row.tool_calls.get("exec_command", 0) for row in rows)
            assert self.turns == sum(row.skill_events for row in rows)
            assert 0 == sum(row.unreadable for row in rows)


Rollouts.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestRollouts = Rollouts.TestCase
