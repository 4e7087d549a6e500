"""
The hosts of JSON lines through a whole scan: copied, moved, packed and rewritten histories count once.

Every test writes a made-up home, scans it into a real store, changes the home as the host would, and scans again.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.sources import compressed
from curatord.adapters.sources.places import places
from curatord.adapters.sources.registry import open_source
from curatord.adapters.store.database import open_database
from curatord.adapters.store.ingest import IngestStore
from curatord.adapters.store.ingest_read import IngestQueries
from curatord.core.settings import HostName, SourceSettings
from curatord.passes.ingest import ScanReport, scan

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
KB = "/home/dev/.codex/skills"
zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = START + timedelta(days=2)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


class Home:
    """A place of one host, the store it is scanned into, and what that says."""

    def __init__(self, tmp: Path, host: HostName) -> None:
        self.host = host
        self.root = tmp / "home"
        self.root.mkdir()
        (tmp / "state").mkdir()
        self.clock = Hand()
        self.database = open_database(tmp / "state", now=self.clock.now())
        self.store = IngestStore(self.database)

    def scan(self, *more: Path) -> ScanReport:
        """Scan the home, and other places of the host."""
        self.clock.at += timedelta(hours=1)
        sources = [open_source(SourceSettings(host=self.host), str(root)) for root in (self.root, *more)]
        return scan(sources, self.store, clock=self.clock, quiet=timedelta(minutes=30))

    def sessions(self) -> dict[str, tuple[int, int, int, int]]:
        """Return records, turns of users, turns of the model and calls by session."""
        return {
            row.session_id: (row.records, row.user_turns, row.assistant_turns, sum(row.tool_calls.values()))
            for row in IngestQueries(self.database).sessions()
        }

    def events(self) -> list[tuple[str, str, str]]:
        """Return session, skill and kind of each event."""
        told = IngestQueries(self.database).events(resolve=lambda **_: None)
        return sorted((event.session_id, event.skill, event.kind.value) for event in told)

    def write(self, path: str, lines: list[Any] | bytes, *, at: datetime = START) -> Path:
        """Write *lines* as JSON, or bytes as they are."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = lines if isinstance(lines, bytes) else b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        file.write_bytes(data)
        os.utime(file, (at.timestamp(), at.timestamp()))
        return file


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Callable[[HostName], Home]]:
    """Make homes, and close their databases afterwards."""
    made: list[Home] = []

    def make(host: HostName) -> Home:
        made.append(Home(tmp_path, host))
        return made[-1]

    yield make
    for each in made:
        each.database.close()


# -- Codex


def codex_id(number: int) -> str:
    return f"019a0000-0000-7000-8000-{number:012x}"


def iso(second: int) -> str:
    return f"{START + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}.000Z"


