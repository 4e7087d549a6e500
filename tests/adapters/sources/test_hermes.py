"""Hermes' database, as programs of several ages write and rewrite it, comes to the right counts, each once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curatord.core.transcript.events import OWN_MARK
from tests.hermes_home import SUMMARY, HermesHome, call, slash
from tests.scanned import Scanner

OK = {"success": True}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[HermesHome]:
    """Return a home of schema 22."""
    made = HermesHome(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def scanner(tmp_path: Path) -> Iterator[Scanner]:
    """Return a store that reads the home."""
    made = Scanner(tmp_path / "state", ("hermes", tmp_path / "home"))
    yield made
    made.close()


@pytest.mark.parametrize("age", ["old", "22", "30"])
def test_schemas_of_all_ages(tmp_path: Path, age: str) -> None:
    """Columns are asked for by name: what a database lacks is nothing, what it has besides is passed over."""
    home = HermesHome(tmp_path / "home", age=age)
    home.session("s")
    home.user("s", "hello")
    home.calls("s", "skill_view", {**OK, "name": "foo", "content": "x"}, name="foo")
    home.says("s")
    home.close()
    scanner = Scanner(tmp_path / "state", ("hermes", tmp_path / "home")).scan()

    assert {"s": (4, 1, 2, {"skill_view": 1})} == scanner.counts()
    assert [("s", "foo", "use", "skill_view")] == scanner.events()
    scanner.close()


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "expected"),
    [
        ("skill_view", {"name": "foo"}, {**OK, "name": "foo", "content": "x"}, [("foo", "use")]),
        ("skill_view", {"name": "foo", "file_path": "SKILL.md"}, {**OK, "content": "x"}, [("foo", "use")]),
        ("skill_view", {"name": "foo", "file_path": "references/a.md"}, {**OK, "content": "x"}, [("foo", "view")]),
        ("skill_view", {"name": "writing/foo"}, {**OK, "name": "foo", "content": "x"}, [("foo", "use")]),
        ("skill_view", {"name": "p:foo"}, {**OK, "name": "foo", "content": "x"}, [("p:foo", "use")]),
        ("skill_view", {"name": "foo"}, {"success": False, "error": "not found"}, []),
        # A repeated view of an unchanged file, as newer builds answer it.
        ("skill_view", {"name": "foo"}, {"success": False, "dedup": True, "content_returned": False, "error": "x"}, []),
        ("skill_view", {"name": "foo"}, {**OK, "name": "foo", "dedup": True}, []),
        ("skills_list", {}, {**OK, "skills": [{"name": "foo"}]}, []),
        ("skill_manage", {"action": "create", "name": "foo", "content": "x"}, OK, [("foo", "create")]),
        ("skill_manage", {"action": "edit", "name": "foo", "content": "x"}, OK, [("foo", "patch")]),
        ("skill_manage", {"action": "patch", "name": "foo"}, {**OK, "_change": {}}, [("foo", "patch")]),
        ("skill_manage", {"action": "write_file", "name": "foo"}, OK, [("foo", "patch")]),
        ("skill_manage", {"action": "remove_file", "name": "foo"}, OK, [("foo", "patch")]),
        ("skill_manage", {"action": "delete", "name": "foo"}, OK, [("foo", "delete")]),
        ("skill_manage", {"action": "patch", "name": "foo"}, {"success": False, "error": "no match"}, []),
        ("skill_manage", {"action": "patch", "name": "foo"}, {**OK, "staged": True, "pending_id": "x"}, []),
        (
            "skill_manage",
            {"operations": [{"name": "a", "action": "create"}, {"name": "b", "action": "patch"}, {"action": "x"}, 7]},
            OK,
            [("a", "create"), ("b", "patch")],
        ),
        ("read_file", {"path": "/h/skills/foo/SKILL.md"}, {"content": "x"}, [("foo", "view")]),
        ("read_file", {"path": "skills/foo/SKILL.md"}, {"content": "x", "error": None}, [("foo", "view")]),
        ("read_file", {"path": "/h/skills/foo/SKILL.md"}, {"error": "no such file"}, []),
        ("read_file", {"path": "/h/notes.md"}, {"content": "x"}, []),
        ("write_file", {"path": "/h/.hermes/skills/foo/SKILL.md", "content": "x"}, {"bytes": 1}, [("foo", "patch")]),
        ("patch", {"path": "/h/.hermes/skills/foo/references/a.md"}, OK, [("foo", "patch")]),
        ("patch", {"mode": "patch", "patch": "*** Update File: a/foo/SKILL.md\n"}, OK, [("foo", "patch")]),
        ("terminal", {"command": "cat skills/foo/SKILL.md"}, {"output": "x", "exit_code": 0}, [("foo", "view")]),
        ("terminal", {"command": "cat skills/foo/SKILL.md"}, {"output": "", "exit_code": 1, "error": None}, []),
        ("terminal", {"command": "sed -i s/a/b/ skills/foo/SKILL.md"}, {"exit_code": 0}, [("foo", "patch")]),
        ("terminal", {"command": "cat SKILL.md", "workdir": "/h/skills/foo"}, {"exit_code": 0}, [("foo", "view")]),
        ("terminal", {"command": "cat skills/foo/SKILL.md"}, "Error executing tool: x", []),
        ("skill_view", {"name": "foo"}, "---\nname: foo\n---\ntext, not JSON", [("foo", "use")]),
        ("skill_view", {"name": ""}, OK, []),
        ("skill_view", {"name": 5}, OK, []),
        ("skill_manage", {"action": "patch"}, OK, []),
    ],
)
def test_tools(
    home: HermesHome,
    scanner: Scanner,
    tool: str,
    arguments: dict[str, Any],
    result: object,
    expected: list[tuple[str, str]],
) -> None:
    """Each tool that can touch a skill gives its kind of event when its call succeeds, and none when it fails."""
    home.session("s")
    home.calls("s", tool, result, **arguments)

    assert expected == [(skill, kind) for _, skill, kind, _ in scanner.scan().events()]
    assert {tool: 1} == scanner.counts()["s"][3]


def test_an_event_has_the_calls_time_and_the_skills_folder(home: HermesHome, scanner: Scanner) -> None:
    """Time is the call's, not the result's; the folder is told by the result."""
    home.session("s")
    home.calls("s", "skill_view", {**OK, "content": "x", "skill_dir": "/box/skills/foo"}, name="foo")
    home.tick(100)
    home.calls("s", "skill_manage", {**OK, "path": "writing/bar"}, action="create", name="bar")

    scanner.scan()
    assert ["2025-03-01T12:00:02.000Z", "2025-03-01T12:01:44.000Z"] == scanner.times()
    assert ["/box/skills/foo", str(home.path / "skills/writing/bar")] == scanner.paths()


@pytest.mark.parametrize(
    ("text", "turns", "expected"),
    [
        (slash("foo", "be short"), 1, [("foo", "use", "slash")]),
        (slash("foo", word="SYSTEM"), 1, [("foo", "use", "slash")]),
        (
            '[IMPORTANT: The user has invoked the "/a /b" stacked skill bundle, loading 2 skills together.]\n\n'
            "Skills loaded: a, b\nUser instruction: go\n",
            1,
            [("a", "use", "slash"), ("b", "use", "slash")],
        ),
        (
            '[IMPORTANT: The user has invoked the "morning" skill bundle, loading 2 skills.]\n\nSkills loaded: a, b\n',
            1,
            [("a", "use", "slash"), ("b", "use", "slash")],
        ),
        (
            '[IMPORTANT: The "foo" skill is auto-loaded for this channel.]\n\n# foo\n\n'
            '[IMPORTANT: The "bar" skill is auto-loaded for this channel.]\n# bar\n\nhello',
            1,
            [("bar", "use", "auto-load"), ("foo", "use", "auto-load")],
        ),
        ("/foo tidy notes.txt", 1, []),
        ('please explain [IMPORTANT: The user has invoked the "foo" skill', 1, []),
        (SUMMARY, 0, []),
        ("[CONTEXT SUMMARY]: earlier …", 0, []),
        ("[PRIOR CONTEXT — for reference only; not a new message]\nold\n[END OF PRIOR CONTEXT …", 0, []),
        ("Review the conversation above and update the skill library if …", 0, []),
        ("Review the conversation above and consider saving to memory …", 0, []),
        ("Review the conversation above and update two things: …", 0, []),
        (
            "\0json:" + json.dumps([{"type": "text", "text": slash("foo")}, {"type": "image_url"}]),
            1,
            [("foo", "use", "slash")],
        ),
        ("\0json:{broken", 1, []),
    ],
)
def test_user_rows(
    home: HermesHome, scanner: Scanner, text: str, turns: int, expected: list[tuple[str, str, str]]
) -> None:
    """What stands in a row of role user is a turn or none, and shows the skills that Hermes put into it."""
    home.session("s")
    home.user("s", text)

    scanner.scan()
    assert {"s": (1, turns, 0, {})} == scanner.counts()
    assert expected == sorted(event[1:] for event in scanner.events())


def test_the_old_reviewers_answer_is_dropped_with_its_prompt(home: HermesHome, scanner: Scanner) -> None:
    """The row of the model after a review prompt is the reviewer's, the next is the session's again."""
    home.session("s")
    home.user("s", "hello")
    home.says("s", "hi")
    home.user("s", "Review the conversation above and update the skill library …")
    home.calls("s", "skill_manage", OK, action="create", name="made-by-review")
    home.user("s", "thanks")
    home.says("s", "welcome")

    assert {"s": (2, 2)} == scanner.scan().turns()
    assert [] == scanner.events()


def test_observed_rows_are_others_talk(home: HermesHome, scanner: Scanner) -> None:
    """In a group, what members say to each other is no turn, and shows no skill."""
    home.session("s", source="telegram")
    home.user("s", slash("foo"), observed=1)
    home.user("s", "to you", observed=0)

    assert {"s": (1, 0)} == scanner.scan().turns()
    assert [] == scanner.events()


def test_preloaded_skills_count_once_a_session(home: HermesHome, scanner: Scanner) -> None:
    """A skill in the system prompt is used when the session starts, however often the session is read."""
    prompt = (
        "You are Hermes. <available_skills> bar </available_skills>\n\n[IMPORTANT: The user launched this CLI session with"
        ' the "foo" skill preloaded. Treat its instructions …]\n\n# foo\n\n[Skill directory: /h/skills/foo]\n'
    )
    home.session("s", system_prompt=prompt)
    home.user("s", "one")
    scanner.scan()
    home.user("s", "two")

    assert [("s", "foo", "use", "preload")] == scanner.scan().events()
    assert ["/h/skills/foo"] == scanner.paths()
    assert ["2025-03-01T12:00:01.000Z"] == scanner.times()


def test_sub_agents_have_no_user_turns_but_count(home: HermesHome, scanner: Scanner) -> None:
    """A delegated session's prompt is the parent's; its model turns, calls and events are its own session's."""
    home.session("p")
    home.session("c", source="subagent", parent_session_id="p", model_config={"_delegate_from": "p"})
    home.user("c", "do it")
    home.calls("c", "skill_view", {**OK, "content": "x"}, name="foo")

    assert {"c": (0, 1)} == scanner.scan().turns()
    assert [("c", "foo", "use", "skill_view")] == scanner.events()
    assert "p" == scanner.sessions()["c"].parent
    assert "subagent" == scanner.sessions()["c"].kind


