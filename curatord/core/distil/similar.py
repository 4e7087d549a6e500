"""
Which skills a session is about, and whether a new skill is an old one again.

Both are asked of `core.cluster_likeness`, which the umbrella pass measures with too. The limits are those of the field
(peers, "Same-skill / collision guard"): names spelled alike (0.7) with descriptions alike (0.75), or nearly the same
text, are one skill, and a change of it must be a patch; names spelled alike alone confuse whoever has to choose between
them, and are refused.
"""

from __future__ import annotations

from collections.abc import Collection

from curatord.core.cheap import dataclass
from curatord.core.cluster_index import Index
from curatord.core.cluster_likeness import TWIN_CONTENT, TWIN_DESCRIPTION, TWIN_NAME, likeness, most_similar, twins
from curatord.core.cluster_terms import SkillText as ClusterText
from curatord.core.distil.digest import Digest
from curatord.core.distil.view import LibraryView, SkillView

__all__ = ["SHOWN", "TooLike", "nearest", "too_like"]

# A description that is another's says the same trigger twice, whatever the name: every session would have to choose.
SAME_DESCRIPTION = 0.9
NEAR = 10
SHOWN = 3  # contract, section 8: the three most similar, and those that the session used


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLike:
    """The skill that a new one is too like; *patch*: the two are one, so it must be a patch of it."""

    skill: SkillView
    patch: bool
    why: str


def nearest(
    view: LibraryView, digest: Digest, *, used: Collection[str] = (), count: int = SHOWN, index: Index | None = None
) -> tuple[SkillView, ...]:
    """
    Return the skills that a session is about: those it used, then the *count* most like what was said, best first.

    Args:
        view: The library.
        digest: What was said.
        used: Names of skills that the session used, newest use first.
        count: How many beside those.
        index: Of *view*, where the caller has it already.
    """
    by_key = {str(skill.key): skill for skill in view.skills}
    found = {str(skill.key): skill for name in used for skill in view.named(name)}
    library = index or view.index()
    text = "\n".join(entry.text for entry in digest.entries if entry.evidence)
    near = most_similar(library, text, count + len(found))
    beside = [key.key for key in near if key.key not in found and key.key in by_key][:count]
    return (*found.values(), *(by_key[key] for key in beside))


def too_like(
    view: LibraryView, *, name: str, description: str, body: str, index: Index | None = None
) -> TooLike | None:
    """Return the skill of *view* that a new one of that name and text is too like, or None."""
    library = index or view.index()
    by_key = {str(skill.key): skill for skill in view.skills}
    new = ClusterText(key="\0new", name=name, description=description, body=body)
    for twin in twins(library, new, n=3):
        skill = by_key[twin.key]
        if twin.name >= TWIN_NAME and twin.description >= TWIN_DESCRIPTION:
            return TooLike(skill=skill, patch=True, why=f"its name and description are nearly those of {skill.name}")
        if twin.content >= TWIN_CONTENT:
            return TooLike(skill=skill, patch=True, why=f"it says nearly what {skill.name} says")
        if twin.name >= TWIN_NAME:
            return TooLike(skill=skill, patch=False, why=f"its name is spelled nearly like {skill.name}")
    for near in most_similar(library, new, NEAR):
        skill = by_key[near.key]
        if likeness(new, skill.cluster_text(), index=library).description >= SAME_DESCRIPTION:
            return TooLike(skill=skill, patch=True, why=f"its description is that of {skill.name}")
    return None
