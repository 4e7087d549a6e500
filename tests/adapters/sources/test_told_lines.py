"""What is told of files of lines, and what is left out by their structure."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from curatord.adapters.sources.conversations import open_conversations
from curatord.adapters.sources.registry import open_source
from curatord.core.distil.said import MAX_SAID, Said
from curatord.core.settings import HostName, SourceSettings
from curatord.core.transcript.events import OWN_MARK
from curatord.ports.conversation import Since
from curatord.ports.source import Start
from tests.claude_log import BODY, Log
from tests.told import Codex, GeminiJournal, Pi, Qwen, short, stamp, watermark

Texts = list[tuple[str, str]]


def said(host: HostName, root: Path, path: Path, session: str, since: Since | None = None) -> list[Said]:
    """Return what is told of *session* in the file at *path*."""
    conversations = open_conversations(SourceSettings(host=host), str(root))
    return list(conversations.said(str(path), session, since or Since(), until=None, stop=lambda: False))


def texts(told: list[Said]) -> Texts:
    """Return role and text of each."""
    return [(each.role, each.text) for each in told]


# -- Claude Code


@pytest.fixture
def log() -> Log:
    """Return an empty session."""
    return Log("s-1")


def of(log: Log, tmp_path: Path) -> Texts:
    """Return what is told of a log."""
    return texts(said("claude-code", tmp_path, log.write(tmp_path / "projects"), log.session))


def test_a_slash_command_is_told_as_typed(log: Log, tmp_path: Path) -> None:
    """Of a command that expands, the name and the arguments are told and not the body; built-in ones are not told."""
    log.said(
        "<command-message>deploy is running…</command-message>\n<command-name>/deploy</command-name>\n"
        "<command-args>to staging\nnow</command-args>"
    )
    log.meta(f"{BODY}deploy\n\n# Deploy\nrun it")
    log.model({"type": "text", "text": "Deployed."})
    log.slash("exit")

    assert [("user", "/deploy to staging\nnow"), ("assistant", "Deployed.")] == of(log, tmp_path)


def test_a_prompt_typed_in_mid_turn(log: Log, tmp_path: Path) -> None:
    """A prompt that only the queue shows is told with its text, in its place, once."""
    log.said("go")
    log.queue("enqueue", "and quickly")
    log.queue("enqueue", "<task-notification>done</task-notification>")
    log.model({"type": "text", "text": "Going."})
    log.queue("remove")
    log.queue("remove")
    log.attachment(type="queued_command", prompt="and quickly", commandMode="prompt")

    assert [("user", "go"), ("assistant", "Going."), ("user", "and quickly")] == of(log, tmp_path)


def test_a_queued_prompt_as_attachment(log: Log, tmp_path: Path) -> None:
    """A prompt that only an attachment shows is told with its text."""
    log.attachment(type="queued_command", prompt=[{"type": "text", "text": "as well"}], commandMode="prompt")
    log.attachment(type="queued_command", prompt="tick", commandMode="prompt", origin={"kind": "cron"})

    assert [("user", "as well")] == of(log, tmp_path)


def test_what_stands_around_a_prompt_is_the_programs(log: Log, tmp_path: Path) -> None:
    """Reminders and editor notices before and behind a prompt are left out; one that quotes such a tag is not cut."""
    reminder = "<system-reminder>\nuse tools\n</system-reminder>"
    log.said([{"type": "text", "text": reminder}, {"type": "text", "text": "fix it"}])
    log.said(f"<ide_selection>x</ide_selection>{reminder}and test it\n\n{reminder}")
    log.said("what does <system-reminder> mean?")
    log.said([{"type": "image", "source": {}}])

    expected = ["fix it", "and test it", "what does <system-reminder> mean?", "[image]"]
    assert [("user", text) for text in expected] == of(log, tmp_path)


def test_megabytes_of_tags_cost_their_length(log: Log, tmp_path: Path) -> None:
    """A prompt that is nothing but closed or open tags is passed in the time that its length takes."""
    closed = "<system-reminder></system-reminder>" * 100_000
    log.said(closed + "one" + closed)
    log.said("<command-name>/x</command-name>" + "<command-args>" * 400_000)
    log.meta("expanded")
    log.said("<system-reminder>" * 400_000)

    expected = ["one", "/x"]
    assert expected == [text[:3] if text.startswith("one") else text[:2] for _, text in of(log, tmp_path)]


def test_a_message_that_is_a_text(log: Log, tmp_path: Path) -> None:
    """A record whose message or snapshot is no object is passed over, by ingest as well."""
    log.said("one")
    for kind in ("user", "assistant", "file-history-snapshot"):
        log.raw({"type": kind, "message": "user", "snapshot": "x", "sessionId": "s-1"})
    log.said("two")
    path = log.write(tmp_path / "projects")
    source = open_source(SourceSettings(host="claude-code"), str(tmp_path))
    item = source.item_at(str(path))
    assert item is not None

    (read,) = source.read(item, Start(), lambda: False)

    assert 2 == read.findings.sessions["s-1"].user_turns
    assert [("user", "one"), ("user", "two")] == of(log, tmp_path)


def test_what_no_person_said_is_not_told(log: Log, tmp_path: Path) -> None:
    """Summaries, meta records, output of commands, synthetic messages, hooks and a schedule's prompt are left out."""
    log.said("This session is being continued from a previous conversation …", isCompactSummary=True)
    log.meta("Caveat: whatever")
    log.said("<local-command-stdout>ok</local-command-stdout>")
    log.said("Stop hook feedback: no")
    log.said("<task-notification>x</task-notification>")
    log.model({"type": "text", "text": "API Error"}, model="<synthetic>")
    log.add(type="system", subtype="scheduled_task_fire", content="tick")
    log.said("the prompt of the schedule")
    log.model({"type": "text", "text": "Done by itself."})
    log.said("and now mine")

    assert [("assistant", "Done by itself."), ("user", "and now mine")] == of(log, tmp_path)


