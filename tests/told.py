"""
Conversations of every host, in two halves, for the contract of `Conversations`.

Each world writes a session that says the same: first `FIRST`, then `SECOND`. What a host cannot say (an error without
a result that fails) is left out of its own expectation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from curatord.adapters.sources.conversations import open_conversations
from curatord.adapters.sources.registry import open_source
from curatord.core.distil.said import Said
from curatord.core.settings import HostName, SourceSettings
from curatord.ports.conversation import Since
from curatord.ports.source import Start
from tests.claude_log import Log
from tests.dsh_log import DshLog
from tests.hermes_home import HermesHome, call
from tests.openclaw_home import Entries, OpenClawDatabase, OpenClawHome
from tests.opencode_home import OpenCodeHome, OpenCodeTree

__all__ = ["FIRST", "SECOND", "WORLDS", "World", "short", "watermark"]

Short = tuple[str, str, tuple[str, ...]]

FIRST: list[Short] = [
    ("user", "deploy the app", ()),
    ("assistant", "I will look.", ("look",)),
    ("error", "no such file", ("look",)),
    ("assistant", "It is not there.", ()),
]
SECOND: list[Short] = [("user", "then build it", ()), ("assistant", "Built.", ())]


class World:
    """One host's place with one session, grown in two steps."""

    host: HostName
    session = "s-1"
    opening = "deploy the app"
    errors = True
    failure = "no such file"

    def __init__(self, path: Path) -> None:
        self.root = path
        path.mkdir(parents=True, exist_ok=True)

    def first(self) -> None:
        """Write the first half."""
        raise NotImplementedError

    def second(self) -> None:
        """Write the second half as well."""
        raise NotImplementedError

    @property
    def item(self) -> str:
        """The path of the item."""
        raise NotImplementedError

    def close(self) -> None:
        """End as the host does."""

    @property
    def settings(self) -> SourceSettings:
        """How the place is configured."""
        return SourceSettings(host=self.host)

    def said(self, since: Since | None = None, until: int | None = None, session: str | None = None) -> list[Said]:
        """Return what was said."""
        conversations = open_conversations(self.settings, str(self.root))
        told = conversations.said(self.item, session or self.session, since or Since(), until=until, stop=lambda: False)
        return list(told)

    def expected(self, *halves: list[Short]) -> list[Short]:
        """Return what this host can say of *halves*."""
        return [
            (role, self.failure if role == "error" else text, tools)
            for half in halves
            for role, text, tools in half
            if self.errors or role != "error"
        ]


def short(said: list[Said]) -> list[Short]:
    """Return role, text and tools of each message."""
    return [(each.role, each.text, tuple(tool.name for tool in each.tools)) for each in said]


def watermark(world: World, *, settled: bool = False) -> int:
    """Return the watermark that ingest reaches in the world's item now."""
    source = open_source(world.settings, str(world.root))
    item = source.item_at(world.item)
    assert item is not None
    last = 0
    for slice_ in source.read(item, Start(settled=settled, now_ms=1_800_000_000_000), lambda: False):
        last = slice_.offset
    return last


def stamp(second: int) -> str:
    return f"2026-03-01T12:00:{second:02d}.000Z"


class Lines(World):
    """A host that writes a record a line: subclasses give the records of both halves."""

    name: str
    head: ClassVar[list[dict[str, Any]]] = []

    @property
    def item(self) -> str:
        return str(self.root / self.name)

    def records(self) -> tuple[list[Any], list[Any]]:
        raise NotImplementedError

    def first(self) -> None:
        self._write(self.head + self.records()[0])

    def second(self) -> None:
        with Path(self.item).open("ab") as file:
            file.write(_lines(self.records()[1]))

    def _write(self, records: list[Any]) -> None:
        path = Path(self.item)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_lines(records))


def _lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


class ClaudeCode(World):
    host: HostName = "claude-code"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.log = Log(self.session)
        self.file = path / "projects" / "-home-dev-app" / f"{self.session}.jsonl"

    @property
    def item(self) -> str:
        return str(self.file)

    def first(self) -> None:
        log = self.log
        log.said(self.opening)
        log.model({"type": "thinking", "thinking": "hm"}, message="msg_1")
        log.model({"type": "text", "text": "I will look."}, message="msg_1")
        log.model({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "x"}}, message="msg_1")
        log.result("toolu_1", "no such file", error=True)
        log.model({"type": "text", "text": "It is not there."})
        log.write(self.root / "projects")

    def second(self) -> None:
        self.log.said("then build it")
        self.log.model({"type": "text", "text": "Built."})
        self.log.write(self.root / "projects")


