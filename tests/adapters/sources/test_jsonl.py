"""Logs of hosts that nobody wrote a reader for, described by fields or of a common shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curatord.core.transcript.events import OWN_MARK
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.jsonl import JsonlParser
from curatord.core.transcript.jsonl_fields import KEYS, fields_of
from curatord.errors import ConfigError
from tests.scanned import Scanner

FLAT = {"session": "sid", "role": "who", "text": "msg", "time": "when", "tool": "tool.name", "skill": "skill"}


def lines(*records: object) -> str:
    """Return records as a log."""
    return "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a folder for logs."""
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


@pytest.fixture
def make(tmp_path: Path, logs: Path) -> Iterator[Any]:
    """Return a function that makes a store reading the logs under a description."""
    made: list[Scanner] = []

    def scanner(fields: dict[str, Any] | None = None, path: Path | None = None) -> Scanner:
        made.append(Scanner(tmp_path / f"state{len(made)}", ("jsonl", path or logs), fields=fields))
        return made[-1]

    yield scanner
    for each in made:
        each.close()


def test_a_log_described_by_its_fields(logs: Path, make: Any) -> None:
    """Session, role, text, time, tool and skill are where the configuration says."""
    (logs / "a.jsonl").write_text(
        lines(
            {"sid": "s1", "who": "user", "msg": "hi", "when": "2025-03-01T12:00:00Z"},
            {"sid": "s1", "who": "assistant", "msg": "ok", "when": 1740830401, "tool": {"name": "search"}},
            {"sid": "s1", "who": "assistant", "msg": "ok", "when": 1740830402000, "skill": "foo"},
            {"sid": "s2", "who": "user", "msg": "hi", "when": "1740830403.5", "skill": ["foo", "bar"]},
            {"sid": "s2", "who": "nobody", "msg": "x"},
        )
    )
    scanner = make(FLAT).scan()

    assert {"s1": (3, 1, 2, {"search": 1}), "s2": (2, 1, 0, {})} == scanner.counts()
    assert [
        ("s1", "foo", "use", "skill"),
        ("s2", "foo", "use", "skill"),
        ("s2", "bar", "use", "skill"),
    ] == scanner.events()
    assert ["2025-03-01T12:00:02.000Z"] + 2 * ["2025-03-01T12:00:03.500Z"] == scanner.times()


CHAT = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "load_skill", "arguments": '{"name": "foo"}'}},
            {
                "id": "2",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "/h/b/SKILL.md"}'},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "1", "name": "load_skill", "content": "…"},
    {"role": "tool", "tool_call_id": "2", "name": "read_file", "content": "no", "is_error": True},
]
BLOCKS = [
    {"message": {"role": "user", "content": [{"type": "text", "text": "go"}]}},
    {
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "1", "name": "load_skill", "input": {"name": "foo"}},
                {"type": "tool_use", "id": "2", "name": "read_file", "input": {"path": "/h/b/SKILL.md"}},
            ],
        }
    },
    {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "…"}]}},
    {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "is_error": True}]}},
]


@pytest.mark.parametrize("records", [CHAT, BLOCKS], ids=["chat", "blocks"])
def test_common_shapes_need_no_description(logs: Path, make: Any, records: list[Any]) -> None:
    """Chat messages and content blocks are understood as they are; failed calls are no events, results no turns."""
    (logs / "talk-7.jsonl").write_text(lines(*records))

    scanner = make().scan()
    assert {"talk-7": (4, 1, 1, {"load_skill": 1, "read_file": 1})} == scanner.counts()
    assert [("talk-7", "foo", "use", "load_skill")] == scanner.events()