@pytest.mark.parametrize(
    ("source", "kind"),
    [("cli", "person"), ("telegram", "person"), ("cron", "scheduled"), ("api_server", "program"), ("tool", "program")],
)
def test_who_drives_a_session(home: HermesHome, scanner: Scanner, source: str, kind: str) -> None:
    """The session's source says who drives it; schedules are no work."""
    home.session("s", source=source)
    home.user("s", "go")

    assert kind == scanner.scan().sessions()["s"].kind
    assert (kind == "scheduled") == (scanner.newest_work() is None)


def test_the_hosts_curator_and_curatord_itself_count_for_nothing(home: HermesHome, scanner: Scanner) -> None:
    """Sessions of the reviewer, and curatord's own prompts put through Hermes, have no turns and no events."""
    home.session("r", source="curator")
    home.user("r", "curate")
    home.calls("r", "skill_view", {**OK, "content": "x"}, name="foo")
    home.session("o", source="api_server")
    home.user("o", f"Answer.\n{OWN_MARK}\n{{}}\n</curatord-data>")
    home.calls("o", "skill_view", {**OK, "content": "x"}, name="foo")
    scanner.scan()
    home.calls("o", "skill_view", {**OK, "content": "x"}, name="foo")

    assert {} == scanner.scan().counts()
    assert [] == scanner.events()