class Hermes(World):
    host: HostName = "hermes"
    failure = "Error: no such file"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.home = HermesHome(path)
        self.home.session(self.session)

    @property
    def item(self) -> str:
        return str(self.home.file)

    def first(self) -> None:
        home = self.home
        home.user(self.session, self.opening)
        home.row(self.session, "assistant", "I will look.", tool_calls=[call("look", "call_1", at="x")])
        home.row(self.session, "tool", "Error: no such file", tool_call_id="call_1", tool_name="look")
        home.says(self.session, "It is not there.")

    def second(self) -> None:
        self.home.user(self.session, "then build it")
        self.home.says(self.session, "Built.")

    def close(self) -> None:
        self.home.close()


def _chat(opening: str, *, lines: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    first: list[dict[str, Any]] = [
        {"role": "user", "content": opening},
        {"role": "assistant", "content": "I will look.", "tool_calls": [call("look", "call_1", at="x")]},
        {"role": "tool", "content": "Error: no such file", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "It is not there."},
    ]
    second: list[dict[str, Any]] = [
        {"role": "user", "content": "then build it"},
        {"role": "assistant", "content": "Built."},
    ]
    if lines:
        for second_, message in enumerate(first + second):
            message["timestamp"] = f"2026-03-01T12:00:{second_:02d}"
    return first, second


class HermesDocument(World):
    """A session file whose messages have no times: their places say what is known."""

    host: HostName = "hermes"
    failure = "Error: no such file"

    @property
    def item(self) -> str:
        return str(self.root / "sessions" / "session_s-1.json")

    def _write(self, messages: list[Any]) -> None:
        path = Path(self.item)
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"session_id": "s-1", "platform": "cli", "last_updated": "2026-03-01T12:00:09", "messages": messages}
        path.write_text(json.dumps(whole, indent=2))

    def first(self) -> None:
        self._write(_chat(self.opening, lines=False)[0])

    def second(self) -> None:
        first, second = _chat(self.opening, lines=False)
        self._write(first + second)


class HermesGateway(Lines):
    host: HostName = "hermes"
    failure = "Error: no such file"
    name = "sessions/s-1.jsonl"
    head: ClassVar = [{"role": "session_meta", "platform": "telegram", "timestamp": "2026-03-01T11:59:59"}]

    def records(self) -> tuple[list[Any], list[Any]]:
        return _chat(self.opening, lines=True)


class Codex(Lines):
    host: HostName = "codex"
    failure = "failed to parse: no such file"
    session = "019a0000-0000-7000-8000-00000000000a"
    name = f"sessions/2026/03/01/rollout-2026-03-01T12-00-00-{session}.jsonl"

    def records(self) -> tuple[list[Any], list[Any]]:
        def item(second: int, kind: str, /, **payload: Any) -> dict[str, Any]:
            return {"timestamp": stamp(second), "type": "response_item", "payload": {"type": kind, **payload}}

        def message(second: int, role: str, text: str) -> dict[str, Any]:
            kind = "input_text" if role == "user" else "output_text"
            return item(second, "message", role=role, content=[{"type": kind, "text": text}])

        meta = {"id": self.session, "cwd": "/home/dev/app", "source": "cli"}
        return [
            {"timestamp": stamp(0), "type": "session_meta", "payload": meta},
            message(1, "user", "<environment_context>\n</environment_context>"),
            message(2, "user", self.opening),
            {"timestamp": stamp(2), "type": "event_msg", "payload": {"type": "user_message", "message": "deploy"}},
            message(3, "assistant", "I will look."),
            item(4, "function_call", name="look", arguments='{"at": "x"}', call_id="call_1"),
            item(5, "function_call_output", call_id="call_1", output="failed to parse: no such file"),
            message(6, "assistant", "It is not there."),
        ], [message(7, "user", "then build it"), message(8, "assistant", "Built.")]


