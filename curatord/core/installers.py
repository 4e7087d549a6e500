"""
What installers other than Hermes' hub wrote down: the names of skills that they put somewhere.

`.skill-lock.json` beside a library is that of the `skills` command (`npx skills add …`), `.clawhub/lock.json` that of
ClawHub; both hold a mapping `skills` by name. A skill in one of them is replaced at that tool's next update, so it is
not curatord's to change.
"""

from __future__ import annotations

import itertools

import msgspec

from curatord.errors import OwnershipError

__all__ = ["parse_lock", "plugin_words"]


def parse_lock(data: bytes, name: str) -> frozenset[str]:
    """
    Return the names of the skills in the lock file *name*.

    Raises:
        OwnershipError: It is no JSON object, or its `skills` are no mapping.
    """
    hint = f"mend {name}; until then nothing in the library beside it changes"
    try:
        whole = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OwnershipError(f"{name} cannot be read: {error}", hint=hint) from error
    skills = whole.get("skills", {}) if isinstance(whole, dict) else None
    if not isinstance(skills, dict):
        raise OwnershipError(f"{name} holds no mapping of skills", hint=hint)
    return frozenset(skills)


def plugin_words(real_root: str) -> str | None:
    """Return words where the library at *real_root* (links resolved) is a plugin's, as Claude Code unpacks them."""
    parts = real_root.split("/")
    for place in ("cache", "marketplaces", "repos"):
        if any(pair == ("plugins", place) for pair in itertools.pairwise(parts)):
            return f"it is part of a plugin, which the host unpacks anew at each update (`plugins/{place}`)"
    return None