# -- rows that come again


def some_talk(home: HermesHome, name: str = "s") -> None:
    """Write a session with two turns, a repeated sentence, and a skill that is used and patched."""
    home.session(name)
    home.user(name, "please continue")
    home.calls(name, "skill_view", {**OK, "content": "x"}, name="foo")
    home.says(name, "ok")
    home.user(name, "please continue")
    home.calls(name, "skill_manage", OK, action="patch", name="foo")
    home.says(name, "ok")


TALK = (2, 4)
EVENTS = [("s", "foo", "use", "skill_view"), ("s", "foo", "patch", "skill_manage")]


def test_equal_rows_of_one_session_are_all_counted(home: HermesHome, scanner: Scanner) -> None:
    """A person may say the same twice."""
    some_talk(home)

    assert {"s": TALK} == scanner.scan().turns()
    assert EVENTS == scanner.events()


@pytest.mark.parametrize("scan_first", [True, False])
@pytest.mark.parametrize("keep_times", [True, False])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_compaction_in_place(home: HermesHome, scanner: Scanner, scan_first: bool, keep_times: bool, role: str) -> None:
    """Copies and summary add rows and no turns; what is said afterwards counts, also when it was said before."""
    some_talk(home)
    if scan_first:
        scanner.scan()
    home.compact("s", keep=4, keep_times=keep_times, role=role)
    if scan_first:
        scanner.scan()
    home.user("s", "please continue")
    home.says("s", "ok")
    home.compact("s", keep=2, keep_times=keep_times, role=role)

    assert {"s": (3, 5)} == scanner.scan().turns()
    assert EVENTS == scanner.events()
    assert 8 + 5 + 2 + 3 == scanner.counts()["s"][0]