def line(second: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": iso(second), "type": kind, "payload": payload}


def meta(number: int, **more: Any) -> dict[str, Any]:
    return line(0, "session_meta", {"id": codex_id(number), "cwd": "/home/dev/app", "source": "cli", **more})


def turn(name: str, second: int, *, skill: str = "notes", ids: bool = False, call: str | None = None) -> list[Any]:
    """Return a prompt, a command that reads a skill, its result and an answer, told apart by *name*."""
    call = call or f"call_{name:>24}".replace(" ", "0")
    ident = {"id": f"msg_{name:>30}".replace(" ", "0")} if ids else {}
    command = json.dumps({"cmd": f"cat {KB}/{skill}/SKILL.md"})
    said = [{"type": "input_text", "text": f"please do {name}"}]
    return [
        line(second, "turn_context", {"cwd": "/home/dev/app", **({"turn_id": f"turn-{name:>20}"} if ids else {})}),
        line(second + 1, "response_item", {"type": "message", "role": "user", "content": said}),
        line(second + 1, "event_msg", {"type": "user_message", "message": f"please do {name}"}),
        line(
            second + 2,
            "response_item",
            {"type": "function_call", "name": "exec_command", "arguments": command, "call_id": call},
        ),
        line(second + 3, "response_item", {"type": "function_call_output", "call_id": call, "output": "ok"}),
        line(second + 4, "response_item", {"type": "message", "role": "assistant", "content": [], **ident}),
    ]


def rollout(number: int) -> str:
    return f"sessions/2026/03/01/rollout-2026-03-01T12-{number:02d}-00-{codex_id(number)}.jsonl"


def later(lines: list[Any], second: int) -> list[Any]:
    """Return *lines* as a fork writes them: the same payloads under new times."""
    return [{**record, "timestamp": iso(second)} for record in lines]


@pytest.mark.parametrize("ids", [True, False], ids=["with-ids", "without-ids"])
@pytest.mark.parametrize("parent_goes_on", [True, False], ids=["parent-goes-on", "fork-is-newer"])
def test_a_codex_fork_counts_only_what_it_added(
    home: Callable[[HostName], Home], ids: bool, parent_goes_on: bool
) -> None:
    """A fork copies its parent's lines with new times; over both files each turn, call and event counts once."""
    place = home("codex")
    parent = [meta(1), *turn("a", 10, ids=ids), *turn("b", 20, ids=ids)]
    fork = [meta(2, forked_from_id=codex_id(1)), *later(parent, 100), *turn("c", 110, skill="csv", ids=ids)]
    place.write(rollout(1), parent, at=START + timedelta(minutes=9 if parent_goes_on else 0))
    place.write(rollout(2), fork, at=START + timedelta(minutes=5))

    place.scan()

    assert {codex_id(1): (13, 2, 2, 2), codex_id(2): (7, 1, 1, 1)} == place.sessions()
    assert [
        (codex_id(1), "notes", "use"),
        (codex_id(1), "notes", "use"),
        (codex_id(2), "csv", "use"),
    ] == place.events()


def test_a_fork_whose_parent_is_met_later(home: Callable[[HostName], Home]) -> None:
    """Whichever file is seen first, over both of them each turn, call and event counts once."""
    place = home("codex")
    parent = [meta(1), *turn("a", 10), *turn("b", 20)]
    place.write(rollout(2), [meta(2, forked_from_id=codex_id(1)), *later(parent, 100), *turn("c", 110, skill="csv")])
    place.scan()
    place.write(rollout(1), parent)

    place.scan()

    assert (20, 3, 3, 3) == tuple(map(sum, zip(*place.sessions().values(), strict=True)))
    assert ["csv", "notes", "notes"] == sorted(skill for _, skill, _ in place.events())


@pytest.mark.parametrize("ids", [True, False], ids=["with-ids", "without-ids"])
def test_a_codex_parent_that_goes_on_after_its_fork(home: Callable[[HostName], Home], ids: bool) -> None:
    """
    Both go on from the same history, each with its own turns; all are counted, none twice, scan after scan.

    Without ids, what both say first behind the fork is one where it is the same in each to the letter: here the context
    of the turn, which is no turn itself.
    """
    place = home("codex")
    parent = [meta(1), *turn("a", 10, ids=ids)]
    fork = [meta(2, forked_from_id=codex_id(1)), *later(parent, 100)]
    place.write(rollout(1), parent)
    place.scan()
    place.write(rollout(2), fork)
    place.scan()
    place.write(rollout(1), [*parent, *turn("b", 200, ids=ids)], at=START + timedelta(minutes=5))
    place.write(rollout(2), [*fork, *turn("c", 210, ids=ids)], at=START + timedelta(minutes=6))

    place.scan()
    place.scan()

    assert {codex_id(1): (13, 2, 2, 2), codex_id(2): (7 if ids else 6, 1, 1, 1)} == place.sessions()


@pytest.mark.parametrize("stamp", ["2026-19-41T29-99-99", "0000-00-00T00-00-00", "2026-02-31T12-00-00", "x"])
def test_a_name_that_tells_no_time(home: Callable[[HostName], Home], stamp: str) -> None:
    """A file called after no day there ever was is read like any other."""
    place = home("codex")
    place.write(f"sessions/rollout-{stamp}-{codex_id(1)}.jsonl", [meta(1), *turn("a", 10)])

    place.scan()

    assert {codex_id(1): (7, 1, 1, 1)} == place.sessions()


def test_two_sessions_of_a_local_server_share_no_ids(home: Callable[[HostName], Home]) -> None:
    """Servers that count their calls from 0 give different sessions the same ids: none is taken for a copy."""
    place = home("codex")
    for number in (1, 2, 3):
        place.write(rollout(number), [meta(number), *turn("same", 10, call="call_0"), *turn("same", 20, call="call_1")])

    place.scan()

    assert {codex_id(number): (13, 2, 2, 2) for number in (1, 2, 3)} == place.sessions()


def test_an_archived_rollout_is_the_same_session(home: Callable[[HostName], Home]) -> None:
    """Archiving moves the file; nothing new is counted, and it is read on from where it was."""
    place = home("codex")
    file = place.write(rollout(1), [meta(1), *turn("a", 10)])
    place.scan()
    archive = place.root / "archived_sessions"
    archive.mkdir()
    file.rename(archive / file.name)

    report = place.scan()

    assert {codex_id(1): (7, 1, 1, 1)} == place.sessions()
    assert 0 == report.sources[0].records
    assert [] == [note for note in report.notes if note.kind == "restart"]


def packed(data: bytes, how: str) -> bytes:
    return zstd.compress(data) if how == "zst" else gzip.compress(data)


@pytest.mark.parametrize("how", ["zst", "gz"])
def test_a_rollout_packed_after_the_fact(home: Callable[[HostName], Home], how: str) -> None:
    """A file that is replaced by its compressed form counts nothing again; both at once neither."""
    place = home("codex")
    file = place.write(rollout(1), [meta(1), *turn("a", 10)])
    place.scan()
    place.write(rollout(1) + "." + how, packed(file.read_bytes(), how))
    place.scan()
    both = place.sessions()
    file.unlink()

    report = place.scan()

    assert {codex_id(1): (7, 1, 1, 1)} == both == place.sessions()
    assert [] == [note for note in report.notes if note.kind in ("failed", "restart")]


@pytest.mark.parametrize("how", ["zst", "gz"])
def test_a_packed_rollout_is_moved_with_its_watermark(home: Callable[[HostName], Home], how: str) -> None:
    """Packed between two scans, the file is known by head and watermark: nothing is read again."""
    place = home("codex")
    file = place.write(rollout(1), [meta(1), *turn("a", 10)])
    place.scan()
    data = file.read_bytes()
    file.unlink()
    more = b"".join(json.dumps(record).encode() + b"\n" for record in turn("b", 20))
    place.write(rollout(1) + "." + how, packed(data + more, how))

    report = place.scan()

    assert {codex_id(1): (13, 2, 2, 2)} == place.sessions()
    assert 6 == report.sources[0].records
    assert [] == report.notes


@pytest.mark.parametrize("how", ["zst", "gz"])
def test_a_packed_rollout_never_seen_before(home: Callable[[HostName], Home], how: str) -> None:
    """Compressed in several frames or members it is one stream, and its last line may lack the newline."""
    place = home("codex")
    data = b"".join(json.dumps(record).encode() + b"\n" for record in [meta(1), *turn("a", 10), *turn("b", 20)])
    cut = len(data) // 2
    place.write(rollout(1) + "." + how, packed(data[:cut], how) + packed(b"", how) + packed(data[cut:-1], how))

    place.scan()

    assert {codex_id(1): (13, 2, 2, 2)} == place.sessions()


def test_named_as_packed_and_plain_all_the_same(home: Callable[[HostName], Home]) -> None:
    """Content tells whether a file is compressed, not its name."""
    place = home("codex")
    data = b"".join(json.dumps(record).encode() + b"\n" for record in [meta(1), *turn("a", 10)])
    place.write(rollout(1) + ".zst", data)

    place.scan()

    assert {codex_id(1): (7, 1, 1, 1)} == place.sessions()


@pytest.mark.parametrize("how", ["zst", "gz"])
def test_broken_and_cut_packed_files_stop_no_other(home: Callable[[HostName], Home], how: str) -> None:
    """A cut stream gives what is whole in it, a broken one is reported, and the others are read."""
    place = home("codex")
    lines = [record for number in range(40) for record in turn(f"t{number}", 10 + number)]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in [meta(1), *lines])
    whole = packed(os.urandom(20_000).hex().encode() + b"\n" + data, how)
    place.write(rollout(1) + "." + how, whole[: len(whole) - 40])
    garbled = bytearray(packed(data, how))
    at = len(garbled) // 2 if how == "zst" else len(garbled) - 8  # gzip has its checksum there
    garbled[at:] = b"\xff" * (len(garbled) - at)
    place.write(rollout(2) + "." + how, bytes(garbled))
    place.write(rollout(3), [meta(3), *turn("a", 10)])

    report = place.scan()

    assert (7, 1, 1, 1) == place.sessions()[codex_id(3)]
    assert [rollout(2) + "." + how] == [
        os.path.relpath(note.path, place.root) for note in report.notes if note.kind == "failed"
    ]
    assert [rollout(1) + "." + how] == [
        os.path.relpath(note.path, place.root) for note in report.notes if note.kind == "note" and "cut" in note.text
    ]