class Pi(Lines):
    host: HostName = "pi"
    session = "01a22d95-12ad-708d-b228-7c8c0d3f69c6"
    name = f"sessions/--home-dev-app--/2026-03-01T12-00-00-000Z_{session}.jsonl"

    def records(self) -> tuple[list[Any], list[Any]]:
        def message(second: int, role: str, content: Any, /, **more: Any) -> dict[str, Any]:
            body = {"role": role, "content": content, **more}
            return {"type": "message", "id": f"{second:08x}", "timestamp": stamp(second), "message": body}

        def text(words: str) -> dict[str, Any]:
            return {"type": "text", "text": words}

        look = {"type": "toolCall", "id": "call_1", "name": "look", "arguments": {"at": "x"}}
        return [
            {"type": "session", "version": 3, "id": self.session, "timestamp": stamp(0), "cwd": "/home/dev/app"},
            message(1, "user", self.opening),
            message(2, "assistant", [{"type": "thinking", "thinking": "hm"}, text("I will look."), look]),
            message(3, "toolResult", [text("no such file")], toolCallId="call_1", toolName="look", isError=True),
            message(4, "assistant", [text("It is not there.")]),
        ], [message(5, "user", [text("then build it")]), message(6, "assistant", [text("Built.")])]


class OpenClawFile(World):
    host: HostName = "openclaw"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.home = OpenClawHome(path)
        self.entries = Entries(self.session)

    @property
    def item(self) -> str:
        return str(self.home.sessions / f"{self.session}.jsonl")

    def first(self) -> None:
        entries = self.entries
        entries.said(self.opening)
        call_id = "call_1"
        look = {"type": "toolCall", "id": call_id, "name": "look", "arguments": {}}
        entries.model({"type": "text", "text": "I will look."}, look)
        entries.add(
            "message",
            message={
                "role": "toolResult",
                "toolCallId": call_id,
                "toolName": "look",
                "content": [{"type": "text", "text": "no such file"}],
                "isError": True,
            },
        )
        entries.model(text="It is not there.")
        self.keep()

    def second(self) -> None:
        self.entries.said("then build it")
        self.entries.model(text="Built.")
        self.keep()

    def keep(self) -> None:
        """Write what there is."""
        self.home.write(self.entries)


class OpenClawRows(OpenClawFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.database = OpenClawDatabase(self.home)
        self.database.window(self.session)
        self._kept = 0

    @property
    def item(self) -> str:
        return str(self.database.file)

    def keep(self) -> None:
        self.database.put(self.entries, begin=self._kept)
        self._kept = len(self.entries.entries)

    def close(self) -> None:
        self.database.close()


class DshFrames(World):
    host: HostName = "dsh"
    session = "session-1"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.log = DshLog(self.session)
        self.file = path

    def first(self) -> None:
        log = self.log
        log.said(self.opening)
        log.said("a list of skills", kind="skill-catalog")
        log.model("I will look.")
        call_id = log.call("look", at="x")
        message = {
            "role": "user",
            "source": {"kind": "tool", "callId": call_id},
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": call_id,
                    "content": [{"type": "text", "text": "no such file"}],
                    "isError": True,
                }
            ],
        }
        log.batch(("tool/result", {"message": message, "error": {"name": "E", "code": "ENOENT"}}))
        log.model("It is not there.")
        self.keep()

    def second(self) -> None:
        self.log.said("then build it")
        self.log.model("Built.")
        self.keep()

    def keep(self) -> None:
        """Write what there is."""
        self.file = self.log.write(self.root)

    @property
    def item(self) -> str:
        return str(self.file)


class DshPlain(DshFrames):
    def keep(self) -> None:
        self.file = self.log.write(self.root, name="session.jsonl", data=self.log.plain())


class OpenCodeRows(World):
    host: HostName = "opencode"
    session = "ses_1"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.made: OpenCodeHome | OpenCodeTree = self.make(path)
        self.made.session(self.session)

    def make(self, path: Path) -> OpenCodeHome | OpenCodeTree:
        """Return the builder."""
        return OpenCodeHome(path)

    @property
    def item(self) -> str:
        return str(self.root / "opencode.db")

    def first(self) -> None:
        made = self.made
        message = made.message(self.session, "user")
        made.part(self.session, message, type="text", text=self.opening)
        made.part(self.session, message, type="text", text="Called the Read tool", synthetic=True)
        message = made.message(self.session, "assistant")
        made.part(self.session, message, type="reasoning", text="hm")
        made.part(self.session, message, type="text", text="I will look.")
        state = {"status": "error", "input": {"at": "x"}, "error": "no such file", "time": {"start": made.ms}}
        made.part(self.session, message, type="tool", tool="look", callID="call_1", state=state)
        made.model(self.session, "It is not there.")

    def second(self) -> None:
        self.made.said(self.session, "then build it")
        self.made.model(self.session, "Built.")

    def close(self) -> None:
        self.made.close()


