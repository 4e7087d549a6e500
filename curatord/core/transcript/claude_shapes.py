"""
What a tool's result looks like in Claude Code's files, byte by byte, so that most of the line need not be decoded.

Two thirds of a transcript are the output of tools, which does not matter to a count unless a call waits for it.
Decoding it all the same is what a first scan would spend most of its time on. But the host writes the fields of its
records in one order, and those that matter stand before and behind the output: a line that begins and ends as one did
that was decoded says the same of session, folder, version and kind, and its id and time stand right behind the content.

A shape is *learnt* from a line that was decoded and found to be as usual: the bytes from behind the parent's id to
where the call's id begins and, where they matter, those at the line's end. It is dropped with the session, folder or
version that it stands for. Whatever does not fit it byte for byte is decoded as ever, so that another order of fields,
blanks, or a newer host cost time and nothing else.

What must not happen is that a second record in the line is passed over: two processes that append at once, or a write
that was cut, glue records together (formats page, section 0). Inside a JSON string every quote is escaped, so a field's
name in bare quotes shows a record. Hence:

- What each record of this order has in front may not stand in the line again: what ran into it, or was glued on behind
  it, has it too. It is `isSidechain` with the user's type behind it, as all versions known have it, whatever they write
  next (a longer word is found faster), or where these are not side by side `isSidechain` alone.
- The end must be one that a record without an id, or one of another order, has not: the id of the record that is
  answered, where the version writes it, and what was learnt to follow it; else that of a `toolUseResult` that is a
  nested object, or that of the line right behind the time.

What stands in the output is not looked at: a fault in there, where both ends are sound, is not seen, and the record is
counted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["NO_RESULT", "SOURCE", "ResultShape", "result_shape", "stamp_at"]

SOURCE = b',"sourceToolAssistantUUID":"'
_BEGIN = b'{"parentUuid":"'
_PARENT_END = 51  # behind the 36 characters of the parent's id
_FIRST = b'","isSidechain":'
_USER = b'"type":"user","message":{"role":"user","content":[{'
_ANSWERS = b'"tool_use_id":"'
_IS_RESULT = b'"type":"tool_result",'
_FRONT = re.compile(rb'","isSidechain":(?:tru|fals)(e,"userType":"[^"\\]+",)')
_LOOK = 4096  # so far into a line, and so far before its end, the fields are looked for
_ENVELOPE = (b'"isSidechain":', b'"cwd":', b'"sessionId":', b'"version":')

# What follows the content: the record's id, its time, and either more fields or nothing.
stamp_at = re.compile(
    rb'\]\},"uuid":"([0-9a-f-]{36})","timestamp":"([0-9T:.-]{23}Z)"(?:\}\n?\Z|,"(?:toolUseResult":[{\[]|source))'
).match


class ResultShape(NamedTuple):
    """
    A tool's result: `head` from behind the parent's id on, up to `begin`.

    `tail` is what follows the answered record's id, from its quote on; empty where the version writes none, and then
    `ends` is how a line may end. `front` is what each record has in front, behind its parent's id.
    """

    head: bytes
    begin: int
    tail: bytes
    front: bytes
    ends: tuple[bytes, ...]


NO_RESULT = ResultShape(b"\n", 52, b"", b"", ())  # no line has its LF there and goes on


def result_shape(line: bytes) -> ResultShape:
    """Return the shape of *line*, a decoded result in the session at hand; `NO_RESULT` where it is of no use."""
    if not line.startswith(_BEGIN) or not line.startswith(_FIRST, _PARENT_END):
        return NO_RESULT
    begin = line.find(_USER, _PARENT_END, _LOOK)
    if begin < 0:
        return NO_RESULT
    begin += len(_USER)
    for key in (_ANSWERS, _IS_RESULT):
        if line.startswith(key, begin):
            begin += len(key)
            break
    else:
        return NO_RESULT
    head = line[_PARENT_END:begin]
    source = SOURCE + line[len(_BEGIN) : _PARENT_END] + b'"'
    found = line.rfind(source, max(begin, len(line) - _LOOK))
    tail = line[found + len(source) - 1 :] if found >= 0 else b""
    if any((head + tail).count(name) != 1 for name in _ENVELOPE):
        return NO_RESULT
    front = _FRONT.match(head)
    if front is None and not tail:
        return NO_RESULT
    word = front[1] if front is not None else _FIRST[1:]
    feed = b"\n" if line.endswith(b"\n") else b""
    return ResultShape(head, begin, tail, word, (b"}}" + feed, b"]}" + feed, b'Z"}' + feed))
