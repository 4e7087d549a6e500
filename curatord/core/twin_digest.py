"""
What twin problems follow from, as a digest: as long as it is the same, so are they, and nothing need be compared again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from curatord.core.library import Skill

__all__ = ["Listed", "twin_digest"]

READING = 1  # raised whenever the same skills are found to be twins in another way

Listed = tuple[str, Sequence[Skill]]
"""What is listed together (a host, or the library itself), with sound skills of one library in their order."""


def twin_digest(listed: Iterable[Listed]) -> str:
    """Return a digest of all that `core.skill_quality.twin_problems` looks at: scopes, keys and descriptions."""
    whole = hashlib.sha256(b"%d" % READING)
    for scope, skills in listed:
        texts = [scope, str(len(skills))]
        for skill in skills:
            texts += (skill.key.library, skill.key.rel, skill.content.description)
        # Lengths first, so that no text can be taken for two.
        whole.update(",".join([str(len(text)) for text in texts]).encode())
        whole.update("\0".join(texts).encode("utf-8", "surrogatepass"))
    return whole.hexdigest()