class OpenCodeFiles(OpenCodeRows):
    def make(self, path: Path) -> OpenCodeTree:
        return OpenCodeTree(path)

    @property
    def item(self) -> str:
        return str(next((self.root / "storage" / "session").glob(f"*/{self.session}.json")))


def _gemini(opening: str) -> tuple[list[Any], list[Any]]:
    def message(second: int, kind: str, content: Any, /, **more: Any) -> dict[str, Any]:
        return {"id": f"m-{second}", "timestamp": stamp(second), "type": kind, "content": content, **more}

    response = {"functionResponse": {"id": "c-1", "name": "look", "response": {"error": "no such file"}}}
    look = {"id": "c-1", "name": "look", "args": {"at": "x"}, "status": "error", "result": [response]}
    return [
        message(1, "user", "<session_context>\n</session_context>"),
        message(2, "user", [{"text": opening}]),
        message(3, "gemini", "I will look.", thoughts=[{"subject": "hm"}], toolCalls=[look]),
        message(4, "info", "saved"),
        message(5, "gemini", "It is not there."),
    ], [message(6, "user", "then build it"), message(7, "gemini", "Built.")]


class GeminiJournal(Lines):
    host: HostName = "gemini-cli"
    session = "76f9f554-b71d-41d6-97c3-8c62fe50d764"
    name = "tmp/app/chats/session-2026-03-01T12-00-76f9f554.jsonl"
    head: ClassVar = [{"sessionId": session, "projectHash": "x", "startTime": stamp(0), "kind": "main"}]

    def records(self) -> tuple[list[Any], list[Any]]:
        first, second = _gemini(self.opening)
        early = {**first[2], "toolCalls": [], "content": "I will"}
        return [*first[:2], early, *first[2:]], second


class GeminiDocument(World):
    host: HostName = "gemini-cli"
    session = GeminiJournal.session

    @property
    def item(self) -> str:
        return str(self.root / "tmp" / "app" / "chats" / "session-2026-03-01T12-00-76f9f554.json")

    def _write(self, messages: list[Any]) -> None:
        path = Path(self.item)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"sessionId": self.session, "startTime": stamp(0), "messages": messages}, indent=2))

    def first(self) -> None:
        self._write(_gemini(self.opening)[0])

    def second(self) -> None:
        first, second = _gemini(self.opening)
        self._write(first + second)


