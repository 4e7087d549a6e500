"""
The id of a pending change: the same change always has the same one, so it is never asked twice.

It is a hash over library, kind, targets and content and over nothing else, no time, no run, no reason: what a person
rejected stays rejected until its content is another. Ten letters of 32 hold 50 bits; among a million proposals two
would share an id with a chance of one in two thousand, and the store refuses the second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from curatord.core.values import LibraryName, SkillKey

__all__ = ["Content", "proposal_id"]

Content = str | int | bool | None | Sequence["Content"] | Mapping[str, "Content"]
"""What a change would make: fingerprints, texts or their hashes; plain JSON without floats."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: nothing that reads like something else
_LETTERS = 10


def proposal_id(library: LibraryName, kind: str, targets: Iterable[SkillKey], content: Content) -> str:
    """
    Return the id of a change: 10 characters, lower case, safe in a shell and in a file name.

    Args:
        library: Where it happens.
        kind: What it does, `archive`, `merge`, `patch` …
        targets: The skills it touches; neither order nor repetition matters.
        content: What it would make. For an archiving the fingerprint of each target.
    """
    return _hash([library, kind, sorted({str(target) for target in targets}), content])


def _hash(value: Content) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    number = int.from_bytes(sha256(text.encode("ascii")).digest(), "big") >> (256 - 5 * _LETTERS)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(5 * (_LETTERS - 1), -1, -5))
