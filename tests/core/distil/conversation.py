"""Builders of what was said, for tests."""

from __future__ import annotations

from curatord.core.distil.digest import Digest, DigestBuilder
from curatord.core.distil.said import Role, Said, ToolUse
from curatord.core.distil.wishes import Wishes
from curatord.core.settings import DigestSettings

__all__ = ["digest_of", "said"]


def said(role: Role, text: str, number: int = 0, *tools: tuple[str, str]) -> Said:
    """Return one message; its time and offset follow from *number*."""
    return Said(
        f"ref-{number}",
        role,
        text,
        1_790_000_000_000 + number * 1_000,
        (number + 1) * 100,
        tuple(ToolUse(*t) for t in tools),
    )


def digest_of(
    *messages: Said, settings: DigestSettings | None = None, emails: bool = False, wishes: Wishes | None = None
) -> Digest:
    """Return the digest of *messages*."""
    builder = DigestBuilder(settings or DigestSettings(), emails=emails, wishes=wishes)
    for message in messages:
        builder.add(message)
    return builder.build()
