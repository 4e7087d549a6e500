"""Codex's records as types: the fields that matter, and what they say of a call's outcome."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

import msgspec

from curatord.core.transcript.record_parser import LONG_ENOUGH, Stamp
from curatord.core.transcript.salvage import decoded, decoded_list, text_of_raw

__all__ = [
    "EVENTS",
    "NO_LINE",
    "Called",
    "Event",
    "Item",
    "Message",
    "Other",
    "Outcome",
    "Record",
    "Shell",
    "decode_line",
    "exit_failed",
    "explode",
    "output_failed",
    "parts_of",
]

Raw = msgspec.Raw
NOTHING = Raw(b"")


class Item(msgspec.Struct, gc=False):
    """A payload: of a response item, an event, or a record about the session; or, in the oldest form, a whole line."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    role: str | None = None
    name: str | None = None
    turn_id: str | None = None
    cwd: str | None = None
    content: Raw = NOTHING
    arguments: Raw = NOTHING
    input: Raw = NOTHING
    output: Raw = NOTHING
    action: Raw = NOTHING
    # of session_meta
    session_id: str | None = None
    timestamp: str | None = None
    cli_version: str | None = None
    source: Raw = NOTHING
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    # of events
    success: bool | None = None
    exit_code: int | None = None
    item: Raw = NOTHING


class Record(Item, gc=False):
    payload: Item | None = None
    record_type: str | None = None
    instructions: Raw = NOTHING


EVENTS = frozenset({
    "user_message", "agent_message", "agent_message_delta", "agent_reasoning", "agent_reasoning_raw_content",
    "agent_reasoning_section_break", "token_count", "task_started", "task_complete", "turn_started", "turn_complete",
    "turn_aborted", "exec_command_begin", "exec_command_end", "patch_apply_begin", "patch_apply_end",
    "mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin", "web_search_end", "context_compacted",
    "thread_rolled_back", "sub_agent_activity", "entered_review_mode", "exited_review_mode", "item_started",
    "item_completed", "thread_settings_applied", "thread_goal_updated", "thread_name_updated", "undo_started",
    "undo_completed", "view_image_tool_call", "image_generation_end", "guardian_assessment", "error", "warning",
    "stream_error", "dynamic_tool_call_request", "dynamic_tool_call_response", "plan_update", "turn_diff",
    "background_event", "session_configured", "model_reroute", "deprecation_notice", "raw_response_item",
})  # fmt: skip


class Called(msgspec.Struct, gc=False, tag_field="type", tag="function_call"):
    call_id: Annotated[str, msgspec.Meta(min_length=LONG_ENOUGH)]
    name: str
    id: str | None = None
    prefix: ClassVar[bytes] = b"function_call\0"


class Message(msgspec.Struct, gc=False, tag_field="type", tag="message"):
    role: str
    content: Raw = NOTHING
    id: str | None = None
    call_id: str | None = None
    prefix: ClassVar[bytes] = b"message\0"


class _Plain(msgspec.Struct, gc=False):
    id: str | None = None
    call_id: str | None = None


class Reasoning(_Plain, gc=False, tag_field="type", tag="reasoning"):
    prefix: ClassVar[bytes] = b"reasoning\0"


class Output(_Plain, gc=False, tag_field="type", tag="function_call_output"):
    prefix: ClassVar[bytes] = b"function_call_output\0"


class CustomOutput(_Plain, gc=False, tag_field="type", tag="custom_tool_call_output"):
    prefix: ClassVar[bytes] = b"custom_tool_call_output\0"


class Event(msgspec.Struct, gc=False):
    type: Literal[*sorted(EVENTS)]  # type: ignore[valid-type]  # of a set that is known when the module is loaded


class Other(msgspec.Struct, gc=False):
    """What stands in a record that is only counted."""


class ItemLine(msgspec.Struct, gc=False, tag_field="type", tag="response_item"):
    payload: Called | Message | Reasoning | Output | CustomOutput
    timestamp: Stamp = ""


class EventLine(msgspec.Struct, gc=False, tag_field="type", tag="event_msg"):
    payload: Event
    timestamp: Stamp = ""


