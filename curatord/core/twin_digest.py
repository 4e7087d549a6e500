"""
What twin problems follow from, as a digest: as long as it is the same, so are they, and nothing need be compared again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from curatord.core.library import Skill

__all__ = ["Listed", "twin_digest"]

READING = 1  # raised whenever the same skills are found to be twins in another way

Listed = tuple[str, Sequence[Skill]]
"""What is listed together (a host, or the library itself), with sound skills of one library in their order."""


def twin_digest(listed: Iterable[Listed]) -> str:
    """Return a digest of all that `core.skill_quality.twin_problems` looks at: scopes, keys and descriptions."""
    told = [
        (
            scope,
            [skill.key.library for skill in skills],
            [skill.key.rel for skill in skills],
            [skill.content.description for skill in skills],
        )
        for scope, skills in listed
    ]
    try:
        data = msgspec.msgpack.encode((READING, told))
    except UnicodeEncodeError:  # a lone surrogate, out of a file's name
        data = repr((READING, told)).encode()
    return hashlib.sha256(data).hexdigest()
