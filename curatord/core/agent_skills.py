"""
The rules of the Agent Skills specification, and what each layout adds to them.

The specification (agentskills.io, "SKILL.md format"): `name` of 1–64 letters, digits and single hyphens, lower case,
equal to its folder; `description` of 1–1024 characters; `compatibility` of at most 500; no keys but its own six. Tests
hold `violations` against `skills-ref`, the specification's own validator. What curatord writes must have no violation,
what it changes no new one (contract, section 8); what others wrote is only told.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from curatord.core.cheap import dataclass
from curatord.core.header import Fault, Header, HeaderValue
from curatord.core.names import Layout
from curatord.core.skill import SkillText, parse_skill

__all__ = ["MAX_DESCRIPTION", "MAX_NAME", "Layout", "Violation", "violations"]

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
HERMES_MAX_CHARS = 100_000  # its skill_manage refuses more

_SPEC_KEYS = frozenset({"name", "description", "license", "allowed-tools", "metadata", "compatibility"})
_LAYOUT_KEYS: dict[Layout, frozenset[str]] = {
    "agent-skills": frozenset(),
    "hermes": frozenset(
        {
            "version", "author", "platforms", "environments", "deps", "prerequisites", "tags", "homepage",
            "required_environment_variables", "required_credential_files",
        }
    ),
    "flat": frozenset({"whenToUse", "version", "author"}),
}  # fmt: skip
_HERMES_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Violation:
    """One rule that a SKILL.md breaks; *code* is stable, *message* is for people."""

    code: str
    message: str


def violations(data: bytes, folder_name: str, layout: Layout) -> list[Violation]:
    """
    Return every rule that the SKILL.md with *data*, in the folder (or flat file) *folder_name*, breaks.

    Empty where it is valid. A file that cannot be read has the one violation `format`.
    """
    skill = parse_skill(data)
    if isinstance(skill, Fault):
        return [Violation(code="format", message=str(skill))]
    if skill.header is None:
        return [Violation(code="format", message="there is no header between two `---` lines")]
    found = [*_keys(skill.header, layout), *_name(skill.header, folder_name), *_description(skill.header)]
    compatibility = skill.header.values().get("compatibility", "")
    if not isinstance(compatibility, str):
        found.append(Violation(code="compatibility", message="`compatibility` is not text"))
    elif len(compatibility) > MAX_COMPATIBILITY:
        found.append(Violation(code="compatibility", message=f"`compatibility` is longer than {MAX_COMPATIBILITY}"))
    if layout == "hermes":
        found += _hermes(skill, data)
    return found


def _keys(header: Header, layout: Layout) -> Iterator[Violation]:
    unknown = sorted(set(header.values()) - _SPEC_KEYS - _LAYOUT_KEYS[layout])
    if unknown:
        yield Violation(code="keys", message=f"keys that the specification does not know: {', '.join(unknown)}")


def _name(header: Header, folder_name: str) -> Iterator[Violation]:
    written = _required(header, "name")
    if isinstance(written, Violation):
        yield written
        return
    name = unicodedata.normalize("NFKC", written.strip())
    if len(name) > MAX_NAME:
        yield Violation(code="name-length", message=f"name of {len(name)} characters; at most {MAX_NAME}")
    if name != name.lower():
        yield Violation(code="name-case", message=f"name {name!r} is not in lower case")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield Violation(code="name-hyphens", message=f"name {name!r} begins, ends or is doubled with a hyphen")
    if not all(char.isalnum() or char == "-" for char in name):
        yield Violation(code="name-characters", message=f"name {name!r} holds more than letters, digits and hyphens")
    if unicodedata.normalize("NFKC", folder_name) != name:
        yield Violation(code="name-folder", message=f"name {name!r} is not that of its folder, {folder_name!r}")


def _description(header: Header) -> Iterator[Violation]:
    written = _required(header, "description")
    if isinstance(written, Violation):
        yield written
    elif len(written) > MAX_DESCRIPTION:
        yield Violation(
            code="description-length", message=f"description of {len(written)} characters; at most {MAX_DESCRIPTION}"
        )


def _required(header: Header, key: str) -> str | Violation:
    value: HeaderValue = header.values().get(key)
    if isinstance(value, str) and value.strip():
        return value
    return Violation(code=f"{key}-missing", message=f"`{key}` is missing or empty")


def _hermes(skill: SkillText, data: bytes) -> Iterator[Violation]:
    if skill.name and not _HERMES_NAME.match(skill.name):
        yield Violation(code="hermes-name", message=f"Hermes takes only a-z, 0-9, `.`, `_`, `-`: {skill.name!r}")
    if not skill.body.strip():
        yield Violation(code="hermes-body", message="Hermes refuses a skill with an empty body")
    if len(data) > HERMES_MAX_CHARS and len(data.decode("utf-8", "replace")) > HERMES_MAX_CHARS:
        yield Violation(code="hermes-size", message=f"Hermes refuses more than {HERMES_MAX_CHARS} characters")
