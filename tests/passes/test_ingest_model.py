"""
The tailer against a simple model: any order of appends, tears, truncations, copies, forks, moves, deletions and scans.

The model knows which records stood whole in any file at the time of a scan; each of them must be counted exactly
once, whatever became of its file before and after. That is the strong promise, for records with a `uuid`. The weaker
one, where truncation takes the strong one away: what was written and gone again between two scans was never seen.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.claude_log import START, iso, touch
from tests.ingest_world import World

names = st.integers(0, 5)


class Tailing(RuleBasedStateMachine):
    """Files by name, and what a scan must come to."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="tailing-"))
        self.world = World(self.root)
        self.number = 0
        self.seen: dict[str, str] = {}  # uuid -> kind of record
        self.results: set[str] = set()

    def teardown(self) -> None:
        self.world.database.close()
        shutil.rmtree(self.root)

    # -- files

    def path(self, name: int) -> Path:
        folder = self.world.projects / f"-p{name % 2}"
        folder.mkdir(exist_ok=True)
        return folder / f"session-{name}.jsonl"

    def line(self, session: str, kind: str) -> bytes:
        self.number += 1
        number = self.number
        record = {
            "uuid": f"{number:08x}-0000-4000-8000-{number:012x}",
            "sessionId": session,
            "timestamp": iso(START + timedelta(seconds=number)),
            "cwd": "/home/dev",
            "version": "2",
            "isSidechain": False,
        }
        if kind == "said":
            record |= {"type": "user", "message": {"role": "user", "content": f"prompt {number}"}}
        elif kind == "failed" or kind == "called":
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Skill", "input": {"skill": "a-skill"}}
            message = {"id": f"msg_{number}", "model": "m", "role": "assistant", "content": [block]}
            result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x"}
            self.number += 1
            answer = {
                **record,
                "uuid": f"{self.number:08x}-0000-4000-8000-{self.number:012x}",
                "type": "user",
                "message": {"role": "user", "content": [result | ({"is_error": True} if kind == "failed" else {})]},
            }
            record |= {"type": "assistant", "message": message}
            return json.dumps(record).encode() + b"\n" + json.dumps(answer).encode() + b"\n"
        else:
            record |= {"type": "system", "subtype": "turn_duration"}
        return json.dumps(record).encode() + b"\n"

    def write(self, path: Path, data: bytes, mode: str = "wb") -> None:
        with path.open(mode) as file:
            file.write(data)
        self.world.later(seconds=1)
        touch(path, self.world.clock.at)

    @rule(name=names, kinds=st.lists(st.sampled_from(["said", "called", "failed", "other"]), min_size=1, max_size=12))
    def append(self, name: int, kinds: list[str]) -> None:
        path = self.path(name)
        data = b"".join(self.line(path.stem, kind) for kind in kinds)
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            data = b"\n" + data
        self.write(path, data, "ab")

    @rule(name=names, cut=st.integers(1, 200))
    def append_half(self, name: int, cut: int) -> None:
        path = self.path(name)
        data = self.line(path.stem, "said")
        self.write(path, data[: max(1, len(data) - cut)], "ab")

    @rule(name=names, keep=st.floats(0, 1))
    def truncate(self, name: int, keep: float) -> None:
        path = self.path(name)
        if path.exists():
            data = path.read_bytes()
            self.write(path, data[: int(len(data) * keep)])

    @rule(name=names, drop=st.integers(1, 4), rename=st.booleans())
    def rewrite_without_its_first_lines(self, name: int, drop: int, *, rename: bool) -> None:
        path = self.path(name)
        if path.exists():
            # A copy that never was seen with its beginning is beyond the promise: only its anchors tell it, one in 16.
            self.scan_now()
            data = b"".join(path.read_bytes().splitlines(keepends=True)[drop:])
            if rename:
                new = path.with_suffix(".tmp")
                self.write(new, data)
                new.rename(path)
                # Inode and first record changed at once: only the name still tells whose records these may be, so a
                # move before the next scan would hide it. That is beyond the promise.
                self.scan_now()
            else:
                self.write(path, data)

    @rule(name=names, other=names)
    def move(self, name: int, other: int) -> None:
        if name != other and self.path(name).exists():
            self.path(name).rename(self.path(other))

    @rule(name=names, other=names)
    def copy(self, name: int, other: int) -> None:
        if name != other and self.path(name).exists():
            self.write(self.path(other), self.path(name).read_bytes())

    @rule(name=names, other=names)
    def fork(self, name: int, other: int) -> None:
        path, fork = self.path(name), self.path(other)
        if name != other and path.exists():
            self.write(fork, path.read_bytes().replace(path.stem.encode(), fork.stem.encode()))

    @rule(name=names, other=names, kinds=st.lists(st.sampled_from(["said", "called"]), min_size=1, max_size=12))
    def append_to_both(self, name: int, other: int, kinds: list[str]) -> None:
        """A mirror that is kept in step."""
        path, mirror = self.path(name), self.path(other)
        if name == other or not path.exists() or not mirror.exists():
            return
        held = path.read_bytes()
        if held.endswith(b"\n") and held == mirror.read_bytes():
            data = b"".join(self.line(path.stem, kind) for kind in kinds)
            self.write(path, data, "ab")
            self.write(mirror, data, "ab")

    @rule(name=names)
    def delete(self, name: int) -> None:
        self.path(name).unlink(missing_ok=True)

    # -- scans

    @rule(restart=st.booleans())
    def scan(self, *, restart: bool) -> None:
        if restart:
            self.world = self.world.reopened()
        self.scan_now()

    def scan_now(self) -> None:
        self.note_what_is_there()
        self.world.scan()

    @rule(times=st.integers(1, 3))
    def scans_that_come_soon(self, times: int) -> None:
        self.note_what_is_there()
        for _ in range(times):
            self.world.scan(lazily=True)

    @rule()
    def stopped_scan(self) -> None:
        self.world.scan(stop=lambda: True)

    @rule(name=names)
    def single_path(self, name: int) -> None:
        if self.path(name).exists():
            self.note(self.path(name))
            self.world.touch(self.path(name))

    def note_what_is_there(self) -> None:
        for name in range(6):
            if self.path(name).exists():
                self.note(self.path(name))

    def note(self, path: Path) -> None:
        whole_lines = path.read_bytes().rpartition(b"\n")[0]
        # Two that were written onto one line are two records, if each is whole.
        for piece in re.split(rb'\n|(?=\{"uuid")', whole_lines):
            try:
                record = json.loads(piece)
            except ValueError:
                continue
            content = record.get("message", {}).get("content")
            if record["type"] == "assistant":
                self.seen[record["uuid"]] = "called"
            elif isinstance(content, str):
                self.seen[record["uuid"]] = "said"
            else:
                self.seen[record["uuid"]] = "other"

    @precondition(lambda self: self.seen)
    @invariant()
    def each_record_once(self) -> None:
        """Turns of user and model and calls are those of the distinct records that were there at a scan."""
        kinds = list(self.seen.values())
        _, user, model, calls, _ = self.world.totals()

        assert kinds.count("said") == user
        assert kinds.count("called") == model
        assert kinds.count("called") == calls


TestTailing = Tailing.TestCase
TestTailing.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
