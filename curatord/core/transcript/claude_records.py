"""
Claude Code's records as types: the fields that matter, and ways to come by them when a line is not as usual.

`decode_record` is the quick way and refuses a line with any field of another type. `leniently` takes what the standard
library made of such a line and keeps the fields that fit; `from_ends` makes do with both ends of a line too long to
hold. The fields stand in the order in which the host writes them, since the decoder looks for each from the last on.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from curatord.core.transcript.lines import printable
from curatord.core.transcript.salvage import text_of_raw

__all__ = [
    "Arguments",
    "Attachment",
    "Block",
    "Message",
    "Outcome",
    "Record",
    "attachment_of",
    "decode_record",
    "from_ends",
    "leniently",
    "outcome_of",
    "prompt_text",
]

Raw = msgspec.Raw
NOTHING = Raw(b"")


class Arguments(msgspec.Struct, gc=False):
    """Of a call's arguments what can name a skill or a file; other tools may use the same words for other things."""

    skill: Any = None
    command: Any = None
    file_path: Any = None
    notebook_path: Any = None
    path: Any = None


class Block(msgspec.Struct, gc=False):
    tool_use_id: str | None = None
    type: str = ""
    id: str | None = None
    name: str | None = None
    input: Arguments | None = None
    text: Raw = NOTHING
    is_error: bool | None = None


class Message(msgspec.Struct, gc=False):
    model: str | None = None
    id: str | None = None
    content: str | list[Block] | None = None


class Snapshot(msgspec.Struct, gc=False):
    timestamp: str | None = None


class Record(msgspec.Struct, gc=False):
    parentUuid: str | None = None  # noqa: N815 -- the host's names
    isSidechain: bool | None = None  # noqa: N815
    cwd: str | None = None
    sessionId: str | None = None  # noqa: N815
    version: str | None = None
    type: str = ""
    subtype: str | None = None
    message: Message | None = None
    uuid: str | None = None
    timestamp: str | None = None
    toolUseResult: Raw = NOTHING  # noqa: N815
    entrypoint: str | None = None
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    isVisibleInTranscriptOnly: bool | None = None  # noqa: N815
    sourceToolUseID: str | None = None  # noqa: N815
    operation: str | None = None
    content: Raw = NOTHING
    attachment: Raw = NOTHING
    snapshot: Snapshot | None = None


class Origin(msgspec.Struct, gc=False):
    kind: str | None = None


class Attachment(msgspec.Struct, gc=False):
    type: str = ""
    prompt: Raw = NOTHING
    commandMode: str | None = None  # noqa: N815
    origin: Origin | None = None


class Outcome(msgspec.Struct, gc=False):
    type: str | None = None
    success: bool | None = None


decode_record = msgspec.json.Decoder(Record).decode
_attachment = msgspec.json.Decoder(Attachment).decode
_outcome = msgspec.json.Decoder(Outcome).decode


def prompt_text(raw: Raw) -> str:
    """Return the text of a queued prompt: a string, or a list of blocks."""
    if bytes(raw).startswith(b"["):
        try:
            blocks = msgspec.json.decode(raw, type=list[Block])
        except msgspec.MsgspecError:
            return ""
        return "\n".join(text_of_raw(block.text) for block in blocks if block.type == "text")
    return text_of_raw(raw)


def outcome_of(raw: Raw) -> Outcome | str | None:
    data = bytes(raw)
    if data.startswith(b"{"):
        try:
            return _outcome(data)
        except msgspec.MsgspecError:
            return None
    return text_of_raw(raw) or None


