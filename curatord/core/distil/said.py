"""
What was said in a session, whatever host wrote it down: the one form that digests are made of.

Only what a person (or the program in a person's place) and the model said is here, with the tools that the model
called and the errors that they gave. Injected context, recalled memory, catalogues, summaries, prompts of schedules,
sub-agents and copies of their records are left out by the host's own structure, never by guessing from words.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["MAX_SAID", "Role", "Said", "ToolUse"]

Role = Literal["user", "assistant", "error"]


class ToolUse(NamedTuple):
    """One call: the tool's name and its arguments as one line of text (JSON where the host gives an object)."""

    name: str
    arguments: str


class Said(NamedTuple):
    """
    One message.

    *ref* is the record's own id, or its offset in words (`@1234`) where it has none: evidence is named by it. *role*:
    `user` and `assistant` said something; `error` is what a failed call gave (*text* as the host kept it, *tools* the
    call where it is known). *at_ms* is the record's time, None where it has none. *offset* is where the record ends,
    in the unit of the item's watermark, and 0 where the item is written anew as a whole, so that only the time says
    what is known. *text* is whole: bounding and redacting is the digest's work, but a reader
    may cut a single text beyond `MAX_SAID` characters to its two ends, with a line between them that says how many
    were left out.
    """

    ref: str
    role: Role
    text: str
    at_ms: int | None
    offset: int
    tools: tuple[ToolUse, ...] = ()


MAX_SAID = 200_000