def test_without_the_zstd_module_the_file_is_reported(
    home: Callable[[HostName], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packed file that cannot be read here is a note of the scan, not silence; plain ones are read."""
    place = home("codex")
    place.write(rollout(1) + ".zst", packed(b"{}\n", "zst"))
    place.write(rollout(2), [meta(2), *turn("a", 10)])

    real = importlib.import_module

    def absent(name: str) -> Any:
        if "zstd" in name:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", absent)

    report = place.scan()

    assert [codex_id(2)] == list(place.sessions())
    assert 1 == len(report.notes)
    assert "zstd" in report.notes[0].text
    assert report.failed


def test_a_bomb_costs_no_memory(home: Callable[[HostName], Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to more than the bound is given up with a note; its endless line was never held."""
    place = home("codex")
    monkeypatch.setattr(compressed, "MOST", 64 * 1024 * 1024)
    squeeze = zlib.compressobj(9, wbits=31)
    data = b"".join(squeeze.compress(b"{" * (1 << 20)) for _ in range(80)) + squeeze.flush()
    place.write(rollout(1) + ".gz", data)

    report = place.scan()

    assert ["failed"] == [note.kind for note in report.notes]


def test_only_rollouts_are_read(home: Callable[[HostName], Home]) -> None:
    """Histories, logs and skills beside the rollouts are no transcripts, listed or named by a change event."""
    place = home("codex")
    file = place.write(rollout(1), [meta(1), *turn("a", 10)])
    other = place.write("history.jsonl", [{"session_id": "x", "ts": 1, "text": "x"}])
    inner = place.write("sessions/2026/03/01/notes.jsonl", [{"x": 1}])
    place.write("skills/notes/rollout-x.jsonl", [{"x": 1}])
    source = open_source(SourceSettings(host="codex"), str(place.root))

    listed = [item.path for item in source.items()]

    assert [str(file)] == listed
    assert source.item_at(str(file)) is not None
    assert source.item_at(str(other)) is None
    assert source.item_at(str(inner)) is None


def test_what_is_watched_is_where_transcripts_are(home: Callable[[HostName], Home]) -> None:
    """Of a host's home only the folders with transcripts need watching; before they are there, the home itself."""
    place = home("codex")
    source = open_source(SourceSettings(host="codex"), str(place.root))
    before = source.watch_paths()  # type: ignore[attr-defined]  # of this kind of source only
    place.write(rollout(1), [meta(1)])

    assert [str(place.root)] == before
    assert [str(place.root / "sessions")] == source.watch_paths()  # type: ignore[attr-defined]


def test_the_same_tree_under_two_places(home: Callable[[HostName], Home], tmp_path: Path) -> None:
    """A copy of the tree elsewhere adds nothing."""
    place = home("codex")
    place.write(rollout(1), [meta(1), *turn("a", 10)])
    copy = tmp_path / "copy"
    (copy / "sessions").mkdir(parents=True)
    (copy / "sessions" / Path(rollout(1)).name).write_bytes((place.root / rollout(1)).read_bytes())

    place.scan(copy)
    place.scan(copy)

    assert {codex_id(1): (7, 1, 1, 1)} == place.sessions()


def test_the_oldest_rollout_is_one_document(home: Callable[[HostName], Home]) -> None:
    """The document of the first versions is read by its items, and counts nothing when its time changes."""
    place = home("codex")
    items = [record["payload"] for record in turn("a", 10) if record["type"] == "response_item"]
    document = {"session": {"id": codex_id(1), "timestamp": iso(1), "instructions": ""}, "items": items}
    path = f"sessions/rollout-2025-05-01-{codex_id(1)}.json"
    place.write(path, json.dumps(document, indent=1).encode())
    place.scan()
    place.write(path, json.dumps(document).encode(), at=START + timedelta(hours=1))

    place.scan()

    assert {codex_id(1): (5, 1, 1, 1)} == place.sessions()
    assert [(codex_id(1), "notes", "use")] == place.events()


# -- Pi


def pi_entry(number: int, second: int, **message: Any) -> dict[str, Any]:
    return {"type": "message", "id": f"{number:08x}", "parentId": None, "timestamp": iso(second), "message": message}


def pi_turn(number: int, second: int) -> list[Any]:
    call = {"type": "toolCall", "id": f"c{number}", "name": "read", "arguments": {"path": f"{KB}/notes/SKILL.md"}}
    return [
        pi_entry(number, second, role="user", content=f"do {number}"),
        pi_entry(number + 1, second + 1, role="assistant", content=[call]),
        pi_entry(number + 2, second + 2, role="toolResult", toolCallId=f"c{number}", content=[], isError=False),
    ]


def pi_path(name: str) -> str:
    return f"sessions/--home-dev-app--/2026-03-01T12-00-00-000Z_{name}.jsonl"


def pi_head(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": name, "timestamp": iso(0), "cwd": "/home/dev/app", **more}


def test_a_pi_fork_counts_only_what_it_added(home: Callable[[HostName], Home]) -> None:
    """A fork's copied entries keep their ids and count for the session they came from."""
    place = home("pi")
    shared = [*pi_turn(1, 10), *pi_turn(11, 20)]
    place.write(pi_path("aaaa"), [pi_head("aaaa"), *shared])
    place.write(
        pi_path("bbbb"),
        [pi_head("bbbb", parentSession=str(place.root / pi_path("aaaa"))), *shared[:3], *pi_turn(21, 50)],
        at=START + timedelta(minutes=5),
    )

    place.scan()

    assert {"aaaa": (7, 2, 2, 2), "bbbb": (4, 1, 1, 1)} == place.sessions()


def test_a_pi_session_migrated_in_place(home: Callable[[HostName], Home]) -> None:
    """Opened by a newer program, a file is rewritten under new ids; only what it goes on with is new."""
    place = home("pi")
    old = [
        {key: value for key, value in entry.items() if key not in ("id", "parentId")}
        for entry in [*pi_turn(1, 10), *pi_turn(11, 20)]
    ]
    header = {key: value for key, value in pi_head("aaaa").items() if key != "version"}
    place.write(pi_path("aaaa"), [header, *old])
    place.scan()
    before = place.sessions()
    fresh = [{**entry, "id": f"{77 + at:08x}", "parentId": None} for at, entry in enumerate(old)]
    place.write(pi_path("aaaa"), [pi_head("aaaa"), *fresh, *pi_turn(31, 90)], at=START + timedelta(hours=3))

    report = place.scan()

    assert {"aaaa": (7, 2, 2, 2)} == before
    assert {"aaaa": (10, 3, 3, 3)} == place.sessions()
    assert ["restart"] == [note.kind for note in report.notes]


# -- Gemini CLI


def gemini_messages(count: int) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for number in range(count):
        call = {
            "id": f"c{number}",
            "name": "activate_skill",
            "args": {"name": "notes"},
            "status": "success",
            "timestamp": iso(10 * number + 2),
        }
        told += [
            {"id": f"user-{number:016d}", "timestamp": iso(10 * number), "type": "user", "content": "go"},
            {
                "id": f"model-{number:016d}",
                "timestamp": iso(10 * number + 1),
                "type": "gemini",
                "content": "x",
                "toolCalls": [call],
            },
        ]
    return told


def gemini_document(count: int) -> bytes:
    return json.dumps({"sessionId": "g-1", "startTime": iso(0), "messages": gemini_messages(count)}, indent=2).encode()


CHAT = "tmp/app/chats/session-2026-03-01T12-00-g1"


def test_a_document_that_is_rewritten_is_counted_by_its_ids(home: Callable[[HostName], Home]) -> None:
    """The old form is written anew at every change; only new messages count, and no change is a restart."""
    place = home("gemini-cli")
    reports = []
    for count in (1, 2, 2, 5):
        place.write(CHAT + ".json", gemini_document(count), at=START + timedelta(minutes=count))
        reports.append(place.scan())

    assert {"g-1": (11, 5, 5, 5)} == place.sessions()
    assert [("g-1", "notes", "use")] * 5 == place.events()
    assert [] == [note for report in reports for note in report.notes]


def test_a_document_caught_half_written_waits(home: Callable[[HostName], Home]) -> None:
    """Half a document says nothing until it is whole; left so for long, it is one unreadable record."""
    place = home("gemini-cli")
    data = gemini_document(3)
    recent = place.clock.at + timedelta(minutes=59)
    place.write(CHAT + ".json", data[: len(data) // 2], at=recent)
    place.scan()
    half = place.sessions()
    place.write(CHAT + ".json", data, at=recent + timedelta(minutes=1))
    place.scan()
    whole = place.sessions()
    place.write("tmp/app/chats/session-torn.json", data[:100])

    report = place.scan()

    assert {} == half
    assert {"g-1": (7, 3, 3, 3)} == whole
    assert 1 == report.sources[0].unreadable


def test_a_document_goes_on_as_a_journal(home: Callable[[HostName], Home]) -> None:
    """A newer program turns the document into a journal of the same messages: those are known."""
    place = home("gemini-cli")
    place.write(CHAT + ".json", gemini_document(2))
    place.scan()
    header = {"sessionId": "g-1", "projectHash": "x", "startTime": iso(0), "lastUpdated": iso(0), "kind": "main"}
    known = gemini_messages(2)
    place.write(CHAT + ".jsonl", [header, *known, *gemini_messages(3)[4:]], at=START + timedelta(hours=1))
    (place.root / (CHAT + ".json")).unlink()

    place.scan()

    records, *counts = place.sessions()["g-1"]
    assert [3, 3, 3] == counts
    assert 7 <= records <= 8
    assert [("g-1", "notes", "use")] * 3 == place.events()


# -- Cursor


def test_equal_words_in_two_cursor_sessions_are_two(home: Callable[[HostName], Home]) -> None:
    """Without ids and times, a record is known by its session and place: the same words elsewhere are others."""
    place = home("cursor")
    lines = [
        {"role": "user", "message": {"content": [{"type": "text", "text": "go on"}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "ok"}]}},
    ] * 3
    for name in ("u1", "u2"):
        place.write(f"projects/app/agent-transcripts/{name}/{name}.jsonl", lines)
    place.write("projects/app/agent-transcripts/u1.txt", b"user:\ngo on\n\nassistant:\nok\n")
    place.write("projects/app/agent-transcripts/u3.txt", b"user:\ngo on\n\nassistant:\nok\n")

    place.scan()
    place.scan()

    assert {"u1": (6, 3, 3, 0), "u2": (6, 3, 3, 0), "u3": (2, 1, 1, 0)} == place.sessions()


# -- where


@pytest.mark.parametrize(
    ("host", "env", "expected"),
    [
        ("codex", {}, ["/home/dev/.codex"]),
        ("codex", {"CODEX_HOME": "/srv/codex"}, ["/srv/codex"]),
        ("codex", {"CODEX_HOME": "  "}, ["/home/dev/.codex"]),
        ("pi", {"PI_CODING_AGENT_DIR": "~/pi"}, ["/home/dev/pi/sessions"]),
        ("pi", {"PI_CODING_AGENT_SESSION_DIR": "/s", "PI_CODING_AGENT_DIR": "/p"}, ["/s"]),
        ("pi", {"PI_CODING_AGENT_SESSION_DIR": ""}, ["/home/dev/.pi/agent/sessions"]),
        ("gemini-cli", {"GEMINI_CLI_HOME": "/g"}, ["/g/.gemini/tmp"]),
        ("gemini-cli", {}, ["/home/dev/.gemini/tmp"]),
        ("qwen-code", {"QWEN_HOME": "/q"}, ["/q"]),
        ("qwen-code", {"QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "/r"}, ["/r"]),
        ("qwen-code", {}, ["/home/dev/.qwen"]),
        ("copilot-cli", {"COPILOT_HOME": "/c"}, ["/c"]),
        ("cursor", {}, ["/home/dev/.cursor"]),
    ],
)
def test_default_places(host: HostName, env: dict[str, str], expected: list[str]) -> None:
    """The host's own variable comes before the default, and a blank one counts as unset."""
    assert expected == [place.path for place in places(SourceSettings(host=host), env, home=Path("/home/dev"))]


@pytest.mark.parametrize("host", ["codex", "pi", "gemini-cli", "qwen-code", "copilot-cli", "cursor"])
def test_a_place_that_is_not_there_waits(host: HostName, tmp_path: Path) -> None:
    """A home that does not exist yet is waited for, not an empty one."""
    source = open_source(SourceSettings(host=host), str(tmp_path / "nowhere"))

    with pytest.raises(FileNotFoundError):
        list(source.items())