def test_files_and_shells(logs: Path, make: Any) -> None:
    """Reading and changing tools and shell commands show skills, as use where reading is the host's way."""
    calls = [
        {"tool": "read", "args": {"path": "skills/a/SKILL.md"}},
        {"tool": "edit", "args": {"filePath": "/h/.x/skills/a/scripts/run.sh"}},
        {"tool": "bash", "args": {"command": "cat b/SKILL.md"}},
        {"tool": "exec_command", "args": {"cmd": "sed -i s/a/b/ c/SKILL.md", "workdir": "/h/skills"}},
        {"tool": "shell", "args": {"command": ["bash", "-lc", "cat d/SKILL.md"]}},
        {"tool": "apply_patch", "args": {"input": "*** Update File: e/SKILL.md\n"}},
        {"tool": "read", "args": {"path": "README.md"}},
    ]
    (logs / "a.jsonl").write_text(
        lines({"role": "assistant", "cwd": "/w"}, *({"role": "assistant", **c} for c in calls))
    )

    scanner = make().scan()
    changed = [("a", "a", "patch"), ("a", "c", "patch"), ("a", "e", "patch")]
    read = [("a", "a"), ("a", "b"), ("a", "d")]
    assert sorted(changed + [(*r, "view") for r in read]) == sorted(event[:3] for event in scanner.events())
    as_use = make({"read_is_use": True}).scan()
    assert sorted(changed + [(*r, "use") for r in read]) == sorted(event[:3] for event in as_use.events())


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ({"tool": "call.fn", "arguments": "call.with"}, {"call": {"fn": "load_skill", "with": {"name": "foo"}}}),
        ({"tool": "fn", "arguments": "with"}, {"fn": "load_skill", "with": '{"skill": "foo"}'}),
        ({"tool": "steps.fn", "arguments": "steps.with"}, {"steps": [{"fn": "load_skill", "with": {"name": "foo"}}]}),
        (
            {"tool": "fn", "arguments": "with", "skill_tools": {"open": "of.which"}},
            {"fn": "open", "with": {"of": {"which": "foo"}}},
        ),
        ({"tool": ["x", "tool"]}, {"tool": "load_skill", "arguments": {"name": "foo"}}),
        ({"skill": "used.0.id", "kind": "used.0.how"}, {"used": [{"id": "foo", "how": "use"}, {"id": "bar"}]}),
    ],
)
def test_where_calls_and_skills_may_stand(
    logs: Path, make: Any, fields: dict[str, Any], record: dict[str, Any]
) -> None:
    """Paths lead through objects and lists; names and arguments that stand together belong together."""
    (logs / "a.jsonl").write_text(lines(record))

    assert [("a", "foo", "use")] == [event[:3] for event in make(fields).scan().events()]


def test_other_roles_and_records_to_ignore(logs: Path, make: Any) -> None:
    """Who speaks and what does not count is the configuration's to say."""
    fields = {"role": "by", "user_roles": ["me"], "assistant_roles": "it", "ignore": "hidden", "sidechain": "sub"}
    (logs / "a.jsonl").write_text(
        lines(
            {"by": "me", "text": "one"},
            {"by": "me", "text": " "},
            {"by": "me", "text": "two", "hidden": True},
            {"by": "me", "text": "three", "sub": True},
            {"by": "it", "text": "four"},
            {"by": "user", "text": "five"},
        )
    )

    assert {"a": (1, 1)} == make(fields).scan().turns()


def test_sub_agents_and_curatord_itself(logs: Path, make: Any) -> None:
    """A session with a parent has no user's turns; curatord's own prompts count for nothing."""
    (logs / "a.jsonl").write_text(
        lines(
            {"session_id": "c", "parent_session_id": "p", "role": "user", "text": "do it"},
            {"session_id": "c", "role": "assistant", "text": "done"},
            {"session_id": "o", "role": "user", "text": f"x\n{OWN_MARK}\n"},
            {"session_id": "o", "role": "assistant", "skill": "foo"},
        )
    )
    scanner = make().scan()

    assert {"c": (0, 1)} == scanner.turns()
    assert [] == scanner.events()


@pytest.mark.parametrize("with_id", [True, False])
def test_identity(logs: Path, make: Any, with_id: bool) -> None:
    """Growing, rewritten, moved and copied files count each record once; equal records without an id are several."""

    def record(n: int, text: str = "again") -> dict[str, Any]:
        return {"session": "s", "role": "user", "text": text, **({"id": n} if with_id else {})}

    path = logs / "a.jsonl"
    path.write_text(lines(record(1), record(2), record(3)))
    scanner = make()
    assert {"s": (3, 0)} == scanner.scan().turns()
    path.write_text(lines(record(1), record(2), record(3), record(4), record(5, "other")))
    assert {"s": (5, 0)} == scanner.scan().turns()
    path.write_text(lines(record(1), record(2), record(5, "other"), record(6, "new")))
    assert {"s": (6, 0)} == scanner.scan().turns()
    path.rename(logs / "moved.jsonl")
    (logs / "copy.jsonl").write_text((logs / "moved.jsonl").read_text() + lines(record(7, "newer")))
    assert {"s": (7, 0)} == scanner.scan().turns()