def test_rewound_rows_did_happen(home: HermesHome, scanner: Scanner) -> None:
    """Undo puts rows aside; they count, before and after."""
    some_talk(home)
    home.rewind("s", 4)
    assert {"s": TALK} == scanner.scan().turns()
    home.rewind("s", 2)
    assert {"s": TALK} == scanner.scan().turns()
    assert EVENTS == scanner.events()


@pytest.mark.parametrize("drop", [0, 3])
def test_a_session_rewritten_whole(home: HermesHome, scanner: Scanner, drop: int) -> None:
    """All rows deleted and inserted again with new ids and times are still those that were counted."""
    some_talk(home)
    scanner.scan()
    home.rewrite("s", drop=drop)
    home.user("s", "something new")

    assert {"s": (3, 4)} == scanner.scan().turns()
    assert EVENTS == scanner.events()


@pytest.mark.parametrize("scan_first", [True, False])
@pytest.mark.parametrize("keep_times", [True, False])
def test_branches_copy_their_parents_rows(
    home: HermesHome, scanner: Scanner, scan_first: bool, keep_times: bool
) -> None:
    """What a branch begins with is its parent's; what is said in it is its own, also when the parent said it too."""
    some_talk(home)
    if scan_first:
        scanner.scan()
    home.branch("s", "b", keep_times=keep_times)
    home.branch("b", "c", keep_times=keep_times)
    home.user("b", "please continue")
    home.says("c", "ok")

    assert {"s": TALK, "b": (1, 0), "c": (0, 1)} == scanner.scan().turns()
    assert EVENTS == scanner.events()


def test_older_compaction_goes_on_in_a_child(home: HermesHome, scanner: Scanner) -> None:
    """The child begins with a summary and the kept tail, and its parent is told."""
    some_talk(home)
    home.end("s", "compression")
    home.session("s2", parent_session_id="s")
    home.user("s2", "[CONTEXT SUMMARY]: earlier …")
    home._copy_rows("s", "s2", keep_times=True)
    home.user("s2", "go on")

    assert {"s": TALK, "s2": (1, 0)} == scanner.scan().turns()
    assert "s" == scanner.sessions()["s2"].parent
    assert EVENTS == scanner.events()


