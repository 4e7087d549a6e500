"""What is passed over of a tool's output hides no record, whatever ran into the line."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest

from curatord.core.transcript.claude_code import ClaudeCodeParser
from curatord.core.transcript.claude_records import decode_record
from curatord.core.transcript.claude_shapes import NO_RESULT, result_shape
from curatord.core.transcript.events import Findings
from curatord.core.transcript.ids import Guard
from curatord.core.transcript.lines import LineReader

FORMATS = ("2.0.14", "2.1.29", "2.1.114")


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number * 7919 % 2**48:012x}"


def record(version: str, number: int, middle: dict[str, Any], behind: dict[str, Any]) -> bytes:
    """Return a record in the order of fields in which the host of *version* writes it."""
    where = {"userType": "external", "cwd": "/p/a", "sessionId": "s1", "version": version, "gitBranch": "main"}
    front = {"parentUuid": uuid(number - 1), "isSidechain": False}
    own = {"uuid": uuid(number), "timestamp": f"2026-03-02T10:{number // 60 % 60:02}:{number % 60:02}.000Z"}
    if version.startswith("2.1.1"):
        value = {**front, "promptId": uuid(1), **middle, **own, **behind, **where}
    else:
        value = {**front, **where, **middle, **own, **behind}
    return json.dumps(value, separators=(",", ":")).encode()


def result(version: str, number: int, text: str, *, outcome: Any = "the same", failed: bool | None = None) -> bytes:
    block: dict[str, Any] = {"tool_use_id": f"toolu_{number:020}", "type": "tool_result", "content": text}
    if failed is not None:
        block["is_error"] = failed
    behind: dict[str, Any] = {}
    if outcome is not None:
        behind["toolUseResult"] = {"stdout": text, "interrupted": False} if outcome == "the same" else outcome
    if version != "2.0.14":
        behind["sourceToolAssistantUUID"] = uuid(number - 1)
    return record(version, number, {"type": "user", "message": {"role": "user", "content": [block]}}, behind)


def said(version: str, number: int, text: str) -> bytes:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return record(version, number, {"type": "user", "message": message}, {})


def answered(version: str, number: int, *blocks: dict[str, Any]) -> bytes:
    message = {"model": "m", "id": f"msg_{number:020}", "role": "assistant", "content": list(blocks)}
    return record(version, number, {"message": message, "type": "assistant"}, {})


def called(version: str, number: int, skill: str | None = None) -> bytes:
    name, given = ("Skill", {"skill": skill}) if skill else ("Bash", {"command": "ls"})
    return answered(
        version, number, {"type": "tool_use", "id": f"toolu_{number + 1:020}", "name": name, "input": given}
    )


def read(data: bytes, guard: Guard) -> tuple[Findings, bytes]:
    parser = ClaudeCodeParser("-p/main.jsonl", state=b"", fresh=True, guard=guard, before=Guard(), now_ms=0)
    parser.feed(LineReader(io.BytesIO(data).readline).lines(1 << 40))
    return parser.findings(), parser.state()


def either_way(data: bytes) -> None:
    """A guard that holds none of the keys sends each record the long way."""
    assert read(data, Guard(b"\xff" * 8)) == read(data, Guard())


TEXTS = (
    "ok", "", "a" * 5000, 'quoted {"uuid":"x"}, ]},"uuid":"', "\\", "\\\\", '"', "\n{\n}]}", "ünïcødé \u2028 \x85",
    json.dumps({"isSidechain": True, "parentUuid": None}), 'x"}]},"uuid":"00000000-0000-4000-8000-000000000000"',
)  # fmt: skip
OUTCOMES: tuple[Any, ...] = (
    "the same", None, "Error: none", [], [{"type": "text", "text": "x"}], {}, {"uuid": uuid(9), "timestamp": "x"},
    {"isSidechain": False}, {"a": [{}], "uuid": "00000000-0000-4000-8000-000000000000"}, 7, True,
)  # fmt: skip
FLAT = (
    b'{"type":"summary","summary":"x","leafUuid":"00000000-0000-4000-8000-000000000000"}',
    b'{"type":"queue-operation","operation":"enqueue","timestamp":"2026-03-02T10:00:00.000Z","sessionId":"s1"}',
    b'{"type":"file-history-snapshot","messageId":"x","snapshot":{"timestamp":"2026-03-02T10:00:00.000Z"},"x":false}',
)


def one(version: str, number: int, chance: random.Random) -> bytes:
    match chance.randrange(10):
        case 0:
            return said(version, number, chance.choice(TEXTS) or "please")
        case 1:
            return called(version, number)
        case 2:
            return called(version, number, chance.choice(("pdf", "csv")))
        case 3:
            return answered(version, number, {"type": "text", "text": chance.choice(TEXTS)})
        case 4:
            return chance.choice(FLAT)
    failed = chance.choice((None, False, True))
    outcome = chance.choice(OUTCOMES) if chance.random() < 0.5 else "the same"
    return result(version, number, chance.choice(TEXTS), outcome=outcome, failed=failed)


def damaged(seed: int) -> bytes:
    """Return a file of which lines are cut, run into each other, stand twice, or hold a hole."""
    chance = random.Random(seed)
    version = chance.choice(FORMATS)
    out = bytearray()
    for number in range(2, 120):
        line = one(version if chance.random() < 0.95 else chance.choice(FORMATS), number, chance)
        if chance.random() < 0.05:
            line = line.replace(b'"isSidechain":false', b'"isSidechain":true', 1)
        if chance.random() < 0.2:  # another child of the parent before
            line = line.replace(uuid(number - 1).encode(), uuid(number - 2).encode())
        how = chance.random()
        if how < 0.04:
            line = line[: chance.randrange(len(line) + 1)] + line + b"\n"  # cut, and written once more
        elif how < 0.08:
            line = line[: chance.randrange(len(line) + 1)]  # and the next one runs into it
        elif how < 0.12:
            line = line[: chance.randrange(len(line) + 1)] + b"\0" * chance.randrange(1, 9)
        elif how < 0.16:
            line += b"\n" + line + b"\n"
        elif how < 0.20:
            line = b"\r\n" + line + b"\r\n"
        elif how >= 0.26:
            line += b"\n"
        # else: the next one is glued on
        out += line
    return bytes(out + b"\n")


@pytest.mark.parametrize("seed", range(600))
def test_damage_is_seen(seed: int) -> None:
    """What is cut, glued or holed counts as if each line had been decoded."""
    either_way(damaged(seed))


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
@pytest.mark.parametrize("into", ["content", "outcome", "end"])
@pytest.mark.parametrize("kind", ["result", "said", "called", "answered", "flat", "sibling"])
def test_a_glued_record_is_seen(version: str, outcome: Any, into: str, kind: str) -> None:
    """A record counts that ran into a result's content, into its outcome, or stands right behind it."""
    whole = result(version, 20, "some output\n" * 30, outcome=outcome)
    cut = {"content": whole.find(b"output"), "outcome": whole.rfind(b"output"), "end": len(whole)}[into]
    for second in {
        "result": [result(version, 21, "x", outcome=o) for o in OUTCOMES],
        "said": [said(version, 21, "now do this")],
        "called": [called(version, 21, "pdf")],
        "answered": [answered(version, 21, {"type": "text", "text": "x"})],
        "flat": list(FLAT),
        "sibling": [whole, result(version, 21, "x").replace(uuid(20).encode(), uuid(19).encode())],
    }[kind]:
        lines = [result(version, 10 + i, "x" * 50) for i in range(4)]
        lines += [whole[:cut] + second, result(version, 22, "x"), result(version, 23, "y")]
        either_way(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_a_record_of_another_version_is_seen(version: str, other: str) -> None:
    """Two programs may append to a file, and the newer one puts a field between others."""
    of_one_parent = result(other, 21, "x").replace(uuid(20).encode(), uuid(19).encode())
    for newer in (answered(other, 21, {"type": "text", "text": "x"}), result(other, 21, "x"), of_one_parent):
        told = newer.replace(b'"userType":"external",', b'"userType":"external","entrypoint":"cli",')
        assert told != newer
        for second in (newer, told):
            lines = [result(version, 10 + i, "x" * 50) for i in range(4)]
            lines += [result(version, 20, "some output", outcome={"stdout": "x"}) + second, result(version, 22, "x")]
            either_way(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("version", FORMATS)
def test_output_is_not_decoded(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run of results, the first is decoded and shows how the others look."""
    decoded = []

    def decode(line: bytes) -> Any:
        decoded.append(line)
        return decode_record(line)

    monkeypatch.setattr("curatord.core.transcript.claude_code.decode_record", decode)
    lines = [result(version, 2 + i, f"output {i} " * 100) for i in range(20)]

    found, _ = read(b"\n".join(lines) + b"\n", Guard())

    assert found.sessions["s1"].records == 20
    assert len(decoded) <= 3


@pytest.mark.parametrize("version", FORMATS)
def test_a_result_that_is_waited_for_is_decoded(version: str) -> None:
    """The failure of a skill's call shows, between results that do not matter."""
    lines = [result(version, 2 + i, "x" * 500) for i in range(4)]
    lines += [called(version, 10, "pdf"), result(version, 11, "no such skill", failed=True)]
    lines += [called(version, 12, "csv"), result(version, 13, "fine"), result(version, 14, "x" * 500)]

    found, _ = read(b"\n".join(lines) + b"\n", Guard())

    assert ["csv"] == [sighting.skill for sighting in found.sessions["s1"].sightings]


def test_a_line_of_another_order_has_no_shape() -> None:
    """Where the fields stand otherwise, or twice, nothing is learnt."""
    line = result("2.0.14", 5, "x")

    assert result_shape(line) is not NO_RESULT
    assert result_shape(line.replace(b'"message":', b'"message": ')) is NO_RESULT
    assert result_shape(line.replace(b'"userType":', b'"userType": ')) is NO_RESULT
    assert result_shape(line.replace(b'{"parentUuid":', b'{ "parentUuid":')) is NO_RESULT
    assert result_shape(line.replace(b'"userType":', b'"cwd":')) is NO_RESULT
    assert result_shape(line.replace(b'"sessionId":', b'"session":')) is NO_RESULT