def test_a_record_written_twice_counts_once(logs: Path, make: Any) -> None:
    """An id that comes again in its file is the same record."""
    record = {"id": "x", "session": "s", "role": "user", "text": "hi"}
    (logs / "a.jsonl").write_text(lines(record, {**record, "text": "hi, once more"}))

    assert {"s": (2, 1, 0, {})} == make().scan().counts()


def test_sessions_without_an_id_are_named_like_their_file(logs: Path, make: Any) -> None:
    """`events.jsonl` and its like take the name of their folder."""
    (logs / "run-1").mkdir()
    (logs / "run-1" / "events.jsonl").write_text(lines({"role": "user", "text": "a"}))
    (logs / "run-2.ndjson").write_text(lines({"role": "user", "text": "a"}))

    assert {"run-1", "run-2"} == set(make().scan().counts())


def test_a_source_may_be_one_file(logs: Path, make: Any) -> None:
    """A path to a file of any name is read."""
    (logs / "x.log").write_text(lines({"role": "user", "text": "a"}))

    assert {"x": (1, 0)} == make(path=logs / "x.log").scan().turns()


def test_broken_lines(logs: Path, make: Any) -> None:
    """What is no JSON object is counted with its offset or passed over, and stops nothing."""
    user = {"role": "user", "text": "a\ud800"}
    glued = json.dumps(user) + json.dumps({**user, "text": "b"})
    (logs / "a.jsonl").write_bytes(
        lines("{nope", "[1, 2]", "5", glued, "[" * 10_000, {}).encode()
        + b'\xff\xfe{"role": "user", "text": "c"}\n{"role": "user", "te'
    )
    scanner = make().scan()

    assert (3, 0) == scanner.turns()["a"]
    assert scanner.sessions()["a"].unreadable >= 2
    assert scanner.scan().sessions()["a"].unreadable == scanner.sessions()["a"].unreadable


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sesion": "x"}, "unknown field 'sesion', perhaps 'session'"),
        ({"session": 5}, "field 'session' is a text"),
        ({"session": []}, "field 'session' is a text"),
        ({"tool": {"a": 1}}, "field 'tool' is a text"),
        ({"read_is_use": "yes"}, "true or false"),
        ({"skill_tools": ["x"]}, "maps a tool"),
        ({"skill_tools": {"x": 5}}, "field 'skill_tools.x'"),
        ({"role": ["a"] * 100}, "more than 32 paths"),
    ],
)
def test_nonsense_is_refused_with_its_key(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """The error names the key and the nearest known one."""
    with pytest.raises(ConfigError, match=message):
        Scanner(tmp_path / "state", ("jsonl", tmp_path), fields=fields)


def test_every_key_can_be_set() -> None:
    """Each documented key is accepted."""
    for key in KEYS:
        value: object = {"skill_tools": {"x": "y"}, "read_is_use": True}.get(key, "a.b")
        assert fields_of({key: value}) != fields_of(None)


NAMES = [
    "role", "content", "tool_calls", "function", "name", "id", "skill", "message", "timestamp", "tool", "arguments",
    "text", "session", "type", "tool_call_id", "error", "cwd",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(JSON, max_size=8), st.sampled_from([None, FLAT]))
def test_any_json_is_survived(values: list[Any], fields: dict[str, Any] | None) -> None:
    """Values of any type at any place raise nothing, and the state can always be read back."""
    parser = JsonlParser("a.jsonl", fields_of(fields), state=b"", fresh=True, guard=Guard(), before=Guard(), now_ms=0)
    parser.feed([(json.dumps(value).encode(), n) for n, value in enumerate(values)])
    state = parser.state()
    parser.settle()
    found = parser.findings()

    assert sum(isinstance(value, dict) for value in values) == found.records
    before = Guard(found.keys)
    again = JsonlParser("a", fields_of(fields), state=state, fresh=False, guard=Guard(), before=before, now_ms=0)
    assert parser.state() is not None
    assert again.waiting == bool(again._pending)