def test_two_sessions_may_say_the_same_at_the_same_time(home: HermesHome, scanner: Scanner) -> None:
    """Rows are compared within a conversation, never across."""
    for name in ("a", "b"):
        home.session(name)
        home.user(name, "hello", at=1740830400.0)

    assert {"a": (1, 0), "b": (1, 0)} == scanner.scan().turns()


def test_pruned_sessions_stay_counted(home: HermesHome, scanner: Scanner) -> None:
    """What Hermes deletes is gone from its database only."""
    some_talk(home)
    some_talk(home, "t")
    before = scanner.scan().counts()
    home.prune("t")
    home.prune("s")
    home.session("u")
    home.user("u", "new")

    assert {**before, "u": (1, 1, 0, {})} == scanner.scan().counts()


@pytest.mark.parametrize("keep_ids", [True, False])
def test_a_rebuilt_database(home: HermesHome, scanner: Scanner, keep_ids: bool) -> None:
    """Another file with the same rows, under their ids or new ones, adds nothing but what is new in it."""
    some_talk(home)
    some_talk(home, "t")
    scanner.scan()
    home.prune("s")
    home.rebuild(keep_ids=keep_ids)
    home.user("t", "please continue")

    scanner.scan()
    assert {"s": TALK, "t": (3, 4)} == scanner.turns()
    assert keep_ids == (not any(note.startswith("restart") for note in scanner.notes))


def test_the_same_home_under_two_roots(tmp_path: Path, home: HermesHome) -> None:
    """A copied home counts once."""
    some_talk(home)
    home.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "state.db").write_bytes(home.file.read_bytes())
    scanner = Scanner(tmp_path / "two", ("hermes", home.path), ("hermes", copy)).scan()

    assert {"s": TALK} == scanner.turns()
    assert EVENTS == scanner.events()
    scanner.close()


# -- calls and results apart


def test_a_result_of_a_later_scan(home: HermesHome, scanner: Scanner) -> None:
    """A call waits for its result: a success counts then, a failure never."""
    home.session("s")
    good = home.calls("s", "skill_view", None, name="good")
    bad = home.calls("s", "skill_view", None, name="bad")
    assert [] == scanner.scan(settled=False).events()
    home.answers("s", bad, "skill_view", {"success": False, "error": "no"})
    home.answers("s", good, "skill_view", {**OK, "content": "x"})

    assert [("s", "good", "use", "skill_view")] == scanner.scan(settled=False).events()


def test_a_call_without_a_result_counts_when_its_session_is_settled(home: HermesHome, scanner: Scanner) -> None:
    """A crash leaves calls open: they count as done, until a failure shows after all."""
    home.session("s")
    call_id = home.calls("s", "skill_view", None, name="foo")
    assert [("s", "foo", "use", "skill_view")] == scanner.scan().events()
    home.answers("s", call_id, "skill_view", {"success": False, "error": "no"})

    assert [] == scanner.scan().events()


def test_parallel_calls_are_answered_in_any_order(home: HermesHome, scanner: Scanner) -> None:
    """Results are matched by the call's id."""
    home.session("s")
    home.row("s", "assistant", "", tool_calls=[call("skill_view", "1", name="a"), call("skill_view", "2", name="b")])
    home.answers("s", "2", "skill_view", {"success": False})
    home.answers("s", "1", "skill_view", {**OK, "content": "x"})

    assert ["a"] == [event[1] for event in scanner.scan().events()]


def test_call_ids_may_repeat(home: HermesHome, scanner: Scanner) -> None:
    """Small servers number calls anew in each answer, and sessions share numbers."""
    for name in ("s", "t"):
        home.session(name)
        for _ in range(2):
            home.row(name, "assistant", "", tool_calls=[call("skill_view", "call_0", name="a")])
            home.answers(name, "call_0", "skill_view", {**OK, "content": name})

    assert 4 == len(scanner.scan().events())


# -- bad input


