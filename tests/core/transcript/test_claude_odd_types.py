"""A Claude Code record whose fields have other types than usual is counted all the same, and stops nothing."""

from __future__ import annotations

import json

import pytest

from curatord.core.transcript.claude_code import ClaudeCodeParser
from curatord.core.transcript.claude_records import Record
from curatord.core.transcript.events import MAX_NAME, MAX_SESSION
from curatord.core.transcript.ids import Guard

USUAL = {"type": "assistant", "uuid": "5b3f0e1c-0000-4000-8000-000000000001", "sessionId": "s", "cwd": "/a"}
ODD: tuple[object, ...] = (
    "text",
    "",
    7,
    None,
    True,
    [],
    {},
    [1],
    {"timestamp": 1},
    {"content": 3},
    {"content": [3, {"input": "x"}]},
)


@pytest.mark.parametrize("kind", ["assistant", "user", "attachment", "system", "queue-operation", "progress"])
@pytest.mark.parametrize("name", Record.__struct_fields__)
def test_any_type_in_any_field(name: str, kind: str) -> None:
    """Each of the fields may hold anything: the record counts as one, none of them as unreadable."""
    records = [{**USUAL, "type": kind, "uuid": f"record-{number}", name: odd} for number, odd in enumerate(ODD)]
    parser = ClaudeCodeParser("-p/s.jsonl", state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0)

    parser.feed([(json.dumps(record).encode(), 0) for record in records])

    tallies = parser.findings().sessions.values()
    assert (sum(t.records for t in tallies), sum(t.unreadable for t in tallies)) == (len(ODD), 0)


def test_an_id_of_a_session_is_cut_where_it_is_no_id() -> None:
    """A line may be an id of megabytes, which each list of sessions would show; the same line is the same session."""
    records = [{**USUAL, "uuid": f"record-{number}", "sessionId": "s" * 1_000_000} for number in range(3)]
    parser = ClaudeCodeParser("-p/s.jsonl", state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0)

    parser.feed([(json.dumps(record).encode(), 0) for record in records])

    assert {"s" * MAX_SESSION: 3} == {name: tally.records for name, tally in parser.findings().sessions.items()}


@pytest.mark.parametrize("field", ["message", "call", "time", "slash", "body"])
def test_what_is_kept_between_two_scans_is_bounded(field: str) -> None:
    """Whatever stands where an id, a time or a folder should: the state is a few KiB, and so is an event."""
    huge = "x" * 100_000
    records: list[dict[str, object]] = []
    for n in range(20):
        use = {
            "type": "tool_use",
            "name": "Skill",
            "id": f"{n}{huge if field == 'call' else ''}",
            "input": {"skill": "a"},
        }
        message = {"id": f"m{n}{huge if field == 'message' else ''}", "role": "assistant", "content": [use]}
        time = f"2026-01-01T00:00:{n:02}.000{'0' * 100_000 if field == 'time' else ''}Z"
        records.append({**USUAL, "uuid": f"record-{n}", "timestamp": time, "message": message})
    folder = f"Base directory for this skill: /skills/a/{huge}"
    said = {"role": "user", "content": "<command-name>/a</command-name>"}
    if field == "body":
        meta = {"type": "user", "isMeta": True, "sourceToolUseID": "3", "message": {"role": "user", "content": folder}}
        records.append({**USUAL, **meta, "uuid": "body"})
    if field == "slash":
        records.append({**USUAL, "type": "user", "uuid": huge, "cwd": huge, "message": said})
    parser = ClaudeCodeParser("-p/s.jsonl", state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0)

    parser.feed([(json.dumps(record).encode(), at) for at, record in enumerate(records)])
    kept = len(parser.state())
    parser.settle()
    tally = parser.findings().sessions["s"]

    assert kept < 20_000
    assert 20 == len(tally.sightings)
    assert len(repr(tally)) < 40_000


def test_a_call_with_an_id_without_end_has_its_result() -> None:
    """It is known by as much of the id as is kept."""
    call = "c" * 1000
    use = {"type": "tool_use", "name": "Skill", "id": call, "input": {"skill": "a"}}
    result = {"type": "tool_result", "tool_use_id": call, "content": "no", "is_error": True}
    parser = ClaudeCodeParser("-p/s.jsonl", state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0)
    asked = {**USUAL, "message": {"id": "m", "content": [use]}}
    answered = {**USUAL, "type": "user", "uuid": "r", "message": {"role": "user", "content": [result]}}

    parser.feed([(json.dumps(record).encode(), 0) for record in (asked, answered)])
    parser.settle()

    assert [] == parser.findings().sessions["s"].sightings


def test_names_and_folders_are_bounded() -> None:
    """What no tool, folder or version can be called is no row of megabytes in the database either."""
    huge = "x" * 1_000_000
    call = {"type": "tool_use", "name": huge, "input": {}}
    read = {"type": "tool_use", "name": "Read", "input": {"file_path": f"/a/skills/pdf/{huge}"}}
    use = {"type": "tool_use", "name": "Skill", "input": {"skill": huge}}
    records = [
        {**USUAL, "uuid": f"record-{n}", "cwd": huge, "version": huge, "message": {"id": f"m{n}", "content": [block]}}
        for n, block in enumerate((call, call, read, use))
    ]
    parser = ClaudeCodeParser("-p/s.jsonl", state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0)

    parser.feed([(json.dumps(record).encode(), 0) for record in records])
    found = parser.findings()
    tally = found.sessions["s"]

    assert {"x" * MAX_NAME: 2, "Read": 1, "Skill": 1} == tally.tool_calls
    assert [] == tally.cwds
    assert ["x" * MAX_NAME] == [sighting.skill for sighting in tally.sightings]
    assert {"x" * MAX_NAME} == found.versions
    assert len(repr(tally.sightings)) < 1000