class Qwen(Lines):
    host: HostName = "qwen-code"
    session = "fab5dbca-2f73-4269-887d-51c2737397d7"
    name = f"projects/-home-dev-app/chats/{session}.jsonl"

    def records(self) -> tuple[list[Any], list[Any]]:
        def record(second: int, kind: str, provenance: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
            return {
                "uuid": f"{second:08x}-0000-4000-8000-000000000000", "sessionId": self.session,
                "timestamp": stamp(second), "type": kind, "provenance": provenance, "cwd": "/home/dev/app",
                "message": {"role": "model" if kind == "assistant" else "user", "parts": list(parts)}, **more,
            }  # fmt: skip

        look = {"functionCall": {"id": "c-1", "name": "look", "args": {"at": "x"}}}
        answer = {"functionResponse": {"id": "c-1", "name": "look", "response": {"error": "no such file"}}}
        thought = {"text": "hm", "thought": True}
        return [
            record(1, "user", "real_user", {"text": self.opening}),
            record(2, "assistant", "assistant_output", thought, {"text": "I will look."}, look),
            record(3, "system", "system", subtype="ui_telemetry"),
            record(4, "tool_result", "tool_result", answer, toolCallResult={"callId": "c-1", "status": "error"}),
            record(5, "user", "system", {"text": "a reminder"}),
            record(6, "assistant", "assistant_output", {"text": "It is not there."}),
        ], [
            record(7, "user", "real_user", {"text": "then build it"}),
            record(8, "assistant", "assistant_output", {"text": "Built."}),
        ]


class Copilot(Lines):
    host: HostName = "copilot-cli"
    session = "5b5b5b5b-0000-4000-8000-000000000001"
    name = f"session-state/{session}/events.jsonl"

    def records(self) -> tuple[list[Any], list[Any]]:
        def event(second: int, kind: str, /, **data: Any) -> dict[str, Any]:
            ident = f"{second:08x}-1111-4000-8000-000000000000"
            return {"type": kind, "data": data, "id": ident, "timestamp": stamp(second)}

        look = {"toolCallId": "call-1", "name": "look", "arguments": {"at": "x"}}
        failed = {"toolCallId": "call-1", "success": False, "error": {"message": "no such file", "code": "ENOENT"}}
        return [
            event(0, "session.start", sessionId=self.session),
            event(1, "user.message", content=self.opening, transformedContent="<a>x</a>"),
            event(2, "user.message", content="a skill's body", source="skill-notes"),
            event(3, "assistant.message", messageId="m-1", content="I will look.", toolRequests=[look]),
            event(4, "tool.execution_start", toolCallId="call-1", toolName="look", arguments={"at": "x"}),
            event(5, "tool.execution_complete", **failed),
            event(6, "assistant.message", messageId="m-2", content="It is not there."),
        ], [
            event(7, "user.message", content="then build it"),
            event(8, "assistant.message", messageId="m-3", content="Built."),
        ]


class Cursor(Lines):
    host: HostName = "cursor"
    session = "00000000-0000-4000-8000-000000000001"
    name = f"projects/app/agent-transcripts/{session}/{session}.jsonl"

    def records(self) -> tuple[list[Any], list[Any]]:
        def record(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
            return {"role": role, "message": {"content": list(blocks)}}

        def text(words: str) -> dict[str, Any]:
            return {"type": "text", "text": words}

        failed = {"type": "tool_result", "tool_use_id": "c-1", "content": "no such file", "is_error": True}
        return [
            record("user", text("<user_info>x</user_info>\n<user_query>\n" + self.opening + "\n</user_query>")),
            record("assistant", text("I will look."), {"type": "tool_use", "id": "c-1", "name": "look", "input": {}}),
            record("user", failed),
            record("user", text("<attached_files>\nx\n</attached_files>")),
            record("assistant", text("It is not there.")),
        ], [
            record("user", text("<user_query>then build it</user_query>")),
            record("assistant", text("Built.")),
        ]


class CursorText(World):
    host: HostName = "cursor"
    session = Cursor.session
    errors = False  # its results do not say how they ended

    @property
    def item(self) -> str:
        return str(self.root / "projects" / "app" / "agent-transcripts" / f"{self.session}.txt")

    def first(self) -> None:
        path = Path(self.item)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"user:\n<user_query>\n{self.opening}\n</user_query>\n\nassistant:\n[Thinking] hm\nI will look.\n"
            "[Tool call] look\n  at: x\n[Tool result] look\nno such file\n\nassistant:\nIt is not there.\n\n"
        )

    def second(self) -> None:
        with Path(self.item).open("a", encoding="utf-8") as file:
            file.write("user:\n<user_query>\nthen build it\n</user_query>\n\nassistant:\nBuilt.\n")


class Described(Lines):
    host: HostName = "jsonl"
    name = "log.jsonl"

    @property
    def settings(self) -> SourceSettings:
        return SourceSettings(host="jsonl", path=str(self.root), fields={"role": "who", "text": "words"})

    def records(self) -> tuple[list[Any], list[Any]]:
        def record(second: int, who: str, words: str, /, **more: Any) -> dict[str, Any]:
            return {"session": "s-1", "id": f"r{second}", "who": who, "words": words, "time": stamp(second), **more}

        look = {"id": "c-1", "function": {"name": "look", "arguments": '{"at": "x"}'}}
        return [
            record(1, "user", self.opening),
            record(2, "assistant", "I will look.", tool_calls=[look]),
            record(3, "tool", "no such file", tool_call_id="c-1", is_error=True),
            record(4, "user", "a reminder", synthetic=True),
            record(5, "assistant", "It is not there."),
        ], [record(6, "user", "then build it"), record(7, "assistant", "Built.")]


WORLDS: list[Callable[[Path], World]] = [
    ClaudeCode, Hermes, HermesDocument, HermesGateway, Codex, Pi, OpenClawFile, OpenClawRows, DshFrames, DshPlain,
    OpenCodeRows, OpenCodeFiles, GeminiJournal, GeminiDocument, Qwen, Copilot, Cursor, CursorText, Described,
]  # fmt: skip


def touch(path: str, second: float) -> None:
    """Give a file a time."""
    os.utime(path, (second, second))