def test_odd_rows(home: HermesHome, scanner: Scanner) -> None:
    """Any value in any column is taken for what it can be, and nothing raises."""
    home.session("s")
    home.row("s", "assistant", None, tool_calls="{not json")
    home.row(
        "s", "assistant", None, tool_calls='[{"id": 5, "function": {"name": "skill_view", "arguments": "{\\"name\\""}}]'
    )
    home.row("s", "assistant", None, tool_calls='[null, 7, {"function": null}, {"function": {"name": ["x"]}}]')
    home.row("s", "tool", "[" * 100_000, tool_call_id="5", tool_name="skill_view")
    home.row("s", "martian", "?")
    home.db.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, 'no time')", (b"\xff\xfe",)
    )
    home.db.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', CAST(x'ff80' AS TEXT), -5)"
    )
    home.user("s", "far away", at=99_999_999_999.0)
    home.user("s", "\ud7ff lone \\ud800")
    home.row("nobody", "user", "a session without a row")

    counts = scanner.scan().counts()
    assert (9, 4, 3) == counts["s"][:3]
    assert (1, 1, 0) == counts["nobody"][:3]
    assert {"role martian": 1} == scanner.source().unknown


def test_large_contents_are_read_at_their_ends(home: HermesHome, scanner: Scanner) -> None:
    """A result of many megabytes still tells failure from success."""
    home.session("s")
    big = "x" * (3 * 1024 * 1024)
    home.calls("s", "skill_view", {**OK, "name": "good", "content": big}, name="good")
    home.calls("s", "skill_view", {"success": False, "error": big}, name="bad")
    home.calls("s", "terminal", {"output": big, "exit_code": 2}, command="cat a/SKILL.md")
    home.user("s", "\0json:" + json.dumps([{"type": "image", "data": big}]))

    assert ["good"] == [event[1] for event in scanner.scan().events()]


def test_no_database_an_empty_one_and_something_else(tmp_path: Path) -> None:
    """A home without a database waits, an empty file holds nothing, other files are said to be no database."""
    (tmp_path / "none").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "state.db").touch()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "state.db").write_text("no database at all, but long enough to be looked at" * 100)
    (tmp_path / "other").mkdir()
    import sqlite3

    other = sqlite3.connect(tmp_path / "other" / "state.db")
    other.execute("CREATE TABLE x (y)")
    other.close()
    scanner = Scanner(
        tmp_path / "state", *(("hermes", tmp_path / name) for name in ("none", "empty", "text", "other", "missing"))
    ).scan()

    assert ["waiting", "failed", "failed"] == sorted((note.split(":")[0] for note in scanner.notes), reverse=True)
    assert any("is no session database of Hermes" in note for note in scanner.notes)
    assert any("file is not a database" in note for note in scanner.notes)
    scanner.close()


def test_damage_in_the_middle_keeps_what_is_before_it(tmp_path: Path, home: HermesHome, scanner: Scanner) -> None:
    """Rows before the damage count, the watermark stands before it, and a repaired file is read on from there."""
    home.session("s")
    for n in range(400):
        home.user("s", f"{n} " + "y" * 2000)
    home.close()
    whole = home.file.read_bytes()
    # All pages behind the first third are noise: the tree's upper page, near the front, still leads to them.
    third = len(whole) // 3 // 4096 * 4096
    home.file.write_bytes(whole[:third] + b"\xa5" * (len(whole) - third))

    scanner.scan()
    read = scanner.turns().get("s", (0, 0))[0]
    assert any("malformed" in note for note in scanner.notes)
    assert read < 400
    home.file.write_bytes(whole)
    assert {"s": (400, 0)} == scanner.scan().turns()


@pytest.mark.parametrize("keep", [0, 50, 100, 4096, 10_000])
def test_a_truncated_database_raises_nothing_and_loses_nothing(home: HermesHome, scanner: Scanner, keep: int) -> None:
    """Cut anywhere, the file is reported or empty; whole again, everything counts once."""
    some_talk(home)
    scanner.scan()
    home.close()
    whole = home.file.read_bytes()
    home.file.write_bytes(whole[:keep])
    scanner.scan()
    home.file.write_bytes(whole)

    assert {"s": TALK} == scanner.scan().turns()
    assert EVENTS == scanner.events()
