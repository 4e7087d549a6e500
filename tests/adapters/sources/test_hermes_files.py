"""Hermes' session files of its earlier years come to the same counts as its database would."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hermes_home import HermesHome, call, slash
from tests.scanned import Scanner, traces

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are Hermes."},
    {"role": "user", "content": slash("foo", "go")},
    {"role": "assistant", "content": "", "tool_calls": [call("skill_view", "1", name="bar")]},
    {"role": "tool", "tool_call_id": "1", "content": json.dumps({"success": True, "content": "x"})},
    {"role": "assistant", "content": "ok"},
    {"role": "user", "content": [{"type": "text", "text": "please continue"}, {"type": "image_url", "image_url": "x"}]},
    {"role": "assistant", "content": "", "tool_calls": [call("skill_manage", "2", action="create", name="new")]},
    {"role": "tool", "tool_call_id": "2", "content": json.dumps({"success": False, "error": "no"})},
    {"role": "assistant", "content": "ok"},
]
MORE: list[dict[str, Any]] = [{"role": "user", "content": "please continue"}, {"role": "assistant", "content": "ok"}]
EVENTS = [("1", "bar", "use", "skill_view"), ("1", "foo", "use", "slash")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with a folder of session files."""
    (tmp_path / "home" / "sessions").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def scanner(tmp_path: Path, home: Path) -> Iterator[Scanner]:
    """Return a store that reads it."""
    made = Scanner(tmp_path / "state", ("hermes", home))
    yield made
    made.close()


def write_document(home: Path, messages: list[dict[str, Any]], name: str = "1", **fields: Any) -> Path:
    """Write a session's whole document."""
    path = home / "sessions" / f"session_{name}.json"
    document = {
        "session_id": name,
        "platform": "cli",
        "session_start": "2025-03-01T12:00:00",
        "last_updated": "2025-03-01T13:00:00.500",
        "messages": messages,
        **fields,
    }
    path.write_text(json.dumps(document))
    return path


def write_lines(home: Path, messages: list[dict[str, Any]], name: str = "1") -> Path:
    """Write a gateway's log."""
    path = home / "sessions" / f"{name}.jsonl"
    meta = {"role": "session_meta", "platform": "telegram", "timestamp": "2025-03-01T12:00:00"}
    lines = [meta, *({**m, "timestamp": f"2025-03-01T12:00:{n:02d}"} for n, m in enumerate(messages, start=1))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("write", [write_document, write_lines])
def test_what_a_session_file_holds(home: Path, scanner: Scanner, write: Any) -> None:
    """Turns, calls and events of both kinds of file; the file is left as it is."""
    write(home, MESSAGES)
    before = traces(home)

    assert {"1": (2, 4)} == scanner.scan().turns()
    assert EVENTS == sorted(scanner.events())
    assert before == traces(home)
    assert [] == [note for note in scanner.notes if not note.startswith("note")]


@pytest.mark.parametrize("write", [write_document, write_lines])
def test_it_grows_and_is_rewritten(home: Path, scanner: Scanner, write: Any) -> None:
    """Messages that were counted are known again, in a longer file and in one that a compaction made shorter."""
    write(home, MESSAGES)
    scanner.scan()
    write(home, MESSAGES + MORE)
    assert {"1": (3, 5)} == scanner.scan().turns()
    summary = {"role": "user", "content": "[CONTEXT SUMMARY]: earlier …"}
    write(home, [MESSAGES[0], summary, *MESSAGES[5:], *MORE])

    assert {"1": (3, 5)} == scanner.scan().turns()
    assert EVENTS == sorted(scanner.events())


def test_local_times_are_taken_as_utc_and_noted(home: Path, scanner: Scanner) -> None:
    """Messages without a time have that of the last turn, and that it is a guess is known."""
    write_document(home, MESSAGES)

    scanner.scan()
    assert {"2025-03-01T13:00:00.500Z"} == set(scanner.times())
    assert scanner.source().naive_times > 0


def test_the_database_wins(tmp_path: Path, home: Path, scanner: Scanner) -> None:
    """A session that is in both is counted from the database, whichever is read first."""
    database = HermesHome(home)
    database.session("1")
    database.user("1", "only this")
    database.close()
    write_document(home, MESSAGES)
    write_document(home, MESSAGES, name="2")
    os.utime(home / "sessions" / "session_1.json", (1, 1))

    assert {"1": (1, 0), "2": (2, 4)} == scanner.scan().turns()


@pytest.mark.parametrize("write", [write_document, write_lines])
def test_a_session_that_is_imported_later(home: Path, scanner: Scanner, write: Any) -> None:
    """Counted from its file first, its rows in the database are known, and it goes on from there."""
    write(home, MESSAGES)
    scanner.scan()
    database = HermesHome(home)
    database.session("0")
    database.user("0", "another one")
    database.session("1")
    for message in MESSAGES[1:]:
        content = message["content"]
        database.row(
            "1",
            message["role"],
            content if isinstance(content, str) else content[0]["text"],
            tool_call_id=message.get("tool_call_id"),
            tool_calls=message.get("tool_calls"),
        )
    database.user("1", "new")
    database.close()

    assert {"0": (1, 0), "1": (3, 4)} == scanner.scan().turns()
    assert EVENTS == sorted(scanner.events())


def test_what_is_no_session_file(home: Path, scanner: Scanner) -> None:
    """Dumps of requests, the gateway's index and other files are passed over."""
    for name in ("request_dump_1.json", "request_dump_1.jsonl", "sessions.json", "notes.txt", "other.json"):
        (home / "sessions" / name).write_text('{"role": "user", "content": "x"}\n')

    assert {} == scanner.scan().counts()
    assert [] == scanner.notes


def test_broken_files(home: Path, scanner: Scanner) -> None:
    """A document caught half-written is told and read when it is whole; lines that are no JSON are counted once."""
    path = write_document(home, MESSAGES)
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    log = write_lines(home, MESSAGES, name="g")
    log.write_text(log.read_text() + '{"role": "user", "cont\n' + '{"role": "user", "content": "half')

    scanner.scan()
    assert ["failed"] == [note.split(":")[0] for note in scanner.notes]
    assert {"g": (2, 4)} == scanner.turns()
    path.write_text(whole)
    log.write_text(log.read_text() + '"}\n')
    scanner.scan()
    assert {"1": (2, 4), "g": (3, 4)} == scanner.turns()
    assert 1 == scanner.sessions()["g"].unreadable


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"messages": 5}',
        '{"messages": [null, 5, {"role": 7, "content": {"a": 1}}]}',
        "[" * 5000,
    ],
)
def test_odd_documents(home: Path, scanner: Scanner, text: str) -> None:
    """Nothing raises, and nothing comes of nothing."""
    (home / "sessions" / "session_x.json").write_text(text)

    assert [] == scanner.scan().events()
    assert (0, 0) == scanner.turns().get("x", (0, 0))


def test_preloaded_and_curators_sessions(home: Path, scanner: Scanner) -> None:
    """A document's prompt shows preloaded skills; the curator's own logs count for nothing."""
    prompt = '[IMPORTANT: The user launched this CLI session with the "pre" skill preloaded. …]'
    write_document(home, MESSAGES[4:6], system_prompt=prompt)
    write_document(home, MESSAGES, name="c", platform="curator")

    assert [("1", "pre", "use", "preload")] == scanner.scan().events()
    assert ["1"] == list(scanner.counts())
