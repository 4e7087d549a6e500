"""
A new skill's SKILL.md, made of a model's words: a valid header, and the body as it was given.

The body's bytes are the model's, fences, braces and all; only line ends become LF and a header that the model wrote
into it again goes, since the header is made here. `when_to_use` becomes part of the description, which is the one thing
that all hosts show, or `whenToUse` in a flat library, whose host knows that key.
"""

from __future__ import annotations

from typing import Literal

from curatord.core.agent_skills import MAX_DESCRIPTION, Layout, violations
from curatord.core.cheap import dataclass
from curatord.core.distil.edit import open_fences
from curatord.core.header import Fault, split_text
from curatord.core.replies import Create
from curatord.core.skill import render_skill
from curatord.core.umbrella.naming import valid_name

__all__ = ["NewSkill", "NotComposed", "compose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSkill:
    """A SKILL.md that does not exist yet; *data* is the whole file. *lines* are those of the body."""

    name: str
    description: str
    when_to_use: str
    body: str
    data: bytes
    lines: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComposed:
    """Why there is none."""

    code: Literal["name", "form", "nothing"]
    reason: str


def compose(operation: Create, layout: Layout) -> NewSkill | NotComposed:
    """Return the new skill that *operation* describes, or why it cannot be one."""
    name = valid_name(operation.skill, layout)
    if name is None:
        return NotComposed(code="name", reason="not a name for a skill")
    notes = () if name == operation.skill else (f"its name was brought to the specification's form: {name}",)
    body = _body(operation.content)
    if isinstance(body, NotComposed):
        return body
    if not body.strip():
        return NotComposed(code="nothing", reason="it has no text")
    if open_fences(body):
        return NotComposed(code="form", reason="a code block in it is not closed")
    description, when = _line(operation.description), _line(operation.when_to_use)
    if not description:
        return NotComposed(code="form", reason="it has no description")
    extra: list[tuple[str, str]] = []
    if layout == "flat":
        if when:
            extra.append(("whenToUse", when))
    elif when and when.casefold() not in description.casefold():
        description, when = f"{_ended(description)} {when}", ""
    else:
        when = ""
    if len(description) > MAX_DESCRIPTION:
        reason = f"its description has {len(description):,} characters; at most {MAX_DESCRIPTION:,}"
        return NotComposed(code="form", reason=reason)
    try:
        data = render_skill(name, description, body, extra=extra)
    except ValueError as error:
        return NotComposed(code="form", reason=str(error))
    for violation in violations(data, name, layout):
        return NotComposed(code="form", reason=violation.message)
    return NewSkill(
        name=name,
        description=description,
        when_to_use=when,
        body=body,
        data=data,
        lines=len(body.splitlines()),
        notes=notes,
    )


def _body(content: str) -> str | NotComposed:
    """Return *content* without a header of its own and with LF."""
    text = content.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    try:
        split = split_text(text.encode())
    except UnicodeEncodeError:
        return NotComposed(code="form", reason="it holds half a character")
    if isinstance(split, Fault):
        # A rule of three hyphens may begin a text; what is no header stays.
        return text.strip("\n") if "no closing fence" in split.reason else NotComposed(code="form", reason=str(split))
    return (text if split.header is None or not split.header.entries else split.body).strip("\n")


def _line(text: str) -> str:
    """Return *text* on one line."""
    return " ".join(text.split())


def _ended(text: str) -> str:
    """Return *text* with a full stop, so that another sentence may follow."""
    return text if text.endswith((".", "!", "?", "。", "！", "？", ":", ";")) else f"{text}."
