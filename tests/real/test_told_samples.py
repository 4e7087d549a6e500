"""The samples of all hosts, told in place: as many prompts and answers as were counted by hand, no sample changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from curatord.adapters.sources.conversations import open_conversations
from curatord.adapters.sources.registry import open_source
from curatord.core.distil.said import Said
from curatord.core.settings import SourceSettings
from curatord.ports.conversation import Since
from curatord.ports.source import Start

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
EXPECTED = SAMPLES / "EXPECTED.json"

pytestmark = pytest.mark.skipif(not EXPECTED.exists(), reason="the samples are not on this machine")

# What a sub-agent said is counted for its parent, and not told.
OF_SUB_AGENTS = {"agent-a4ca7529859c158c2.jsonl": 20, "events.jsonl": 1}
INJECTED = (
    "<system-reminder>", "<environment_context>", "<skills_instructions>", "<skill>", "<session_context>",
    "<local-command-stdout>", "<command-name>", "<skill_content", "[IMPORTANT: The user has invoked",
    "[CONTEXT COMPACTION", "This session is being continued", "<user_query>", "<task-notification>",
)  # fmt: skip


def entries() -> list[tuple[str, dict[str, Any]]]:
    if not EXPECTED.exists():
        return []
    hosts = json.loads(EXPECTED.read_text(encoding="utf-8"))["hosts"]
    return [(host, entry) for host, listed in hosts.items() for entry in listed]


def told(host: str, path: str) -> list[Said]:
    """Return what is told of all sessions in one sample, up to where ingest reads."""
    settings = SourceSettings(host=host)  # type: ignore[arg-type]
    place = str(SAMPLES / host)
    source = open_source(settings, place)
    item = source.item_at(str(SAMPLES / path))
    assert item is not None
    sessions: dict[str, None] = {}
    until = 0
    for slice_ in source.read(item, Start(settled=True), lambda: False):
        sessions |= dict.fromkeys(slice_.findings.sessions)
        until = slice_.offset
    conversations = open_conversations(settings, place)
    found: list[Said] = []
    for session in sessions:
        found += conversations.said(item.path, session, Since(), until=until, stop=lambda: False)
    return found


@pytest.mark.parametrize(("host", "entry"), entries(), ids=lambda value: value if isinstance(value, str) else "")
def test_as_many_as_were_counted(host: str, entry: dict[str, Any]) -> None:
    """Prompts and answers are as many as counted by hand, without those of sub-agents; nothing injected is a prompt."""
    said = told(host, entry["path"])

    agents = OF_SUB_AGENTS.get(Path(entry["path"]).name, 0)
    assert entry["user_turns"] == sum(each.role == "user" for each in said)
    assert entry["assistant_turns"] - agents == sum(each.role == "assistant" for each in said)
    assert [] == [each.text[:80] for each in said if each.role == "user" and each.text.startswith(INJECTED)]


@pytest.mark.parametrize("host", sorted({host for host, _ in entries()}))
def test_no_sample_is_changed(host: str) -> None:
    """Telling leaves content, mode and times of every sample as they were, and no file beside them."""

    def stats() -> dict[str, tuple[Any, ...]]:
        return {
            str(path): (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, digest)
            for path in sorted((SAMPLES / host).rglob("*"))
            for s in [path.stat()]
            for digest in [hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""]
        }

    before = stats()
    for listed, entry in entries():
        if listed == host:
            told(host, entry["path"])

    assert before == stats()