def _strings(value: dict[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return of *value* those fields of *shape* that are strings, fit to be stored."""
    return {name: printable(value[name]) for name in shape.__struct_fields__ if isinstance(value.get(name), str)}


def leniently(value: dict[str, Any]) -> Record:
    """Return *value* as a record, without those of its fields that are not of the usual type."""
    record = Record(**{k: v for k, v in _strings(value, Record).items() if k not in _NOT_STRINGS})
    for name in _FLAGS:
        if isinstance(value.get(name), bool):
            setattr(record, name, value[name])
    for name in _RAW_FIELDS:
        if name in value:
            setattr(record, name, _raw(value[name]))
    snapshot = value.get("snapshot")
    if isinstance(snapshot, dict):
        record.snapshot = Snapshot(**_strings(snapshot, Snapshot))
    message = value.get("message")
    if isinstance(message, dict):
        record.message = Message(**{k: v for k, v in _strings(message, Message).items() if k != "content"})
        content = message.get("content")
        if isinstance(content, str):
            record.message.content = printable(content)
        elif isinstance(content, list):
            record.message.content = [_block(block) for block in content if isinstance(block, dict)]
    return record


_RAW_FIELDS = ("toolUseResult", "content", "attachment")
_FLAGS = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
_NOT_STRINGS = (*_RAW_FIELDS, *_FLAGS, "message", "snapshot")


def _block(value: dict[str, Any]) -> Block:
    block = Block(**{k: v for k, v in _strings(value, Block).items() if k not in ("text", "input")})
    block.is_error = value["is_error"] if isinstance(value.get("is_error"), bool) else None
    block.text = _raw(value.get("text"))
    if isinstance(value.get("input"), dict):
        block.input = Arguments(**_strings(value["input"], Arguments))
    return block


def _raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode("ascii"))


_UUID = re.compile(rb'"uuid"\s*:\s*"([0-9a-fA-F-]{36})"')
_PARENT = re.compile(rb'"parentUuid"\s*:\s*"([^"\\]{1,64})"')
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_TIME = re.compile(rb'"timestamp"\s*:\s*"([^"\\]{1,40})"')
_TYPE = re.compile(rb'"type"\s*:\s*"(user|assistant|system|attachment|progress)"')
_MESSAGE = re.compile(rb'"id"\s*:\s*"(msg_[^"\\]{1,100})"')
_USE = re.compile(rb'"type"\s*:\s*"tool_use"\s*,\s*"id"\s*:\s*"([^"\\]{1,100})"\s*,\s*"name"\s*:\s*"([^"\\]{1,100})"')
_ANSWERS = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]{1,100})"')


def from_ends(head: bytes, tail: bytes) -> Record:
    """
    Return what both ends of an oversize line show of its record.

    The middle may hold anything, so only fields are taken that stand before the content or behind it; a quoted record
    inside the content has its quotes escaped and does not match.
    """

    def first(pattern: re.Pattern[bytes], *where: bytes) -> str | None:
        for text in where:
            found = pattern.search(text)
            if found:
                return found[1].decode("utf-8", "replace")
        return None

    kind = first(_TYPE, head, tail) or ""
    record = Record(
        type=kind,
        uuid=first(_UUID, tail, head),
        parentUuid=first(_PARENT, head),
        sessionId=first(_SESSION, head, tail),
        timestamp=first(_TIME, tail, head),
        isSidechain=b'"isSidechain":true' in head,
        isMeta=b'"isMeta":true' in head or b'"isMeta":true' in tail,
        message=Message(),
    )
    blocks: list[Block] = []
    if kind == "assistant":
        record.message = Message(id=first(_MESSAGE, head, tail))
        use = _USE.search(head)
        if use:
            blocks.append(
                Block(type="tool_use", id=use[1].decode("utf-8", "replace"), name=use[2].decode("utf-8", "replace"))
            )
    elif kind == "user":
        answers = first(_ANSWERS, head, tail)
        if answers:
            blocks.append(Block(type="tool_result", tool_use_id=answers, is_error=b'"is_error":true' in head + tail))
        else:
            blocks.append(Block(type="image"))
    assert record.message is not None
    record.message.content = blocks
    return record


def attachment_of(raw: Raw) -> Attachment:
    """Return the attachment that *raw* holds, an empty one where it is of another shape."""
    try:
        return _attachment(raw)
    except msgspec.MsgspecError:
        return Attachment()
