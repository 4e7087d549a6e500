"""
A SKILL.md as a value: what its header says, what its body holds, and what it costs.

`parse_skill` never raises for what stands in a file: it returns the skill's text, or a `Fault` with line and reason,
and the skill stays listed with that (bugs B055, B060, B061). Nothing here knows where the file lies; whether its name
agrees with its folder is `names_agree`.
"""

from __future__ import annotations

from collections.abc import Sequence

from curatord.core.cheap import dataclass
from curatord.core.header import Fault, Header, Lines, SplitText, render_value, split_text
from curatord.core.markdown import BodyFacts, estimate_tokens, read_body
from curatord.core.names import SKILL_FILE, names_agree

__all__ = ["SKILL_FILE", "SkillText", "names_agree", "parse_skill", "render_skill"]

# One idea, three spellings: Claude Code, DSH, and what the specification's own style would make of it.
_WHEN_KEYS = ("when_to_use", "whenToUse", "when-to-use")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """
    What one SKILL.md (or flat `<name>.md`) says.

    Attributes:
        name: The header's, as written; None where it has none.
        description, when_to_use: As written, folded text joined; empty where there is none.
        header: None where the file has none.
        body: Everything behind the header, unchanged; *body_line* is the 1-based line it begins on.
        description_tokens: Of description and when_to_use together, which is what a host puts before every call.
        body_tokens: Of the body, which is what a use puts into the context.
    """

    name: str | None
    description: str
    when_to_use: str
    header: Header | None
    body: str
    body_line: int
    description_tokens: int
    body_tokens: int

    def facts(self) -> BodyFacts:
        """Return headings and links of the body; their lines are counted from the body's first."""
        return read_body(self.body)


def parse_skill(data: bytes) -> SkillText | Fault:
    """Return what the file with *data* says, or the first reason why that cannot be told."""
    split = split_text(data)
    if isinstance(split, Fault):
        return split
    header = split.header
    fault = _not_text(header, ("name", "description", *_WHEN_KEYS)) if header else None
    if fault:
        return fault
    description = (header.text("description") if header else None) or ""
    when_to_use = next((text for key in _WHEN_KEYS if header and (text := header.text(key))), "")
    name = header.text("name") if header else None
    return SkillText(
        name=name.strip() or None if name else None,
        description=description.strip(),
        when_to_use=when_to_use.strip(),
        header=header,
        body=split.body,
        body_line=_body_line(split),
        description_tokens=estimate_tokens(f"{description.strip()} {when_to_use.strip()}".strip()),
        body_tokens=estimate_tokens(split.body),
    )


def render_skill(name: str, description: str, body: str, *, extra: Sequence[tuple[str, str]] = ()) -> bytes:
    """
    Return a new SKILL.md in UTF-8 with LF: header of *name*, *description* and *extra* pairs, blank line, *body*.

    Raises:
        ValueError: A value holds a lone surrogate.
    """
    pairs = (("name", name), ("description", description), *extra)
    header = "".join(f"{key}: {render_value(value)}\n" for key, value in pairs)
    text = body.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return f"---\n{header}---\n\n{text}\n".encode()


def _not_text(header: Header, keys: Sequence[str]) -> Fault | None:
    for key in keys:
        entry = header.entry(key)
        if entry is not None and entry.value is not None and not isinstance(entry.value, str):
            return Fault(line=entry.line, reason=f"`{key}` is a list or a mapping, not text")
    return None


def _body_line(split: SplitText) -> int:
    return 1 if split.header is None else Lines(split.text[: split.body_start]).number(split.body_start)