def test_a_message_over_several_records_is_one(log: Log, tmp_path: Path) -> None:
    """The parts of one message are one, with all its calls, though results stand between them."""
    log.model({"type": "text", "text": "First."}, message="msg_1")
    log.model({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "a"}}, message="msg_1")
    log.result("toolu_1", "boom", error=True)
    log.model({"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}}, message="msg_1")
    log.model({"type": "text", "text": "Second."}, message="msg_2")
    told = said("claude-code", tmp_path, log.write(tmp_path / "projects"), "s-1")

    assert [
        ("assistant", "First.", ("Bash", "Read")),
        ("error", "boom", ("Bash",)),
        ("assistant", "Second.", ()),
    ] == short(told)


def test_a_message_that_goes_on_behind_the_last_look(log: Log, tmp_path: Path) -> None:
    """Of a message whose first part is known only the rest is told."""
    log.said("go")
    log.model({"type": "text", "text": "First."}, message="msg_1")
    path = log.write(tmp_path / "projects")
    seen = path.stat().st_size
    log.model({"type": "text", "text": "Rest."}, message="msg_1")
    log.write(tmp_path / "projects")

    assert [("assistant", "Rest.")] == texts(said("claude-code", tmp_path, path, "s-1", Since(offset=seen)))


def test_a_failure_that_only_the_structured_result_tells(log: Log, tmp_path: Path) -> None:
    """A result without the mark is an error where the host's own result says so."""
    call = log.call("Edit")
    log.result(call, "no match", outcome="Error: no match")

    assert ("error", "no match") in of(log, tmp_path)


def test_sub_agents_are_not_told(log: Log, tmp_path: Path) -> None:
    """A sub-agent's file, and its records in the main file, tell nothing."""
    log.said("go")
    log.said("look at it", isSidechain=True)
    log.model({"type": "text", "text": "Looked."}, isSidechain=True)
    path = log.write(tmp_path / "projects")
    agent = path.parent / "s-1" / "subagents" / "agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(path.read_bytes())

    assert [("user", "go")] == of(log, tmp_path)
    assert [] == said("claude-code", tmp_path, agent, "s-1")


def test_our_own_sessions_are_not_told(log: Log, tmp_path: Path) -> None:
    """A session whose first prompt is curatord's own tells nothing at all."""
    log.said(f"Merge these.\n{OWN_MARK}\n{{}}\n</curatord-data>")
    log.model({"type": "text", "text": "{}"})
    log.said("and then?")

    assert [] == of(log, tmp_path)


def test_a_person_may_quote_our_mark_later(log: Log, tmp_path: Path) -> None:
    """Only the first prompt makes a session ours."""
    log.said("go")
    log.said(f"why does it print {OWN_MARK}?")

    assert [("user", "go"), ("user", f"why does it print {OWN_MARK}?")] == of(log, tmp_path)


def test_records_of_another_session_are_its_own(log: Log, tmp_path: Path) -> None:
    """Of a file with the records of two sessions, each tells its own."""
    log.said("in one")
    path = log.write(tmp_path / "projects")
    other = Log("s-2", name="s-2")
    other.said("in two")
    path.write_bytes(log.text() + other.text())

    assert [("user", "in one")] == texts(said("claude-code", tmp_path, path, "s-1"))
    assert [("user", "in two")] == texts(said("claude-code", tmp_path, path, "s-2"))


def test_records_written_twice_are_told_once(log: Log, tmp_path: Path) -> None:
    """Records that stand in their file twice are told once."""
    log.said("go")
    log.model({"type": "text", "text": "Gone."})
    path = log.write(tmp_path / "projects")
    path.write_bytes(log.text() + log.text())

    assert [("user", "go"), ("assistant", "Gone.")] == texts(said("claude-code", tmp_path, path, "s-1"))


def test_a_text_beyond_measure_keeps_its_ends(log: Log, tmp_path: Path) -> None:
    """Of a longer text both ends are told, with how much is left out, and what cannot be stored is replaced."""
    log.said("begin" + "x" * 3 * MAX_SAID + "\ud800end")

    ((role, text),) = of(log, tmp_path)

    assert role == "user"
    assert text.startswith("beginx")
    assert text.endswith("?end")
    assert f"[… {2 * MAX_SAID + 9} characters left out …]" in text


def test_a_line_too_long_to_hold_stands_in_its_place(log: Log, tmp_path: Path) -> None:
    """A prompt with a picture of many megabytes is told with its text, between what stands around it."""
    log.said("before")
    picture = {"type": "image", "source": {"type": "base64", "data": "x" * 9_000_000}}
    log.said([{"type": "text", "text": "what is this?"}, picture])
    log.model({"type": "text", "text": "A cat."})

    assert [("user", "before"), ("user", "what is this?"), ("assistant", "A cat.")] == of(log, tmp_path)


BIG = """
import re, sys
from pathlib import Path
from curatord.adapters.sources.conversations import open_conversations
from curatord.adapters.sources.registry import open_source
from curatord.core.settings import SourceSettings
from curatord.ports.conversation import Since
from curatord.ports.source import Start

told = open_conversations(SourceSettings(host="claude-code"), sys.argv[1]).said(
    sys.argv[2], "s-1", Since(), until=None, stop=lambda: False
)
prompts = sum(1 for _ in told)
print(prompts, int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def test_memory_does_not_depend_on_the_line(log: Log, tmp_path: Path) -> None:
    """A line of 200 MB among others is passed in less than 150 MB of memory."""
    log.said("before")
    path = log.write(tmp_path / "projects")
    head, tail = json.dumps({**json.loads(log.lines[0]), "uuid": "x" * 36}).rsplit("before", 1)
    with path.open("ab") as file:
        file.write(head.encode())
        for _ in range(200):
            file.write(b"y" * 1_000_000)
        file.write(tail.encode() + b"\n")
    log.said("after")
    with path.open("ab") as file:
        file.write(log.lines[-1].encode() + b"\n")

    told = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path), str(path)], capture_output=True, text=True, timeout=120, check=True
    )

    prompts, megabytes = map(int, told.stdout.split())
    assert prompts == 3
    assert megabytes < 150


# -- Codex


def rollout(tmp_path: Path, number: int, records: list[Any]) -> tuple[Path, str]:
    """Write a rollout; return its path and its thread."""
    thread = f"019a0000-0000-7000-8000-{number:012x}"
    path = tmp_path / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T12-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    return path, thread


def line(second: int, kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": stamp(second), "type": kind, "payload": payload}


def message(second: int, role: str, text: str) -> dict[str, Any]:
    return line(second, "response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])


def test_the_editors_context_is_cut_off(tmp_path: Path) -> None:
    """Of a prompt with an editor's context only the prompt is told; mentions' bodies and injected messages are not."""
    path, thread = rollout(tmp_path, 1, [
        line(0, "session_meta", id="019a0000-0000-7000-8000-000000000001", source="vscode"),
        message(1, "user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\n</INSTRUCTIONS>"),
        message(2, "user", "# Context from my IDE setup:\n\n## Tabs\n\n## My request for Codex:\nuse $notes\n"),
        message(3, "user", "<skill>\n<name>notes</name>\n<path>/x/SKILL.md</path>\nbody\n</skill>"),
    ])  # fmt: skip

    assert [("user", "use $notes")] == texts(said("codex", tmp_path, path, thread))


def test_calls_before_the_first_word(tmp_path: Path) -> None:
    """Calls belong to the next message; where none follows before a person speaks, they are told without words."""
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":\n["ls"]}'}
    path, thread = rollout(tmp_path, 1, [
        line(0, "session_meta", id="019a0000-0000-7000-8000-000000000001"),
        message(1, "user", "one"),
        line(2, "response_item", **call, call_id="call_1"),
        message(3, "assistant", "Listed."),
        message(4, "user", "two"),
        line(5, "response_item", **call, call_id="call_2"),
        message(6, "user", "stop"),
    ])  # fmt: skip

    told = said("codex", tmp_path, path, thread)

    assert [
        ("user", "one", ()), ("assistant", "Listed.", ("shell",)), ("user", "two", ()), ("assistant", "", ("shell",)),
        ("user", "stop", ()),
    ] == short(told)  # fmt: skip
    assert '{"command":\\n["ls"]}' == told[1].tools[0].arguments


def v7(ms: int) -> str:
    """Return a version 7 UUID that was made at *ms*."""
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7000-8000-000000000000"


def test_a_forks_copies_are_not_told_again(tmp_path: Path) -> None:
    """A fork's file begins with its origin's turns, which are older than the thread: only its own are told."""
    began = 1_772_366_400_000
    old, own = v7(began - 60_000), v7(began + 5)
    path, _ = rollout(tmp_path, 1, [
        line(0, "session_meta", id=v7(began), forked_from_id=v7(began - 90_000)),
        line(0, "session_meta", id=v7(began - 90_000)),
        line(0, "event_msg", type="task_started", turn_id=old),
        line(0, "turn_context", turn_id=old),
        message(0, "user", "in the origin"),
        message(0, "assistant", "There."),
        line(1, "event_msg", type="task_started", turn_id=own),
        line(1, "turn_context", turn_id=own),
        message(1, "user", "in the fork"),
        message(2, "assistant", "Here."),
    ])  # fmt: skip

    assert [("user", "in the fork"), ("assistant", "Here.")] == texts(said("codex", tmp_path, path, v7(began)))


@pytest.mark.parametrize(("suffix", "pack"), [(".zst", zstd.compress), (".gz", gzip.compress)])
def test_compressed_files(suffix: str, pack: Any, tmp_path: Path) -> None:
    """A packed file is told as it was before it was packed, its offsets are those of the unpacked bytes."""
    world = Codex(tmp_path)
    world.first()
    seen = watermark(world)
    world.second()
    plain = world.said(Since(offset=seen))
    path = Path(world.item)
    packed = path.with_name(path.name + suffix)
    packed.write_bytes(pack(path.read_bytes()))

    assert [] == said("codex", tmp_path, packed, world.session)  # told from the plain one
    path.unlink()
    assert len(plain) == 2
    assert plain == said("codex", tmp_path, packed, world.session, Since(offset=seen))


def test_the_oldest_rollouts_are_documents(tmp_path: Path) -> None:
    """A document of items is told whole."""
    thread = "019a0000-0000-7000-8000-000000000001"
    path = tmp_path / "sessions" / f"rollout-2025-03-01-{thread}.json"
    path.parent.mkdir(parents=True)
    items = [message(0, "user", "one")["payload"], message(0, "assistant", "Done.")["payload"]]
    session = {"id": thread, "timestamp": stamp(0), "instructions": ""}
    path.write_text(json.dumps({"session": session, "items": items}, indent=2))

    assert [("user", "one"), ("assistant", "Done.")] == texts(said("codex", tmp_path, path, thread))


# -- the others


def test_pi_forks_and_slash_commands(tmp_path: Path) -> None:
    """Entries older than a fork's header are its origin's; of a skill's body only what was typed for it is told."""
    world = Pi(tmp_path)
    world.first()
    path = Path(world.item)
    body = '<skill name="notes" location="/x/SKILL.md">\nReferences are relative to /x.\n\n# notes\n</skill>\n\nfor 1.2'
    header = {"type": "session", "version": 3, "id": "fork", "timestamp": stamp(9), "parentSession": "/y.jsonl"}
    slash = {"type": "message", "id": "a", "timestamp": stamp(10), "message": {"role": "user", "content": body}}
    lines = [json.dumps(header), *path.read_text().splitlines()[1:], json.dumps(slash)]
    fork = path.with_name("2026-03-01T12-00-09-000Z_fork.jsonl")
    fork.write_text("\n".join(lines) + "\n")

    assert [("user", "/skill:notes for 1.2")] == texts(said("pi", tmp_path, fork, "fork"))


def test_gemini_rewinds_take_back(tmp_path: Path) -> None:
    """What was rewound is not told, and a message is told in its last state, from where it first stood."""
    world = GeminiJournal(tmp_path)
    world.first()
    world.second()
    with Path(world.item).open("ab") as file:
        grown = {"id": "m-7", "timestamp": stamp(7), "type": "gemini", "content": "Built twice."}
        wrong = {"id": "m-8", "timestamp": stamp(8), "type": "user", "content": "no, that"}
        for record in (grown, wrong, {"$rewindTo": "m-8"}):
            file.write(json.dumps(record).encode() + b"\n")

    assert [("user", "then build it"), ("assistant", "Built twice.")] == texts(world.said())[-2:]


def test_gemini_lists_of_many_messages(tmp_path: Path) -> None:
    """A list of ten thousand messages that is set twice is told once, and in the time that its length takes."""
    world = GeminiJournal(tmp_path)
    world.first()
    listed = [
        {"id": f"n-{number}", "timestamp": stamp(9), "type": "user", "content": f"prompt {number}"}
        for number in range(10_000)
    ]
    with Path(world.item).open("ab") as file:
        for _ in range(2):
            file.write(json.dumps({"$set": {"messages": listed}}).encode() + b"\n")

    assert [("user", f"prompt {number}") for number in range(10_000)] == texts(world.said())[4:]


def test_gemini_documents_that_went_on_as_journals(tmp_path: Path) -> None:
    """A document whose journal lies beside it is not told: the journal has all of it."""
    world = GeminiJournal(tmp_path)
    world.first()
    document = Path(world.item).with_suffix(".json")
    messages = [{"id": "m-2", "timestamp": stamp(2), "type": "user", "content": "deploy the app"}]
    document.write_text(json.dumps({"sessionId": world.session, "messages": messages}))

    assert [] == said("gemini-cli", tmp_path, document, world.session)
    Path(world.item).unlink()
    assert [("user", "deploy the app")] == texts(said("gemini-cli", tmp_path, document, world.session))


def test_qwen_reminders(tmp_path: Path) -> None:
    """Reminders around a prompt are left out, and a record that is nothing else."""
    world = Qwen(tmp_path)
    world.first()
    reminder = "<system-reminder>use tools</system-reminder>"
    with Path(world.item).open("ab") as file:
        for number, parts in enumerate((["go", reminder, reminder], [reminder], ["what is <system-reminder>?"])):
            record = {
                "uuid": f"{number}" * 36, "sessionId": world.session, "timestamp": stamp(9), "type": "user",
                "provenance": "real_user", "message": {"role": "user", "parts": [{"text": part} for part in parts]},
            }  # fmt: skip
            file.write(json.dumps(record).encode() + b"\n")

    expected = [("user", "go"), ("user", "what is <system-reminder>?")]
    assert expected == texts(world.said())[3 + 1 :]


@pytest.mark.parametrize(
    ("rest", "typed"),
    [
        ("\n/notes data.csv\n<skill-args>data.csv</skill-args>\n", "/notes data.csv"),
        ("\n/notes data.csv\n", "/notes data.csv"),
        ("", "/notes"),
    ],
)  # fmt: skip
def test_qwen_slash_commands(rest: str, typed: str, tmp_path: Path) -> None:
    """Of a skill's body in a prompt only what was typed for it is told, as far as it stands there."""
    world = Qwen(tmp_path)
    world.first()
    text = f"Base directory for this skill: /home/dev/.qwen/skills/notes\nImportant: …\n\n# notes\n{rest}"
    record = {
        "uuid": "f" * 36, "sessionId": world.session, "timestamp": stamp(9), "type": "user", "provenance": "real_user",
        "message": {"role": "user", "parts": [{"text": text}]},
    }  # fmt: skip
    with Path(world.item).open("ab") as file:
        file.write(json.dumps(record).encode() + b"\n")

    assert ("user", typed) == texts(world.said())[-1]