class UsageLine(msgspec.Struct, gc=False, tag_field="type", tag="token_usage_record"):
    payload: Other
    timestamp: Stamp = ""


class StateLine(msgspec.Struct, gc=False, tag_field="type", tag="world_state"):
    payload: Other
    timestamp: Stamp = ""


decode_line = msgspec.json.Decoder(ItemLine | EventLine | UsageLine | StateLine).decode
NO_LINE = UsageLine(Other())


class Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None


class Shell(msgspec.Struct, gc=False):
    """Arguments of the shell tools over time, and of `apply_patch` as a function."""

    command: str | list[str] | None = None
    cmd: str | list[str] | None = None
    workdir: str | None = None
    working_directory: str | None = None
    input: str | None = None
    patch: str | None = None


class Metadata(msgspec.Struct, gc=False):
    exit_code: int | None = None


class Outcome(msgspec.Struct, gc=False):
    """What an output that is JSON, or an item of an event, says of its call."""

    type: str = ""
    id: str | None = None
    status: str | None = None
    exit_code: int | None = None
    success: bool | None = None
    metadata: Metadata | None = None
    content: Raw = NOTHING
    text: Raw = NOTHING


LOOKED_AT = 4096  # of a long output; how it ended stands before it
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_NOT_DONE = (
    "unsupported call:", "unsupported custom tool call:", "apply_patch verification failed", "failed to parse",
    "execution error", "exec_command failed", "aborted by user", "exec command rejected", "patch rejected",
)  # fmt: skip


def parts_of(content: Raw) -> list[Part]:
    """Return the parts of a message's content."""
    data = bytes(content)
    if data.startswith(b'"'):
        return [Part(type="input_text", text=text_of_raw(content))]
    return decoded_list(content, Part)


def output_failed(output: Raw) -> bool:
    """Return whether the output of a call says that it failed."""
    data = bytes(output)
    if data.startswith(b"["):
        return any(_text_failed(part.text or "") for part in parts_of(output)[:1])
    if data.startswith(b"{"):
        told = decoded(data, Outcome)
        if exit_failed(told):
            return True
        text = text_of_raw(told.content) or text_of_raw(told.text)
        return _text_failed(text)
    if len(data) > 2 * LOOKED_AT and not data.startswith(b'"{'):
        # A blank is in no escape: what stands before it is a whole text.
        cut = data.rfind(b" ", 0, LOOKED_AT)
        if cut > 0:
            return _text_failed(text_of_raw(Raw(data[:cut] + b'"')))
    return _text_failed(text_of_raw(output))


def exit_failed(told: Outcome | Item) -> bool:
    """Return whether an exit code, a flag or a status tells of failure."""
    if told.success is False or (told.exit_code or 0) != 0:
        return True
    if isinstance(told, Outcome):
        if told.metadata is not None and (told.metadata.exit_code or 0) != 0:
            return True
        return told.status in ("failed", "declined", "error", "rejected")
    return False


def _text_failed(text: str) -> bool:
    text = text.lstrip()
    if text.startswith("{"):
        return exit_failed(decoded(text, Outcome))
    if text[:64].lower().startswith(_NOT_DONE):
        return True
    # The host's own lines stand before the command's output, which may say anything.
    own = text[:LOOKED_AT].partition("\nOutput:")[0]
    if "xit" not in own:  # a search for the lines themselves tries each of thousands of places
        return False
    told = _CODE.search(own)
    return told is not None and int(told[1]) != 0


class _Document(msgspec.Struct):
    session: Raw = NOTHING
    items: list[Raw] = []


def explode(data: bytes) -> Iterable[bytes] | None:
    """Return the oldest form, one document with `session` and `items`, as lines; None where it is not whole."""
    try:
        document = msgspec.json.decode(data.lstrip(b"\xef\xbb\xbf"), type=_Document)
    except (msgspec.MsgspecError, RecursionError):
        return None
    header = bytes(document.session)
    if not header.startswith(b"{"):
        return []
    # Written with more or fewer blanks, it is the same.
    return itertools.chain([header], (msgspec.json.format(bytes(item), indent=-1) for item in document.items))
